"""The OpenAPI document: what FastAPI knows, and the rules of watches, which are read as files are.

What a watch may be depends on its kind and its verifier: each combination is a schema of its own, made from the policy
table and the checks that are registered here, so that whoever keeps to the document is refused nothing but what the
clock or other watches stand against.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from hankwatch.serve import chat
from hankwatch.serve.context import Serving
from hankwatch.watches.checks import Check, Checks, Cost
from hankwatch.watches.policies import Policy, policy
from hankwatch.watches.requests import WatchEdit, WatchRequest
from hankwatch.watches.watch import Kind, Trigger

Schema = dict[str, Any]
_REF: Final = "#/components/schemas/{model}"
_BODIES: Final = {
    ("/api/watches", "post"): "WatchRequest",
    ("/api/watches/{watch_id}", "patch"): "WatchEdit",
    (f"{chat.router.prefix}/proposals", "post"): "Proposal",
    ("/api/watches", "put"): "WatchSet",
}
"""What is read by the rules of files, not by FastAPI's."""
_WAKES: Final = ["wake", "wake_session"]
_INSTANT: Final = ("EventSpec", "TimeSpec")
"""Verifiers without a value that could change."""
_OF_TYPE: Final = {"event": "EventSpec", "time": "TimeSpec", "document": "DocumentSpec", "command": "CommandSpec"}
_COSTS: Final = {"event": Cost.CHEAP, "time": Cost.CHEAP, "document": Cost.CHEAP, "command": Cost.PROCESS}


def document(app: FastAPI) -> Schema:
    """The document; made once."""
    if app.openapi_schema is None:
        serving: Serving = app.state.serving
        made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        _, bodies = models_json_schema([(WatchRequest, "validation"), (WatchEdit, "validation")], ref_template=_REF)
        schemas = made["components"]["schemas"]
        schemas |= bodies["$defs"]
        schemas["TimeSpec"]["oneOf"] = [{"required": ["at"]}, {"required": ["after_s"]}]
        schemas["RegexCondition"]["properties"]["value"]["format"] = "regex"
        whole, checks = schemas["WatchRequest"], serving.watches.verifiers.checks
        conditions = schemas["CheckSpec"]["properties"]["conditions"]
        schemas["WatchRequest"] = _one_of(
            whole, [v for kind in Kind for v in _variants(whole, kind, checks, conditions)]
        )
        proposals = [
            _without(variant, chat.GIVEN)
            for variant in _variants(whole, Kind.AGENT_WATCH, checks, conditions, in_one=True)
        ]
        schemas["Proposal"] = {**_one_of(whole, proposals), "title": "Proposal"}
        schemas["WatchSet"] = _set_of(_REF.format(model="WatchRequest"))
        for (path, method), name in _BODIES.items():
            content = made["paths"][path][method]["requestBody"]["content"]
            content["application/json"]["schema"] = {"$ref": _REF.format(model=name)}
        if serving.door.policy is None:  # then everybody who reaches it may all
            for route in (route for path in made["paths"].values() for route in path.values()):
                route.pop("security", None)
        app.openapi_schema = made
    return app.openapi_schema


def _one_of(whole: Schema, variants: list[Schema]) -> Schema:
    return {"title": whole["title"], "description": whole["description"], "oneOf": variants}


def _set_of(request: str) -> Schema:
    """Every watch that an owner is to have (``watches.files.WatchSet``), each under an id."""
    named = {"allOf": [{"$ref": request}], "required": ["id"], "properties": {"id": {"type": "string"}}}
    return {
        "title": "WatchSet",
        "type": "object",
        "properties": {"$schema": {"type": "string"}, "watches": {"type": "array", "items": named}},
        "required": ["watches"],
        "additionalProperties": False,
    }


def _without(schema: Schema, names: frozenset[str]) -> Schema:
    """An object's schema that lacks some of its properties."""
    properties = {name: value for name, value in schema["properties"].items() if name not in names}
    return {**schema, "properties": properties, "required": [name for name in schema["required"] if name not in names]}


def _variants(
    whole: Schema, kind: Kind, checks: Checks, conditions: Schema, *, in_one: bool = False
) -> Iterator[Schema]:
    """The requests of one kind, by how often their verifiers may be asked.

    Args:
        whole: The request by its fields alone.
        kind: Which.
        checks: Those that are registered.
        conditions: On what they return.
        in_one: The session is named elsewhere.
    """
    row = policy(kind)
    rules = [{"not": {"required": ["expires_in_s", "deadline"]}}, _ever, {"not": {"required": ["run_prompt", "note"]}}]
    if row.default_window_s is None:
        rules.append({"anyOf": [{"required": ["expires_in_s"]}, {"required": ["deadline"]}, _for_ever]})
    if not in_one:
        rules.append(
            {
                "anyOf": [
                    *([_wakes_nobody] if row.actions & {"in_app"} else []),
                    _named("session"),
                    _named("run_session"),
                ]
            }
        )
    for (floor_s, may_change), verifiers in _groups(row, checks, conditions).items():
        properties = {
            **whole["properties"],
            "kind": {"const": kind.value, "type": "string"},
            "verifier": {"description": whole["properties"]["verifier"]["description"], "anyOf": verifiers},
            "interval_s": _interval(row, floor_s),
            "expires_in_s": _window(row, whole["properties"]["expires_in_s"]),
            "actions": _actions(row),
        }
        if not may_change:
            properties["trigger"] = {"const": Trigger.MET.value, "type": "string"}
        if not row.repeats:
            properties["repeat"] = {"const": False, "type": "boolean"}
        yield {
            **whole,
            "title": kind.value,
            "properties": properties,
            "required": _required(whole, kind, row),
            "allOf": rules,
        }


def _groups(row: Policy, checks: Checks, conditions: Schema) -> Mapping[tuple[float, bool], list[Schema]]:
    """Verifiers by the least seconds between two checks, and whether they have a value."""
    groups: dict[tuple[float, bool], list[Schema]] = {}
    for name, spec in _OF_TYPE.items():
        if name in row.verifiers:
            key = row.floors_s[_COSTS[name].value], spec not in _INSTANT
            groups.setdefault(key, []).append({"$ref": _REF.format(model=spec)})
    for check in checks:
        if not (row.pinned_only and check.asks_model):
            key = max(row.floors_s[check.cost.value], row.check_floor_s), True
            groups.setdefault(key, []).append(_check(check, row, conditions))
    return groups


def _check(check: Check, row: Policy, conditions: Schema) -> Schema:
    return {
        "type": "object",
        "title": check.pinned,
        "description": check.description,
        "properties": {
            "type": {"const": "check", "type": "string"},
            "name": {"const": check.name, "type": "string"},
            "version": {"const": check.version, "type": "string"},
            "args": dict(check.parameters),
            "conditions": conditions,
        },
        "required": [
            "type",
            "name",
            *(["version"] if row.pinned_only else []),
            *(["args"] if check.faults({}) else []),
        ],
        "additionalProperties": False,
    }


def _interval(row: Policy, floor_s: float) -> Schema:
    if row.cadences_s is not None:
        return {"enum": [*row.cadences_s, None]}
    return {"anyOf": [{"type": "number", "minimum": floor_s, "maximum": 31_536_000}, {"type": "null"}]}


def _window(row: Policy, written: Schema) -> Schema:
    return {"enum": list(row.windows_s)} if row.windows_s is not None else {**written, "maximum": row.max_window_s}


def _actions(row: Policy) -> Schema:
    names = sorted({*row.actions, *(["wake_session"] if "wake" in row.actions else [])})
    told = {"contains": {"enum": [name for name in names if name != "event"]}}
    return {"type": "array", "items": {"type": "string", "enum": names}, "minItems": 1, **told}


def _required(whole: Schema, kind: Kind, row: Policy) -> list[str]:
    named = [] if kind is Kind.WATCH else ["kind"]
    return [*whole["required"], *named, *(["actions"] if row.windows_s is not None else [])]


def _named(name: str) -> Schema:
    return {"properties": {name: {"type": "string"}}, "required": [name]}


_for_ever: Final[Schema] = {"properties": {"never_expires": {"const": True}}, "required": ["never_expires"]}
_wakes_nobody: Final[Schema] = {"properties": {"actions": {"items": {"not": {"enum": _WAKES}}}}}
_ever: Final[Schema] = {
    "anyOf": [
        {"properties": {"never_expires": {"const": False}}},
        {"not": {"anyOf": [{"required": ["expires_in_s"]}, {"required": ["deadline"]}]}},
    ]
}
