"""Which codon comes next: a pure function of the hank and what was done so far."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Literal

from hankwatch.hank.model import Codon, ContextExceeded, Hank, IterationLimit, Loop, RetryConfig
from hankwatch.runner.state import CodonRecord, latest


@dataclass(frozen=True, slots=True)
class LoopPlace:
    """Where in a loop a codon stands."""

    loop: Loop
    iteration: int
    """0-based."""
    index: int
    """Position in the loop."""

    def as_json(self) -> dict[str, Any]:
        """The contract's ``loopContext``."""
        return {"loopId": self.loop.id, "iteration": self.iteration, "codonIndexInLoop": self.index}


@dataclass(frozen=True, slots=True)
class IterationEnd:
    """A pass over a loop's codons has ended."""

    place: LoopPlace
    """Of its last codon."""
    is_final: bool
    """The loop has ended with it."""
    reason: Literal["iteration_limit", "context_exceeded", "failure"] | None = None
    """Why the loop ended; None when it goes on, or when a budget ended it."""


@dataclass(frozen=True, slots=True)
class StartCodon:
    """Run this codon next."""

    codon: Codon
    """As authored."""
    codon_id: str
    """Runtime id."""
    place: LoopPlace | None = None
    """None outside of loops."""
    previous: str | None = None
    """Runtime id of the codon before it, whose session ``continue-previous`` means; None for the first."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do."""

    success: bool
    reason: str
    """For people; the contract's literal reason on success."""


Step = StartCodon | Finish


def next_step(hank: Hank, records: Sequence[CodonRecord], *, stopping: bool = False, again: bool = False) -> Step:
    """The next codon in order, or the end: all done, one failed, or the run was asked to stop.

    Skipped codons count as done, and so do failed ones that were ignored; of several attempts the last counts.
    With ``again`` a codon that failed is the next one, unless the run is stopping.
    """
    known = latest(records)
    step = _first_undone(hank, known)
    if step is None:
        return Finish(success=True, reason="all codons completed")
    if (record := known.get(step.codon_id)) is not None and record.final and (stopping or not again):
        return Finish(success=False, reason=f"codon failure: {step.codon_id}")
    return Finish(success=False, reason="stopped") if stopping else step


def last_done(hank: Hank, records: Sequence[CodonRecord]) -> str | None:
    """Runtime id of the codon after which a run goes on; None when nothing is done yet."""
    step = _first_undone(hank, latest(records))
    return records[-1].codon_id if step is None else step.previous


def step_of(hank: Hank, records: Sequence[CodonRecord], codon_id: str) -> StartCodon | None:
    """The step that started the codon ``codon_id`` among ``records``; None when the hank has no such codon."""
    previous: str | None = None
    for step in _steps(hank, latest(records)):
        if step.codon_id == codon_id:
            return replace(step, previous=previous)
        if all(record.codon_id != step.codon_id for record in records):
            return None
        previous = step.codon_id
    return None


def _first_undone(hank: Hank, known: Mapping[str, CodonRecord]) -> StartCodon | None:
    previous: str | None = None
    for step in _steps(hank, known):
        record = known.get(step.codon_id)
        if record is None or not is_done(record):
            return replace(step, previous=previous)
        previous = step.codon_id
    return None


def is_done(record: CodonRecord) -> bool:
    """Whether the run goes on after this end of a codon."""
    return record.final and (record.status != "failed" or bool(record.verdict.get("failureIgnored")))


def _steps(hank: Hank, known: Mapping[str, CodonRecord]) -> Iterator[StartCodon]:
    """What is done one after the other; each codon of a loop must be done before the next is asked for."""
    for item in hank.hank:
        if isinstance(item, Loop):
            yield from _loop_steps(item, known)
        else:
            yield StartCodon(item, item.id)


def _loop_steps(loop: Loop, known: Mapping[str, CodonRecord]) -> Iterator[StartCodon]:
    for iteration in count():
        for index, codon in enumerate(loop.codons):
            place = LoopPlace(loop, iteration, index)
            yield StartCodon(codon, runtime_id(codon, iteration), place)
            end = iteration_end(place, known)
            if end is not None and end.is_final:
                return


def runtime_id(codon: Codon, iteration: int) -> str:
    """The id of a loop's codon in one iteration."""
    return f"{codon.id}#{iteration}"


def iteration_end(place: LoopPlace, known: Mapping[str, CodonRecord]) -> IterationEnd | None:
    """What the end of the codon at ``place`` means for its loop; None when the iteration goes on.

    ``known`` has the last record of each codon, of this one too.
    """
    loop, terminate = place.loop, place.loop.terminate_on
    record = known[runtime_id(loop.codons[place.index], place.iteration)]
    until_full = isinstance(terminate, ContextExceeded)
    if until_full and record.verdict.get("contextExceeded"):
        return IterationEnd(place, is_final=True, reason="context_exceeded")
    if record.verdict.get("budgetExceeded"):
        return IterationEnd(place, is_final=True)
    if place.index + 1 < len(loop.codons):
        return None
    if isinstance(terminate, IterationLimit) and place.iteration + 1 >= terminate.limit:
        return IterationEnd(place, is_final=True, reason="iteration_limit")
    statuses = {known[runtime_id(codon, place.iteration)].status for codon in loop.codons}
    if until_full and statuses == {"failed"}:
        # Nothing of it will ever fill a context.
        return IterationEnd(place, is_final=True, reason="failure")
    return IterationEnd(place, is_final=False)


def retry_wait_ms(codon: Codon, attempts: Sequence[CodonRecord]) -> int | None:
    """How long to wait before a codon is tried again (reference 3.5); None when it is not.

    Args:
        codon: As authored.
        attempts: All of this codon so far, oldest first; the last has ended.
    """
    if codon.on_failure != "retry" or attempts[-1].status != "failed":
        return None
    reason: Mapping[str, object] = attempts[-1].failure_reason or {}
    config = retry_config(codon)
    if not reason.get("retriable") or len(attempts) >= config.max_attempts:
        return None
    after_ms = reason.get("retryAfterMs")
    wait_ms = after_ms if isinstance(after_ms, int) else config.delay_ms * 2 ** (len(attempts) - 1)
    return min(wait_ms, config.max_delay_ms)


def retry_config(codon: Codon) -> RetryConfig:
    """How a codon is tried again, where it says so."""
    return codon.retry_config or RetryConfig()
