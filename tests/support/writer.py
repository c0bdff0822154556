"""A process that writes a journal, for tests that kill it, starve it or let several compete. Run by path.

``writer.py emit JOURNAL SEED [FILE_SIZE_LIMIT]``
    Emit batches of random sizes for ever; print each event's id once ``emit`` has returned. With a limit
    the operating system refuses to let any file grow beyond it; the failure goes to stderr, exit code 3.
``writer.py huge JOURNAL NAME``
    Emit three small events, print their ids, then emit one of 50 MB.
``writer.py compete JOURNAL NAME``
    Append 60 events of 20 KB one by one, wait for the end of stdin. Exit code 3 when another process
    holds the journal.
``writer.py queue JOURNAL NAME``
    The same without the wait, trying until it is this process's turn.
"""

import os
import random
import resource
import sys
from pathlib import Path

from hankwatch.core.clock import StreamTime, SystemClock, Timers
from hankwatch.core.errors import InfrastructureError, JournalLocked
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import IdSource
from hankwatch.events.run import Info
from hankwatch.stream import EventStream, Journal


def open_stream(path: Path) -> EventStream:
    return EventStream(
        Journal.open(path, run="writer"),
        time=StreamTime(SystemClock()),
        timers=Timers(),
        redactor=Redactor({}),
        ids=IdSource(),
        on_failure=lambda error: print(f"stream failed: {error}", file=sys.stderr),
    )


def emit_for_ever(stream: EventStream, seed: int) -> None:
    chance = random.Random(seed)
    while True:
        batch = [Info(message="x" * chance.choice([10, 500, 300_000])) for _ in range(chance.randint(1, 8))]
        ids = "".join(f"{event.id}\n" for event in stream.emit(*batch))
        os.write(sys.stdout.fileno(), ids.encode())


def emit_sixty(stream: EventStream, name: str) -> None:
    for count in range(60):
        stream.emit(Info(message="x" * 20_000, code=f"{name}-{count}"))


def main(role: str, journal: str, name: str, limit_bytes: str | None = None) -> int:
    path = Path(journal)
    if limit_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit_bytes), int(limit_bytes)))
    while True:
        try:
            stream = open_stream(path)
        except JournalLocked as error:
            if role != "queue":
                print(error, file=sys.stderr)
                return error.exit_code
        else:
            break
    try:
        if role == "emit":
            emit_for_ever(stream, int(name))
        if role == "huge":
            print(*(event.id for event in stream.emit(*[Info(message=name)] * 3)), sep="\n", flush=True)
            stream.emit(Info(message="x" * 50_000_000))
        emit_sixty(stream, name)
        if role == "compete":
            sys.stdin.read()
    except InfrastructureError as error:
        assert stream.emit(Info(message="after the failure")) == ()
        return error.exit_code
    finally:
        stream.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
