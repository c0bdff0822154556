"""Which codon comes next: a pure function of the hank and the run so far."""

from collections.abc import Sequence
from dataclasses import dataclass

from hankwatch.runner.state import RunRecord


@dataclass(frozen=True, slots=True)
class StartCodon:
    """Run this codon next."""

    index: int
    """Position in the hank."""
    codon_id: str
    """Runtime id."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Nothing is left to do."""

    success: bool
    reason: str
    """For people; the contract's literal reason on success."""


Step = StartCodon | Finish


def next_step(codon_ids: Sequence[str], run: RunRecord, *, stopping: bool = False) -> Step:
    """The next codon in order, or the end: all done, one failed, or the run was asked to stop.

    Skipped codons count as done.
    """
    latest = {codon.codon_id: codon for codon in run.codons}
    for index, codon_id in enumerate(codon_ids):
        record = latest.get(codon_id)
        if record is not None and record.status == "failed":
            return Finish(success=False, reason=f"codon failure: {codon_id}")
        if record is None or not record.final:
            return Finish(success=False, reason="stopped") if stopping else StartCodon(index, codon_id)
    return Finish(success=True, reason="all codons completed")
