"""Which codon comes next: a pure function of the hank and what was done so far."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hankwatch.hank.model import Codon, Hank, Loop, RetryConfig
from hankwatch.runner.state import CodonRecord


@dataclass(frozen=True, slots=True)
class StartCodon:
    """Run this codon next."""

    codon: Codon
    """As authored."""
    codon_id: str
    """Runtime id."""
    previous: str | None = None
    """Runtime id of the codon before it, whose session ``continue-previous`` means; None for the first."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do."""

    success: bool
    reason: str
    """For people; the contract's literal reason on success."""


Step = StartCodon | Finish


def next_step(hank: Hank, records: Sequence[CodonRecord], *, stopping: bool = False) -> Step:
    """The next codon in order, or the end: all done, one failed, or the run was asked to stop.

    Skipped codons count as done, and so do failed ones that are ignored; of several attempts the last counts.
    """
    latest = {record.codon_id: record for record in records}
    previous: str | None = None
    for step in _steps(hank):
        record = latest.get(step.codon_id)
        if record is None or not record.final:
            return Finish(success=False, reason="stopped") if stopping else replace(step, previous=previous)
        if not is_done(step.codon, record):
            return Finish(success=False, reason=f"codon failure: {step.codon_id}")
        previous = step.codon_id
    return Finish(success=True, reason="all codons completed")


def is_done(codon: Codon, record: CodonRecord) -> bool:
    """Whether the run goes on after this end of a codon."""
    return record.final and (record.status != "failed" or codon.on_failure == "ignore")


def _steps(hank: Hank) -> Iterator[StartCodon]:
    for item in hank.hank:
        assert not isinstance(item, Loop)
        yield StartCodon(item, item.id)


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
