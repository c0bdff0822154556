"""The model client everyone uses: finds who answers, paces the calls, keeps the log (spec sentinels 5, 7)."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Final, Protocol

from hankwatch.core.clock import Clock
from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import clean_text
from hankwatch.events.envelope import IdSource
from hankwatch.llm.builtin import BuiltinModels
from hankwatch.llm.call import Call, redacted
from hankwatch.llm.calls import CallLog
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import ModelClient, ModelInfo, ModelReply, ModelRequest, Unavailable, require
from hankwatch.llm.facts import unpriced_warning, unstated_warning
from hankwatch.llm.litellm import LitellmClient
from hankwatch.llm.retries import Retries
from hankwatch.llm.slots import Slots, SlotStatistics

_LOG: Final = logging.getLogger(__name__)


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
    Retries are made here and nowhere else (``retries``). Secrets are taken out of a request before it is
    sent. Every call, failed and cancelled ones too, becomes one line of the call log. Safe from many tasks
    of one event loop.

    Args:
        env: Where keys and base URLs are found.
        redactor: Knows the secrets.
        clock: Counts limits and waits.
        call_log: None: calls are not logged.
        max_concurrent_calls: Requests on the wire at a time.
        ids: Names the calls.
        remote: Who is asked in place of the providers.
        random: Numbers in [0, 1) that spread the retries.
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
        random: Callable[[], float] | None = None,
    ) -> None:
        self._redactor = redactor
        self._clock = clock
        self._call_log = call_log
        self._slots = Slots(max_concurrent_calls, clock)
        self._ids = ids or IdSource()
        self._builtin = BuiltinModels()
        self._remote = remote or LitellmClient(ModelCatalog(env), clock=clock)
        self._retries = Retries(
            self._remote.complete,
            slots=self._slots,
            clock=clock,
            random=random or Random().random,  # noqa: S311 - spreads load, hides nothing
        )
        self._unpriced: set[str] = set()

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
            self._tell_unpriced(call.request.model, reply)
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

    def statistics(self) -> SlotStatistics:
        """How many slots are taken, how many calls wait for one, which providers are held back."""
        return self._slots.statistics()

    def _client(self, model: str) -> ModelClient:
        return self._builtin if model.startswith("builtin/") else self._remote

    async def _answer(self, call: Call) -> ModelReply:
        client = self._client(call.request.model)
        info = require(client.check(call.request.model))
        if client is self._builtin:
            return await client.complete(call.request)
        await self._remote.prepare()
        return await self._retries.complete(call, info.provider)

    def _tell_unpriced(self, model: str, reply: ModelReply) -> None:
        """Once for each model: its cost is unknown, its reply is kept."""
        if reply.cost_usd is None and model not in self._unpriced:
            self._unpriced.add(model)
            _LOG.warning("%s", unpriced_warning(model) if reply.input_tokens is not None else unstated_warning(model))
