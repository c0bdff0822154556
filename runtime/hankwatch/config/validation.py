"""A document held against a model: every fault at once, each with its place and what would be right."""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails

from hankwatch.config.diagnostics import Diagnostic, Diagnostics, Severity
from hankwatch.config.docstrings import field_docstrings
from hankwatch.config.places import Path, nulls_in, place_of, value_at
from hankwatch.config.scanner import escape
from hankwatch.config.shapes import close_to, in_words, keys_of, shapes_at
from hankwatch.config.source import Document

M = TypeVar("M", bound=BaseModel)
Advise = Callable[[Path, str], str | None]
"""(place of the object, unknown key in it) -> a hint that is better than a guess, or None."""

_SHOWN_KEYS = 12
_SHOWN_CHARS = 48


class ConfigModel(BaseModel):
    """Base of every model of a file that people write.

    Unknown keys are faults, types are JSON's (``true`` is not 1, ``"5"`` is not 5), values never change,
    keys are the camelCase form of the field's name. A key that may be left out may not be ``null`` unless
    ``NULLABLE`` names its field.
    """

    model_config = ConfigDict(
        strict=True,
        extra="forbid",
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,  # most models are only ever part of another, which builds them in itself
        allow_inf_nan=False,
    )
    NULLABLE: ClassVar[frozenset[str]] = frozenset()
    """Fields for which ``null`` is a value of its own."""

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        shown = handler.resolve_ref_schema(handler(schema))
        said = field_docstrings(cls)
        for name, field in cls.model_fields.items():
            inner = shown.get("properties", {}).get(field.alias or name)
            if inner is None:
                continue
            if name not in cls.NULLABLE:
                _without_null(inner)
            inner.pop("title", None)  # the key again, in worse spelling
            if name in said:
                # What follows an empty line is for readers of the code.
                inner["description"] = said[name].partition("\n\n")[0]
        return shown


def validate(
    model: type[M], document: Document, diagnostics: Diagnostics, pointer: str = "", *, advise: Advise | None = None
) -> M | None:
    """The model made from the value at ``pointer``, or None with every fault of it in ``diagnostics``.

    The document's own faults (syntax, doubled keys) are added too. With a fault of any kind the result is
    None only if the model could not be made: a doubled key alone still gives a model.
    """
    for fault in document.faults:
        diagnostics.add(fault)
    if not document.readable:
        return None
    value = document.at(pointer)
    errors: list[ErrorDetails] = []
    made: M | None = None
    try:
        made = model.model_validate_json(json.dumps(value), by_alias=True, by_name=False)
    except ValidationError as error:
        errors = error.errors(include_url=False)
    found = list(_Faults(model, document, pointer, value, advise).of(errors))
    for fault in found:
        diagnostics.add(fault)
    return None if found else made


def add_fault(
    diagnostics: Diagnostics,
    document: Document,
    pointer: str,
    code: str,
    message: str,
    *,
    hint: str | None = None,
    severity: Severity = "error",
) -> None:
    """Add a fault that a rule found, at the line of the value at ``pointer`` (or of what is around it)."""
    line, column = document.locate(pointer) or (None, None)
    diagnostics.add(Diagnostic(document.file, pointer, code, message, hint, severity, line, column))


class _Faults:
    """pydantic's errors about one value, as diagnostics."""

    def __init__(
        self, model: type[BaseModel], document: Document, base: str, value: Any, advise: Advise | None
    ) -> None:
        self._model = model
        self._document = document
        self._base = base
        self._value = value
        self._advise = advise

    def of(self, errors: Sequence[ErrorDetails]) -> Iterator[Diagnostic]:
        nulls = [place for place in nulls_in(self._value) if not self._may_be_null(place)]
        for place in nulls:
            yield self._diagnostic(place, "null", "")
        known_nulls = set(nulls)
        placed = [(place_of(error, self._value), error) for error in errors]
        faulty = [*nulls, *(place for place, _ in placed)]
        around_faults = {place[:end] for place in faulty for end in range(len(place))}
        for place, error in placed:
            # One branch of a union says "not a string" of a list whose items another branch faults; a list
            # with a bad item counts as too short. The inner fault is the one to mend.
            if place not in known_nulls and not (place in around_faults and _is_about_the_container(error["type"])):
                yield self._diagnostic(place, error["type"], error["msg"])

    def _diagnostic(self, place: Path, kind: str, said: str) -> Diagnostic:
        code, message, hint = self._words(place, kind, said)
        pointer = self._base + "".join(f"/{escape(str(step))}" for step in place)
        line, column = self._document.locate(pointer, key=code == "unknown-key") or (None, None)
        return Diagnostic(self._document.file, pointer, code, message, hint, "error", line, column)

    def _may_be_null(self, place: Path) -> bool:
        shapes = self._shapes(place)
        return not shapes or any(shape.get("type", "null") == "null" and "const" not in shape for shape in shapes)

    def _words(self, place: Path, kind: str, said: str) -> tuple[str, str, str | None]:
        if kind == "extra_forbidden":
            return "unknown-key", f"unknown key {place[-1]!r}", self._about_unknown_key(place)
        if kind in {"missing", "union_tag_not_found"}:
            wanted = in_words(self._shapes(place))
            return "missing-key", f"the key {place[-1]!r} is missing", f"give it {wanted}" if wanted else None
        if kind == "value_error":
            return "invalid-value", said.removeprefix("Value error, "), None
        if kind in _CODES or kind.endswith("_type"):
            return self._about_value(place, kind, said)
        return kind.replace("_", "-"), said, None

    def _about_value(self, place: Path, kind: str, said: str) -> tuple[str, str, str | None]:
        given = value_at(self._value, place)
        shapes = self._shapes(place)
        wanted = in_words(shapes)
        message = f"must be {wanted}, not {_shown(given)}" if wanted else f"{said}, not {_shown(given)}"
        if kind == "null":
            return "wrong-type", message, "leave the key out instead"
        words = [word for shape in shapes for word in shape.get("enum", [shape.get("const")])]
        meant = close_to(given, [word for word in words if isinstance(word, str)])
        return _CODES.get(kind, "wrong-type"), message, f"did you mean {meant!r}?" if meant else None

    def _about_unknown_key(self, place: Path) -> str | None:
        parent, key = place[:-1], str(place[-1])
        advice = self._advise(parent, key) if self._advise else None
        if advice:
            return advice
        known = keys_of(self._shapes(parent))
        meant = close_to(key, known)
        if meant:
            return f"did you mean {meant!r}?"
        shown = [repr(name) for name in known[:_SHOWN_KEYS]]
        return f"known keys: {', '.join(shown)}{', …' if len(known) > _SHOWN_KEYS else ''}" if known else None

    def _shapes(self, place: Path) -> list[dict[str, Any]]:
        shapes = shapes_at(self._model, place, self._value)
        if shapes or not place:
            return shapes
        # The tag of a union is wrong or missing, so no alternative agrees with the value: take all of them.
        return shapes_at(self._model, place, None)


def _is_about_the_container(kind: str) -> bool:
    return kind.endswith("_type") or kind in {"literal_error", "too_short", "too_long"}


_CODES = {
    "null": "wrong-type",
    "greater_than": "out-of-range",
    "greater_than_equal": "out-of-range",
    "less_than": "out-of-range",
    "less_than_equal": "out-of-range",
    "finite_number": "out-of-range",
    "int_parsing_size": "out-of-range",
    "int_from_float": "wrong-type",
    "too_short": "too-short",
    "too_long": "too-long",
    "string_too_short": "too-short",
    "string_too_long": "too-long",
    "string_pattern_mismatch": "bad-format",
    "literal_error": "unknown-value",
    "enum": "unknown-value",
    "union_tag_invalid": "unknown-value",
}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _without_null(shape: dict[str, Any]) -> None:
    """Take ``null`` out of a property's schema, in place."""
    branches = [branch for branch in shape.get("anyOf", ()) if branch.get("type") != "null"]
    if shape.get("default", 0) is None:
        del shape["default"]
    if not branches:
        return
    del shape["anyOf"]
    if len(branches) == 1:
        shape.update({**branches[0], **{key: shape[key] for key in shape if key in {"title", "description"}}})
    else:
        shape["anyOf"] = branches
