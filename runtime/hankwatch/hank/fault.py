"""What a rule or lint of the hank found, before it has a file and a line."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hankwatch.config.diagnostics import Diagnostics, Severity
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault
from hankwatch.hank.model import Hank


@dataclass(frozen=True, slots=True)
class Fault:
    """One finding."""

    pointer: str
    """Into hank.json."""
    code: str
    """Name of the rule."""
    message: str
    hint: str | None = None
    """What would be right."""
    severity: Severity = "error"


Rule = Callable[[Hank], Iterator[Fault]]


def report(faults: Iterator[Fault], document: Document, diagnostics: Diagnostics) -> None:
    """Give each finding the line of what it points at."""
    for fault in faults:
        add_fault(
            diagnostics,
            document,
            fault.pointer,
            fault.code,
            fault.message,
            hint=fault.hint,
            severity=fault.severity,
        )
