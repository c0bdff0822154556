"""A run whose sentinels asked a provider becomes a check: self-contained, without secrets, and true at once."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.support.checks import played
from tests.support.hanks import codon
from tests.support.model_server import Answer, model_server
from tests.support.runs import Ran, run_here, write_hank

from hankwatch.bench.check import capture as capturing
from hankwatch.bench.check.capture import capture, run_events
from hankwatch.bench.check.seen import observe
from hankwatch.bench.sources import open_source
from hankwatch.core.errors import InfrastructureError, UsageError
from hankwatch.core.redaction import Redactor
from hankwatch.runner.execution import open_execution

KEY = "sk-ant-0123456789abcdef"
EVERY_RESULT = {"type": "event", "on": ["tool.result"]}


def sentinel(name: str, **config: Any) -> dict[str, Any]:
    return {
        "id": name,
        "name": name,
        "model": "anthropic/claude-haiku-4-5",
        "trigger": EVERY_RESULT,
        "execution": {"strategy": "count", "threshold": 3},
        "userPromptText": "What became of {{ it.events | jsonl }}?",
        **config,
    }


SENTINELS = {
    "sentinels/lines.json": sentinel("lines", output={"format": "jsonl"}, userPromptFile="prompts/ask.md"),
    "sentinels/prompts/ask.md": "Look closely.",
    "sentinels/verdict.json": sentinel(
        "verdict", structuredOutput={"output": "object", "schemaFile": "prompts/verdict.schema.json"}
    ),
    "sentinels/prompts/verdict.schema.json": {"type": "object", "required": ["ok"]},
    "sentinels/talker.json": sentinel(
        "talker",
        systemPromptText="Remember.",
        conversational={"trimmingStrategy": {"type": "maxTurns", "maxTurns": 2}},
        execution={"strategy": "debounce", "milliseconds": 40},
    ),
    "sentinels/keeper.json": sentinel("keeper", model="builtin/digest"),
}


def anthropic(text: str) -> Answer:
    """A reply in the provider's own dialect."""
    reply = {"id": "m", "type": "message", "role": "assistant", "model": "claude-haiku-4-5", "stop_reason": "end_turn"}
    usage = {"input_tokens": 1000, "output_tokens": 50}
    return Answer(body=json.dumps({**reply, "content": [{"type": "text", "text": text}], "usage": usage}).encode())


async def observed(fixtures: Path, folder: Path, *script: Answer) -> Ran:
    """Two codons under four sentinels of their own and one from stock, all answered over HTTP."""
    recording = fixtures / "agent-streams" / "claude-loop.jsonl"
    entries = [{"sentinelConfig": name} for name in SENTINELS if "prompts" not in name]
    one = codon("one", agent=f"recorded:{recording}", sentinels=[*entries, {"sentinelConfig": "stock:sweep"}])
    two = codon("two", agent=f"recorded:{recording}", promptText=None, promptFile="two.md", sentinels=entries[:1])
    (folder / "hank" / "sentinels" / "prompts").mkdir(parents=True)
    hank = write_hank(folder / "hank", one, two, files={**SENTINELS, "two.md": f"Use {KEY}."})
    with model_server(*script, default=anthropic('{"ok": true}')) as server:
        environ = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_API_BASE": server.url.removesuffix("/v1")}
        return await run_here(hank, folder / "run", environ=environ)


def made(ran: Ran, out: Path) -> capturing.Captured:
    source = open_source(str(ran.root), ran.root.parent)
    return capture(open_execution(ran.root), source, out, Redactor({"ANTHROPIC_API_KEY": KEY}))


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_it_passes_elsewhere_without_the_run_the_hank_or_a_provider(fixtures: Path, tmp_path: Path) -> None:
    ran = await observed(fixtures, tmp_path, anthropic("no json at all"), Answer(status=401, text="who are you"))
    captured = made(ran, tmp_path / "made")
    assert captured.warnings == ()
    assert captured.calls > 10
    shutil.rmtree(tmp_path / "hank")
    shutil.rmtree(ran.root)
    moved = (tmp_path / "made").rename(tmp_path / "elsewhere") / "check.json"
    result = await played(moved)
    assert list(result.lines()) == []
    expect = json.loads(moved.read_text())["expect"]
    assert set(expect["fires"]) == {"lines", "verdict", "talker", "keeper", "sweep"}
    assert {fire["codon"] for fire in expect["fires"]["lines"]} == {"one", "two"}
    assert [kind for of in expect["errors"].values() for kind in of] == ["llm-call-failed"]
    assert not any(KEY.encode() in path.read_bytes() for path in moved.parent.rglob("*") if path.is_file())
    assert (moved.parent / "two.md").read_text().startswith("Use [redacted:")

    log = moved.parent / "calls.jsonl"
    log.write_bytes(log.read_bytes().replace(b"Look closely.", b"Look away."))
    lines = list((await played(moved)).lines())
    assert any("nearest is" in line for line in lines)
    assert any(line.strip() == "|   -Look away." for line in lines)


async def test_a_long_recording_is_packed(fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = await run_here(fixtures / "sentinel-sweep", tmp_path / "run")
    monkeypatch.setattr(capturing, "_PLAIN_BYTES", 1_000)
    captured = made(ran, tmp_path / "made")
    assert captured.events == gzip.decompress((tmp_path / "made" / "recording.jsonl.gz").read_bytes()).count(b"\n")
    assert (await played(captured.path)).outcome == "passed"
    again = tmp_path / "again"
    made(ran, again)
    assert (again / "recording.jsonl.gz").read_bytes() == (tmp_path / "made" / "recording.jsonl.gz").read_bytes()


async def test_only_the_latest_run_of_an_execution_counts(fixtures: Path, tmp_path: Path) -> None:
    await run_here(fixtures / "sentinel-sweep", tmp_path / "run")
    ran = await run_here(fixtures / "sentinel-sweep", tmp_path / "run", start_new=True)
    assert len(ran.of("sentinel.triggered")) == 2
    seen = observe(run_events(open_source(str(ran.root), tmp_path)))
    assert len(seen["sweep-observer"].fires) == 1
    captured = made(ran, tmp_path / "made")
    result = await played(captured.path)
    assert (result.outcome, result.fires) == ("passed", 1)


async def test_what_has_changed_or_gone_since_is_told(fixtures: Path, tmp_path: Path) -> None:
    hank = shutil.copytree(fixtures / "sentinel-sweep", tmp_path / "hank")
    ran = await run_here(hank, tmp_path / "run")
    config = hank / "hank.json"
    config.write_text(config.read_text().replace('"Step one"', '"Step 1"'))
    assert made(ran, tmp_path / "made").warnings == (f"{config} has changed since the run began",)
    config.unlink()
    with pytest.raises(UsageError, match="is gone"):
        made(ran, tmp_path / "other")
    assert not (tmp_path / "other").exists()


async def test_a_disk_that_fills_up_leaves_no_half_of_a_check(
    fixtures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    ran = await run_here(fixtures / "sentinel-sweep", tmp_path / "run")
    with monkeypatch.context() as disk:
        disk.setattr("hankwatch.bench.check.capture._write_check", full)
        with pytest.raises(InfrastructureError, match="No space left"):
            made(ran, tmp_path / "made")
    assert not (tmp_path / "made").exists()
    assert made(ran, tmp_path / "made").path.exists()


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_loops_retries_and_failures_of_a_long_run_are_played_as_they_were(fixtures: Path, tmp_path: Path) -> None:
    ran = await run_here(fixtures / "grand-tour", tmp_path / "run")
    captured = made(ran, tmp_path / "made")
    result = await played(captured.path)
    assert list(result.lines()) == []
    assert result.fires == len(ran.of("sentinel.triggered")) > 5
