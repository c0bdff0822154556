"""What people ask of a live run, from keys, command files and connections alike (design "How it runs" 12)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from hankwatch.core.clock import Clock
from hankwatch.core.errors import OrderRefused
from hankwatch.runner.control import Control
from hankwatch.runner.rollback_plan import read_target


class Order(StrEnum):
    """One thing that can be asked."""

    NEXT = "next"
    """Start the codon that the run waits with."""
    SKIP = "skip"
    """End the codon as skipped; the run goes on."""
    STOP = "stop"
    """End the run in order, as the first stop signal does."""
    FORCE_STOP = "force-stop"
    """End the codon as failed; what follows is up to its ``onFailure``."""
    ROLLBACK = "rollback"
    """Go back to a checkpoint."""
    CHECKPOINTS = "checkpoints"
    """List what can be gone back to."""


@dataclass(frozen=True, slots=True)
class Orders:
    """Carries out orders on one live run; used on the loop's thread."""

    control: Control
    clock: Clock
    stop_budget_s: float
    """What a run that is asked to stop has until its end."""
    list_checkpoints: Callable[[], Awaitable[str]]
    """Tells what can be gone back to."""

    def stop(self) -> None:
        """End the run within its stop budget; asking again changes nothing."""
        self.control.stop(now_s=self.clock.monotonic(), budget_s=self.stop_budget_s)

    async def carry_out(self, order: Order, target: str | None = None, *, go_on: bool = False) -> str:
        """Do it, and say what was done.

        Args:
            order: What is asked.
            target: Where to go back to, for a rollback: a checkpoint's SHA or its beginning, a codon,
                ``CODON:TYPE`` or ``last-success``.
            go_on: After a rollback, start the next codon at once instead of waiting for ``next``.

        Raises:
            OrderRefused: it cannot be done, or not now.
        """
        match order:
            case Order.NEXT:
                _require(self.control.next(), "the run waits for nothing: it starts its codons by itself, or one runs")
                return "The run goes on"
            case Order.SKIP:
                _require(self.control.skip(), "no codon is running")
                return "The codon is skipped"
            case Order.FORCE_STOP:
                _require(self.control.fail_codon(), "no codon is running")
                return "The codon is ended by force"
            case Order.STOP:
                self.stop()
                return "The run stops"
            case Order.ROLLBACK:
                _require(bool(target), "a rollback needs a target")
                return await self.control.go_back(read_target(target or ""), go_on=go_on)
            case Order.CHECKPOINTS:
                return await self.list_checkpoints()


def _require(possible: bool, why_not: str) -> None:
    if not possible:
        raise OrderRefused(why_not)
