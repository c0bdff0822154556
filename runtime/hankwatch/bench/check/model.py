"""The model of a check: recorded events, whoever watches them, and what is expected of it (spec cli, ``check``)."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from hankwatch.config.validation import ConfigModel
from hankwatch.events.observers import SentinelErrorType, TriggerCause
from hankwatch.matching.conditions import Scalar
from hankwatch.sentinels.config import Text

Number = Annotated[int, Field(ge=0)]
ErrorType = SentinelErrorType | Literal["resource"]


class Span(ConfigModel):
    """How often, within bounds."""

    min: Number | None = None
    """At least so often."""
    max: Number | None = None
    """At most so often."""


class ExpectedFire(ConfigModel):
    """One trigger that was carried out; only what is written here is compared."""

    cause: TriggerCause | None = None
    """What made it due."""
    at: Text | None = None
    """The trigger's own instant, for example `2026-11-30T15:18:35.165Z`."""
    event_count: Annotated[int, Field(ge=1)] | None = None
    """How many events it was about."""
    codon: Text | None = None
    """The runtime id of the codon it belongs to."""


class Assertion(ConfigModel):
    """Something that must hold for a sentinel's report; all keys that are given must hold.

    Without `entry`, `pointer` and `schema` the whole report is looked at, as text.
    """

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"equals", "not_equals"})

    entry: Annotated[int, Field(ge=1)] | Literal["last", "every", "any"] | None = None
    """Which entry: its number from 1, the `last`, `every` one or `any` of them; default `every` with a pointer or a
    schema. An entry of a text report is a string, one of a jsonl report the value of its line."""
    pointer: Annotated[str, Field(pattern=r"^(/.*)?$")] | None = None
    """JSON pointer into the entry, for example `/verdict`."""
    contains: Text | None = None
    """This text occurs in it; of a list, this is a member."""
    not_contains: Text | None = None
    """This text does not occur in it."""
    matches: Text | None = None
    """This regular expression (JavaScript's flavour, not anchored) occurs in it."""
    not_matches: Text | None = None
    """This regular expression does not occur in it."""
    equals: Scalar = None
    """It is this string, number, boolean or null."""
    not_equals: Scalar = None
    """It is not this string, number, boolean or null."""
    in_: Annotated[list[Scalar], Field(min_length=1)] | None = Field(default=None, alias="in")
    """It is one of these."""
    not_in: Annotated[list[Scalar], Field(min_length=1)] | None = None
    """It is none of these."""
    greater_than: int | float | None = None
    """It is a number above this one."""
    greater_than_or_equal: int | float | None = None
    """It is a number not below this one."""
    less_than: int | float | None = None
    """It is a number below this one."""
    less_than_or_equal: int | float | None = None
    """It is a number not above this one."""
    exists: bool | None = None
    """True: the pointer leads to something, null included. False: it leads nowhere."""
    json_schema: Text | dict[str, object] | None = Field(default=None, alias="schema")
    """A JSON Schema that it fits, or the path of a file with one."""
    equals_file: Text | None = None
    """The whole report is the content of this file; `--update` writes it. Of the entries of a jsonl report the
    `timestamp`, which says when they were written, is not compared."""


class Expectations(ConfigModel):
    """What a check looks at; what is not named here may be as it likes, but for errors."""

    fires: dict[str, Number | Span | list[ExpectedFire]] = Field(default_factory=dict)
    """Sentinel id -> how often it fires (a number, or `min` and `max`), or the list of all its fires in order,
    which `--update` writes."""
    errors: dict[str, Number | Span | list[ErrorType]] = Field(default_factory=dict)
    """Sentinel id -> how many `sentinel.error` events it has, or the list of their types, which `--update` writes;
    `resource` means that it was unloaded because matching took too long. Of a sentinel that is not named here none is
    expected."""
    reports: dict[str, Annotated[list[Assertion], Field(min_length=1)]] = Field(default_factory=dict)
    """Sentinel id -> what must hold for its report, which is all its entries in order."""
    journal: Text | None = None
    """A file that the journal of the replay equals, line for line; `--update` writes it. Not looked at with `--run`."""


class Check(ConfigModel):
    """One check; paths are relative to its file."""

    schema_url: str | None = Field(default=None, alias="$schema")
    """For editors."""
    description: str | None = None
    """What it is about; shown when it fails."""
    recording: Text | None = None
    """The events: a journal or an agent program's own stream, gzipped or not. In a `check.json` by default
    `recording.jsonl` or `recording.jsonl.gz` beside it."""
    agent: Text | None = None
    """Which program wrote the recording; by default it is found out."""
    codon: Text | None = None
    """Of a journal: only this codon's events. Of an agent's stream: the id of the codon that it becomes."""
    sentinel: Text | None = None
    """Who watches: the path of a sentinel config, or `stock:` and the id of a stock sentinel. In a `check.json` by
    default `sentinel.json` beside it."""
    hank: Text | None = None
    """Instead of one sentinel those of a hank, each on its own codon: the path of the hank's file. In a `check.json`
    by default `hank.json` beside it."""
    calls: Text | None = None
    """The call log that answers instead of models. In a `check.json` by default `calls.jsonl` beside it. Without one
    only `builtin/…` models answer; for any other sentinel nothing but its fires can be expected."""
    expect: Expectations
    """What is expected."""


DEFAULTS = {
    "recording": ("recording.jsonl", "recording.jsonl.gz"),
    "sentinel": ("sentinel.json",),
    "hank": ("hank.json",),
    "calls": ("calls.jsonl",),
}
"""Key -> the files beside a ``check.json`` that stand for it when it is left out."""
