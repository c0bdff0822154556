"""The real programs, a scripted model on loopback, and our command lines and dialects between them.

``HANKWATCH_AGENT_PATH=FOLDER pytest -m realagent`` runs those that are installed; see tests.support.real_agents.
"""

import json
from pathlib import Path

import pytest
from tests.support.agent_model_server import AgentModelServer, Step
from tests.support.real_agents import Turn, find, play, program

from hankwatch.agents.program import AgentProgram, Interrupts, Resumes, Steers, TurnRequest
from hankwatch.agents.signals import Result, Signal, ToolUsed
from hankwatch.agents.translate import Translator

pytestmark = [pytest.mark.realagent, pytest.mark.slow, pytest.mark.timeout(180)]

PROMPT = '--help "two words" $(rm -rf /)\nsecond line \u2028 with {"json": true}\nSay hello.'
SYSTEM = "Be brief, says the author."
BLIND = frozenset({"gemini", "qwen"})
"""Their streams do not tell that a command exited with another code than 0."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def agent_of(name: str, home: Path, server: AgentModelServer) -> tuple[AgentProgram, str]:
    path = find(name)
    assert path is not None
    return program(name, path, home, server.url)


def said(turn: Turn) -> list[str]:
    return [data["content"] for data in turn.of("assistant.action") if data["action"] == "message"]


def calls(turn: Turn) -> list[str]:
    return [data["toolUseId"] for data in turn.of("assistant.action") if data["action"] == "tool_use"]


def arrived(text: str, server: AgentModelServer) -> bool:
    """Whether a request held ``text``, in whichever way its client escapes JSON."""
    return any(
        json.dumps(text, ensure_ascii=ascii_only)[1:-1] in b for b in server.bodies for ascii_only in (True, False)
    )


async def test_a_turn_becomes_its_events(name: str, home: Path, server: AgentModelServer) -> None:
    failing = "sh -c 'echo oops >&2; exit 3'"
    server.script = [Step("Looking.", shell="echo hi there"), Step("Now this.", shell=failing), Step("All done.")]
    agent, model = agent_of(name, home, server)
    translator = Translator("codon")
    turn = await play(agent, agent.command(TurnRequest(PROMPT, model, SYSTEM)), home, translator)
    assert turn.outcome.status == "success", (turn.outcome, turn.stderr)
    assert arrived(PROMPT, server)
    assert arrived(SYSTEM, server)
    assert said(turn) == ["Looking.", "Now this.", "All done."]
    ok, failed = turn.of("tool.result")
    assert calls(turn) == [ok["toolUseId"], failed["toolUseId"]]
    assert "hi there" in ok["result"]
    assert "oops" in failed["result"]
    assert [ok["isError"], failed["isError"]] == [False, name not in BLIND]
    assert turn.session_id
    assert not translator.counts.keys() & {"replayed", "bad_line", "early_results", "unknown_results"}


async def test_a_session_is_taken_up_again(name: str, home: Path, server: AgentModelServer) -> None:
    server.script = [Step("One.", shell="echo 1"), Step("Done."), Step("Two.", shell="echo 2"), Step("Done.")]
    agent, model = agent_of(name, home, server)
    if not isinstance(agent, Resumes):
        pytest.skip(f"{name} resumes no sessions")
    translator = Translator("codon")
    first = await play(agent, agent.command(TurnRequest(PROMPT, model)), home, translator)
    again = await play(agent, agent.resume(TurnRequest("Go on.", model), first.session_id), home, translator)
    assert again.outcome.status == "success", (again.outcome, again.stderr)
    assert again.session_id == first.session_id
    assert [said(first), said(again)] == [["One.", "Done."], ["Two.", "Done."]]
    assert len({*calls(first), *calls(again)}) == 2
    assert "Say hello." in server.bodies[-1]
    assert translator.counts["replayed"] == 0


async def test_a_refused_key_is_a_failure_that_no_retry_helps(name: str, home: Path, server: AgentModelServer) -> None:
    server.script = [Step("invalid x-api-key", status=401)]
    agent, model = agent_of(name, home, server)
    turn = await play(agent, agent.command(TurnRequest("Hello.", model)), home, Translator("codon"))
    assert turn.outcome.status != "success"
    assert turn.outcome.reason is not None
    assert (turn.outcome.reason.type, turn.outcome.reason.retriable) == ("api-error", False)


@pytest.mark.parametrize("name", ["claude", "codex", "copilot", "pi", "vibe", "cline"])
async def test_a_full_context_is_noticed(name: str, home: Path, server: AgentModelServer) -> None:
    if find(name) is None:
        pytest.skip(f"{name} is not installed")
    server.script = [Step("First.", shell="echo hi"), Step("prompt is too long: 250000 tokens > 200000", status=400)]
    agent, model = agent_of(name, home, server)
    turn = await play(agent, agent.command(TurnRequest("Hello.", model)), home, Translator("codon"))
    assert turn.outcome.status != "success"
    assert turn.outcome.context_exceeded


@pytest.fixture
def claude(home: Path, server: AgentModelServer) -> tuple[AgentProgram, str]:
    if find("claude") is None:
        pytest.skip("claude is not installed")
    return agent_of("claude", home, server)


async def test_a_message_sent_while_claude_works_is_read(
    claude: tuple[AgentProgram, str], home: Path, server: AgentModelServer
) -> None:
    agent, model = claude
    assert isinstance(agent, Steers)
    steered = agent.steer("Rather stop now.")
    server.script = [Step("Working.", shell="sleep 1 && echo slept"), Step("Stopped.")]

    def answer(signal: Signal) -> bytes | None:
        return steered if isinstance(signal, ToolUsed) else None

    turn = await play(agent, agent.command(TurnRequest("Work.", model)), home, Translator("codon"), answer)
    assert turn.outcome.status == "success", turn.outcome
    assert arrived("Rather stop now.", server)


async def test_claude_stops_its_tool_when_it_is_interrupted(
    claude: tuple[AgentProgram, str], home: Path, server: AgentModelServer
) -> None:
    agent, model = claude
    assert isinstance(agent, Interrupts)
    interrupt = agent.interrupt("r1")
    server.script = [Step("Working.", shell="python3 -c 'import time; time.sleep(60)'"), Step("Never.")]
    results: list[Result] = []

    def answer(signal: Signal) -> bytes | None:
        if isinstance(signal, Result):
            results.append(signal)
        return interrupt if isinstance(signal, ToolUsed) else None

    turn = await play(agent, agent.command(TurnRequest("Work.", model)), home, Translator("codon"), answer)
    assert [result.subtype for result in results] == ["error_during_execution"]
    assert turn.outcome.status == "failed"
    assert [result["outcome"] for result in turn.of("tool.result")] == ["cancelled"]
