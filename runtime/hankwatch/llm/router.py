"""The model client everyone uses: finds who answers, paces the calls, keeps the log (spec sentinels 5, 7)."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

import anyio

from hankwatch.core.clock import Clock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.limits import within
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import clean_text
from hankwatch.events.envelope import IdSource
from hankwatch.llm.builtin import BuiltinModels
from hankwatch.llm.calls import Call, CallLog, redacted
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import ModelClient, ModelInfo, ModelReply, ModelRequest, Unavailable, require
from hankwatch.llm.litellm import LitellmClient

CALL_LIMIT_S: Final = 300.0
"""What all attempts of one call may take together, from when it first has a slot."""


class Remote(ModelClient, Protocol):
    """A client of providers over the network."""

    async def prepare(self) -> None:
        """Do what a first call would wait for; raises ``ModelCallFailed`` when that is impossible."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...


class ModelRouter:
    """Answers ``builtin/*`` itself and sends the rest to providers, a limited number at a time.

    A remote call takes a slot, first come first served, only while its request is on the wire; its time
    limit starts with the slot, so a hung call costs one slot for that time and nobody else anything.
    Secrets are taken out of a request before it is sent. Every call, failed and cancelled ones too,
    becomes one line of the call log. Safe from many tasks of one event loop.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        *,
        redactor: Redactor,
        clock: Clock,
        call_log: CallLog | None = None,
        max_concurrent_calls: int = 8,
        ids: IdSource | None = None,
        remote: Remote | None = None,
    ) -> None:
        self._redactor = redactor
        self._clock = clock
        self._call_log = call_log
        self._slots = anyio.CapacityLimiter(max_concurrent_calls)
        self._ids = ids or IdSource()
        self._builtin = BuiltinModels()
        self._remote = remote or LitellmClient(ModelCatalog(env))

    def check(self, model: str) -> ModelInfo | Unavailable:
        return self._client(model).check(model)

    async def complete(self, request: ModelRequest) -> ModelReply:
        asked_ms = int(self._clock.now().timestamp() * 1000)
        call = Call(self._ids.next(asked_ms), redacted(request, self._redactor))
        call.start(self._clock)
        try:
            reply = await self._answer(call)
            # A provider's JSON can hold what no journal line can.
            reply = replace(reply, text=clean_text(reply.text), call_id=call.id if self._call_log else None)
            call.outcome = reply
            return reply
        except ModelCallFailed as failure:
            call.outcome = failure
            raise
        finally:
            call.end(self._clock)
            if self._call_log is not None:
                self._call_log.write(call)

    async def warm_up(self, models: Iterable[str]) -> None:
        """Import the provider library when one of ``models`` will be called through it.

        A failure is left to the first call, which reports it.
        """
        found = [self.check(model) for model in models if self._client(model) is self._remote]
        if any(isinstance(info, ModelInfo) and info.provider for info in found):
            with contextlib.suppress(ModelCallFailed):
                await self._remote.prepare()

    async def aclose(self) -> None:
        """Close all connections; calls still on the wire fail."""
        await self._remote.aclose()

    def statistics(self) -> anyio.CapacityLimiterStatistics:
        """How many slots are taken and how many calls wait for one."""
        return self._slots.statistics()

    def _client(self, model: str) -> ModelClient:
        return self._builtin if model.startswith("builtin/") else self._remote

    async def _answer(self, call: Call) -> ModelReply:
        client = self._client(call.request.model)
        require(client.check(call.request.model))
        if client is self._builtin:
            return await client.complete(call.request)
        await self._remote.prepare()
        async with self._slots:
            call.start(self._clock)
            return await self._attempt(call.request, min(call.request.timeout_s, CALL_LIMIT_S))

    async def _attempt(self, request: ModelRequest, limit_s: float) -> ModelReply:
        try:
            return await within(self._clock, limit_s, partial(self._remote.complete, request))
        except TimeoutError:
            reason = f"no reply within {limit_s:g} s"
            # The provider may have answered, and charged, after we hung up.
            raise ModelCallFailed(request.model, reason, retriable=True, cost_usd=None) from None
