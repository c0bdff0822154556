"""``journal import``: a recorded agent stream, or a foreign journal, as a journal of ours."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from hankwatch.bench.sources import Source
from hankwatch.core.clock import StreamTime, Timers
from hankwatch.core.errors import InfrastructureError, JournalWriteError, UsageError
from hankwatch.core.redaction import Redactor
from hankwatch.events.codec import encode_line
from hankwatch.events.envelope import Event, IdSource
from hankwatch.stream.bus import ListenerFailure
from hankwatch.stream.stream import EventStream


def import_journal(source: Source, out: Path, environ: Mapping[str, str]) -> Counter[str]:
    """Write ``source`` as a journal to ``out``; returns how many events of each type.

    The same source gives the same bytes. Secrets of ``environ`` and of known shapes are redacted.

    Raises:
        UsageError: ``out`` exists.
        JournalWriteError: it cannot be written.
    """
    counts: Counter[str] = Counter()
    failures: list[Exception] = []
    time = StreamTime()
    stream = EventStream(
        None,
        time=time,
        timers=Timers(),
        redactor=Redactor.from_environment(environ),
        ids=IdSource(0),
        on_failure=_no_journal,
        on_listener_failure=lambda failure: _keep(failure, failures),
    )
    try:
        with out.open("xb") as file:

            def write(event: Event) -> None:
                file.write(encode_line(event))
                counts[event.type] += 1

            stream.subscribe(write, name="import")
            source.play(stream, time)
    except FileExistsError as error:
        raise UsageError(f"{out} exists already", hint="name a new file; nothing was written") from error
    except OSError as error:
        raise JournalWriteError(out, str(error)) from error
    if failures:
        raise JournalWriteError(out, str(failures[0]))
    return counts


def _keep(failure: ListenerFailure, failures: list[Exception]) -> None:
    failures.append(failure.error)


def _no_journal(error: InfrastructureError) -> None:
    raise error  # there is no journal here that could fail
