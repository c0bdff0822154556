"""The loop that every dialect shares: a line, its ``type``, the handler of that type."""

from collections.abc import Callable, Iterable, Mapping

from hankwatch.agents.records import Record, read_record
from hankwatch.agents.signals import Junk, Signal

Handler = Callable[[Record], Iterable[Signal]]
"""What the lines of one type mean."""


class TableDialect:
    """A dialect as a table from a line's kind to its meaning; other kinds are the program's own noise.

    Subclasses hand their table to ``__init__``. They override ``kind_of`` when ``type`` is not the kind,
    ``banner`` when lines of plain text say something, ``finish`` when they hold something back.
    """

    states_result: bool = True
    """See ``Dialect.states_result``."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self.stamp_ms: int | None = None
        """See ``Dialect.stamp_ms``."""
        self._handlers = handlers

    def feed(self, line: bytes) -> list[Signal]:
        """See ``Dialect.feed``."""
        self.stamp_ms = None
        if not line.strip():
            return []
        record = read_record(line)
        if isinstance(record, Junk):
            return list(self.banner(record))
        self.stamp_ms = record.stamp_ms()
        kind = self.kind_of(record)
        if not kind:
            return [Junk(line, "an object without a type")]
        return list(self.meaning(kind, record))

    def kind_of(self, record: Record) -> str:
        """What the table knows a record by; empty for one that is none of the program's."""
        return record.text("type")

    def banner(self, junk: Junk) -> Iterable[Signal]:
        """The signals of a line that is no JSON object."""
        return (junk,)

    def meaning(self, kind: str, record: Record) -> Iterable[Signal]:
        """The signals of a record of type ``kind``."""
        handler = self._handlers.get(kind)
        return handler(record) if handler is not None else ()

    def finish(self) -> list[Signal]:
        """See ``Dialect.finish``."""
        return []
