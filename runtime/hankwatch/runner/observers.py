"""The sentinels of the codon under way, as its line sees them: drained, captured, paid for (spec hank 2)."""

from typing import Any

import anyio

from hankwatch.events.run import Info
from hankwatch.runner.context import RunContext
from hankwatch.sentinels.manager import Attached


class Observers:
    """What a codon's line does with its sentinels; one per codon, over all its attempts."""

    def __init__(self, attached: Attached, codon_id: str, context: RunContext) -> None:
        self._attached = attached
        self._codon_id = codon_id
        self._context = context
        self._noted: list[dict[str, Any]] = []
        self._paid_usd = 0.0
        self._fresh_budget = False

    def begin_attempt(self) -> None:
        """A further attempt begins: what its predecessors drained is forgotten, and its record has their states too."""
        self._fresh_budget = True
        self._noted = []
        self.note()

    async def finish_attempt(self) -> None:
        """The first drain of an attempt, and what is said about it."""
        if not (count := len(self._attached.states())):
            return
        self._say(f"Completing work for {count} sentinel(s)...")
        await self._finish()
        self._say(f"Sentinel work completed ({count} sentinel(s))")
        self.note()

    async def drain(self) -> None:
        """Let them finish; their states are captured then."""
        await self._finish()
        self.note()

    async def _finish(self) -> None:
        """Let them finish; a stop meanwhile leaves them what the stop budget allows."""
        control, clock, limit_s = self._context.control, self._context.clock, self._context.drain_s
        fresh_budget, self._fresh_budget = self._fresh_budget, False
        finished = False
        if not control.stopping:
            with anyio.CancelScope() as scope, control.on_stop(scope.cancel):
                await self._attached.drain(limit_s, fresh_budget=fresh_budget)
            finished = not scope.cancelled_caught
        if not finished:
            assert control.stop_by_s is not None
            left_s = control.stop_by_s - clock.monotonic() - control.reserve_s
            await self._attached.drain(max(0.0, min(left_s, limit_s)), fresh_budget=True)

    def note(self) -> None:
        """Capture their states in the journal, where they changed."""
        states = self._attached.states()
        if states != self._noted:
            self._noted = states
            data = {"sentinelStates": states, "totalCost": self._cost_usd}
            self._context.ledger.move("SentinelStatesUpdated", data, codon_id=self._codon_id)

    def take_cost_usd(self) -> float | None:
        """What they cost since this was asked last; None when a part is unknown."""
        if (cost_usd := self._cost_usd) is None:
            return None
        paid_usd, self._paid_usd = self._paid_usd, cost_usd
        return max(0.0, cost_usd - paid_usd)

    @property
    def _cost_usd(self) -> float | None:
        return None if self._attached.unpriced_calls else self._attached.cost_usd

    def _say(self, message: str) -> None:
        self._context.stream.emit(Info(message=message))
