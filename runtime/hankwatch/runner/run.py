"""One run of a hank: codon after codon, from RunStarted to its end (design "How it runs" 6)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hankwatch.core.clock import Clock
from hankwatch.runner.codon import CodonRun, NotLoaded
from hankwatch.runner.control import Control
from hankwatch.runner.crash import end_crashed
from hankwatch.runner.jobs import CodonJob
from hankwatch.runner.ledger import Ledger
from hankwatch.runner.plan import Finish, StartCodon, next_step
from hankwatch.runner.state import RunRecord
from hankwatch.sentinels.sentinel import SentinelSummary


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended."""

    success: bool
    """Every codon completed or was skipped."""
    reason: str
    """For people: why it ended."""
    execution: Path
    """The execution directory; paths of reports are relative to it."""
    record: RunRecord
    """Its codons: status, cost, tokens, failure reason of each attempt."""
    sentinels: tuple[SentinelSummary, ...]
    """Per sentinel of every codon, in order: what it did."""
    not_loaded: tuple[NotLoaded, ...] = ()
    """Sentinels that were left out, and why."""


@dataclass(slots=True)
class Run:
    """Carries out the codons in order until one fails, all are done, or it is asked to stop."""

    jobs: tuple[CodonJob, ...]
    ledger: Ledger
    control: Control
    clock: Clock
    execution: Path
    """The execution directory; this process holds its lock."""
    start_codon: Callable[[CodonJob], CodonRun]
    _summaries: list[SentinelSummary] = field(default_factory=list)
    _not_loaded: list[NotLoaded] = field(default_factory=list)

    async def run(self) -> RunResult:
        """The whole run.

        Raises:
            InfrastructureError: the journal failed; the run has no end in it then.
        """
        await end_crashed(self.ledger, self.clock)
        self.ledger.start_run()
        while isinstance(step := self._next(), StartCodon):
            codon = self.start_codon(self.jobs[step.index])
            await codon.run()
            self._summaries += codon.summaries
            self._not_loaded += codon.not_loaded
        self.ledger.move("RunCompleted" if step.success else "RunFailed", {"reason": step.reason})
        return RunResult(
            step.success,
            step.reason,
            self.execution,
            self.ledger.run,
            tuple(self._summaries),
            tuple(self._not_loaded),
        )

    def _next(self) -> StartCodon | Finish:
        ids = [job.codon_id for job in self.jobs]
        return next_step(ids, self.ledger.run, stopping=self.control.stopping)
