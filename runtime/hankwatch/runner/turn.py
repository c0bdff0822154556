"""One agent process from start to end: its lines become events, its limits are held (spec hank 2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread

from hankwatch.agents.evidence import Evidence
from hankwatch.agents.outcome import Outcome, decide
from hankwatch.agents.program import AgentProgram, Command, Dialect
from hankwatch.agents.signals import Junk, Result, Signal
from hankwatch.agents.translate import Translator
from hankwatch.core.clock import Clock, Timer
from hankwatch.core.redaction import Redactor
from hankwatch.events.payload import Payload
from hankwatch.events.run import Info
from hankwatch.processes.child import Child, Exit, spawn
from hankwatch.processes.lines import Line, Stub
from hankwatch.runner.control import CodonStop, StopReason
from hankwatch.stream.stream import EventStream

KILL_GRACE_S = 3.0
"""Between SIGTERM and SIGKILL; leaves the stop budget room for the drain."""
LONG_LINE_BYTES = 256 * 1024
"""Lines from here on are read in a thread."""

_Said = list[tuple[Signal, list[Payload]]]
"""What one line says, and the events that makes."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended."""

    outcome: Outcome
    """What the agent's own result, flags and exit say together."""
    exit: Exit
    stderr: str
    """The last 64 KiB, redacted."""


@dataclass(slots=True)
class Turn:
    """Runs one agent process. ``emit`` gets the payloads of one signal; ``on_started`` comes before the first."""

    program: AgentProgram
    command: Command
    cwd: Path
    env: Mapping[str, str]
    marker: str
    """``<run>/<codon>/<attempt>``."""
    log_path: Path
    """Raw lines, redacted, are appended here."""
    idle_s: float | None
    """Longest silence in seconds, or None for no limit."""
    stream: EventStream
    translator: Translator
    redactor: Redactor
    stop: CodonStop
    clock: Clock
    emit: Callable[[list[Payload]], None]
    on_spawned: Callable[[int], None]
    on_started: Callable[[str], None]
    """Called once, at the first well-formed line, with the session id (empty when not known yet)."""
    _evidence: Evidence = field(default_factory=Evidence)
    _started: bool = False
    _heard_ms: int = 0
    _idle_timer: Timer | None = None

    async def run(self) -> TurnEnd:
        """The turn; leaves no process behind.

        Raises:
            ProcessNotStarted: the program cannot be started.
            InfrastructureError: the journal failed.
        """
        dialect = self.program.dialect()
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        wants_stdin = bool(self.command.stdin_lines)
        with self.log_path.open("ab") as log:
            try:
                async with spawn(
                    self.command.argv,
                    cwd=self.cwd,
                    env=self.env,
                    marker=self.marker,
                    clock=self.clock,
                    stdin=wants_stdin,
                ) as child:
                    self.on_spawned(child.pid)
                    self._listen_for_silence()
                    async with anyio.create_task_group() as tasks:
                        if wants_stdin:
                            tasks.start_soon(self._send_prompt, child)
                        tasks.start_soon(self._end_on_stop, child)
                        async for line in child.lines():
                            self._keep(log, line)
                            if line.stub is not None:
                                self.emit([_too_long(line.stub)])
                            else:
                                self._take(await self._said(dialect, line.data), child)
                        self._take(self._translated(dialect.finish()), child)
                        exit_ = await child.wait()
                        tasks.cancel_scope.cancel()
            finally:
                if self._idle_timer is not None:
                    self._idle_timer.cancel()
        stderr = self.redactor.text(child.stderr_tail())
        ending = self._evidence.ending(
            exit_code=exit_.code, signal=exit_.signal, states_result=dialect.states_result, stderr=stderr
        )
        return TurnEnd(decide(ending), exit_, stderr)

    async def _send_prompt(self, child: Child) -> None:
        for line in self.command.stdin_lines:
            await child.send(line)
        if not self.command.stdin_open:
            child.close_stdin()

    async def _end_on_stop(self, child: Child) -> None:
        asked = anyio.Event()
        self.stop.on_stop(asked.set)
        await asked.wait()
        await child.terminate_tree(KILL_GRACE_S)

    def _listen_for_silence(self) -> None:
        self._heard_ms = self.stream.now_ms()
        if self.idle_s is not None:
            self._idle_timer = self.stream.timers.at(self._heard_ms + int(self.idle_s * 1000), self._check_silence)

    def _check_silence(self, at_ms: int) -> None:
        assert self.idle_s is not None
        silent_until_ms = self._heard_ms + int(self.idle_s * 1000)
        if silent_until_ms <= at_ms:
            self.stop.request(StopReason.IDLE)
        else:  # re-armed once per silence, not once per line
            self._idle_timer = self.stream.timers.at(silent_until_ms, self._check_silence)

    def _keep(self, log: BinaryIO, line: Line) -> None:
        data = line.data if line.stub is None else str(line.stub).encode()
        if self.redactor.suspects(data):
            data = self.redactor.text(data.decode("utf-8", "replace")).encode()
        log.write(data + b"\n")
        log.flush()

    async def _said(self, dialect: Dialect, data: bytes) -> _Said:
        self._heard_ms = self.stream.now_ms()
        if len(data) < LONG_LINE_BYTES:
            return self._translated(dialect.feed(data))
        # Reading megabytes takes longer than the loop may stand still.
        return await anyio.to_thread.run_sync(lambda: self._translated(dialect.feed(data)))

    def _translated(self, signals: list[Signal]) -> _Said:
        return [(signal, self.translator.translate(signal, self._heard_ms)) for signal in signals]

    def _take(self, said: _Said, child: Child) -> None:
        for signal, payloads in said:
            self._evidence.note(signal)
            if not self._started and not isinstance(signal, Junk):
                self._started = True
                self.on_started(self.translator.session_id)
            if payloads:
                self.emit(payloads)
            if isinstance(signal, Result):
                # A program that is fed by stdin ends once its input does.
                child.close_stdin()


def _too_long(stub: Stub) -> Info:
    return Info(
        message=f"A line of {stub.size_bytes} bytes was left out; it is longer than the limit",
        code="line-too-long",
        details={"sizeBytes": stub.size_bytes, "sha256": stub.sha256},
    )
