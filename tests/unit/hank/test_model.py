"""The fields of hank.json (reference 2.1-2.5, spec hank 1)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, findings, hank, load, loop

from hankwatch.hank.model import Hank, Loop, refs

FULL = hank(
    codon(
        "full",
        type="codon",
        description="d",
        promptText=None,
        promptFile=["a.md", "b.md"],
        appendSystemPromptFile="a.md",
        agent={"name": "claude", "command": ["claude", "--x"], "env": {"A": "b"}},
        rigSetup=[
            {"type": "copy", "copy": {"from": "a.md", "to": "x"}, "allowFailure": True},
            {"type": "command", "command": {"run": "true", "workingDirectory": "lastCopied"}},
        ],
        checkpointedFiles=["**/*"],
        env={"A": ""},
        outputFiles=[{"copy": ["x"], "beforeCopy": ["true", {"type": "command", "command": {"run": "true"}}]}],
        sentinels=[],
        archiveOnSuccess=["x"],
        onFailure="retry",
        retryConfig={"maxAttempts": 10, "delayMs": 0, "maxDelayMs": 600000},
        exhaustWithPrompt="more",
        maxExtensions=3,
        autoCompact=True,
        shimIdleTimeout=1800,
        budget={"maxDollars": 0.01, "maxTimeSeconds": 1, "maxOutputTokens": 1, "maxContextTokens": 1},
        watchdog={"max_consecutive_errors": 0, "mode": "observe", "tool_classes": {"Edit": "mutate"}},
        waitForWatches=True,
        waitLimitSeconds=1,
        mcp=True,
    ),
    loop(codon("inner"), description="d", budget={"maxDollars": 1}, archiveOnSuccess=["y"]),
    **{
        "$schema": "x",
        "meta": {"name": "n", "version": "1", "description": "d", "author": "a"},
        "overrides": {
            "model": "opus",
            "dataHashTimeLimit": 1,
            "sentinel": {
                "enablePersistence": True,
                "healthCheckGracePeriodMs": 1,
                "waitForAllHealthChecks": False,
                "maxConcurrentCalls": 2,
                "drainSeconds": 0.5,
            },
            "shimIdleTimeout": 1,
            "budget": {"maxDollars": 9, "allocation": "proportional", "shares": {"full": 0.5}},
        },
        "requirements": {"env": [" TOKEN "]},
        "globalSystemPromptFile": "a.md",
        "watchdog": "default",
    },
)


def test_a_hank_with_every_field_loads(tmp_path: Path) -> None:
    loaded = load(tmp_path, FULL, {"a.md": "a", "b.md": "b"})
    assert loaded.diagnostics.errors == []
    assert loaded.config is not None
    assert loaded.config.requirements is not None
    assert loaded.config.requirements.env == ("TOKEN",)
    assert [pointer for pointer, _ in loaded.config.codons()] == ["/hank/0", "/hank/1/codons/0"]
    assert isinstance(loaded.config.hank[1], Loop)


def test_what_is_left_out_has_the_contracts_defaults() -> None:
    made = Hank.model_validate_json(
        '{"hank":[{"id":"a","name":"a","model":"m","continuationMode":"fresh","onFailure":"retry","retryConfig":{}}]}'
    )
    ((_, only),) = made.codons()
    assert only.retry_config is not None
    assert (only.retry_config.max_attempts, only.retry_config.delay_ms, only.retry_config.max_delay_ms) == (
        3,
        1000,
        60_000,
    )
    assert (only.max_extensions, only.wait_limit_seconds, only.auto_compact, only.mcp) == (100, 86_400, False, False)


NUMBERS = {
    "/hank/0/retryConfig/maxAttempts": (1, 10),
    "/hank/0/retryConfig/delayMs": (0, 60_000),
    "/hank/0/retryConfig/maxDelayMs": (0, 600_000),
    "/hank/0/maxExtensions": (1, None),
    "/hank/0/shimIdleTimeout": (1, 1800),
    "/hank/0/budget/maxDollars": (0, None),
    "/hank/0/budget/maxTimeSeconds": (0, None),
    "/hank/0/budget/maxOutputTokens": (1, None),
    "/hank/0/budget/maxContextTokens": (1, None),
    "/hank/0/waitLimitSeconds": (0, None),
    "/hank/0/watchdog/refractory_seconds": (0, None),
    "/hank/0/watchdog/max_consecutive_errors": (0, None),
    "/overrides/dataHashTimeLimit": (1, None),
    "/overrides/shimIdleTimeout": (1, 1800),
    "/overrides/sentinel/maxConcurrentCalls": (1, None),
    "/overrides/sentinel/drainSeconds": (0, None),
    "/overrides/budget/maxDollars": (0, None),
    "/overrides/budget/maxTimeSeconds": (0, None),
}


def _with(pointer: str, value: Any) -> dict[str, Any]:
    made: dict[str, Any] = hank(codon(onFailure="retry"))
    *way, last = pointer.split("/")[1:]
    node: Any = made
    for step in way:
        node = node[int(step)] if isinstance(node, list) else node.setdefault(step, {})
    node[last] = value
    return made


@pytest.mark.parametrize("pointer", NUMBERS)
@pytest.mark.parametrize("given", [-1, "5", True, None, [], float("nan")])
def test_a_number_is_refused_with_its_range(tmp_path: Path, pointer: str, given: Any) -> None:
    loaded = load(tmp_path, _with(pointer, given))
    faults = [d for d in loaded.diagnostics.errors if d.pointer == pointer]
    assert loaded.config is None
    assert faults[-1].message.startswith("must be a") or faults[0].message.startswith("must be a")


@pytest.mark.parametrize("pointer", NUMBERS)
def test_a_number_may_be_at_its_limits_and_not_beyond(tmp_path: Path, pointer: str) -> None:
    low, high = NUMBERS[pointer]
    if low:
        assert load(tmp_path, _with(pointer, low)).config is not None
        assert load(tmp_path, _with(pointer, low - 1)).config is None
    if high is not None:
        assert load(tmp_path, _with(pointer, high)).config is not None
        assert load(tmp_path, _with(pointer, high + 1)).config is None


@pytest.mark.parametrize(
    ("content", "pointer", "hint"),
    [
        (hank(codon(), sentinels=[]), "/sentinels", "belong to a codon"),
        (hank(codon(), model="opus"), "/model", "move it into an item of 'hank'"),
        (hank(codon(), checkpointedFiles=[]), "/checkpointedFiles", "move it into an item of 'hank'"),
        (hank(codon(), codons=[]), "/codons", "called 'hank'"),
        (hank(codon(systemPrompt="x")), "/hank/0/systemPrompt", "appendSystemPromptFile"),
        (hank(codon(trackedFiles=[])), "/hank/0/trackedFiles", "checkpointedFiles"),
        (hank(codon(rig=[])), "/hank/0/rig", "rigSetup"),
        (hank(codon(archive=[])), "/hank/0/archive", "archiveOnSuccess"),
        (hank(codon(mode="fresh")), "/hank/0/mode", "continuationMode"),
        (hank(codon(maxCost=1)), "/hank/0/maxCost", "maxDollars"),
        (hank(codon(terminateOn={})), "/hank/0/terminateOn", '"type": "loop"'),
        (hank(codon(globalSystemPromptText="x")), "/hank/0/globalSystemPromptText", "root of the file"),
        (hank(loop(codon(), limit=3)), "/hank/0/limit", "terminateOn"),
        (
            hank(codon(rigSetup=[{"type": "command", "command": {"run": "x"}, "workingDirectory": "project"}])),
            "/hank/0/rigSetup/0/workingDirectory",
            "belongs into 'command'",
        ),
        (hank(codon(onFailre="retry")), "/hank/0/onFailre", "did you mean 'onFailure'?"),
        (hank(codon(watchdog={"max_consecutive_error": 1})), "/hank/0/watchdog/max_consecutive_error", "did you mean"),
    ],
)
def test_a_key_in_the_wrong_place_is_told_the_right_one(
    tmp_path: Path, content: dict[str, Any], pointer: str, hint: str
) -> None:
    (fault,) = load(tmp_path, content).diagnostics.errors
    assert (fault.code, fault.pointer) == ("unknown-key", pointer)
    assert hint in str(fault.hint)


@pytest.mark.parametrize(
    ("content", "pointer"),
    [
        ({}, "/hank"),
        (hank(), "/hank"),
        (hank(codon(continuationMode=None)), "/hank/0/continuationMode"),
        (hank(codon(continuationMode="continue")), "/hank/0/continuationMode"),
        (hank(codon(name="")), "/hank/0/name"),
        (hank(codon(id="")), "/hank/0/id"),
        (hank(codon(id="../x")), "/hank/0/id"),
        (hank(codon(id="x\n")), "/hank/0/id"),
        (hank(codon(type="lop")), "/hank/0/type"),
        (hank(loop(loop(codon()))), "/hank/0/codons/0/type"),
        (hank(loop(codon(), terminateOn={"type": "never"})), "/hank/0/terminateOn/type"),
        (hank(loop(codon(), terminateOn={"type": "iterationLimit", "limit": 0})), "/hank/0/terminateOn/limit"),
        (hank(codon(rigSetup=[{"type": "move"}])), "/hank/0/rigSetup/0/type"),
        (hank(codon(), meta={"name": "x"}), "/meta/version"),
        (hank(codon(), requirements={"env": [" "]}), "/requirements/env/0"),
        (hank(codon(watchdog="on")), "/hank/0/watchdog"),
        (hank(codon(watchdog={"nudge_text": " "})), "/hank/0/watchdog/nudge_text"),
        (hank(codon(outputFiles=[{"copy": []}])), "/hank/0/outputFiles/0/copy"),
        ([], ""),
    ],
)
def test_the_fault_stands_where_it_is(tmp_path: Path, content: Any, pointer: str) -> None:
    loaded = load(tmp_path, content)
    assert loaded.config is None
    assert pointer in [d.pointer for d in loaded.diagnostics.errors]


def test_a_nested_loop_says_that_loops_do_not_nest_in_its_tag(tmp_path: Path) -> None:
    loaded = load(tmp_path, hank(loop(loop(codon(), id="inner"))))
    assert any(d.message == "must be 'codon', not \"loop\"" for d in loaded.diagnostics.errors)


def test_no_finding_repeats_another(tmp_path: Path) -> None:
    found = findings(load(tmp_path, hank(codon(onFailre=1), codon(onFailre=1))))
    assert len(found) == len(set(found))


def test_refs_are_a_tuple_however_they_are_written() -> None:
    assert [refs(None), refs("a"), refs(("a", "b"))] == [(), ("a",), ("a", "b")]
