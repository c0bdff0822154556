"""The generated JSON Schemas (design: Layout)."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.support.cases import CASES
from tests.support.hanks import codon, hank, load, loop, sentinel

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.resources import resource
from hankwatch.config.source import Document
from hankwatch.config.validation import validate
from hankwatch.schemas import MODELS, main, schema, stale, write
from hankwatch.sentinels.config import parse_sentinel

PROJECT = Path(__file__).parents[3]


def _problems(name: str, value: Any) -> list[str]:
    return [e.message for e in jsonschema.Draft202012Validator(schema(name)).iter_errors(value)]


def test_the_schemas_in_the_project_are_fresh() -> None:
    assert stale() == []
    assert main(["--check"]) == 0


def test_a_schema_that_was_changed_or_left_over_is_not_fresh(tmp_path: Path) -> None:
    write(tmp_path)
    assert stale(tmp_path) == []
    (tmp_path / "hank.schema.json").write_text("{}")
    (tmp_path / "old.schema.json").write_text("{}")
    assert stale(tmp_path) == ["hank.schema.json", "old.schema.json"]


def test_every_schema_ships() -> None:
    for name in MODELS:
        assert json.loads(resource("schemas", f"{name}.schema.json").read_text()) == schema(name)


@pytest.mark.parametrize("name", MODELS)
def test_every_schema_is_one_and_describes_every_field_and_shape(name: str) -> None:
    made = schema(name)
    jsonschema.Draft202012Validator.check_schema(made)
    for shape in [made, *made.get("$defs", {}).values()]:
        assert shape["description"]
        for key, field in shape.get("properties", {}).items():
            assert field.get("description"), f"{shape['title']}.{key}"
            assert "\n\n" not in field["description"]


def test_an_inline_sentinel_is_described_as_a_file_of_its_own_would_be() -> None:
    made = schema("hank")
    entry = made["$defs"]["SentinelEntry"]["properties"]["sentinelConfig"]
    assert {"$ref": "#/$defs/SentinelConfig"} in entry["anyOf"]
    assert "stock:narrator" in entry["examples"]
    inline, own = made["$defs"]["SentinelConfig"], schema("sentinel")
    assert {key: own[key] for key in inline} == inline


def test_an_editor_accepts_what_the_runtime_accepts() -> None:
    assert _problems("hank", hank(codon("a", sentinels=[{"sentinelConfig": sentinel()}]), loop(codon("b")))) == []
    assert _problems("sentinel", sentinel()) == []
    assert _problems("settings", {"journal": {"sync_interval_s": None}}) == []
    report = [{"equalsFile": "expected/a.md"}, {"entry": "last", "pointer": "/a", "equals": None}]
    assert _problems("check", {"expect": {"fires": {"a": [{}]}, "reports": {"a": report}}}) == []


def test_an_editor_refuses_what_the_runtime_refuses() -> None:
    assert _problems("hank", hank(codon(onFailre="retry")))
    assert _problems("hank", hank(codon(description=None, budget={"maxDollars": 0})))
    assert _problems("hank", hank({**codon(), "description": None}))
    assert _problems("hank", hank(codon(sentinels=[{"sentinelConfig": {**sentinel(), "modle": "x"}}])))
    assert _problems("sentinel", sentinel(execution={"strategy": "count", "threshold": 0}))
    for assertion in ({}, {"entry": 1}, {"exists": True}, {"equalsFile": "a", "entry": 1}, {"equalsFile": "/a"}):
        assert _problems("check", {"expect": {"reports": {"a": [assertion]}}})
    assert _problems("check", {"expect": {"fires": {"a": {}}}})
    assert _problems("check", {"sentinel": "a.json", "hank": "hank.json", "expect": {}})


def configs() -> Iterator[Path]:
    """Every hank, sentinel config and check that the project holds."""
    for folder in ("fixtures", "sentinels"):
        for path in sorted((PROJECT / folder).rglob("*.json")):
            if kind_of(path):
                yield path


def kind_of(path: Path) -> str | None:
    value = Document.load(path).value
    keys = value.keys() if isinstance(value, dict) else set()
    return next(
        (kind for key, kind in (("expect", "check"), ("hank", "hank"), ("trigger", "sentinel")) if key in keys), None
    )


def is_published(path: Path) -> bool:
    """Written by others for 0.10, and kept as it was."""
    return path.is_relative_to(PROJECT / "fixtures" / "hanks") or path.is_relative_to(
        PROJECT / "fixtures" / "sentinels"
    )


def is_accepted_here(path: Path) -> bool:
    """Whether we find no fault in the file itself; those of files it names are not asked about."""
    diagnostics = Diagnostics()
    document = Document.load(path)
    kind = kind_of(path)
    if kind in {"hank", "check"}:
        validate(MODELS[kind], document, diagnostics)
    else:
        parse_sentinel(document, diagnostics)
    return diagnostics.ok


def check(kind: str, *paths: Path) -> set[str]:
    """The names of those files that ``check-jsonschema`` refuses."""
    command = [sys.executable, "-m", "check_jsonschema", "--output-format", "json", "--schemafile"]
    done = subprocess.run(
        [*command, PROJECT / "schemas" / f"{kind}.schema.json", *paths], capture_output=True, check=False
    )
    said = json.loads(done.stdout)
    refused = [*said.get("errors", []), *said.get("parse_errors", [])]
    assert (done.returncode == 0) is not bool(refused)
    return {Path(error["filename"]).name for error in refused}


def test_check_jsonschema_accepts_every_config_that_we_accept_and_no_other() -> None:
    found = list(configs())
    assert {path.parts[len(PROJECT.parts)] for path in found} == {"fixtures", "sentinels"}
    refused = {path for path in found if not is_accepted_here(path)}
    assert all(map(is_published, refused))
    for kind in ("hank", "sentinel", "check"):
        of_kind = [path for path in found if kind_of(path) == kind]
        assert check(kind, *of_kind) == {path.name for path in refused if path in of_kind}


def test_the_schema_that_a_config_of_ours_names_is_there() -> None:
    for path in configs():
        if not is_published(path):
            named = path.parent / json.loads(path.read_text())["$schema"]
            starter = PROJECT / "fixtures" / "starter"  # init puts the schemas beside what it copies from there
            home = starter if path.is_relative_to(starter) else PROJECT
            assert named.resolve() == home / "schemas" / f"{kind_of(path)}.schema.json"


ONLY_THE_PAYLOADS_KNOW = {"v029", "v037"}
"""Cases with a condition path that no event of the type has."""


def test_check_jsonschema_refuses_the_sentinels_that_we_refuse(tmp_path: Path) -> None:
    lines = (CASES / "validation.jsonl").read_text(encoding="utf-8").splitlines()
    cases = {case["id"]: case for case in map(json.loads, lines)}
    for name, case in cases.items():
        (tmp_path / name).write_text(json.dumps(case["config"]))
    refused = check("sentinel", *(tmp_path / name for name in cases))
    assert refused == {name for name, case in cases.items() if not case["valid"]} - ONLY_THE_PAYLOADS_KNOW


STRUCTURED = {"structuredOutput": {"output": "enum", "enumValues": ["good", "bad"]}}
SENTINELS: Mapping[str, tuple[bool, dict[str, Any]]] = {
    "a plain one": (True, {}),
    "values": (True, {**STRUCTURED, "output": {"file": "a.ndjson", "lastValueFile": "a.json"}}),
    "values, joined": (False, {**STRUCTURED, "joinString": "x"}),
    "values as text": (False, {**STRUCTURED, "output": {"format": "text"}}),
    "values in a text file": (False, {**STRUCTURED, "output": {"file": "a.md"}}),
    "the last value in a text file": (False, {**STRUCTURED, "output": {"lastValueFile": "a.md"}}),
    "values of an enum with none": (False, {"structuredOutput": {"output": "array", "enumValues": ["a"]}}),
    "an unknown type": (False, {"trigger": {"type": "event", "on": ["codon.complete"]}}),
    "a type that is never routed": (True, {"trigger": {"type": "event", "on": ["sentinel.output", "pong"]}}),
    "any type": (True, {"trigger": {"type": "event", "on": ["*"]}}),
    "an absolute prompt": (False, {"systemPromptFile": ["a.md", "/a.md"]}),
    "a conversation": (
        True,
        {
            "systemPromptText": "x",
            "conversational": {"trimmingStrategy": {"type": "maxTurns", "maxTurns": 3}},
        },
    ),
}
COPY = {"type": "copy", "copy": {"from": "tpl", "to": "tpl"}}
HANKS: Mapping[str, tuple[bool, dict[str, Any]]] = {
    "a plain one": (True, hank(codon())),
    "everything": (True, hank(codon(onFailure="retry", retryConfig={}, rigSetup=[COPY]), loop(codon("b")))),
    "no prompt": (False, hank(codon(promptText=None))),
    "two system prompts": (False, hank(codon(appendSystemPromptText="x", appendSystemPromptFile="p.md"))),
    "two global prompts": (False, hank(codon(), globalSystemPromptText="x", globalSystemPromptFile="p.md")),
    "retries without the policy": (False, hank(codon(retryConfig={}))),
    "retries under another policy": (False, hank(codon(onFailure="ignore", retryConfig={}))),
    "a prompt with a drive": (False, hank(codon(promptFile="C:/p.md"))),
    "a rig from above": (False, hank(codon(rigSetup=[{"type": "copy", "copy": {"from": "/tpl", "to": "tpl"}}]))),
    "a misspelt key": (False, hank(codon(onFailre="retry"))),
    "sentinels at the root": (False, hank(codon(), sentinels=[])),
    "no codons": (False, hank()),
    "a nested loop": (False, hank(loop(loop(codon())))),
    "an inline sentinel with a fault": (False, hank(codon(sentinels=[{"sentinelConfig": sentinel(model=5)}]))),
    "a stock sentinel": (True, hank(codon(sentinels=[{"sentinelConfig": "stock:sweep"}]))),
}


def test_check_jsonschema_and_we_agree_about_sentinels(tmp_path: Path) -> None:
    ours = set()
    for name, (_, fields) in SENTINELS.items():
        (tmp_path / name).write_text(json.dumps(sentinel(**fields)))
        diagnostics = Diagnostics()
        parse_sentinel(Document.load(tmp_path / name), diagnostics)
        ours |= set() if diagnostics.ok else {name}
    assert ours == {name for name, (fine, _) in SENTINELS.items() if not fine}
    assert check("sentinel", *(tmp_path / name for name in SENTINELS)) == ours


def test_check_jsonschema_and_we_agree_about_hanks(tmp_path: Path) -> None:
    ours = set()
    for name, (_, content) in HANKS.items():
        (tmp_path / name).write_text(json.dumps(content))
        loaded = load(tmp_path / "load", content, {"p.md": "Do it.", "tpl/a.txt": "a"})
        ours |= set() if loaded.diagnostics.ok else {name}
    assert ours == {name for name, (fine, _) in HANKS.items() if not fine}
    assert check("hank", *(tmp_path / name for name in HANKS)) == ours
