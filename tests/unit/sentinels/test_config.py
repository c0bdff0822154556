"""Sentinel configs: strict, every fault at once, with what would be right."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.source import Document
from hankwatch.sentinels.config import SentinelConfig, SentinelEntry, SentinelSettings, parse_sentinel

MINIMAL: dict[str, Any] = {
    "id": "quality-observer",
    "name": "Quality Observer",
    "trigger": {"type": "event", "on": ["codon.completed"]},
    "execution": {"strategy": "immediate"},
    "model": "builtin/digest",
    "userPromptText": "{{ it.events }}",
}
SEQUENCE: dict[str, Any] = {
    "type": "sequence",
    "interestFilter": {"on": ["tool.result", "info"]},
    "pattern": [{"type": "tool.result"}, {"type": "info"}],
}


def diagnose(**changes: Any) -> list[Diagnostic]:
    diagnostics = Diagnostics()
    parse_sentinel(Document.from_value(MINIMAL | changes), diagnostics)
    return diagnostics.items


def faults(**changes: Any) -> list[tuple[str, str]]:
    return [(d.pointer, d.code) for d in diagnose(**changes) if d.severity == "error"]


def warnings(**changes: Any) -> list[tuple[str, str]]:
    return [(d.pointer, d.code) for d in diagnose(**changes) if d.severity == "warning"]


def condition(path: str, operator: str = "equals", value: Any = 1) -> dict[str, Any]:
    return {"path": path, "operator": operator, "value": value}


def on(*types: str, conditions: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"type": "event", "on": list(types), "conditions": conditions or []}


def test_the_defaults_are_the_contracts() -> None:
    config = parse_sentinel(Document.from_value(MINIMAL), Diagnostics())
    assert isinstance(config, SentinelConfig)
    assert config.llm_params.model_dump() == {
        "temperature": 0, "max_output_tokens": 8_192, "max_retries": 2, "timeout_seconds": 60,
    }  # fmt: skip
    assert config.error_handling.model_dump() == {"max_consecutive_failures": 3, "unload_on_fatal_error": True}
    assert config.report_to_websocket.model_dump() == {
        "lifecycle": True, "errors": True, "outputs": True, "triggers": False,
    }  # fmt: skip
    assert SentinelSettings().fail_codon_if_not_loaded is False


def test_all_faults_of_a_file_come_at_once_with_their_lines(tmp_path: Path) -> None:
    config = copy.deepcopy(MINIMAL) | {"id": "A b", "llmParams": {"temprature": 1}, "conversational": {}}
    config["trigger"]["conditions"] = [condition("sucess"), condition("success", "matches", "(")]
    del config["userPromptText"]
    path = tmp_path / "observer.json"
    path.write_text(json.dumps(config, indent=1))
    diagnostics = Diagnostics()
    assert parse_sentinel(Document.load(path), diagnostics) is None
    assert {(d.pointer, d.code) for d in diagnostics.errors} == {
        ("/id", "bad-format"),
        ("/llmParams/temprature", "unknown-key"),
        ("/conversational/trimmingStrategy", "missing-key"),
        ("/conversational", "missing-prompt"),
        ("/trigger/conditions/0/path", "unknown-path"),
        ("/trigger/conditions/1/value", "invalid-regex"),
        ("", "missing-prompt"),
    }
    assert all(d.line for d in diagnostics.errors)


NUMBERS: list[tuple[str, dict[str, Any], str]] = [
    ("/execution/milliseconds", {"strategy": "debounce", "milliseconds": 0}, "milliseconds"),
    ("/execution/maxWaitMilliseconds", {"strategy": "debounce", "milliseconds": 5}, "maxWaitMilliseconds"),
    ("/execution/threshold", {"strategy": "count"}, "threshold"),
    ("/execution/milliseconds", {"strategy": "timeWindow"}, "milliseconds"),
]
WRONG_NUMBERS: list[Any] = [0, -1, 0.0001, 1e18, 10**18, "5", True]


@pytest.mark.parametrize(("pointer", "execution", "key"), NUMBERS)
@pytest.mark.parametrize("value", [*WRONG_NUMBERS, None])
def test_thresholds_that_cannot_be_meant_are_refused(
    pointer: str, execution: dict[str, Any], key: str, value: Any
) -> None:
    if key == "maxWaitMilliseconds" and value is None:
        return  # means: no limit
    assert [place for place, _ in faults(execution=execution | {key: value})] == [pointer]


@pytest.mark.parametrize("key", ["maxOutputTokens", "maxRetries", "timeoutSeconds"])
@pytest.mark.parametrize("value", [*WRONG_NUMBERS[1:], None])
def test_parameters_that_cannot_be_meant_are_refused(key: str, value: Any) -> None:
    assert [place for place, _ in faults(llmParams={key: value})] == [f"/llmParams/{key}"]


@pytest.mark.parametrize("value", [*WRONG_NUMBERS, None])
def test_limits_of_sequences_that_cannot_be_meant_are_refused(value: Any) -> None:
    trigger = SEQUENCE | {"options": {"withinMilliseconds": value}}
    assert [place for place, _ in faults(trigger=trigger)] == ["/trigger/options/withinMilliseconds"]


def test_a_refusal_says_what_is_allowed() -> None:
    (fault,) = diagnose(execution={"strategy": "debounce", "milliseconds": 0})
    assert "from 1 to 300,000" in fault.message
    (typo,) = diagnose(execution={"strategy": "count", "treshold": 3, "threshold": 3})
    assert typo.hint == "did you mean 'threshold'?"


@pytest.mark.parametrize("key", ["name", "model", "userPromptText", "systemPromptText", "userPromptFile"])
def test_empty_strings_are_refused(key: str) -> None:
    assert [place for place, _ in faults(**{key: ""})] == [f"/{key}"]


def test_the_old_json_format_is_refused_with_what_there_is() -> None:
    (fault,) = diagnose(output={"format": "json"})
    assert fault.pointer == "/output/format"
    assert "'text' or 'jsonl'" in fault.message


def test_an_unknown_type_is_refused_with_a_guess() -> None:
    (fault,) = diagnose(trigger=on("info", "tool.resluts"))
    assert (fault.pointer, fault.code, fault.severity) == ("/trigger/on/1", "unknown-type", "error")
    assert fault.hint == "did you mean 'tool.result'?"


@pytest.mark.parametrize("name", ["sentinel.output", "server.ready"])
def test_a_type_that_never_reaches_sentinels_is_a_warning(name: str) -> None:
    assert faults(trigger=on(name)) == []
    assert warnings(trigger=on(name)) == [("/trigger/on/0", "never-routed")]


@pytest.mark.parametrize("name", ["watch.met", "watchdog.nudge"])
def test_a_type_routed_by_name_is_fine(name: str) -> None:
    assert diagnose(trigger=on(name)) == []


@pytest.mark.parametrize(
    ("types", "path"),
    [
        (["tool.result", "info"], "message"),
        (["tool.result"], "result.length"),
        (["assistant.action"], "toolInput.anything.below.0"),
        (["file.updated"], "content"),
        (["codon.completed"], "exitStatus.type"),
        (["*"], "failureReason.sentinelRefs.0"),
    ],
)
def test_a_path_that_one_of_the_types_has_is_fine(types: list[str], path: str) -> None:
    assert diagnose(trigger=on(*types, conditions=[condition(path, "exists", True)])) == []


@pytest.mark.parametrize(
    ("types", "path"),
    [(["tool.result"], "isErorr"), (["tool.result"], "isError.x"), (["*"], "nowhere"), (["info"], "toolInput")],
)
def test_a_path_that_none_of_the_types_has_is_refused(types: list[str], path: str) -> None:
    assert faults(trigger=on(*types, conditions=[condition(path)])) == [("/trigger/conditions/0/path", "unknown-path")]


def test_paths_of_an_unknown_type_are_not_judged() -> None:
    assert faults(trigger=on("bogus", conditions=[condition("x")])) == [("/trigger/on/0", "unknown-type")]


def test_a_step_is_judged_by_its_own_type() -> None:
    steps = [
        {"type": "info", "conditions": [condition("isError")]},
        {"type": "error"},
        {"type": "bogus"},
        {"type": "*", "conditions": [condition("message"), condition("nowhere")]},
        {"type": "tool.result", "conditions": [condition("result", "matches", "(?<=")]},
    ]
    assert faults(trigger=SEQUENCE | {"pattern": steps}) == [
        ("/trigger/pattern/0/conditions/0/path", "unknown-path"),
        ("/trigger/pattern/1/type", "not-considered"),
        ("/trigger/pattern/2/type", "unknown-type"),
        ("/trigger/pattern/3/conditions/1/path", "unknown-path"),
        ("/trigger/pattern/4/conditions/0/value", "invalid-regex"),
    ]


def test_correlation_needs_a_path_of_the_considered_types() -> None:
    assert faults(trigger=SEQUENCE | {"options": {"correlateBy": "toolUseId"}}) == []
    assert faults(trigger=SEQUENCE | {"options": {"correlateBy": "nowhere"}}) == [
        ("/trigger/options/correlateBy", "unknown-path")
    ]


def test_long_patterns_cannot_have_a_limit_in_time() -> None:
    long = SEQUENCE | {"pattern": [{"type": "info"}] * 101}
    assert faults(trigger=long) == []
    assert faults(trigger=long | {"options": {"withinMilliseconds": 5}}) == [("/trigger/pattern", "too-long")]


@pytest.mark.parametrize(
    ("key", "value", "pointer"),
    [
        ("userPromptFile", "../up/../../x.md", None),
        ("userPromptFile", "/etc/passwd", "/userPromptFile"),
        ("systemPromptFile", ["a.md", "c:\\b.md"], "/systemPromptFile/1"),
        ("structuredOutput", {"output": "object", "schemaFile": "~/s.json"}, "/structuredOutput/schemaFile"),
    ],
)
def test_paths_are_portable(key: str, value: Any, pointer: str | None) -> None:
    assert faults(**{key: value}) == ([(pointer, "path-refused")] if pointer else [])


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"structuredOutput": {"output": "enum"}}, "/structuredOutput"),
        (
            {"structuredOutput": {"output": "enum", "enumValues": ["a"], "schemaStr": "x"}},
            "/structuredOutput/schemaStr",
        ),
        ({"structuredOutput": {"output": "array"}}, "/structuredOutput"),
        ({"structuredOutput": {"output": "object", "schemaStr": "x", "schemaFile": "y"}}, "/structuredOutput"),
        (
            {"structuredOutput": {"output": "object", "schemaStr": "x", "enumValues": ["a"]}},
            "/structuredOutput/enumValues",
        ),
    ],
)
def test_structured_output_has_exactly_one_shape(changes: dict[str, Any], pointer: str) -> None:
    assert [place for place, _ in faults(**changes)] == [pointer]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"joinString": "x"}, "/joinString"),
        ({"output": {"format": "jsonl"}}, "/output/format"),
        ({"output": {"file": "report.md"}}, "/output/file"),
        ({"output": {"file": "report.ndjson"}}, None),
        ({"output": {"lastValueFile": "last.txt"}}, "/output/lastValueFile"),
        ({"output": {"lastValueFile": "last.json"}}, None),
    ],
)
def test_structured_reports_are_json_files(changes: dict[str, Any], pointer: str | None) -> None:
    structured = {"output": "enum", "enumValues": ["good", "bad"]}
    assert [place for place, _ in faults(structuredOutput=structured, **changes)] == ([pointer] if pointer else [])


def test_a_tag_is_plain_text_for_jinja() -> None:
    assert diagnose(userPromptText="<%= x %>", templateEngine="jinja") == []


def test_an_inline_config_is_not_judged_with_the_codons_entry() -> None:
    entry = SentinelEntry.model_validate({"sentinelConfig": {"id": "A"}, "settings": {"failCodonIfNotLoaded": True}})
    assert entry.sentinel_config == {"id": "A"}
    assert entry.settings is not None
    assert entry.settings.fail_codon_if_not_loaded


def test_every_field_is_described() -> None:
    shown = SentinelConfig.model_json_schema()
    for name, shape in {"SentinelConfig": shown, **shown["$defs"]}.items():
        for key, field in shape["properties"].items():
            assert field.get("description"), f"{name}.{key}"
