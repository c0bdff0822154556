"""``replay``: a recording once more, in virtual time, with its sentinels run anew (spec hank 5, design "How it runs" 5)."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, assert_never

import orjson
from anyio.lowlevel import checkpoint

from hankwatch.agents.detect import ENVELOPE
from hankwatch.bench.journal_view import base_id
from hankwatch.bench.sources import DEFAULT_CODON, Source
from hankwatch.bench.stepping import REPLAY_CODE, Coming, Entered, Moment, Step, is_left_out, steps
from hankwatch.core.clock import Clock, StreamTime, SystemClock, Timers
from hankwatch.core.errors import InfrastructureError, UsageError
from hankwatch.core.files import replace_file
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import Event, IdSource
from hankwatch.events.observers import SentinelError, SentinelErrorType, SentinelTriggered
from hankwatch.events.run import Info
from hankwatch.llm.client import ModelClient
from hankwatch.runner.layout import Layout
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.manager import Attached, SentinelManager
from hankwatch.sentinels.sentinel import SentinelSummary
from hankwatch.sentinels.source import SentinelSource
from hankwatch.stream.journal import Journal
from hankwatch.stream.stream import EventStream
from hankwatch.watchdog import Watchdog, WatchdogPolicy
from hankwatch.watchdog.tool_classes import classes_of

EVERYTHING = "*"
"""In place of a codon's id: the sentinels watch the whole recording as one codon, as in ``try``."""
MAX_ERRORS = 100
"""Errors of sentinels that are kept to be shown; the journal has all."""
_BREATH = 256
"""Steps after which others get a turn: cancellation, a progress bar."""


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How a recording is replayed."""

    sentinels: Literal["skip", "cassette", "live"] = "skip"
    """What answers them: ``skip`` leaves them out."""
    speed: Literal["max", "real"] = "max"
    """``real``: as long between two events as when they were recorded."""
    deterministic: bool = False
    """Ids are made from stamps alone, so that the same replay has the same bytes."""
    drain: bool = True
    """Whether sentinels finish what they hold where the recorded ones did; else it is named as abandoned."""
    drain_s: float = 120.0
    """Seconds of real time each sentinel has for that."""
    watchdog: WatchdogPolicy | None = None
    """Judges an agent's stream and only tells; a journal has what its own told, so it is left alone."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay is."""

    out: Path
    """The execution directory it makes."""
    events: int
    read_bytes: int
    total_bytes: int
    """Of the recording's file as it lies there."""


@dataclass(frozen=True, slots=True)
class Failed:
    """One ``sentinel.error``."""

    sentinel_id: str
    codon_id: str
    error_type: SentinelErrorType
    message: str


@dataclass(slots=True)
class Replayed:
    """What came of a replay."""

    out: Layout
    """Its execution directory: journal and reports lie as those of a run."""
    events: int = 0
    """Of the recording, emitted again."""
    fires: Counter[str] = field(default_factory=Counter)
    """Triggers by sentinel id."""
    errors: list[Failed] = field(default_factory=list)
    """The first ``MAX_ERRORS``."""
    error_count: int = 0
    sentinels: list[SentinelSummary] = field(default_factory=list)
    """One for each sentinel and codon, in order."""
    codons: list[str] = field(default_factory=list)
    """Runtime ids of the codons that were met; of one scope its first."""
    bad_lines: int = 0
    """Lines that became no event."""
    replayed: int = 0
    """Events left out because they came before."""
    left_out: int = 0
    """Events of recorded sentinels, left out."""
    notes: list[str] = field(default_factory=list)
    """What else should be known of it, for people; each is an ``info`` of the journal too."""


async def replay(
    source: Source,
    sentinels: Mapping[str, Sequence[SentinelSource]],
    out: Path,
    *,
    client: ModelClient | None,
    sandbox: Sandbox | None,
    redactor: Redactor,
    options: ReplayOptions,
    on_progress: Callable[[Progress], None] | None = None,
    clock: Clock | None = None,
    time: StreamTime | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Replayed:
    """Emit ``source`` into a new journal, under its sentinels.

    Everything that an instant sets off happens at that instant, one fire after the other in the order of
    attachment, however long it takes, so queues cannot overflow. What recorded sentinels did is left out.
    Cancelled or failed, it leaves a journal that says so.

    Args:
        source: The recording.
        sentinels: Authored (or runtime) codon id to the sentinels attached to it, or ``EVERYTHING`` to those that
            watch all of it as one codon; unused with ``skip``.
        out: The execution directory to make.
        client: Answers; None only with ``skip``.
        sandbox: Entered; None only with ``skip``.
        redactor: Knows the secrets.
        options: How.
        on_progress: Told now and then.
        clock: Real time; default: the machine's.
        time: Stream time, for a client that stamps with it.
        meta: What ``execution-meta.json`` says of the new directory; None: there is none.

    Raises:
        UsageError: ``out`` is in use, or the recording cannot be read to its end.
        InfrastructureError: the journal cannot be written.
    """
    layout = _made(out, meta)
    clock, time = clock or SystemClock(), time or StreamTime()
    run = _Replay(source, layout, options, clock=clock, time=time, on_progress=on_progress)
    async with AsyncExitStack() as stack:
        journal = Journal.open(layout.journal)
        stack.callback(journal.close)
        stream = EventStream(
            journal,
            time=time,
            timers=Timers(),
            redactor=redactor,
            ids=IdSource(0 if options.deterministic else None),
            on_failure=lambda _: None,  # whoever emits meets it too
        )
        stack.callback(stream.close)
        if options.sentinels == "skip":
            return await run.carry_out(stream, None, {})
        assert client is not None
        assert sandbox is not None
        manager = SentinelManager(
            stream,
            client,
            sandbox,
            managed_dir=layout.managed,
            agent_root=layout.agent_root,
            clock=clock,
            in_turn=True,
        )
        return await run.carry_out(stream, manager, sentinels)


def _made(out: Path, meta: Mapping[str, Any] | None) -> Layout:
    layout = Layout(out)
    try:
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out} exists already", hint="name a new directory; nothing was written")
        for folder in (layout.agent_root, layout.journal.parent):
            folder.mkdir(parents=True, exist_ok=True)
        if meta is not None:
            replace_file(layout.meta, orjson.dumps(meta, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        raise InfrastructureError(f"{out} cannot be made: {error.strerror}") from error
    return layout


class _Replay:
    """One replay under way."""

    def __init__(
        self,
        source: Source,
        layout: Layout,
        options: ReplayOptions,
        *,
        clock: Clock,
        time: StreamTime,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self._clock = clock
        self._time = time
        self._source = source
        self._options = options
        self._on_progress = on_progress
        self._total_bytes = source.path.stat().st_size
        self._result = Replayed(layout)
        self._stream: EventStream
        self._manager: SentinelManager | None = None
        self._sentinels: Mapping[str, Sequence[SentinelSource]] = {}
        self._attached: Attached | None = None
        self._judges = False

    async def carry_out(
        self, stream: EventStream, manager: SentinelManager | None, sentinels: Mapping[str, Sequence[SentinelSource]]
    ) -> Replayed:
        self._stream, self._manager, self._sentinels = stream, manager, sentinels
        stream.subscribe(self._count, name="replay")
        source, policy = self._source, self._options.watchdog
        if policy is not None and source.program != ENVELOPE:
            self._judges, codon = True, source.codon or DEFAULT_CODON
            watchdog = Watchdog(policy, codon, emit=stream.emit, tool_classes=classes_of(source.program))
            stream.subscribe(watchdog.on_event, name="watchdog")
        ended = False
        try:
            if manager is None:
                await self._play()
            else:
                async with manager:
                    await self._play()
            ended = True
        finally:
            self._conclude(ended=ended)
        return self._result

    async def _play(self) -> None:
        paced = self._options.speed == "real"
        async with AsyncExitStack() as codon:
            done = steps(self._source, self._stream, self._time, one_scope=EVERYTHING in self._sentinels, paced=paced)
            for number, step in enumerate(done):
                if step is not Moment.PASSED:
                    await self._take(step, codon)
                if self._manager is not None:
                    await self._manager.settle()
                if not number % _BREATH:
                    await self._breathe()
        await self._breathe()

    async def _take(self, step: Step, codon: AsyncExitStack) -> None:
        match step:
            case Moment.BEGUN:
                self._tell("begun", _BEGUN[self._options.sentinels])
            case Entered():
                await codon.enter_async_context(self._watched(step))
            case Moment.DRAIN:
                await self._drain()
            case Moment.LEFT | Moment.BROKEN_OFF:
                await self._drain()
                if step is Moment.LEFT and self._attached is not None:
                    self._attached.unload_reason = "codon-complete"
                await codon.aclose()
            case Coming(at_ms):
                await self._breathe()
                await self._clock.sleep((at_ms - self._time.now_ms()) / 1000)
            case Moment.PASSED:
                pass
            case _:
                assert_never(step)

    @asynccontextmanager
    async def _watched(self, entered: Entered) -> AsyncIterator[None]:
        scope = entered.scope
        self._result.codons.append(scope.codon_id)
        ids = (
            (EVERYTHING,)
            if EVERYTHING in self._sentinels
            else (scope.base_codon_id, scope.codon_id, base_id(scope.codon_id))
        )
        sources = next((self._sentinels[name] for name in ids if name in self._sentinels), ())
        if self._manager is None or not sources:
            yield
            return
        async with self._manager.attach(scope, sources) as attached:
            attached.unload_reason = "shutdown"
            self._attached = attached
            yield
        self._attached = None
        self._result.sentinels += attached.summaries()

    async def _drain(self) -> None:
        if self._attached is not None and self._options.drain:
            await self._attached.drain(self._options.drain_s, fresh_budget=True)

    async def _breathe(self) -> None:
        if self._on_progress is not None:
            result, read_bytes = self._result, self._source.place.read_bytes
            self._on_progress(Progress(result.out.root, result.events, read_bytes, self._total_bytes))
        await checkpoint()

    def _count(self, event: Event) -> None:
        result = self._result
        if event.type == SentinelTriggered.TYPE:
            result.fires[event.data["sentinelId"]] += 1
        elif event.type == SentinelError.TYPE:
            result.error_count += 1
            if len(result.errors) < MAX_ERRORS:
                data = event.data
                result.errors.append(Failed(data["sentinelId"], data["codonId"], data["errorType"], data["message"]))
        elif not is_left_out(event) and not (self._judges and event.type.startswith("watchdog.")):
            result.events += 1

    def _conclude(self, *, ended: bool) -> None:
        source, result = self._source, self._result
        result.bad_lines, result.replayed, result.left_out = source.bad_lines, source.replayed, source.left_out
        parts = [
            f"{count} {what}"
            for count, what in (
                (result.bad_lines, "lines became no event"),
                (result.replayed, "events were copies of earlier ones and left out"),
                (result.left_out, "events told of recorded sentinels and were left out"),
            )
            if count
        ]
        what = "ended" if ended else "interrupted: what follows in the recording is missing"
        self._tell("ended" if ended else "interrupted", f"Replay {what}", f"{result.events} events", *parts)

    def _tell(self, code: str, message: str, *facts: str) -> None:
        text = f"{message} ({'; '.join(facts)})" if facts else message
        self._result.notes.append(text)
        self._stream.emit(Info(message=text, code=f"{REPLAY_CODE}{code}"))


_BEGUN = {
    "skip": (
        "Sentinels are skipped in this replay, since their model calls cost money and come out differently each time; "
        "--sentinels cassette answers from a call log, --sentinels live asks the models, `hankwatch try` shows "
        "when one would fire"
    ),
    "cassette": "A call log answers the sentinels of this replay; stream time waits for them, so no queue can overflow",
    "live": "Models answer the sentinels of this replay; stream time waits for them, so no queue can overflow",
}
