"""All sentinels of a run: attached to a codon, fed by the bus, drained and unloaded with it (design 9, spec 5)."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import anyio
import anyio.abc

from hankwatch.core.clock import Clock
from hankwatch.core.contain import contain
from hankwatch.events.catalogue import routing
from hankwatch.events.envelope import Event, Routing
from hankwatch.events.observers import SentinelError, SentinelUnloaded
from hankwatch.events.run import Info
from hankwatch.llm.client import ModelClient
from hankwatch.matching.triggers import TriggerIndex
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.crash import LIFECYCLE_TYPES, LeftLoaded, left_loaded
from hankwatch.sentinels.fire import OWN_CODES, Failure, Firing
from hankwatch.sentinels.loader import Desk, LoadedSentinel, LoadFailure, load
from hankwatch.sentinels.prompts import CodonScope
from hankwatch.sentinels.report_book import ReportBook
from hankwatch.sentinels.report_files import ReportPlaces
from hankwatch.sentinels.sentinel import Sentinel, SentinelSummary
from hankwatch.sentinels.source import SentinelSource
from hankwatch.sentinels.strategies import Batch
from hankwatch.stream.reader import JournalReader
from hankwatch.stream.stream import EventStream

__all__ = ["Attached", "CodonScope", "SentinelManager", "SentinelSummary"]

_LOG = logging.getLogger(__name__)


class Attached:
    """The sentinels of one codon, from their load to their unload."""

    def __init__(self, stream: EventStream) -> None:
        self.failures: tuple[LoadFailure, ...] = ()
        """Sentinels that could not be loaded."""
        self.unload_reason: Literal["codon-complete", "shutdown"] = "codon-complete"
        """What ``sentinel.unloaded`` says; set ``shutdown`` before leaving when the run ends first."""
        self._stream = stream
        self._sentinels: list[Sentinel] = []

    @property
    def required_failures(self) -> tuple[LoadFailure, ...]:
        """Those whose entry says ``failCodonIfNotLoaded``."""
        return tuple(failure for failure in self.failures if failure.required)

    @property
    def cost_usd(self) -> float:
        """Known cost of all calls so far; a lower bound while ``unpriced_calls`` is not 0."""
        return sum(sentinel.firing.account.known_cost_usd for sentinel in self._sentinels)

    @property
    def unpriced_calls(self) -> int:
        """Calls whose cost is not known (yet)."""
        return sum(sentinel.firing.account.unpriced_calls for sentinel in self._sentinels)

    def states(self) -> list[dict[str, Any]]:
        """``SentinelState`` of each, in load order (reference 3.6)."""
        return [sentinel.state() for sentinel in self._sentinels]

    def summaries(self) -> list[SentinelSummary]:
        """One line for each, in load order."""
        return [sentinel.summary() for sentinel in self._sentinels]

    @property
    def report_files(self) -> frozenset[str]:
        """Every file they write, relative to the execution directory."""
        plans = [sentinel.report_plan for sentinel in self._sentinels]
        return frozenset(path for plan in plans for path in (plan.log_file, plan.last_value_file) if path is not None)

    async def drain(self, budget_s: float, *, fresh_budget: bool = False) -> None:
        """Carry out all that was matched so far; what is left when ``budget_s`` is spent is abandoned.

        Buffers become final triggers (cause ``drain``). The sentinels drain side by side; all drains of an
        attempt use up one budget. ``fresh_budget`` forgets what was spent: for the first drain of a further
        attempt, and when a stop signal replaces the budget. May be called any number of times; what is matched
        afterwards is still taken.
        """
        self._stream.emit()  # runs the timers that are due, so that they fire as what they are
        async with anyio.create_task_group() as tasks:
            for sentinel in self._sentinels:
                tasks.start_soon(partial(sentinel.drain, budget_s, fresh_budget=fresh_budget))

    async def carry_out(self, batches: Sequence[Batch]) -> list[Failure | None]:
        """Let the only sentinel carry out batches of an earlier load (``retry``), one after the other.

        Why each failed, or None; shorter than ``batches`` when the sentinel was unloaded on the way.
        """
        (sentinel,) = self._sentinels
        return await sentinel.carry_out_again(batches)

    def adopt(self, sentinels: Iterable[Sentinel], failures: Iterable[LoadFailure]) -> None:
        """Take what was loaded; the manager's part of ``attach``."""
        self._sentinels.extend(sentinels)
        self.failures = tuple(failures)

    def unload(self) -> None:
        """Unload all that are left, in load order; the manager's part of ``attach``."""
        for sentinel in self._sentinels:
            sentinel.unload(self.unload_reason)


class SentinelManager:
    """Attaches sentinels to codons. Used as ``async with``; leaving it waits for nothing but cancelled calls.

    Matching happens on the bus, synchronously; models are called in the manager's own tasks. An
    infrastructure failure met there cancels the block and comes out of it. ``persistence``: conversations are
    kept on disk. ``in_turn``: one trigger is carried out at a time, in the order of attachment of those that wait
    (replay); else the sentinels work side by side.
    """

    def __init__(
        self,
        stream: EventStream,
        model: ModelClient,
        sandbox: Sandbox,
        *,
        managed_dir: Path,
        agent_root: Path,
        clock: Clock,
        persistence: bool = True,
        in_turn: bool = False,
    ) -> None:
        self._stream = stream
        self._model = model
        self._sandbox = sandbox
        self._clock = clock
        self._in_turn = in_turn
        self._places = ReportPlaces(managed_dir, agent_root)
        self._persistence = persistence
        self._journal = JournalReader(managed_dir / "events" / "events.jsonl")
        self._index: TriggerIndex[Sentinel] = TriggerIndex(self._on_resource)
        self._given_up: list[tuple[Sentinel, str]] = []
        self._attached: list[Attached] = []
        self._changed = anyio.Event()
        self._last_event_ms = 0
        self._made = 0
        self._under_way = 0
        self._turns: list[tuple[int, Callable[[], Awaitable[None]]]] = []
        self._takes_turns = False

    async def __aenter__(self) -> Self:
        book = self._book = ReportBook(self._places, self._read)
        self._desk = Desk(self._model, self._sandbox, book, self._places.managed_dir, self._persistence)
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        self._unsubscribe = self._stream.subscribe(self._on_event, name="sentinels")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        self._unsubscribe()
        try:
            return await self._tasks.__aexit__(kind, error, trace)
        except BaseExceptionGroup as failures:
            # A failure of the block itself, or of the journal met by one sentinel, comes out as it is.
            if len(failures.exceptions) == 1:
                raise failures.exceptions[0] from None
            raise

    @asynccontextmanager
    async def attach(self, scope: CodonScope, sources: Sequence[SentinelSource]) -> AsyncIterator[Attached]:
        """Load the sentinels of a codon; leaving unloads them, so none of them can see the next one."""
        attached = Attached(self._stream)
        self._attached.append(attached)
        try:
            await self._load(attached, scope, sources)
            yield attached
        finally:
            self._attached.remove(attached)
            attached.unload()
            self._book.release(scope.codon_id)

    def close_left_loaded(self) -> None:
        """Close what a crash left loaded, before a resumed run attaches anything.

        For each such sentinel the report is completed from the journal, what was being carried out is named by
        a ``sentinel.error`` ``abandoned``, and ``sentinel.unloaded`` says ``shutdown``.
        """
        for left in left_loaded(self._read(0, LIFECYCLE_TYPES)):
            with contain(partial(self._cannot_catch_up, left)):
                if left.log_file is not None:
                    self._book.catch_up(left.log_file, left.last_value_file)
            config, run = left.source_path or "SENTINEL", self._places.execution_dir.name
            numbers = list(left.unfinished)
            self._stream.emit(
                SentinelError(
                    **left.identity,
                    error_type="abandoned",
                    message=(
                        f"the run ended with {len(numbers)} trigger(s) begun and perhaps more waiting; "
                        f"`hankwatch try {config} {run} --codon {left.codon_id}` shows them"
                    ),
                    retriable=True,
                    consecutive_failure_count=0,
                    reason="crash",
                    count=len(numbers),
                    trigger_numbers=numbers,
                    event_ids=[event_id for ids in left.unfinished.values() for event_id in ids],
                    event_counts=[len(ids) for ids in left.unfinished.values()],
                ),
                SentinelUnloaded(
                    **left.identity,
                    reason="shutdown",
                    final_cost=left.account.cost_usd,
                    llm_call_count=left.account.calls,
                ),
            )

    async def settle(self) -> None:
        """Wait until no sentinel has a trigger waiting or running."""
        while self._under_way:
            await self._changed.wait()

    async def _load(self, attached: Attached, scope: CodonScope, sources: Sequence[SentinelSource]) -> None:
        results = [await self._prepare(source, scope, sources[:place]) for place, source in enumerate(sources)]
        self._last_event_ms = self._last_event_ms or self._stream.now_ms()
        sentinels: list[Sentinel] = []
        for result in results:
            if isinstance(result, LoadFailure):
                self._announce_failure(result, scope)
            else:
                sentinels.append(self._sentinel(result))
                sentinels[-1].announce()
        attached.adopt(sentinels, (result for result in results if isinstance(result, LoadFailure)))
        # All begin to watch in one step: none sees an event that another one of the codon missed.
        for sentinel in sentinels:
            if sentinel.watches:
                self._index.add(sentinel, sentinel.trigger)

    async def _prepare(
        self, source: SentinelSource, scope: CodonScope, before: Sequence[SentinelSource]
    ) -> LoadedSentinel | LoadFailure:
        if any(other.id == source.id for other in before):
            required = source.settings.fail_codon_if_not_loaded
            return LoadFailure(source.id, "another sentinel of this codon has the same id", required)
        return await load(source, scope, self._desk, self._stream.now_ms())

    def _sentinel(self, loaded: LoadedSentinel) -> Sentinel:
        self._made += 1
        return Sentinel(
            loaded,
            Firing(loaded, stream=self._stream, model=self._model, sandbox=self._sandbox),
            stream=self._stream,
            clock=self._clock,
            spawn=partial(self._spawn, self._made),
            last_event_ms=lambda: self._last_event_ms,
            on_unloaded=self._on_unloaded,
        )

    def _announce_failure(self, failure: LoadFailure, scope: CodonScope) -> None:
        _LOG.warning("sentinel %s is not loaded: %s", failure.sentinel_id, failure.reason)
        self._stream.emit(
            SentinelError(
                sentinel_id=failure.sentinel_id,
                codon_id=scope.codon_id,
                base_codon_id=scope.base_codon_id,
                error_type="load-failed",
                message=failure.reason,
                retriable=False,
                consecutive_failure_count=0,
            )
        )

    def _cannot_catch_up(self, left: LeftLoaded, error: Exception) -> None:
        self._stream.emit(
            SentinelError(
                **left.identity,
                error_type="file-write-failed",
                message=str(error),
                retriable=True,
                consecutive_failure_count=0,
            )
        )

    def _on_event(self, event: Event) -> None:
        if event.type == Info.TYPE and event.data.get("code") in OWN_CODES:
            return
        if routing(event.type, event.data) is not Routing.NEVER:
            self._last_event_ms = event.at_ms
        for match in self._index.route(event):
            match.key.on_match(match.events, event.at_ms)
        while self._given_up:
            sentinel, reason = self._given_up.pop(0)
            sentinel.give_up(reason)

    def _on_resource(self, sentinel: Sentinel, reason: str) -> None:
        # Noted only: the others' matches of this event come first.
        self._given_up.append((sentinel, reason))

    def _on_unloaded(self, sentinel: Sentinel) -> None:
        if dropped := self._index.dropped(sentinel):
            _LOG.info("sentinel %s: %d unfinished sequences were given up for newer ones", sentinel.id, dropped)
        self._index.remove(sentinel)
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    def _spawn(self, place: int, work: Callable[[], Awaitable[None]]) -> None:
        """``place``: which sentinel's work it is, in the order of attachment."""
        self._under_way += 1
        if not self._in_turn:
            self._tasks.start_soon(self._run, work)
            return
        heappush(self._turns, (place, work))
        if not self._takes_turns:
            self._takes_turns = True
            self._tasks.start_soon(self._take_turns)

    async def _take_turns(self) -> None:
        try:
            while self._turns:
                await self._run(heappop(self._turns)[1])
        finally:
            self._takes_turns = False

    async def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        finally:
            self._under_way -= 1
            self._notify()

    def _read(self, after: int, types: Collection[str]) -> Iterable[Event]:
        return self._journal.read(after=after, types=types) if self._journal.path.exists() else ()
