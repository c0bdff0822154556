"""The generated JSON Schemas (design: Layout)."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.support.hanks import codon, hank, loop, sentinel

from hankwatch.config.resources import resource
from hankwatch.schemas import MODELS, main, schema, stale, write


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
def test_every_schema_is_one_and_describes_every_field(name: str) -> None:
    made = schema(name)
    jsonschema.Draft202012Validator.check_schema(made)
    for shape in [made, *made["$defs"].values()]:
        for key, field in shape.get("properties", {}).items():
            of_its_own_type = made["$defs"].get(field.get("$ref", "").rpartition("/")[2], {})
            assert field.get("description") or of_its_own_type.get("description"), f"{shape.get('title')}.{key}"


def test_an_editor_accepts_what_the_runtime_accepts() -> None:
    assert _problems("hank", hank(codon("a", sentinels=[{"sentinelConfig": sentinel()}]), loop(codon("b")))) == []
    assert _problems("sentinel", sentinel()) == []
    assert _problems("settings", {"journal": {"sync_interval_s": None}}) == []


def test_an_editor_refuses_what_the_runtime_refuses() -> None:
    assert _problems("hank", hank(codon(onFailre="retry")))
    assert _problems("hank", hank(codon(description=None, budget={"maxDollars": 0})))
    assert _problems("hank", hank({**codon(), "description": None}))
    assert _problems("hank", hank(codon(sentinels=[{"sentinelConfig": {**sentinel(), "modle": "x"}}])))
    assert _problems("sentinel", sentinel(execution={"strategy": "count", "threshold": 0}))
