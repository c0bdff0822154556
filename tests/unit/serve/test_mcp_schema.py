"""Tools' schemas: flat, understood by every provider, and true to what the requests take."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hankwatch.core.clock import SystemClock
from hankwatch.serve import mcp_runs, mcp_watches
from hankwatch.serve.auth import Caller
from hankwatch.serve.mcp_asker import Asker
from hankwatch.serve.mcp_schema import Schema
from hankwatch.serve.mcp_tools import Tool
from hankwatch.serve.shelf import Shelf
from hankwatch.watches.authority import agent, operator
from hankwatch.watches.requests import read_request
from hankwatch.watches.service import WatchService
from hankwatch.watches.turn import Turn


async def no_watches() -> WatchService:
    raise AssertionError


def asker(turn: Turn | None) -> Asker:
    principal = operator() if turn is None else agent(turn.session)
    return Asker(Caller(principal), Shelf(Path("/nowhere")), no_watches, SystemClock(), turn=turn)


ASKERS = [asker(None), asker(Turn("one", 0, "/nowhere"))]
TOOLS = [*mcp_watches.TOOLS, *mcp_runs.TOOLS]
SAMPLES: list[dict[str, Any]] = [
    {"verifier": {"type": "document", "path": "a.json", "pointer": "/b"}},
    {"verifier": {"type": "document", "path": "a", "conditions": [{"path": "text", "operator": "in", "value": ["x"]}]}},
    {"verifier": {"type": "document", "path": "a", "conditions": [{"path": "v", "operator": "equals", "value": 1}]}},
    {"verifier": {"type": "time", "after_s": 60}, "expires_in_s": 120, "notify_on": ["met", "expired"]},
    {"verifier": {"type": "command", "command": ["make", "check"], "exit_codes": {"impossible": [3]}}},
    {"verifier": {"type": "command", "command": "make check", "timeout_s": 5}, "trigger": "change", "repeat": True},
    {"verifier": {"type": "check", "name": "ci", "version": "v1", "args": {"pr": 7}}, "actions": ["wake_session"]},
    {"verifier": {"type": "event", "trigger": {"type": "event", "on": ["tool.result"]}}, "stall_after": 3},
]


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nodes(inner)


@pytest.mark.parametrize("asker", ASKERS, ids=["operator", "turn"])
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_schema_is_one_flat_object_whose_keys_are_explained(tool: Tool, asker: Asker) -> None:
    schema: Schema = tool.listed(asker).input_schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert not schema["additionalProperties"]
    assert not {"$ref", "$defs", "oneOf", "anyOf", "allOf", "discriminator"} & {
        key for node in nodes(schema) for key in node
    }
    assert all(of_key.get("description") for of_key in schema["properties"].values())
    assert len(json.dumps(schema)) < 8_000, "a model reads it in every turn"


@pytest.mark.parametrize("asker", ASKERS, ids=["operator", "turn"])
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample["verifier"]["type"])
def test_what_a_request_takes_fits_the_schema(sample: dict[str, Any], asker: Asker) -> None:
    written = {"condition": "it is so", **sample}
    read_request(written)
    (tool,) = [tool for tool in TOOLS if tool.name == "create_watch"]
    jsonschema.validate(written, tool.schema(asker))
