"""Plays a recorded agent stream on stdout, as the agent would: run by path, in any Python, on its own.

Every line is written as it stands and flushed, after the gap that the stamps of the lines tell, capped.
A ``.gz`` file is read too. ``--stderr`` is written after the first line; ``--exit`` ends it.
"""

import argparse
import gzip
import json
import signal
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

DEFAULT_GAP_MS = 5
"""Before a line that bears no stamp."""


def stamp_ms(line: bytes) -> float | None:
    """When a line says it was written, in epoch milliseconds; None when it does not. Without a zone it is UTC."""
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    message = record.get("message")
    values = [record.get(key) for key in ("timestamp", "ts", "updatedAt")]
    values.append(message.get("timestamp") if isinstance(message, dict) else None)
    value = next((value for value in values if value), None)
    try:
        if isinstance(value, int | float):
            return float(value)
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None
    if at is None:
        return None
    # A stamp without a zone means UTC, whatever the zone of this machine.
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000


def gaps_ms(lines: list[bytes], max_gap_ms: float) -> Iterator[float]:
    """The wait before each line; stamps that go back wait nothing."""
    last: float | None = None
    for line in lines:
        at = stamp_ms(line)
        if at is None:
            yield min(DEFAULT_GAP_MS, max_gap_ms)
            continue
        yield 0.0 if last is None else min(max(0.0, at - last), max_gap_ms)
        last = at


def play(data: bytes, max_gap_ms: float, stderr: bytes) -> None:
    """Write every line of ``data`` to stdout, byte by byte as it is, and ``stderr`` after the first."""
    lines = data.split(b"\n")
    last = lines.pop()
    whole = [line + b"\n" for line in lines] + ([last] if last else [])
    for number, (line, gap_ms) in enumerate(zip(whole, gaps_ms(whole, max_gap_ms), strict=True)):
        if gap_ms > 0:
            time.sleep(gap_ms / 1000)
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
        if number == 0 and stderr:
            sys.stderr.buffer.write(stderr)
            sys.stderr.buffer.flush()


def main(arguments: list[str] | None = None) -> int:
    """Play one file; returns the exit code asked for."""
    parser = argparse.ArgumentParser(description="Play a recorded agent stream on stdout.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--max-gap-ms", type=float, default=250.0, help="longest wait before a line (250)")
    parser.add_argument("--speed", choices=["real", "max"], default="real", help="max: no waits at all")
    parser.add_argument("--stderr", type=Path, help="a file to write to stderr after the first line")
    parser.add_argument("--exit", type=int, default=0, help="exit code (0)")
    options = parser.parse_args(arguments)
    data = options.file.read_bytes()
    if options.file.suffix == ".gz":
        data = gzip.decompress(data)
    stderr = options.stderr.read_bytes() if options.stderr is not None else b""
    play(data, options.max_gap_ms if options.speed == "real" else 0.0, stderr)
    return int(options.exit)


if __name__ == "__main__":
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())
