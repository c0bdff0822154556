"""Rules between the fields of a sentinel config (spec sentinels 1 and 2).

They read the JSON as it stands and pass over what has the wrong shape, so that they are all reported together
with the faults of the model, however broken the rest is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hankwatch.config.diagnostics import Diagnostics, Severity
from hankwatch.config.refs import check_ref
from hankwatch.config.shapes import close_to
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault
from hankwatch.events.catalogue import CONNECTION_TYPES, KNOWN_TYPES, OPEN_TYPES, PAYLOADS, has_path, routing
from hankwatch.events.envelope import Routing
from hankwatch.matching.regexes import RegexInvalid, compile_js
from hankwatch.matching.triggers import ANY, MAX_STEPS_WITHIN, considers

_SHOWN_FIELDS = 12

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Fault:
    """A rule that is broken."""

    pointer: str
    """Relative to the config."""
    code: str
    message: str
    hint: str | None = None
    severity: Severity = "error"


def check_rules(document: Document, diagnostics: Diagnostics, pointer: str = "") -> None:
    """Add every rule that the sentinel config at ``pointer`` breaks."""
    config = document.at(pointer)
    if not isinstance(config, dict):
        return
    for rule in (_prompts, _refs, _structured_output, _trigger):
        for fault in rule(config):
            at = pointer + fault.pointer
            add_fault(diagnostics, document, at, fault.code, fault.message, hint=fault.hint, severity=fault.severity)


def _prompts(config: Json) -> Iterator[_Fault]:
    if not config.keys() & {"userPromptFile", "userPromptText"}:
        yield _Fault("", "missing-prompt", "no user prompt", "add 'userPromptText' or 'userPromptFile'")
    if "conversational" in config and not config.keys() & {"systemPromptFile", "systemPromptText"}:
        hint = "add 'systemPromptText' or 'systemPromptFile'"
        yield _Fault("/conversational", "missing-prompt", "a conversation needs a system prompt", hint)


def _refs(config: Json) -> Iterator[_Fault]:
    for key in ("systemPromptFile", "userPromptFile"):
        files = config.get(key)
        if isinstance(files, list):
            for index, ref in enumerate(files):
                yield from _ref(f"/{key}/{index}", ref)
        else:
            yield from _ref(f"/{key}", files)
    yield from _ref("/structuredOutput/schemaFile", _object(config, "structuredOutput").get("schemaFile"))


def _ref(pointer: str, ref: Any) -> Iterator[_Fault]:
    reason = check_ref(ref) if isinstance(ref, str) else None
    if reason is not None:
        yield _Fault(pointer, "path-refused", f"the path {ref!r} {reason}")


def _structured_output(config: Json) -> Iterator[_Fault]:
    if "structuredOutput" not in config:
        return
    at, wanted = "/structuredOutput", _object(config, "structuredOutput")
    schemas = wanted.keys() & {"schemaStr", "schemaFile"}
    if wanted.get("output") == "enum":
        if "enumValues" not in wanted:
            yield _Fault(at, "missing-key", "'enum' needs 'enumValues'", "give it a non-empty list of strings")
        for key in sorted(schemas):
            yield _Fault(f"{at}/{key}", "conflicting-keys", f"'enum' takes no {key!r}", "leave it out")
    elif wanted.get("output") in {"object", "array"}:
        if len(schemas) != 1:
            found = "both are there" if schemas else "there is none"
            yield _Fault(at, "missing-key", f"exactly one of 'schemaStr' and 'schemaFile' is needed; {found}")
        if "enumValues" in wanted:
            yield _Fault(f"{at}/enumValues", "conflicting-keys", "'enumValues' belongs to 'output': 'enum'")
    yield from _structured_report(config)


def _structured_report(config: Json) -> Iterator[_Fault]:
    output = _object(config, "output")
    if "joinString" in config:
        yield _Fault("/joinString", "conflicting-keys", "structured output is not joined with text", "leave it out")
    if "format" in output:
        yield _Fault("/output/format", "conflicting-keys", "structured output has its own format", "leave it out")
    for key, endings in (("file", (".jsonl", ".ndjson")), ("lastValueFile", (".json",))):
        name = output.get(key)
        if isinstance(name, str) and not name.endswith(endings):
            message = f"a file of structured output ends in {' or '.join(endings)}"
            yield _Fault(f"/output/{key}", "bad-format", message)


def _trigger(config: Json) -> Iterator[_Fault]:
    trigger = _object(config, "trigger")
    if trigger.get("type") == "event":
        on = _texts(trigger, "on")
        yield from _types("/trigger/on", trigger.get("on"))
        yield from _conditions("/trigger", trigger, on)
    elif trigger.get("type") == "sequence":
        yield from _sequence(trigger)


def _sequence(trigger: Json) -> Iterator[_Fault]:
    interest = _object(trigger, "interestFilter")
    on = _texts(interest, "on")
    yield from _types("/trigger/interestFilter/on", interest.get("on"))
    pattern = trigger.get("pattern")
    steps = pattern if isinstance(pattern, list) else []
    for index, step in enumerate(steps):
        if isinstance(step, dict):
            yield from _step(f"/trigger/pattern/{index}", step, on)
    options = _object(trigger, "options")
    if "withinMilliseconds" in options and len(steps) > MAX_STEPS_WITHIN:
        message = f"at most {MAX_STEPS_WITHIN} steps with 'withinMilliseconds', not {len(steps)}"
        yield _Fault("/trigger/pattern", "too-long", message)
    yield from _path("/trigger/options/correlateBy", options.get("correlateBy"), on)


def _step(pointer: str, step: Json, on: Sequence[str]) -> Iterator[_Fault]:
    name = step.get("type")
    if not isinstance(name, str) or not name:
        return
    faults = list(_type(f"{pointer}/type", name))
    if not faults and on and name != ANY and not considers(on, name):
        hint = f"add it to 'interestFilter', which has {', '.join(map(repr, on))}"
        faults.append(_Fault(f"{pointer}/type", "not-considered", f"{name!r} is not considered", hint))
    yield from faults
    yield from _conditions(pointer, step, on if name == ANY else [name])


def _types(pointer: str, on: Any) -> Iterator[_Fault]:
    for index, name in enumerate(on if isinstance(on, list) else []):
        if isinstance(name, str) and name:
            yield from _type(f"{pointer}/{index}", name)


def _type(pointer: str, name: str) -> Iterator[_Fault]:
    if name == ANY:
        return
    if name not in KNOWN_TYPES | CONNECTION_TYPES:
        meant = close_to(name, sorted(KNOWN_TYPES))
        hint = f"did you mean {meant!r}?" if meant else f"known types: {', '.join(sorted(OPEN_TYPES))}"
        yield _Fault(pointer, "unknown-type", f"{name!r} is not an event type", hint)
    elif routing(name, {}) is Routing.NEVER:
        message = f"{name!r} never reaches sentinels, so this cannot fire on it"
        hint = "leave it out; a sentinel sees what agents and the run do, not what sentinels do"
        yield _Fault(pointer, "never-routed", message, hint, "warning")


def _conditions(pointer: str, holder: Json, types: Sequence[str]) -> Iterator[_Fault]:
    conditions = holder.get("conditions")
    for index, condition in enumerate(conditions if isinstance(conditions, list) else []):
        if not isinstance(condition, dict):
            continue
        at = f"{pointer}/conditions/{index}"
        yield from _path(f"{at}/path", condition.get("path"), types)
        value = condition.get("value")
        if condition.get("operator") in {"matches", "notMatches"} and isinstance(value, str):
            try:
                compile_js(value)
            except RegexInvalid as invalid:
                message = f"not a JavaScript regular expression: {invalid}"
                yield _Fault(f"{at}/value", "invalid-regex", message)


def _path(pointer: str, path: Any, types: Sequence[str]) -> Iterator[_Fault]:
    """A path must exist in a payload of at least one of the types (unknown types are faults already)."""
    known = [name for name in types if name in KNOWN_TYPES or name == ANY]
    if not isinstance(path, str) or not path or len(known) < len(types) or not known:
        return
    if any(has_path(name, path) for name in known):
        return
    who = f"no event of type {' or '.join(map(repr, known))}" if ANY not in known else "no event"
    models = [PAYLOADS[name] for name in known if name != ANY]
    fields = [info.alias or name for model in models for name, info in model.model_fields.items()]
    meant = close_to(path, fields)
    hint = f"did you mean {meant!r}?" if meant and meant != path else None
    if hint is None and fields:
        shown = ", ".join(dict.fromkeys(fields[:_SHOWN_FIELDS]))
        hint = f"it has {shown}{', …' if len(fields) > _SHOWN_FIELDS else ''}"
    yield _Fault(pointer, "unknown-path", f"{who} has {path!r}", hint)


def _object(value: Json, key: str) -> Json:
    inner = value.get(key)
    return inner if isinstance(inner, dict) else {}


def _texts(value: Json, key: str) -> list[str]:
    inner = value.get(key)
    return [name for name in inner if isinstance(name, str)] if isinstance(inner, list) else []
