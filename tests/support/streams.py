"""Streams and events for tests of what listens to them."""

from datetime import UTC, datetime
from pathlib import Path

from hankwatch.core.clock import StreamTime, Timers, VirtualClock
from hankwatch.core.errors import InfrastructureError
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import Event, IdSource, format_stamp
from hankwatch.events.run import Info
from hankwatch.stream import EventStream, Journal, JournalReader, ListenerFailure

START_MS = 1_800_000_000_000


class HandClock(VirtualClock):
    """One that a function that is no task can move: sleepers are woken when it is next advanced."""

    def passes(self, seconds: float) -> None:
        """Time goes by, as under a loop that is busy."""
        self._seconds += seconds


class Bench:
    """An event stream with everything it stands on, on a virtual clock."""

    def __init__(self, journal: Journal | None, secrets: dict[str, str] | None = None) -> None:
        self.clock = HandClock(datetime.fromtimestamp(START_MS / 1000, UTC))
        self.journal = journal
        self.failures: list[InfrastructureError] = []
        self.listener_failures: list[ListenerFailure] = []
        self.timers = Timers()
        self.stream = EventStream(
            journal,
            time=StreamTime(self.clock),
            timers=self.timers,
            redactor=Redactor(secrets or {}),
            ids=IdSource(seed=1),
            on_failure=self.failures.append,
            on_listener_failure=self.listener_failures.append,
        )

    def emit_at(self, offset_ms: int, text: str) -> None:
        """Schedule a timer that emits ``text``, ``offset_ms`` after the start."""
        self.timers.at(START_MS + offset_ms, lambda _at_ms: (self.stream.emit(info(text)), None)[1])

    def hear(self) -> list[str]:
        """Subscribe; the list grows with the messages of ``info`` events."""
        heard: list[str] = []
        self.stream.subscribe(lambda event: heard.append(message(event)), name="hear")
        return heard

    def written(self) -> list[str]:
        """What the journal holds, as messages."""
        assert self.journal is not None
        return [message(event) for event in JournalReader(self.journal.path).read()]


def message(event: Event) -> str:
    """The message of an ``info``, the type of anything else."""
    return str(event.data.get("message", event.type))


def info(text: str) -> Info:
    """The smallest payload."""
    return Info(message=text)


def events(*texts: str, at_ms: int = START_MS) -> list[Event]:
    """Ready events, not written yet."""
    ids = IdSource(seed=2)
    return [Event(ids.next(at_ms), format_stamp(at_ms), "info", {"message": text}, at_ms) for text in texts]


def write_journal(path: Path, *texts: str) -> list[Event]:
    """A journal with these messages, closed again."""
    journal = Journal.open(path)
    written = events(*texts)
    journal.append(written)
    journal.close()
    return written
