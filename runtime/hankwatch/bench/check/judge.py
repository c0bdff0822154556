"""A check held against what sentinels did: everything that is not as expected, and what --update would write."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from hankwatch.bench.check.assertions import Assessor
from hankwatch.bench.check.diff import bounded, file_diff, fires_diff, fires_listed, holds, shown
from hankwatch.bench.check.load import LoadedCheck, assertions
from hankwatch.bench.check.model import ExpectedFire, Span
from hankwatch.bench.check.seen import Seen, SeenFire
from hankwatch.config.scanner import escape
from hankwatch.core.errors import PathRefused
from hankwatch.core.files import reading
from hankwatch.sandbox.sandbox import Sandbox

_WRITTEN_KEYS = {"text", "timestamp", "sentinelId", "triggerNumber"}
"""An entry of a jsonl report that is no structured answer has these."""


@dataclass(frozen=True, slots=True)
class NewList:
    """A list of a check's file as it would be right."""

    pointer: str
    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class NewFile:
    """A golden file as it would be right."""

    path: Path
    data: bytes


@dataclass(frozen=True, slots=True)
class Miss:
    """One expectation that was not met."""

    pointer: str
    """Of the expectation in the check's file."""
    message: str
    details: tuple[str, ...] = ()
    """A diff, or what was there instead; lines without control characters."""
    rewrite: NewList | NewFile | None = None
    """What ``--update`` would write; None for what only people may change."""


@dataclass(slots=True)
class Judge:
    """Holds one check against what was seen."""

    check: LoadedCheck
    seen: Mapping[str, Seen]
    sandbox: Sandbox
    journal: bytes | None = None
    """Of the replay; None where it is not compared."""

    async def misses(self) -> list[Miss]:
        """Everything that is not as expected, in the order of the check's file."""
        found = [*self._absent(), *self._fires(), *self._errors(), *await self._reports()]
        if self.journal is not None and self.check.config.expect.journal is not None:
            found += self._golden("/expect/journal", self.check.config.expect.journal, self.journal, "the journal")
        return found

    def _absent(self) -> list[Miss]:
        """One for each sentinel that something is expected of and that never watched."""
        expect, found = self.check.config.expect, dict[str, Miss]()
        there = ", ".join(map(shown, sorted(self.seen)))
        for key, named in (("fires", expect.fires), ("errors", expect.errors), ("reports", expect.reports)):
            for name in named:
                message = f"{name}: no such sentinel was loaded; there {f'were {there}' if there else 'was none'}"
                if name not in self.seen:
                    found.setdefault(name, Miss(f"/expect/{key}/{escape(name)}", message))
        return list(found.values())

    def _fires(self) -> list[Miss]:
        found = []
        for name, wanted in self.check.config.expect.fires.items():
            if name not in self.seen:
                continue
            pointer = f"/expect/fires/{escape(name)}"
            fires = self.seen[name].fires
            if isinstance(wanted, list):
                found += _against_list(name, wanted, fires, pointer)
            elif (said := _outside(wanted, len(fires))) is not None:
                message = f"{name}: {said} expected, {_some(len(fires), 'fire')} seen"
                found.append(Miss(pointer, message, fires_listed(fires)))
        return found

    def _errors(self) -> list[Miss]:
        found = []
        expected = self.check.config.expect.errors
        for name, seen in sorted(self.seen.items()):
            wanted, errors = expected.get(name, 0), seen.errors
            types = [error.type for error in errors]
            rewrite = None
            if isinstance(wanted, list):
                if types == wanted:
                    continue
                said = f"the errors {', '.join(wanted) or '(none)'} are"
                rewrite = NewList(f"/expect/errors/{escape(name)}", tuple(types))
            elif (outside := _outside(wanted, len(errors), "error")) is None:
                continue
            else:
                said = f"{outside}"
            lines = [line for error in errors for line in _error_lines(error.type, error.message)]
            pointer = f"/expect/errors/{escape(name)}" if name in expected else "/expect"
            message = f"{shown(name)}: {said} expected, {_some(len(errors), 'error')} seen"
            found.append(Miss(pointer, message, bounded(lines), rewrite))
        return found

    async def _reports(self) -> list[Miss]:
        found = []
        assessor = Assessor(self.sandbox, self.check.path.parent)
        for pointer, name, assertion in assertions(self.check.config):
            if (seen := self.seen.get(name)) is None:
                continue
            if (short := await assessor.shortfall(assertion, seen)) is not None:
                at = f"{pointer}/{short.key}" if short.key else pointer
                found.append(Miss(at, f"{name}: {short.message}", short.details))
            if assertion.equals_file is not None:
                what = f"{name}: the report"
                found += self._golden(f"{pointer}/equalsFile", assertion.equals_file, seen.report, what)
        return found

    def _golden(self, pointer: str, ref: str, data: bytes, what: str) -> list[Miss]:
        path = self.check.path_of(ref)
        try:
            with reading(path) as file:
                expected = file.read()
        except FileNotFoundError:
            return [Miss(pointer, f"{what}: {ref} does not exist; --update writes it", (), NewFile(path, data))]
        except OSError as error:
            raise PathRefused(str(path), f"cannot be read: {error.strerror}") from error
        before, after = _comparable(expected), _comparable(data)
        if before == after:
            return []
        return [Miss(pointer, f"{what} is not {ref}", file_diff(before, after), NewFile(path, data))]


def expected_fire(fire: SeenFire, *, with_codon: bool) -> dict[str, Any]:
    """A fire as an item of a check's list."""
    item: dict[str, Any] = {"cause": fire.cause, "at": fire.at, "eventCount": fire.event_count}
    return {**item, "codon": fire.codon} if with_codon else item


def expected_fires(fires: Sequence[SeenFire]) -> tuple[dict[str, Any], ...]:
    """All fires of a sentinel as a check's list; the codon is named where there are several."""
    return tuple(map(partial(expected_fire, with_codon=len({fire.codon for fire in fires}) > 1), fires))


def _against_list(name: str, wanted: Sequence[ExpectedFire], fires: Sequence[SeenFire], pointer: str) -> list[Miss]:
    if len(wanted) == len(fires) and all(map(holds, wanted, fires)):
        return []
    numbers = f"{len(wanted)} expected, {len(fires)} seen" if len(wanted) != len(fires) else "not all as expected"
    rewrite = NewList(pointer, expected_fires(fires))
    return [Miss(pointer, f"{name}: fires differ, {numbers}", fires_diff(wanted, fires), rewrite)]


def _outside(wanted: int | Span, count: int, what: str = "fire") -> str | None:
    """What was wanted, in words, when ``count`` is not it."""
    if isinstance(wanted, int):
        return None if count == wanted else f"{_some(wanted, what)} {'is' if wanted == 1 else 'are'}"
    low, high = wanted.min, wanted.max
    if (low is None or count >= low) and (high is None or count <= high):
        return None
    if high is None:
        return f"at least {_some(low or 0, what)}"
    return f"at most {_some(high, what)}" if low is None else f"{low} to {_some(high, what)}"


def _error_lines(kind: str, message: str) -> list[str]:
    first, *rest = message.split("\n")
    return [f"| ! {shown(kind)}: {shown(first)}", *(f"|   {shown(line)}" for line in rest)]


def _comparable(data: bytes) -> bytes:
    """A report without the instants at which its jsonl entries were written."""
    if b'"triggerNumber"' not in data:
        return data
    return b"\n".join(map(_without_stamp, data.split(b"\n")))


def _without_stamp(line: bytes) -> bytes:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    if not isinstance(value, dict) or not value.keys() >= _WRITTEN_KEYS:
        return line
    return orjson.dumps({key: item for key, item in value.items() if key != "timestamp"})


def _some(count: int, what: str) -> str:
    return f"{count or 'no'} {what}{'s' * (count != 1)}"
