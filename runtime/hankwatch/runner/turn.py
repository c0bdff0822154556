"""One agent process from start to end: its lines become events, its limits are held (spec hank 2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import anyio.to_thread

from hankwatch.agents.evidence import Evidence
from hankwatch.agents.outcome import Outcome, decide
from hankwatch.agents.program import AgentProgram, Command, Dialect
from hankwatch.agents.signals import Junk, Result, Signal, Streamed
from hankwatch.agents.translate import Translator
from hankwatch.core.clock import Clock, Timer
from hankwatch.core.redaction import Redactor
from hankwatch.core.tasks import task_group
from hankwatch.events.payload import Payload
from hankwatch.events.run import Info
from hankwatch.processes.child import Child, Exit, spawn
from hankwatch.processes.lines import Line, Stub
from hankwatch.runner.control import CodonStop, StopReason
from hankwatch.runner.rawlog import RawLog
from hankwatch.runner.steering import Reins
from hankwatch.stream.stream import EventStream

LONG_LINE_BYTES = 256 * 1024
"""Lines from here on are read in a thread."""

_Said = list[tuple[Signal | None, list[Payload]]]
"""Each signal of one line, and the events it makes."""


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """How a turn ended."""

    outcome: Outcome
    """What the agent's own result, flags and exit say together."""
    exit: Exit
    has_result: bool
    """The agent stated a result that counts."""
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
    reins: Reins
    clock: Clock
    emit: Callable[[list[Payload]], None]
    on_spawned: Callable[[int], None]
    on_started: Callable[[str], None]
    """Called once, at the first well-formed line, with the session id (empty when not known yet)."""
    on_streamed: Callable[[Streamed], None]
    """Called with each piece of a message that comes whole later."""
    on_interrupted: Callable[[], None]
    """Called when the agent has closed a step that was interrupted; it goes on with what it was told then."""
    _dialect: Dialect = field(init=False)
    _evidence: Evidence = field(default_factory=Evidence)
    _started: bool = False
    _heard_ms: int = 0
    _idle_timer: Timer | None = None

    def __post_init__(self) -> None:
        self._dialect = self.program.dialect()

    async def run(self) -> TurnEnd:
        """The turn; leaves no process behind.

        Raises:
            ProcessNotStarted: the program cannot be started.
            InfrastructureError: the journal failed.
        """
        with RawLog(self.log_path, self.redactor) as log:
            child, exit_ = await self._play(log)
        if log.failure is not None:
            self.emit([Info(message=f"Raw lines of the agent are missing in its log: {log.failure}", code="raw-log")])
        stderr = self.redactor.text(child.stderr_tail())
        ending = self._evidence.ending(
            exit_code=exit_.code, signal=exit_.signal, states_result=self._dialect.states_result, stderr=stderr
        )
        return TurnEnd(decide(ending), exit_, ending.result is not None, stderr)

    async def _play(self, log: RawLog) -> tuple[Child, Exit]:
        wants_stdin = bool(self.command.stdin_lines)
        try:
            async with spawn(
                self.command.argv, cwd=self.cwd, env=self.env, marker=self.marker, clock=self.clock, stdin=wants_stdin
            ) as child:
                self.on_spawned(child.pid)
                self._listen_for_silence()
                async with task_group() as tasks:
                    if wants_stdin:
                        tasks.start_soon(self._send_prompt, child)
                    tasks.start_soon(self._end_on_stop, child)
                    tasks.start_soon(self._end_on_cut, child)
                    async for line in child.lines():
                        self._take(await self._read(line, log), child)
                    self._take(self._translated(self._dialect.finish()), child)
                    exit_ = await child.wait()
                    tasks.cancel_scope.cancel()
        finally:
            if self._idle_timer is not None:
                self._idle_timer.cancel()
        return child, exit_

    async def _send_prompt(self, child: Child) -> None:
        for line in self.command.stdin_lines:
            await child.send(line)
        if not self.command.stdin_open:
            child.close_stdin()
            return
        while True:  # until the child has ended
            word = await self.reins.next_word()
            self.reins.written(taken=all([await child.send(line) for line in word.lines]))

    async def _end_on_stop(self, child: Child) -> None:
        asked = anyio.Event()
        self.stop.on_stop(asked.set)
        await asked.wait()
        await child.terminate_tree(self.stop.grace_s)

    async def _end_on_cut(self, child: Child) -> None:
        await self.reins.cut_asked.wait()
        if not self.reins.over:
            self.reins.was_cut = True
            await child.terminate_tree(self.stop.grace_s)

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

    async def _read(self, line: Line, log: RawLog) -> _Said:
        self._heard_ms = self.stream.now_ms()
        if len(line.data) < LONG_LINE_BYTES:
            return self._say(line, log)
        # Megabytes take longer than the loop may stand still, to read and to make an event of.
        return await anyio.to_thread.run_sync(self._say_long, line, log)

    def _say_long(self, line: Line, log: RawLog) -> _Said:
        said = self._say(line, log)
        for _, payloads in said:
            for payload in payloads:
                self.stream.prepare(payload)
        return said

    def _say(self, line: Line, log: RawLog) -> _Said:
        log.keep(line)
        if line.stub is not None:
            return [(Junk(b"", "longer than the limit"), [_too_long(line.stub)])]
        said = self._translated(self._dialect.feed(line.data))
        if not said and line.data.strip():
            return [(None, [])]  # well-formed, and nothing to tell
        return said

    def _translated(self, signals: list[Signal]) -> _Said:
        return [(signal, self.translator.translate(signal, self._heard_ms)) for signal in signals]

    def _take(self, said: _Said, child: Child) -> None:
        for signal, payloads in said:
            if isinstance(signal, Result):
                if self.reins.was_cut:
                    continue  # whatever it says of its end, it was ended to go on
                if not self.reins.ends_with_result(success=signal.success and not signal.is_error):
                    self.on_interrupted()
                    continue
            if signal is not None:
                self._evidence.note(signal)
            if not self._started and not isinstance(signal, Junk):
                self._started = True
                self.on_started(self.translator.session_id)
            if isinstance(signal, Streamed):
                self.on_streamed(signal)
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
