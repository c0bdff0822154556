"""Rules between the fields of a hank (reference 2.1-2.4, 2.6)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, findings, hank, load, loop

EXHAUST = {"exhaustWithPrompt": "go on", "checkpointedFiles": ["*"]}
KEPT = {"checkpointedFiles": ["*"]}
NEXT = {"continuationMode": "continue-previous"}
FULL = {"terminateOn": {"type": "contextExceeded"}}
COPY = {"type": "copy", "copy": {"from": "tpl", "to": "tpl"}}

ERRORS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no prompt": (hank(codon(promptText=None)), "prompt-missing", "/hank/0"),
    "an empty list of prompts": (hank(codon(promptText=None, promptFile=[])), "prompt-missing", "/hank/0"),
    "two global system prompts": (
        hank(codon(), globalSystemPromptFile="p.md", globalSystemPromptText="x"),
        "prompt-twice",
        "/globalSystemPromptText",
    ),
    "two system prompts of a codon": (
        hank(codon(appendSystemPromptFile="p.md", appendSystemPromptText="x")),
        "prompt-twice",
        "/hank/0/appendSystemPromptText",
    ),
    "an id in a loop again": (hank(codon("a"), loop(codon("a", name="x"))), "duplicate-id", "/hank/1/codons/0/id"),
    "a loop's id again": (hank(codon("a"), loop(codon("b"), id="a")), "duplicate-id", "/hank/1/id"),
    "retries without the policy": (hank(codon(retryConfig={})), "retry-config", "/hank/0/retryConfig"),
    "an archive above": (hank(codon(archiveOnSuccess=["a/../b"])), "path-outside", "/hank/0/archiveOnSuccess/0"),
    "an absolute glob": (hank(codon(checkpointedFiles=["/etc/*"])), "path-outside", "/hank/0/checkpointedFiles/0"),
    "a rig target outside": (
        hank(codon(rigSetup=[{"type": "copy", "copy": {"from": "tpl", "to": "../../x"}}])),
        "rig-target",
        "/hank/0/rigSetup/0/copy/to",
    ),
    "a variable with a bad name": (hank(codon(env={"A B": "x"})), "env-name", "/hank/0/env/A B"),
    "a value with a NUL": (hank(codon(env={"A": "x\0"})), "env-value", "/hank/0/env/A"),
    "shares of a shared pool": (
        hank(codon(), overrides={"budget": {"maxDollars": 1, "shares": {"one": 0.5}}}),
        "shares-allocation",
        "/overrides/budget/shares",
    ),
    "shares of nothing": (
        hank(codon(), overrides={"budget": {"allocation": "proportional"}}),
        "shares-limit",
        "/overrides/budget",
    ),
    "a share of nobody": (
        hank(codon(), overrides={"budget": {"maxDollars": 1, "allocation": "proportional", "shares": {"on": 1}}}),
        "shares-unknown",
        "/overrides/budget/shares/on",
    ),
    "shares above 1": (
        hank(
            loop(
                codon("a"),
                codon("b"),
                budget={"maxDollars": 1, "allocation": "proportional-strict", "shares": {"a": 0.7, "b": 0.4}},
            )
        ),
        "shares-sum",
        "/hank/0/budget/shares",
    ),
    "a fresh codon in a context loop": (hank(loop(codon(), **FULL)), "loop-fresh", "/hank/0/codons/0/continuationMode"),
    "going on after a context loop": (
        hank(codon("z", **KEPT), loop(codon("a", **NEXT, **KEPT), **FULL), codon("b", **NEXT)),
        "continue-exhausted",
        "/hank/2/continuationMode",
    ),
    "going on after an exhausted codon": (
        hank(codon("a", **EXHAUST), codon("b", **NEXT)),
        "continue-exhausted",
        "/hank/1/continuationMode",
    ),
    "going on after a loop whose last codon is exhausted": (
        hank(loop(codon("a", **EXHAUST)), codon("b", **NEXT)),
        "continue-exhausted",
        "/hank/1/continuationMode",
    ),
    "going on inside a loop after an exhausted codon": (
        hank(loop(codon("a", **EXHAUST), codon("b", **NEXT))),
        "continue-exhausted",
        "/hank/0/codons/1/continuationMode",
    ),
    "going on with another model": (
        hank(codon("a", **KEPT), codon("b", model="opus", **NEXT)),
        "continue-model",
        "/hank/1/model",
    ),
    "going on inside a loop with another model": (
        hank(loop(codon("a", **KEPT), codon("b", model="opus", **NEXT))),
        "continue-model",
        "/hank/0/codons/1/model",
    ),
    "going on after a loop with another model": (
        hank(loop(codon("a", model="x"), codon("c", model="opus", **KEPT)), codon("b", model="x", **NEXT)),
        "continue-model",
        "/hank/1/model",
    ),
}
WARNINGS: dict[str, tuple[dict[str, Any], str, str]] = {
    "a prompt that is not used": (hank(codon(promptFile="p.md")), "prompt-twice", "/hank/0/promptText"),
    "a name again": (hank(codon("a", name="x"), codon("b", name="x")), "duplicate-name", "/hank/1/name"),
    "an id with the mark of iterations": (hank(codon("a#1")), "reserved-id", "/hank/0/id"),
    "going on first": (hank(codon(**NEXT)), "continue-first", "/hank/0/continuationMode"),
    "going on after an ignored failure": (
        hank(codon("a", onFailure="ignore", **KEPT), codon("b", **NEXT)),
        "continue-ignored",
        "/hank/1/continuationMode",
    ),
    "going on without a checkpoint": (
        hank(codon("a"), codon("b", **NEXT)),
        "continue-checkpoint",
        "/hank/1/continuationMode",
    ),
    "a loop that one failure ends": (hank(loop(codon(onFailure="abort"))), "loop-abort", "/hank/0/codons/0"),
    "a rig that one failure ends": (hank(loop(codon(rigSetup=[COPY]))), "loop-rig", "/hank/0/codons/0/rigSetup/0"),
    "a destructive command": (
        hank(codon(rigSetup=[{"type": "command", "command": {"run": "cd x; rm -rf / --no-preserve-root"}}])),
        "rig-dangerous",
        "/hank/0/rigSetup/0/command/run",
    ),
    "a limit above its pool": (
        hank(codon(budget={"maxDollars": 5}), overrides={"budget": {"maxDollars": 2}}),
        "budget-cap",
        "/hank/0/budget/maxDollars",
    ),
    "a limit above its share": (
        hank(
            codon("a", budget={"maxDollars": 2}),
            codon("b"),
            overrides={"budget": {"maxDollars": 3, "allocation": "proportional", "shares": {"a": 0.5}}},
        ),
        "budget-cap",
        "/hank/0/budget/maxDollars",
    ),
    "a time limit above its loop's": (
        hank(loop(codon(budget={"maxTimeSeconds": 9}), budget={"maxTimeSeconds": 5})),
        "budget-cap",
        "/hank/0/codons/0/budget/maxTimeSeconds",
    ),
    "a loop's limit above the hank's": (
        hank(loop(codon(), budget={"maxDollars": 5}), overrides={"budget": {"maxDollars": 2}}),
        "budget-cap",
        "/hank/0/budget/maxDollars",
    ),
    "a limit above what shares leave": (
        hank(
            codon("a"),
            codon("b", budget={"maxDollars": 1}),
            codon("c"),
            overrides={"budget": {"maxDollars": 3, "allocation": "proportional", "shares": {"a": 0.5}}},
        ),
        "budget-cap",
        "/hank/1/budget/maxDollars",
    ),
    "a limit below a strict share": (
        hank(
            codon("a", budget={"maxDollars": 1}),
            codon("b"),
            overrides={"budget": {"maxDollars": 3, "allocation": "proportional-strict", "shares": {"a": 0.5}}},
        ),
        "budget-strict-waste",
        "/hank/0/budget/maxDollars",
    ),
    "a remainder nobody has": (
        hank(codon("a"), overrides={"budget": {"maxDollars": 3, "allocation": "proportional", "shares": {"a": 0.5}}}),
        "budget-remainder",
        "/overrides/budget/shares",
    ),
    "a child without anything": (
        hank(
            codon("a"),
            codon("b"),
            overrides={"budget": {"maxDollars": 3, "allocation": "proportional", "shares": {"a": 1}}},
        ),
        "budget-zero-share",
        "/overrides/budget/shares",
    ),
    "a failure that is not retried": (
        hank(codon(onFailure="retry", budget={"maxDollars": 1, "onExceeded": "fail"})),
        "budget-fail-retry",
        "/hank/0/budget/onExceeded",
    ),
    "a pool that fails late": (
        hank(codon("a"), codon("b"), overrides={"budget": {"maxDollars": 1, "onExceeded": "fail"}}),
        "budget-fail-late",
        "/overrides/budget/onExceeded",
    ),
    "extensions under a time limit": (
        hank(codon(**EXHAUST, budget={"maxTimeSeconds": 60})),
        "budget-extensions",
        "/hank/0/budget/maxTimeSeconds",
    ),
}
FILES: dict[str, str | bytes] = {"p.md": "Do it.", "tpl/a.txt": "a"}


@pytest.mark.parametrize("name", ERRORS)
def test_this_is_an_error(tmp_path: Path, name: str) -> None:
    content, code, pointer = ERRORS[name]
    loaded = load(tmp_path, content, FILES)
    assert [f for f in findings(loaded) if f[0] == "error"] == [("error", code, pointer)]


@pytest.mark.parametrize("name", WARNINGS)
def test_this_is_a_warning(tmp_path: Path, name: str) -> None:
    content, code, pointer = WARNINGS[name]
    assert findings(load(tmp_path, content, FILES)) == [("warning", code, pointer)]


@pytest.mark.parametrize(
    "content",
    [
        hank(codon("a", **KEPT), codon("b", **NEXT)),
        hank(loop(codon("a", **KEPT), codon("b", **NEXT)), codon("c", model="opus")),
        hank(codon("z", **KEPT), loop(codon("a", **NEXT, **KEPT), **FULL), codon("b")),
        hank(codon(onFailure="retry", retryConfig={"maxAttempts": 1})),
        hank(codon(rigSetup=[COPY, {"type": "copy", "copy": {"from": "tpl", "to": "../side"}}])),
        hank(codon(rigSetup=[{"type": "command", "command": {"run": "rm -rf ./build /tmp/x"}}])),
        hank(
            codon("a"),
            codon("b"),
            overrides={"budget": {"maxDollars": 1, "allocation": "proportional", "shares": {"a": 0.1, "b": 0.9}}},
        ),
        hank(
            codon("a", budget={"maxDollars": 1}),
            codon("b", budget={"maxDollars": 0.5}),
            codon("c", budget={"maxDollars": 0.2}),
            overrides={"budget": {"maxDollars": 2, "allocation": "proportional", "shares": {"a": 0.5}}},
        ),
        hank(
            loop(codon(budget={"maxDollars": 1}), budget={"maxDollars": 2, "maxTimeSeconds": 5}),
            overrides={"budget": {"maxDollars": 2, "maxTimeSeconds": 5}},
        ),
    ],
)
def test_this_is_fine(tmp_path: Path, content: dict[str, Any]) -> None:
    assert findings(load(tmp_path, content, FILES)) == []


def test_every_finding_has_a_line_and_a_hint(tmp_path: Path) -> None:
    for content, code, _ in [*ERRORS.values(), *WARNINGS.values()]:
        for diagnostic in load(tmp_path, content, FILES).diagnostics:
            assert diagnostic.line is not None
            assert diagnostic.hint, code
