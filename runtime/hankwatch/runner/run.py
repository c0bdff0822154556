"""One run of a hank: codon after codon, from RunStarted to its end (design "How it runs" 6)."""

from collections.abc import Callable
from dataclasses import dataclass, field

from hankwatch.runner.codon import CodonRun
from hankwatch.runner.control import Control
from hankwatch.runner.jobs import CodonJob
from hankwatch.runner.ledger import Ledger
from hankwatch.runner.plan import Finish, StartCodon, next_step
from hankwatch.runner.state import RunRecord
from hankwatch.sentinels.sentinel import SentinelSummary


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended."""

    success: bool
    reason: str
    record: RunRecord
    sentinels: tuple[SentinelSummary, ...]
    """Per sentinel of every codon, in order: what it did (``sentinels.manager`` summaries)."""


@dataclass(slots=True)
class Run:
    """Carries out the codons in order until one fails, all are done, or it is asked to stop."""

    jobs: tuple[CodonJob, ...]
    ledger: Ledger
    control: Control
    start_codon: Callable[[CodonJob], CodonRun]
    _summaries: list[SentinelSummary] = field(default_factory=list)

    async def run(self) -> RunResult:
        """The whole run.

        Raises:
            InfrastructureError: the journal failed; the run has no end in it then.
        """
        self.ledger.start_run()
        while isinstance(step := self._next(), StartCodon):
            codon = self.start_codon(self.jobs[step.index])
            await codon.run()
            self._summaries += codon.summaries
        self.ledger.move("RunCompleted" if step.success else "RunFailed", {"reason": step.reason})
        return RunResult(step.success, step.reason, self.ledger.run, tuple(self._summaries))

    def _next(self) -> StartCodon | Finish:
        ids = [job.codon_id for job in self.jobs]
        return next_step(ids, self.ledger.run, stopping=self.control.stopping)
