"""Another attempt, and when: the one place where a model call is made again (spec sentinels 7).

=====================  =========================================================================
what                   rule
=====================  =========================================================================
which failures         transient ones only; never status 400, 401, 403, 404 or 422
how often              ``max_retries`` (0-5) attempts after the first
how long between       ``BACK_OFF_S`` doubled for each failure, or what the provider asks for when
                       that is more (at most ``RETRY_AFTER_CEILING_S``), plus up to a quarter
attempt limit          the request's ``timeout_s``
total limit            ``CALL_LIMIT_S`` from the first slot, waits included; what cannot begin within
                       it is not waited for
hold-back              a provider that answered 429, or that named a time, gets no request of anyone
                       before the failed call's own wait is over
=====================  =========================================================================
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from hankwatch.core.clock import Clock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.limits import within
from hankwatch.llm.call import Attempt, Call
from hankwatch.llm.client import ModelReply, ModelRequest
from hankwatch.llm.slots import Slots, Ticket

BACK_OFF_S: Final = 1.0
"""Before the second attempt; doubled before each further one."""
RETRY_AFTER_CEILING_S: Final = 120.0
"""A provider that asks for more is asked again after this; longer waits would only end in the total limit."""
CALL_LIMIT_S: Final = 300.0
"""What all attempts of one call may take together, from when it first has a slot."""
_JITTER: Final = 0.25


class Retries:
    """Sends a call until it has a reply, may not be tried again, or its time is up.

    Args:
        send: Puts one request on the wire; its failures say whether another attempt makes sense.
        slots: Held only while ``send`` runs.
        clock: Counts the limits and the waits.
        random: A number in [0, 1) for each wait.
    """

    def __init__(
        self,
        send: Callable[[ModelRequest], Awaitable[ModelReply]],
        *,
        slots: Slots,
        clock: Clock,
        random: Callable[[], float],
    ) -> None:
        self._send = send
        self._slots = slots
        self._clock = clock
        self._random = random

    async def complete(self, call: Call, provider: str) -> ModelReply:
        """The reply, with the cost of all attempts; each attempt is noted in ``call``.

        Raises:
            ModelCallFailed: The last attempt's failure.
        """
        ticket = self._slots.ticket(provider)
        outcome, wait_s = await self._attempt(call, ticket)
        while isinstance(outcome, ModelCallFailed) and outcome.retriable:
            if len(call.attempts) > call.request.max_retries or wait_s >= self._left_s(call):
                break
            await self._clock.sleep(wait_s)
            try:
                outcome, wait_s = await self._attempt(call, ticket)
            except TimeoutError:
                break
        return _concluded(outcome, call.attempts)

    async def _attempt(self, call: Call, ticket: Ticket) -> tuple[ModelReply | ModelCallFailed, float]:
        """How one attempt ended, and how long to wait after it.

        Raises:
            TimeoutError: The total limit came before a slot for a further attempt.
        """
        again = bool(call.attempts)
        async with self._slots.take(ticket, limit_s=self._left_s(call) if again else None):
            if not again:
                call.start(self._clock)
            limit_s = min(call.request.timeout_s, self._left_s(call))
            with call.attempt(self._clock) as attempt:
                outcome = attempt.outcome = await self._sent(replace(call.request, timeout_s=limit_s))
            if isinstance(outcome, ModelReply):
                return outcome, 0.0
            wait_s = back_off_s(len(call.attempts), outcome.retry_after_s, self._random())
            if outcome.retriable and (outcome.status == 429 or outcome.retry_after_s is not None):
                # While the slot is still taken, so that nobody gets it for this provider.
                self._slots.hold_back(ticket.provider, wait_s)
            return outcome, wait_s

    def _left_s(self, call: Call) -> float:
        return call.started_s + CALL_LIMIT_S - self._clock.monotonic()

    async def _sent(self, request: ModelRequest) -> ModelReply | ModelCallFailed:
        try:
            return await within(self._clock, request.timeout_s, partial(self._send, request))
        except ModelCallFailed as failure:
            return failure
        except TimeoutError:
            reason = f"no reply within {request.timeout_s:g} s"
            # The provider may have answered, and charged, after we hung up.
            return ModelCallFailed(request.model, reason, retriable=True, cost_usd=None)


def back_off_s(failures: int, retry_after_s: float | None, random: float) -> float:
    """Seconds to wait after the ``failures``-th failure in a row (1, 2, …); jitter only makes it longer."""
    asked_s = min(retry_after_s or 0.0, RETRY_AFTER_CEILING_S)
    return max(BACK_OFF_S * 2.0 ** (failures - 1), asked_s) * (1 + _JITTER * random)


def _concluded(outcome: ModelReply | ModelCallFailed, attempts: Sequence[Attempt]) -> ModelReply:
    """What the call came to after all these attempts, raised when it is a failure."""
    count = len(attempts)
    cost_usd, complete = _total([attempt.cost_usd for attempt in attempts])
    if isinstance(outcome, ModelReply):
        return replace(outcome, cost_usd=cost_usd, cost_complete=complete, attempts=count)
    if count == 1:
        raise outcome
    raise ModelCallFailed(
        outcome.model,
        f"{outcome.reason} (attempt {count})",
        retriable=outcome.retriable,
        status=outcome.status,
        cost_usd=cost_usd,
        retry_after_s=outcome.retry_after_s,
        cost_complete=complete,
        attempts=count,
    ) from outcome


def _total(costs: Sequence[float | None]) -> tuple[float | None, bool]:
    """The known cost, None without any; and whether that is all of it."""
    known = math.fsum(cost for cost in costs if cost is not None)
    if None not in costs:
        return known, True
    return (known, False) if known else (None, True)
