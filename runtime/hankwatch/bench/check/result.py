"""What became of a check, and how it is told: the same words on a terminal, in pytest, JUnit and GitHub."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hankwatch.bench.check.diff import visible
from hankwatch.bench.check.judge import Miss
from hankwatch.config.diagnostics import Diagnostic

Outcome = Literal["passed", "failed", "faulty"]


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that is wrong, where it is written; no control characters anywhere."""

    file: str
    line: int | None
    """1-based."""
    pointer: str
    message: str
    details: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """``file:line``."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What became of one check."""

    id: str
    path: Path
    outcome: Outcome
    """``faulty``: its files have faults, so that nothing could be compared."""
    told: tuple[Told, ...] = ()
    fires: int = 0
    """Fires of all its sentinels."""
    entries: int = 0
    """Entries of all their reports."""
    description: str | None = None
    duration_s: float = 0.0
    updated: tuple[Path, ...] = ()
    """Files that ``--update`` wrote."""
    notes: tuple[str, ...] = ()
    """What else should be known, whatever the outcome."""

    @property
    def counts(self) -> str:
        """``3 fires, 1 entry``."""
        entries = f"{self.entries} entr{'y' if self.entries == 1 else 'ies'}"
        return f"{self.fires} fire{'s' * (self.fires != 1)}, {entries}"

    def as_json(self) -> dict[str, Any]:
        """Its line of ``check --json``."""
        return {
            "check": self.id,
            "file": str(self.path),
            "outcome": self.outcome,
            "fires": self.fires,
            "entries": self.entries,
            "durationSeconds": round(self.duration_s, 3),
            "misses": [
                {
                    "file": one.file,
                    "line": one.line,
                    "pointer": one.pointer,
                    "message": one.message,
                    "details": list(one.details),
                }
                for one in self.told
            ],
            "updated": [str(path) for path in self.updated],
            "notes": list(self.notes),
        }

    def lines(self) -> Iterator[str]:
        """What is wrong, in lines; none for a check that passed."""
        if self.told and self.description:
            yield f"  {visible(self.description)}"
        for one in self.told:
            yield f"  {one.place}: {one.message}"
            for detail in one.details:
                yield f"    {detail}"


def told_miss(miss: Miss, file: str, line: int | None) -> Told:
    """A miss, at the line of its expectation."""
    return Told(visible(file), line, miss.pointer, visible(miss.message), tuple(map(visible, miss.details)))


def told_fault(fault: Diagnostic) -> Told:
    """A fault of a check's files."""
    message = f"{fault.code}: {fault.message}"
    details = (f"hint: {visible(fault.hint)}",) if fault.hint else ()
    return Told(visible(fault.file), fault.line, fault.pointer, visible(message), details)


def exit_code(results: Sequence[CheckResult]) -> int:
    """0 when all passed, 2 when one has faults, else 1."""
    outcomes = {result.outcome for result in results}
    return 2 if "faulty" in outcomes else int("failed" in outcomes)


def summary(results: Sequence[CheckResult]) -> str:
    """``8 checks: 7 passed, 1 failed``."""
    counts = [
        (sum(result.outcome == outcome for result in results), outcome) for outcome in ("passed", "failed", "faulty")
    ]
    said = ", ".join(f"{count} {outcome}" for count, outcome in counts if count)
    return f"{len(results)} check{'s' * (len(results) != 1)}: {said}"
