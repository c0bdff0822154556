"""Schema texts: resolved at load, refused at load (spec sentinels 7)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.sentinels import InProcessSandbox, desk, entry_source, scope, source

from hankwatch.core.errors import SchemaFault
from hankwatch.sentinels.schema import AnswerSchema, answer_schema, read_json_schema

NODE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"$ref": "#/$defs/name"}, "children": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "$defs": {"name": {"type": "string", "enum": ["a", {"$ref": "#/not/a/reference"}]}},
}


async def resolved(wanted: dict[str, Any]) -> AnswerSchema:
    made = source(structuredOutput=wanted)
    assert made.config is not None
    schema = await answer_schema(made.config, base_dir=made.base_dir, root=made.root, sandbox=InProcessSandbox())
    assert schema is not None
    return schema


async def reason(tmp_path: Path, **wanted: Any) -> str:
    made = source(structuredOutput=wanted, hank_dir=tmp_path)
    async with desk(tmp_path / "execution") as d, d.manager.attach(scope(), [made]) as attached:
        assert [data["errorType"] for data in d.said("error")] == ["load-failed"]
        return attached.failures[0].reason


async def test_an_object_is_held_to_its_schema_as_it_stands() -> None:
    schema = await resolved({"output": "object", "schemaStr": json.dumps(NODE)})
    assert schema.value == schema.for_provider == NODE


async def test_the_references_of_an_elements_schema_go_on_meaning_itself() -> None:
    schema = await resolved({"output": "array", "schemaStr": json.dumps({"$id": "urn:x", **NODE})})
    sandbox = InProcessSandbox()
    good, bad = [{"name": "a", "children": [{"name": "a"}]}], [{"name": "a", "children": [{"name": 5}]}]
    assert await sandbox.validate(schema.value, good) == []
    assert await sandbox.validate(schema.value, bad)
    assert await sandbox.validate(schema.for_provider, {"items": good}) == []
    assert await sandbox.validate(schema.for_provider, {"items": bad})
    assert schema.value["items"]["$defs"]["name"]["enum"][1] == {"$ref": "#/not/a/reference"}


async def test_a_zod_text_becomes_a_json_schema() -> None:
    schema = await resolved({"output": "object", "schemaStr": "z.object({ ok: z.boolean() })"})
    assert schema.value["properties"]["ok"] == {"type": "boolean"}


async def test_a_schema_file_may_hold_either(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(NODE))
    (tmp_path / "b.ts").write_text("import { z } from 'zod';\nexport default z.object({ ok: z.boolean() });\n")
    for name in ("a.json", "b.ts"):
        wanted = {"output": "object", "schemaFile": name}
        made = source(structuredOutput=wanted, hank_dir=tmp_path)
        async with desk(tmp_path / f"run-{name}") as d, d.manager.attach(scope(), [made]) as attached:
            assert attached.failures == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"type": "object",}', "line 1: not JSON"),
        ('{\n"type": "strng"}', "schema of an object"),
        ('{"type": "object", "properties": 5}', "properties"),
        ('{"properties": {"a": {"$ref": "http://example.com/x.json"}}}', "leaves the document"),
        ('{"properties": {"a": {"$ref": "#/nowhere"}}}', "leads nowhere"),
        ('{"properties": {"a": {"pattern": "("}}}', "no regular expression"),
        ("z.object({ ok: z.boolean() }).transform(x => x)", "transform"),
        ("process.exit()", "process"),
        ("z.array(z.string())", "schema of an object"),
    ],
)
async def test_a_schema_that_cannot_be_used_is_a_load_error_that_says_why(tmp_path: Path, text: str, said: str) -> None:
    assert said in await reason(tmp_path, output="object", schemaStr=text)


@pytest.mark.parametrize("name", ["missing.json", "link.json", "a-folder"])
async def test_a_schema_file_that_cannot_be_read_is_a_load_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    (tmp_path / "a-folder").mkdir()
    assert f"'{name}'" in await reason(tmp_path, output="object", schemaFile=name)


def test_faults_of_schema_texts_that_need_no_sandbox_are_found_by_validate(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{\n"type": }')
    for key, value in (("schemaStr", "{]"), ("schemaFile", "bad.json"), ("schemaFile", "missing.json")):
        config = {
            "id": "n",
            "name": "N",
            "trigger": {"type": "event", "on": ["info"]},
            "execution": {"strategy": "immediate"},
            "model": "scripted/model",
            "userPromptText": "x",
            "structuredOutput": {"output": "object", key: value},
        }
        (fault,) = entry_source({"sentinelConfig": config}, tmp_path).faults
        assert fault.pointer == f"/entry/sentinelConfig/structuredOutput/{key}"


def test_json_that_is_nested_too_deep_is_a_fault() -> None:
    with pytest.raises(SchemaFault, match="deep"):
        read_json_schema('{"a":' * 100_000)
