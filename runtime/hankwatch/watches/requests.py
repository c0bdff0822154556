"""What somebody asks of watches, as it is written (spec watches 1 and 5)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import ConfigDict, Field, StringConstraints

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.shapes import NOT_BLANK
from hankwatch.config.source import Document
from hankwatch.config.validation import ConfigModel, validate
from hankwatch.core.errors import IdTaken, WatchInvalid
from hankwatch.watches.specs import VerifierSpec, WrittenInstant, normalised
from hankwatch.watches.watch import Kind, Signal, Trigger

Text = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=4_096, pattern=NOT_BLANK),
]
"""Not blank, and without the one character that PostgreSQL keeps in no text."""
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]
ActionName = Literal["in_app", "wake", "wake_session", "hook", "event"]

M = TypeVar("M", bound="_Request")


class _Request(ConfigModel):
    """Keys are snake_case."""

    model_config = ConfigDict(alias_generator=None)


class WatchRequest(_Request):
    """A watch to arm or to propose."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"interval_s", "session", "run_session", "stall_after"})

    condition: Text
    """What is waited for, in words."""
    verifier: VerifierSpec
    """How it is found out."""
    kind: Kind = Kind.WATCH
    """Which rules hold for it."""
    id: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] | None = None
    """Default: derived from the condition and whose it is."""
    session: Text | None = None
    """The session it belongs to."""
    trigger: Trigger = Trigger.MET
    """`met`: the condition becomes true. `change`: the value moves."""
    repeat: bool | None = None
    """It goes on after firing; default: false for `met`, true for `change`."""
    interval_s: Seconds | None = None
    """Seconds between two checks; null is the default of the settings."""
    expires_in_s: Seconds | None = None
    """Seconds from now until it gives up."""
    deadline: WrittenInstant | None = None
    """The instant it gives up at: ISO-8601 with an offset, or epoch seconds; not for agents."""
    never_expires: bool = False
    """Only an operator may say so."""
    stall_after: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Checks without a change after which it is told once."""
    run_prompt: Annotated[str, Field(min_length=1, max_length=32_768)] | None = None
    """What the woken session is to do."""
    note: Annotated[str, Field(min_length=1, max_length=32_768)] | None = None
    """A monitor's word for `run_prompt`."""
    run_session: Text | None = None
    """Where the reaction turn runs; default: `session`."""
    actions: list[ActionName] | None = None
    """What a fire does; default: told in the console, and a turn where there is a session."""
    notify_on: list[Signal] | None = None
    """What is told; default met, changed, impossible, broken."""
    replace: bool = False
    """Take the place of an active one of the same id."""


class WatchEdit(_Request):
    """Only what is given changes; null clears."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"interval_s", "stall_after", "run_prompt", "run_session"})

    condition: Text | None = None
    """Another one starts the watch afresh."""
    verifier: VerifierSpec | None = None
    """Operators only; starts afresh."""
    trigger: Trigger | None = None
    """Another one starts afresh."""
    repeat: bool | None = None
    """False lets a currently true one end at its next check."""
    interval_s: Seconds | None = None
    """Null is the default of the settings."""
    expires_in_s: Seconds | None = None
    """Seconds from now."""
    deadline: WrittenInstant | None = None
    """An instant; not for agents."""
    clear_deadline: bool = False
    """It never expires; operators only."""
    stall_after: Annotated[int, Field(ge=1, le=100_000)] | None = None
    run_prompt: Annotated[str, Field(min_length=1, max_length=32_768)] | None = None
    run_session: Text | None = None
    notify_on: list[Signal] | None = None


def require_distinct(ids: Iterable[Any]) -> None:
    """Refuse a set in which an id stands twice; what is no id is for others to refuse.

    Raises:
        IdTaken: one does.
    """
    for watch_id, count in Counter(watch_id for watch_id in ids if isinstance(watch_id, str)).items():
        if count > 1:
            raise IdTaken(watch_id, "no two watches of a set have the same id")


def read_request(written: Mapping[str, Any]) -> WatchRequest:
    """A request as somebody wrote it, other systems' words for verifiers understood.

    Raises:
        WatchInvalid: it is none; every fault is named.
    """
    return _read(WatchRequest, written)


def read_edit(written: Mapping[str, Any]) -> WatchEdit:
    """See ``read_request``."""
    return _read(WatchEdit, written)


def _read(model: type[M], written: Mapping[str, Any]) -> M:
    given = dict(written)
    if isinstance(given.get("verifier"), Mapping):
        given["verifier"] = normalised(given["verifier"])
    diagnostics = Diagnostics()
    made = validate(model, Document.from_value(given, "watch"), diagnostics)
    if made is None or not diagnostics.ok:
        raise WatchInvalid(list(dict.fromkeys(map(_said, diagnostics.errors))))  # each way to write it fails alike
    return made


def _said(fault: Diagnostic) -> str:
    said = f"{fault.pointer.removeprefix('/') or 'watch'}: {fault.message}"
    return f"{said} ({fault.hint})" if fault.hint else said
