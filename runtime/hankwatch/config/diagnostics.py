"""One fault or lint of a file, and the sink that collects them all."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """What is wrong, where, and what would be right."""

    file: str
    """As the user would name it: relative to the working directory where possible, or ``<inline>``."""
    pointer: str
    """RFC 6901 JSON pointer into the file; ``""`` is the whole document."""
    code: str
    """Stable kebab-case name of the rule."""
    message: str
    hint: str | None = None
    severity: Severity = "error"
    line: int | None = None
    """1-based; None where the file could not be positioned (missing, unreadable)."""
    column: int | None = None

    def text(self) -> str:
        """``file:line:column: severity[code] pointer: message (hint)`` on one line."""
        place = self.file + "".join(f":{n}" for n in (self.line, self.column) if n is not None)
        where = f" {self.pointer}" if self.pointer else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}: {self.severity}[{self.code}]{where}: {self.message}{hint}"

    def as_json(self) -> dict[str, str | int | None]:
        """The shape of ``validate --json`` (spec cli)."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "pointer": self.pointer,
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
        }


@dataclass(slots=True)
class Diagnostics:
    """Collects; a loader adds all it finds and goes on as far as it can."""

    _found: dict[Diagnostic, None] = field(default_factory=dict)
    """In the order they were found, each once."""

    def add(self, diagnostic: Diagnostic) -> None:
        self._found.setdefault(diagnostic)

    @property
    def items(self) -> list[Diagnostic]:
        return list(self._found)

    def put_in_order_of(self, file: str) -> None:
        """Those of ``file`` first, then by file; each file's from top to bottom."""
        self._found = dict.fromkeys(
            sorted(self._found, key=lambda d: (d.file != file, d.file, d.line or 0, d.column or 0))
        )

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self._found if d.severity == "error"]

    @property
    def ok(self) -> bool:
        return not self.errors

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._found)
