"""What a watch checks, as it is written: one model per verifier type (spec watches 4)."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from hankwatch.config.shapes import NO_NUL, NOT_BLANK
from hankwatch.config.validation import ConfigModel
from hankwatch.matching.conditions import Condition
from hankwatch.matching.triggers import Trigger

Text = Annotated[str, Field(min_length=1, max_length=4_096, pattern=NOT_BLANK)]
"""Not blank, and without NUL, which no path or name can hold."""
Argument = Annotated[str, Field(min_length=1, max_length=4_096, pattern=NO_NUL)]


class _Spec(ConfigModel):
    """Keys are snake_case in files too."""

    model_config = ConfigDict(alias_generator=None)


class EventSpec(_Spec):
    """Satisfied when an event of the home's bus matches; nothing is polled."""

    type: Literal["event"]
    """An event on the bus."""
    trigger: Trigger
    """As a sentinel's."""


MS_EPOCH_FROM: Final = 10**11
"""A number from here on counts milliseconds, not seconds."""


WrittenInstant = (
    Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    | Annotated[float, Field(json_schema_extra={"minimum": 0, "exclusiveMaximum": MS_EPOCH_FROM})]
)
"""An instant as people write it; ``read_instant`` says what is wrong with it."""


def read_instant(written: str | float) -> datetime:
    """An instant as people write it: ISO-8601, or epoch seconds. Whether it has an offset is for others to say.

    Raises:
        ValueError: it is none; says what would be.
    """
    if isinstance(written, str):
        try:
            return datetime.fromisoformat(written)
        except ValueError:
            raise ValueError(
                f"{written!r} is no instant; write ISO-8601 with an offset, such as 2030-01-31T12:00:00+00:00"
            ) from None
    if not math.isfinite(written):
        raise ValueError("is no number of seconds")
    if written >= MS_EPOCH_FROM:
        raise ValueError(f"{written:g} looks like milliseconds; epoch seconds are meant")
    if written < 0:
        raise ValueError(f"{written:g} is before 1970")
    return datetime.fromtimestamp(written, UTC)


def _instant(written: Any) -> Any:
    is_written = isinstance(written, str | float | int) and not isinstance(written, bool)
    return read_instant(written) if is_written else written


class TimeSpec(_Spec):
    """Satisfied when the instant has passed; exactly one of the two is given."""

    type: Literal["time"]
    """A point in time."""
    at: Annotated[datetime, BeforeValidator(_instant, json_schema_input_type=WrittenInstant)] | None = None
    """The instant: ISO-8601 with its offset, or epoch seconds."""
    after_s: Annotated[float, Field(gt=0, le=31_536_000)] | None = None
    """So long after arming, in seconds."""


class DocumentSpec(_Spec):
    """Satisfied when the file exists and what it holds meets the conditions."""

    type: Literal["document"]
    """A file."""
    path: Text
    """Relative to the execution directory, or absolute."""
    pointer: Annotated[str, Field(max_length=1_024, json_schema_extra={"pattern": r"^(/[\s\S]*)?$"})] | None = None
    """JSON Pointer to the value that is looked at; without it the whole file is."""
    conditions: list[Condition] = Field(default=[])
    """All must hold on `{value, text}`."""


class CommandSpec(_Spec):
    """Satisfied when the command exits with 0; 2 means impossible, 75 unavailable, all else pending."""

    type: Literal["command"]
    """A command's exit code."""
    command: list[Argument] | Text
    """Arguments, or one shell string of the author."""
    cwd: Text | None = None
    """Working directory; default: the execution directory."""
    timeout_s: Annotated[float, Field(gt=0, le=3_600)] | None = None
    """Limit on the whole process tree; default 30."""
    exit_codes: dict[Literal["satisfied", "impossible", "unavailable"], list[Annotated[int, Field(ge=0, le=255)]]] = (
        Field(default={})
    )
    """Exit codes that mean something else than by default."""
    reason_from_output: bool = False
    """Add the last line of output that is not blank to the reason."""


class CheckSpec(_Spec):
    """Satisfied when a registered function says so."""

    type: Literal["check"]
    """A registered check."""
    name: Text
    """As it is registered, for example `ci`."""
    version: Annotated[str, Field(pattern=r"^v[0-9]+$")] | None = None
    """Pins it: `v1`. A name may carry it too, as `name@v1`."""
    args: dict[str, Any] = Field(default={})
    """What the check takes."""
    conditions: list[Condition] = Field(default=[])
    """Must hold on `{value, text}` of what it returns."""


VerifierSpec = Annotated[EventSpec | TimeSpec | DocumentSpec | CommandSpec | CheckSpec, Field(discriminator="type")]
"""What a watch checks."""

_ALIASES: Mapping[str, str] = {
    "test": "command",
    "data": "document",
    "dynadata_doc": "document",
    "plugin": "check",
    "tool": "check",
    "agent_tool": "check",
    "evaluator": "check",
}


def normalised(written: Mapping[str, Any]) -> dict[str, Any]:
    """A verifier in this module's spelling; other systems' words for the same are understood (spec watches 4)."""
    spec = dict(written)
    kind = spec.get("type")
    if kind == "test":
        spec["reason_from_output"] = True
    if kind == "llm":
        spec |= {"type": "check", "name": "judge"}
    elif isinstance(kind, str):
        spec["type"] = _ALIASES.get(kind, kind)
    name = spec.get("name")
    if spec.get("type") == "check" and isinstance(name, str) and "@" in name and spec.get("version") is None:
        spec["name"], _, spec["version"] = name.partition("@")
    return spec
