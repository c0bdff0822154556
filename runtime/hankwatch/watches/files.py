"""Watches as files: one request, or the set of an owner; every fault with its place (spec watches 5)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeVar

from pydantic import ConfigDict, Field, RootModel

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import ConfigModel, add_fault, validate
from hankwatch.core.errors import ConfigError, WatchInvalid
from hankwatch.watches.arming import planned
from hankwatch.watches.authority import Principal
from hankwatch.watches.bounds import Defaults
from hankwatch.watches.requests import WatchRequest
from hankwatch.watches.specs import normalised
from hankwatch.watches.verifiers import Verifiers

M = TypeVar("M", bound=ConfigModel)
_FAULT: Final = re.compile(r"(?P<key>[a-z_]+(?:[/.][\w/.\[\]]+)?): (?P<said>.*)", re.DOTALL)


class WatchFile(WatchRequest):
    """One watch to arm."""

    schema_url: str | None = Field(default=None, alias="$schema")
    """For editors."""


class WatchSet(ConfigModel):
    """Every watch that an owner is to have."""

    model_config = ConfigDict(alias_generator=None)

    schema_url: str | None = Field(default=None, alias="$schema")
    """For editors."""
    watches: list[WatchRequest]
    """Each with an id of its own."""


class WatchFiles(RootModel[WatchSet | WatchFile]):
    """What a file about watches may be: one of them, or a set."""


def read_watch(document: Document) -> WatchFile:
    """The request that a file holds.

    Raises:
        ConfigError: it has faults.
    """
    return _read(WatchFile, document)


def read_watches(
    document: Document, principal: Principal, verifiers: Verifiers, defaults: Defaults, now: datetime
) -> list[WatchRequest]:
    """The set that a file holds, each of which can be armed.

    Args:
        document: An object with ``watches``.
        principal: Who asks.
        verifiers: Knows what a check costs and who may use it.
        defaults: Of the settings.
        now: The instant of asking.

    Raises:
        ConfigError: it has faults, or one of the watches cannot be armed as it is asked for.
    """
    requests = _read(WatchSet, document).watches
    diagnostics, ids = Diagnostics(), set[str]()
    for number, request in enumerate(requests):
        at = f"/watches/{number}"
        if request.id is None:
            add_fault(
                diagnostics,
                document,
                at,
                "missing-key",
                "the key 'id' is missing",
                hint="an applied watch is known by its id",
            )
        elif request.id in ids:
            add_fault(diagnostics, document, f"{at}/id", "duplicate-id", f"the id {request.id!r} is taken above")
        ids.add(request.id or "")
        try:
            planned(request, principal, verifiers, defaults, now)
        except WatchInvalid as error:
            for fault in placed(error, document, at):
                diagnostics.add(fault)
    if not diagnostics.ok:
        raise ConfigError(diagnostics.errors)
    return requests


def watch_faults(document: Document) -> list[Diagnostic]:
    """What is wrong with a file as such; whether its watches can be armed is known where they are."""
    is_set = isinstance(document.value, dict) and "watches" in document.value
    try:
        _read(WatchSet if is_set else WatchFile, document)
    except ConfigError as error:
        return list(error.diagnostics)
    return []


def placed(error: WatchInvalid, document: Document, at: str = "") -> Iterator[Diagnostic]:
    """The faults of a request at ``at`` of a file, each at the line of what it is about."""
    for fault in error.faults:
        match = _FAULT.fullmatch(fault)
        pointer, said = (f"{at}/{match['key'].replace('.', '/')}", match["said"]) if match else (at, fault)
        line, column = document.locate(pointer) or (None, None)
        yield Diagnostic(document.file, pointer, error.code, said, None, "error", line, column)


def _read(model: type[M], document: Document) -> M:
    diagnostics = Diagnostics()
    made = validate(model, replace(document, value=_normalised(document.value)), diagnostics)
    if made is None or not diagnostics.ok:
        raise ConfigError(diagnostics.errors)
    return made


def _normalised(value: Any) -> Any:
    """Other systems' words for verifiers are understood in files too."""
    if not isinstance(value, dict):
        return value
    value = dict(value)
    if isinstance(value.get("watches"), Sequence):
        value["watches"] = [_normalised(one) for one in value["watches"]]
    if isinstance(value.get("verifier"), dict):
        value["verifier"] = normalised(value["verifier"])
    return value
