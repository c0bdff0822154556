"""``journal import``: a recorded agent stream, or a foreign journal, as a journal of ours."""

from collections import Counter
from pathlib import Path

from hankwatch.bench.sources import Source
from hankwatch.core.clock import StreamTime, Timers
from hankwatch.core.errors import InfrastructureError, JournalWriteError, UsageError
from hankwatch.core.redaction import Redactor
from hankwatch.events.codec import encode_line
from hankwatch.events.envelope import Event, IdSource
from hankwatch.stream.stream import EventStream


def import_journal(source: Source, out: Path, redactor: Redactor) -> Counter[str]:
    """Write ``source`` as a journal to ``out``; returns how many events of each type.

    The same source gives the same bytes. ``out`` appears when it is whole; a failed import leaves nothing.

    Raises:
        UsageError: ``out`` exists or its folder does not, or the source cannot be read to its end.
        JournalWriteError: it cannot be written.
    """
    if out.exists() or out.is_symlink():
        raise UsageError(f"{out} exists already", hint="name a new file; nothing was written")
    if not out.parent.is_dir():
        raise UsageError(f"the folder {out.parent} does not exist", hint="make it first; nothing was written")
    partial = out.with_name(f"{out.name}.partial")
    try:
        counts = _write(source, partial, redactor)
        partial.rename(out)
    except OSError as error:
        failure = JournalWriteError(out, error.strerror or str(error))
        failure.hint = "free space or name another place; nothing was left behind"
        raise failure from error
    finally:
        partial.unlink(missing_ok=True)
    return counts


def _write(source: Source, path: Path, redactor: Redactor) -> Counter[str]:
    counts: Counter[str] = Counter()
    written: list[Event] = []
    time = StreamTime()
    stream = EventStream(None, time=time, timers=Timers(), redactor=redactor, ids=IdSource(0), on_failure=_no_journal)
    stream.subscribe(written.append, name="import")
    with path.open("wb") as file:
        for _ in source.play(stream, time):
            for event in written:
                file.write(encode_line(event))
                counts[event.type] += 1
            written.clear()
    return counts


def _no_journal(error: InfrastructureError) -> None:
    raise error  # there is no journal here that could fail
