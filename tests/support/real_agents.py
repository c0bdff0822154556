"""The real agent programs, set up in a home of their own to talk to a model server on loopback.

They are looked for in the folders of ``HANKWATCH_AGENT_PATH`` (as in PATH), else on PATH.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from hankwatch.agents.catalogue import PROGRAMS
from hankwatch.agents.evidence import Evidence
from hankwatch.agents.outcome import Outcome, decide
from hankwatch.agents.program import AgentProgram, Command
from hankwatch.agents.signals import Result, Signal
from hankwatch.agents.translate import Translator
from hankwatch.core.clock import SystemClock
from hankwatch.events.envelope import EventData
from hankwatch.processes.child import Child, spawn

KEY = "dummy-not-a-key"


@dataclass(frozen=True, slots=True)
class Setup:
    """What a program needs to find the model server."""

    env: Mapping[str, str]
    model: str
    """As a hank names it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a real program that is over."""

    events: list[tuple[str, EventData]]
    session_id: str
    outcome: Outcome
    stderr: str

    def of(self, event_type: str) -> list[EventData]:
        return [data for kind, data in self.events if kind == event_type]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _claude(home: Path, url: str, path: str) -> Setup:
    quiet = ("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER")
    env = {
        **dict.fromkeys((*quiet, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1"),
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
    }
    return Setup(env, "anthropic/claude-haiku-4-5")


def _codex(home: Path, url: str, path: str) -> Setup:
    provider = f'name = "local"\nbase_url = "{url}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
    limits = "request_max_retries = 0\nstream_max_retries = 0\n"
    config = f'model_provider = "local"\n[model_providers.local]\n{provider}{limits}'
    _write(home / ".codex" / "config.toml", config)
    return Setup({"OPENAI_API_KEY": KEY}, "openai/gpt-5.5")


def _gemini(home: Path, url: str, path: str) -> Setup:
    auth = {"auth": {"selectedType": "gemini-api-key"}}
    _write(
        home / ".gemini" / "settings.json", json.dumps({"security": auth, "privacy": {"usageStatisticsEnabled": False}})
    )
    return Setup({"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url}, "google/gemini-2.5-flash")


def _qwen(home: Path, url: str, path: str) -> Setup:
    _write(home / ".qwen" / "settings.json", json.dumps({"privacy": {"usageStatisticsEnabled": False}}))
    return Setup({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1"}, "fake-model")


def _opencode(home: Path, url: str, path: str) -> Setup:
    model = {"name": "fake", "cost": {"input": 1, "output": 5}, "limit": {"context": 128000, "output": 8192}}
    options = {"baseURL": f"{url}/v1", "apiKey": KEY}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"fake-model": model}}
    _write(home / ".config" / "opencode" / "opencode.json", json.dumps({"provider": {"loop": provider}}))
    return Setup(
        dict.fromkeys(("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH"), "1"), "loop/fake-model"
    )


def _pi(home: Path, url: str, path: str) -> Setup:
    cost = {"input": 1, "output": 5, "cacheRead": 0.1, "cacheWrite": 0}
    model = {"id": "fake-model", "cost": cost, "contextWindow": 128000, "maxTokens": 8192}
    provider = {"baseUrl": f"{url}/v1", "apiKey": KEY, "api": "openai-completions", "models": [model]}
    _write(home / ".pi" / "agent" / "models.json", json.dumps({"providers": {"loop": provider}}))
    return Setup({"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}, "pi/loop/fake-model")


def _copilot(home: Path, url: str, path: str) -> Setup:
    env = {"COPILOT_PROVIDER_BASE_URL": f"{url}/v1", "COPILOT_PROVIDER_API_KEY": KEY, "COPILOT_OFFLINE": "true"}
    return Setup(env, "openai/fake-model")


def _vibe(home: Path, url: str, path: str) -> Setup:
    provider = f'name = "loop"\napi_base = "{url}/v1"\napi_key_env_var = "MISTRAL_API_KEY"\nbackend = "generic"\n'
    model = 'name = "fake-model"\nprovider = "loop"\nalias = "fake"\n'
    settings = "enable_telemetry = false\nenable_update_checks = false\n"
    _write(home / ".vibe" / "config.toml", f"{settings}[[providers]]\n{provider}[[models]]\n{model}")
    return Setup({"MISTRAL_API_KEY": KEY}, "mistral/fake")


def _openhands(home: Path, url: str, path: str) -> Setup:
    quiet = {"OPENHANDS_SUPPRESS_BANNER": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    # It fetches skills from a public repository at each start; here it finds none, at once.
    git = {"COUNT": "1", "KEY_0": "url.file:///nonexistent/.insteadOf", "VALUE_0": "https://github.com/"}
    quiet |= {f"GIT_CONFIG_{name}": value for name, value in git.items()}
    return Setup({"LLM_BASE_URL": f"{url}/v1", "LLM_API_KEY": KEY, **quiet}, "openai/fake-model")


def _cline(home: Path, url: str, path: str) -> Setup:
    provider = "openai-compatible"
    login = [path, "auth", "-p", provider, "-k", KEY, "-m", "fake-model", "-b", f"{url}/v1"]
    subprocess.run(login, env=clean_environment(home), cwd=home, check=True, timeout=60, capture_output=True)
    return Setup({}, f"{provider}/fake-model")


SETUPS: Mapping[str, Callable[[Path, str, str], Setup]] = {
    "claude": _claude,
    "codex": _codex,
    "gemini": _gemini,
    "qwen": _qwen,
    "opencode": _opencode,
    "pi": _pi,
    "copilot": _copilot,
    "vibe": _vibe,
    "openhands": _openhands,
    "cline": _cline,
}


def clean_environment(home: Path) -> dict[str, str]:
    """Nothing of ours but PATH."""
    plain = {"LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "TZ": "UTC", "SHELL": "/bin/sh"}
    return {**plain, "HOME": str(home), "PATH": os.environ["PATH"]}


def find(name: str) -> str | None:
    """The path of a program, or None where it is not installed."""
    return shutil.which(name, path=os.environ.get("HANKWATCH_AGENT_PATH", os.environ["PATH"]))


def program(name: str, path: str, home: Path, url: str) -> tuple[AgentProgram, str]:
    """The program as an agent, and the model to ask for."""
    setup = SETUPS[name](home, url, path)
    return PROGRAMS[name]((path,), setup.env), setup.model


async def play(
    agent: AgentProgram,
    command: Command,
    home: Path,
    translator: Translator,
    answer: Callable[[Signal], bytes | None] = lambda _: None,
) -> Turn:
    """Run one turn to its end, as the runner does; ``answer`` may say what to write to stdin after a signal."""
    dialect, evidence, clock = agent.dialect(), Evidence(), SystemClock()
    events: list[tuple[str, EventData]] = []
    cwd = home / "work"
    cwd.mkdir(exist_ok=True)

    async def take(signals: list[Signal], child: Child) -> None:
        for signal in signals:
            evidence.note(signal)
            events.extend((p.TYPE, p.dump()) for p in translator.translate(signal, int(clock.monotonic() * 1000)))
            if line := answer(signal):
                await child.send(line)
            if isinstance(signal, Result):
                child.close_stdin()

    env = {**clean_environment(home), **command.env}
    marker, has_input = f"{home.name}-{uuid4().hex}/codon/1", bool(command.stdin_lines)
    async with spawn(command.argv, cwd=cwd, env=env, marker=marker, clock=clock, stdin=has_input) as child:
        for prompt in command.stdin_lines:
            await child.send(prompt)
        if has_input and not command.stdin_open:
            child.close_stdin()
        async for line in child.lines():
            await take(dialect.feed(line.data), child)
        await take(dialect.finish(), child)
        exit_ = await child.wait()
    ending = evidence.ending(
        exit_code=exit_.code, signal=exit_.signal, states_result=dialect.states_result, stderr=child.stderr_tail()
    )
    return Turn(events, translator.session_id, decide(ending), child.stderr_tail())


def installed(name: str, folder: Path, url: str) -> tuple[dict[str, object], str, dict[str, str]]:
    """How a hank names a program that is installed, the model it asks at ``url``, and the environment of the run.

    Its home is made in ``folder``.
    """
    home = folder / "home"
    home.mkdir()
    path = find(name)
    assert path is not None
    agent, model = program(name, path, home, url)
    env = {**clean_environment(home), **getattr(agent, "env", {})}
    return {"name": name, "command": [path], "env": env}, model, env
