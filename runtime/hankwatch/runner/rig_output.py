"""What rig commands print, as few events: ``rig.output`` (reference 1.4)."""

from dataclasses import dataclass, field
from typing import Final

from hankwatch.core.clock import Timer
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import shorten, strip_controls
from hankwatch.events.activity import RigOutput
from hankwatch.processes.lines import Line
from hankwatch.runner.commands import Source
from hankwatch.runner.rawlog import RawLog
from hankwatch.stream.stream import EventStream

INTERVAL_MS: Final = 1_000
"""At most one event per stream in this time, apart from a command's last line."""
LINE_CHARS: Final = 500
"""Longer lines are cut."""
# What is looked at of a line: enough to recognise a secret that the cut would go through.
_SEEN_BYTES: Final = 8 * 1024


@dataclass(slots=True)
class _Voice:
    """One of a command's two streams."""

    waiting: RigOutput | None = None
    timer: Timer | None = None
    next_ms: int = 0


@dataclass(slots=True)
class OutputEvents:
    """Emits the last line of whatever came at once, at most one per second and stream; logs every line."""

    codon_id: str
    base_codon_id: str
    stream: EventStream
    redactor: Redactor
    log: RawLog
    left_out: int = 0
    """Lines that became no event; the log has them."""
    _voices: dict[Source, _Voice] = field(default_factory=lambda: {"stdout": _Voice(), "stderr": _Voice()})

    def hear(self, source: Source, line: Line, command_index: int) -> None:
        """Take one line of the command at ``command_index`` (0-based); blank ones are only logged."""
        self.log.keep(line)
        text = self.redactor.text(strip_controls(line.data[:_SEEN_BYTES].decode("utf-8", "replace"))).strip()
        if not text:
            return
        voice = self._voices[source]
        if voice.waiting is not None:
            self.left_out += 1
        voice.waiting = RigOutput(
            codon_id=self.codon_id,
            base_codon_id=self.base_codon_id,
            stream=source,
            line=shorten(text, LINE_CHARS),
            command_index=command_index,
        )
        if voice.timer is None:
            # Even the first goes through the timer: it is due once the chunk that it came in is read.
            due_ms = max(self.stream.now_ms(), voice.next_ms)
            voice.timer = self.stream.timers.at(due_ms, lambda _due_ms: self._say(voice))

    def flush(self) -> None:
        """Emit what still waits: its command has ended, and its last line often says why."""
        for voice in self._voices.values():
            if voice.timer is not None:
                voice.timer.cancel()
            self._say(voice)

    def _say(self, voice: _Voice) -> None:
        said, voice.waiting, voice.timer = voice.waiting, None, None
        if said is not None:
            voice.next_ms = self.stream.now_ms() + INTERVAL_MS
            self.stream.emit(said)
