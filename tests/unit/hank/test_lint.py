"""Lints of sentinels and models: what is allowed and will disappoint (spec hank 1)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, findings, hank, load, loop, sentinel

from hankwatch.hank.load import check_sentinel

AT = "/hank/0/sentinels/0/sentinelConfig"
KEY = {"ANTHROPIC_API_KEY": "k"}


def on(*types: str, **condition: Any) -> dict[str, Any]:
    """An event trigger with one condition."""
    return {"type": "event", "on": list(types), "conditions": [condition]}


def equals(path: str, value: Any, operator: str = "equals") -> dict[str, Any]:
    return {"path": path, "operator": operator, "value": value}


def sequence(*steps: dict[str, Any], on: tuple[str, ...] = ("tool.result",)) -> dict[str, Any]:
    return {"type": "sequence", "interestFilter": {"on": list(on)}, "pattern": list(steps)}


def of_sentinel(tmp_path: Path, env: dict[str, str] | None = None, **fields: Any) -> list[tuple[str, str, str]]:
    """The findings about one inline sentinel of a codon without a fault, pointers relative to its config."""
    around: dict[str, Any] = fields.pop("around", {})
    entry = {"sentinelConfig": sentinel(**fields), **around.pop("entry", {})}
    loaded = load(tmp_path, hank(codon(sentinels=[entry], **around)), env=env)
    return [(severity, code, pointer.removeprefix(AT)) for severity, code, pointer in findings(loaded)]


WARNED: dict[str, tuple[dict[str, Any], str, str]] = {
    "a prompt without events": ({"userPromptText": "What?"}, "prompt-without-events", "/userPromptText"),
    "a model that no provider has": ({"model": "haiku"}, "model-without-provider", "/model"),
    "a type that is never routed": (
        {"trigger": {"type": "event", "on": ["codon.completed", "sentinel.output"]}},
        "never-routed",
        "/trigger/on/1",
    ),
    "a value that an enum lacks": (
        {"trigger": on("tool.result", **equals("outcome", "eror"))},
        "unknown-enum-value",
        "/trigger/conditions/0/value",
    ),
    "a value of another type": (
        {"trigger": on("tool.result", **equals("outcome", 1))},
        "unknown-enum-value",
        "/trigger/conditions/0/value",
    ),
    "a value that no type has": (
        {"trigger": on("tool.result", "file.updated", **equals("action", "ok"))},
        "unknown-enum-value",
        "/trigger/conditions/0/value",
    ),
    "a value among others": (
        {"trigger": on("tool.result", **equals("outcome", ["ok", "fine"], "in"))},
        "unknown-enum-value",
        "/trigger/conditions/0/value/1",
    ),
    "a value that is excluded in vain": (
        {"trigger": on("assistant.action", **equals("action", "tool", "notEquals"))},
        "unknown-enum-value",
        "/trigger/conditions/0/value",
    ),
    "a text that no value of an enum has": (
        {"trigger": on("assistant.action", **equals("action", "tool-", "contains"))},
        "unknown-enum-value",
        "/trigger/conditions/0/value",
    ),
    "a pattern that no value of an enum matches": (
        {"trigger": on("assistant.action", **equals("action", "^tool$", "matches"))},
        "unknown-enum-value",
        "/trigger/conditions/0/value",
    ),
    "a value in a step": (
        {"trigger": sequence({"type": "*"}, {"type": "tool.result", "conditions": [equals("outcome", "eror")]})},
        "unknown-enum-value",
        "/trigger/pattern/1/conditions/0/value",
    ),
    "a value in a step of any type": (
        {"trigger": sequence({"type": "*", "conditions": [equals("outcome", "eror")]})},
        "unknown-enum-value",
        "/trigger/pattern/0/conditions/0/value",
    ),
    "a pattern with lookahead": (
        {"trigger": on("tool.result", **equals("result", "(?=x)", "matches"))},
        "regex-not-linear",
        "/trigger/conditions/0/value",
    ),
    "a pattern with a backreference, negated": (
        {"trigger": on("tool.result", **equals("result", r"(a)\1", "notMatches"))},
        "regex-not-linear",
        "/trigger/conditions/0/value",
    ),
    "a pause longer than the codon": (
        {
            "execution": {"strategy": "debounce", "milliseconds": 61_000},
            "around": {"budget": {"maxTimeSeconds": 60}},
        },
        "debounce-over-budget",
        "/execution/milliseconds",
    ),
    "a report among the checkpointed files": (
        {"output": {"file": "notes/a.md"}, "around": {"checkpointedFiles": ["src/**", "notes/*.md"]}},
        "report-checkpointed",
        "/output/file",
    ),
    "a latest report in a checkpointed folder": (
        {"output": {"file": "a.md", "lastValueFile": "./notes/a.md"}, "around": {"checkpointedFiles": ["notes"]}},
        "report-checkpointed",
        "/output/lastValueFile",
    ),
    "a report that the agent is to write": (
        {"output": {"file": "docs/log.md"}, "around": {"promptText": "Append what you did to docs/log.md."}},
        "report-edited-by-agent",
        "/output/file",
    ),
    "a report that the agent is to write, said elsewhere": (
        {
            "output": {"file": "docs/log.md"},
            "around": {"appendSystemPromptText": "<%PROJECT_DIR%>/docs/log.md must be kept up to date."},
        },
        "report-edited-by-agent",
        "/output/file",
    ),
}
"""Each a sentinel's fields (``around`` are its codon's), the finding's code, and its place."""

FINE: dict[str, dict[str, Any]] = {
    "a builtin model reads the events itself": {"model": "builtin/digest", "userPromptText": "x"},
    "a trigger on a type that only its name reaches": {"trigger": {"type": "event", "on": ["watchdog.nudge"]}},
    "a value of an enum": {"trigger": on("tool.result", **equals("outcome", "denied"))},
    "a value of another of its types": {"trigger": on("tool.result", "error", **equals("severity", "fatal"))},
    "a value where one of the types is open": {"trigger": on("error", "budget.summary", **equals("code", "x"))},
    "a value of an open field": {"trigger": on("tool.result", **equals("toolName", "Bsh"))},
    "null, which an absent field may be in other journals": {"trigger": on("tool.result", **equals("outcome", None))},
    "a part of an enum's value": {"trigger": on("assistant.action", **equals("action", "tool", "contains"))},
    "a pattern that some value matches": {"trigger": on("assistant.action", **equals("action", "^t", "matches"))},
    "whether an enum is there": {"trigger": on("tool.result", **equals("outcome", True, "exists"))},
    "a value in a step": {"trigger": sequence({"type": "*", "conditions": [equals("outcome", "error")]})},
    "a linear pattern": {"trigger": on("tool.result", **equals("result", r"^\d+ (?:a|b)*$", "matches"))},
    "a pause within the codon": {
        "execution": {"strategy": "debounce", "milliseconds": 60_000},
        "around": {"budget": {"maxTimeSeconds": 60}},
    },
    "a long pause with a short limit": {
        "execution": {"strategy": "debounce", "milliseconds": 61_000, "maxWaitMilliseconds": 30_000},
        "around": {"budget": {"maxTimeSeconds": 60}},
    },
    "a long pause in a codon without a limit": {
        "execution": {"strategy": "debounce", "milliseconds": 300_000, "maxWaitMilliseconds": None},
        "around": {"budget": {"maxDollars": 60}},
    },
    "a report in its own folder": {"output": {"file": "a.md"}, "around": {"checkpointedFiles": ["**/*.md"]}},
    "a report beside the checkpointed files": {
        "output": {"file": "notes/a.md"},
        "around": {"checkpointedFiles": ["*.md", "notes/*.txt", "src/**"]},
    },
    "a report that the codon puts elsewhere": {
        "output": {"file": "notes/a.md"},
        "around": {
            "checkpointedFiles": ["notes/**"],
            "entry": {"settings": {"outputPaths": {"logFile": "a.md"}}},
        },
    },
    "a report that the agent is to read": {
        "output": {"file": "docs/log.md"},
        "around": {"promptText": "Edit app.py, then read docs/log.md. Update the tests."},
    },
    "a managed report that is named as a file of the agent's": {
        "output": {"file": "log.md"},
        "around": {"promptText": "Write log.md."},
    },
}


@pytest.mark.parametrize("name", WARNED)
def test_this_is_a_warning(tmp_path: Path, name: str) -> None:
    fields, code, pointer = WARNED[name]
    assert of_sentinel(tmp_path, **fields) == [("warning", code, pointer)]


@pytest.mark.parametrize("name", FINE)
def test_this_is_fine(tmp_path: Path, name: str) -> None:
    assert of_sentinel(tmp_path, **FINE[name]) == []


def test_a_path_that_no_payload_has_is_an_error(tmp_path: Path) -> None:
    misspelt = on("codon.completed", **equals("sucess", value=True))
    assert of_sentinel(tmp_path, trigger=misspelt) == [("error", "unknown-path", "/trigger/conditions/0/path")]
    assert of_sentinel(tmp_path, trigger=on("codon.completed", **equals("success", value=True))) == []


@pytest.mark.parametrize("name", WARNED)
def test_a_lint_has_the_line_of_the_file_it_is_in(tmp_path: Path, name: str) -> None:
    fields, code, pointer = WARNED[name]
    fields = dict(fields)
    around = fields.pop("around", {})
    content = hank(codon(sentinels=[{"sentinelConfig": "s.json"}], **around))
    loaded = load(tmp_path, content, {"s.json": json.dumps(sentinel(**fields), indent=1)})
    (lint,) = loaded.diagnostics
    assert (lint.code, lint.pointer, Path(lint.file).name) == (code, pointer, "s.json")
    assert lint.line is not None
    assert lint.hint


def test_a_lint_of_what_the_codon_says_is_in_the_hank(tmp_path: Path) -> None:
    entry = {"sentinelConfig": "s.json", "settings": {"outputPaths": {"logFile": "notes/a.md"}}}
    content = hank(codon(sentinels=[entry], checkpointedFiles=["notes/*"]))
    (lint,) = load(tmp_path, content, {"s.json": json.dumps(sentinel())}).diagnostics
    assert (lint.code, Path(lint.file).name) == ("report-checkpointed", "hank.json")
    assert lint.pointer == "/hank/0/sentinels/0/settings/outputPaths/logFile"


def test_a_pause_is_held_against_the_tightest_budget(tmp_path: Path) -> None:
    entry = {"sentinelConfig": sentinel(execution={"strategy": "debounce", "milliseconds": 20_000})}
    inner = codon(sentinels=[entry], budget={"maxTimeSeconds": 30})
    whole = {"budget": {"maxTimeSeconds": 100}}
    for_loop = {"maxTimeSeconds": 30}
    for seconds, expected in ((19, ["debounce-over-budget"]), (30, [])):
        loaded = load(tmp_path, hank(loop(inner, budget={**for_loop, "maxTimeSeconds": seconds}), overrides=whole))
        assert [code for _, code, _ in findings(loaded) if code.startswith("debounce")] == expected


MODELS = [
    ("anthropic/claude-haiku-4-5", KEY, None),
    ("anthropic/claude-haiku-4-5", {"HANKWEAVE_SENTINEL_ANTHROPIC_API_KEY": "k"}, None),
    ("anthropic/claude-haiku-4-5", {}, "model-without-key"),
    ("google/gemini-2.5-flash", {"GEMINI_API_KEY": "k"}, None),
    ("anthropic/claude-haiku-9-9", KEY, "unknown-model"),
    ("nope/nope", KEY, "unknown-model"),
    ("nope/nope", {"NOPE_API_BASE": "http://127.0.0.1:9/v1"}, None),
    ("builtin/echo", {}, None),
    ("builtin/eco", {}, "unknown-model"),
]


@pytest.mark.parametrize(("model", "env", "code"), MODELS)
def test_a_model_is_looked_up_where_the_environment_is_known(
    tmp_path: Path, model: str, env: dict[str, str], code: str | None
) -> None:
    assert of_sentinel(tmp_path, env, model=model) == ([("warning", code, "/model")] if code else [])
    assert of_sentinel(tmp_path, None, model=model) == []


def test_a_stock_sentinel_without_a_key_is_named_where_the_codon_attaches_it(tmp_path: Path) -> None:
    loaded = load(tmp_path, hank(codon(sentinels=[{"sentinelConfig": "stock:narrator"}])), env={})
    assert findings(loaded) == [("warning", "model-without-key", AT)]


def test_what_follows_from_a_missing_model_depends_on_the_codon(tmp_path: Path) -> None:
    def said(**settings: Any) -> str:
        entry = {"sentinelConfig": sentinel(), "settings": settings}
        (lint,) = load(tmp_path, hank(codon(sentinels=[entry])), env={}).diagnostics
        return lint.message

    assert said().endswith("so this sentinel is skipped")
    assert said(failCodonIfNotLoaded=True).endswith("so the codon fails")


def test_a_sentinel_by_itself_has_its_lints_too(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(sentinel(userPromptText="x")))
    assert [d.code for d in check_sentinel(path)] == ["prompt-without-events"]
    assert [d.code for d in check_sentinel(path, env={})] == ["prompt-without-events", "model-without-key"]
    assert [d.code for d in check_sentinel(path, env=KEY)] == ["prompt-without-events"]


DOLLARS = {"budget": {"maxDollars": 1}}
PRICED = [
    "sonnet",
    "haiku",
    "claude-haiku-4-5",
    "anthropic/claude-haiku-4-5-high",
    "pi/openai/gpt-5-mini",
    "gpt-5-mini",
]


@pytest.mark.parametrize("model", PRICED)
def test_a_model_with_a_price_may_have_a_dollar_budget(tmp_path: Path, model: str) -> None:
    assert findings(load(tmp_path, hank(codon(model=model, **DOLLARS)), env={})) == []


@pytest.mark.parametrize("model", ["nope", "nope/nope", "pi/nope/x", "anthropic/claude-haiku-9-9", "ollama/llama3"])
def test_a_model_without_a_price_under_a_dollar_budget_is_a_warning(tmp_path: Path, model: str) -> None:
    warned = [("warning", "budget-unpriced", "/hank/0/model")]
    assert findings(load(tmp_path, hank(codon(model=model, **DOLLARS)), env={})) == warned
    assert findings(load(tmp_path, hank(codon(model=model), overrides=DOLLARS), env={})) == warned
    assert findings(load(tmp_path, hank(codon(model=model)), env={})) == []
    assert findings(load(tmp_path, hank(codon(model=model, **DOLLARS)))) == []


def test_a_recording_has_its_own_costs(tmp_path: Path) -> None:
    content = hank(codon(model="nope", agent="recorded:r.jsonl", **DOLLARS))
    assert findings(load(tmp_path, content, {"r.jsonl": ""}, env={})) == []


def test_the_model_that_a_hank_puts_in_for_all_counts(tmp_path: Path) -> None:
    content = hank(codon("a", **DOLLARS), overrides={"model": "nope"})
    assert findings(load(tmp_path, content, env={})) == [("warning", "budget-unpriced", "/overrides/model")]
