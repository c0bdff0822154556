"""The same events and a call log give the same reports; a changed prompt is named with what changed (spec sentinels 7)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.remotes import ScriptedRemote
from tests.support.sentinels import Desk, desk, scope, source

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.llm import CallLog, CallLogClient, ModelClient, ModelReply, ModelRequest, ModelRouter
from hankwatch.sentinels.source import SentinelSource
from hankwatch.testing import Answer

VERDICT = {
    "model": "openai/gpt-5-mini",
    "structuredOutput": {
        "output": "object",
        "schemaStr": '{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}',
        "schemaName": "verdict",
    },
}


def _sentinels(prompt: str = "{{ it.events[0].data.message }}?") -> Sequence[SentinelSource]:
    return [
        source("narrator", model="anthropic/claude-haiku-4-5", userPromptText=prompt),
        source("judge", **VERDICT, userPromptText="Was {{ it.events[0].data.message }} right?"),
        source("keeper", model="builtin/digest"),
        source(
            "talker",
            model="acme/new-1",
            systemPromptText="Remember.",
            conversational={"trimmingStrategy": {"type": "maxTurns", "maxTurns": 2}},
        ),
    ]


def _provider(request: ModelRequest) -> Answer:
    sentinel, number = request.labels["sentinelId"], int(request.labels["triggerNumber"])
    if sentinel == "judge":
        return '{"ok": true}' if number % 2 else "no json at all"
    if sentinel == "talker" and number == 3:
        return ModelCallFailed(request.model, "status 401: no", retriable=False, status=401)
    return ModelReply(f"{sentinel} on {number}", 10, number, None if number == 2 else 0.5)


async def _run(root: Path, model: ModelClient, sentinels: Sequence[SentinelSource]) -> Desk:
    async with desk(root, model=model) as d, d.manager.attach(scope(), list(sentinels)) as attached:
        assert not attached.failures
        for number in range(4):
            d.info(f"step {number}", after_ms=100)
            await d.manager.settle()
    return d


@pytest.fixture
async def recorded(tmp_path: Path) -> tuple[Desk, Path]:
    """A run whose calls a provider answered, and its call log."""
    path = tmp_path / "calls.jsonl"
    log = CallLog(path, redactor=Redactor(), on_failure=lambda error: pytest.fail(str(error)))
    clock = VirtualClock()

    class Registered(ScriptedRemote):
        """With the facts of the registry, as the real client's."""

        check = CallLogClient(_empty(tmp_path), redactor=Redactor()).check

    router = ModelRouter({}, redactor=Redactor(), clock=clock, call_log=log, remote=Registered(_provider, clock=clock))
    return await _run(tmp_path / "recorded", router, _sentinels()), path


def _empty(folder: Path) -> Path:
    path = folder / "empty.jsonl"
    path.touch()
    return path


def _outcomes(d: Desk, sentinel: str) -> list[tuple[str, dict[str, Any]]]:
    """What each trigger came to; ids of events and of unrecorded calls are each run's own."""
    own_ids = {"eventIds", "callId"} if sentinel == "keeper" else {"eventIds"}
    return [
        (event.type, {key: value for key, value in event.data.items() if key not in own_ids})
        for event in d.stream.of_type("sentinel.output", "sentinel.error")
        if event.data["sentinelId"] == sentinel
    ]


async def test_a_call_log_gives_the_same_outputs_and_reports(recorded: tuple[Desk, Path], tmp_path: Path) -> None:
    first, path = recorded
    again = await _run(tmp_path / "again", CallLogClient(path, redactor=Redactor()), _sentinels())
    for sentinel in ("narrator", "judge", "keeper", "talker"):
        assert len(_outcomes(first, sentinel)) == 4
        assert _outcomes(again, sentinel) == _outcomes(first, sentinel)
        assert again.report(sentinel).read_bytes() == first.report(sentinel).read_bytes()


async def test_a_changed_prompt_fails_its_sentinel_with_the_difference_and_no_other(
    recorded: tuple[Desk, Path], tmp_path: Path
) -> None:
    first, path = recorded
    client = CallLogClient(path, redactor=Redactor())
    again = await _run(tmp_path / "again", client, _sentinels("What of {{ it.events[0].data.message }}?"))
    failed = again.said("error", sentinel_id="narrator")[0]
    assert failed["errorType"] == "llm-call-failed"
    assert not failed["retriable"]
    assert "sentinel narrator, codon build, trigger 1, which differs" in failed["message"]
    assert "-step 0?\n+What of step 0?" in failed["message"]
    for sentinel in ("judge", "keeper", "talker"):
        assert _outcomes(again, sentinel) == _outcomes(first, sentinel)
