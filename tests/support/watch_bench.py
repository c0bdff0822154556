"""Everything of watches wired together over one store, as a process has it, with doubles for what stands outside."""

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio

from hankwatch.core.clock import Clock, StreamTime
from hankwatch.core.redaction import Redactor
from hankwatch.events.payload import Payload
from hankwatch.watches.authority import Authorizer, LocalAuthorizer, Principal, operator
from hankwatch.watches.bounds import Defaults
from hankwatch.watches.checks import Check, CheckContext, Checks, Cost, Finding, Trust
from hankwatch.watches.database import Database
from hankwatch.watches.deliveries import Deliverer
from hankwatch.watches.delivery import Delivery, Woken, payload_of
from hankwatch.watches.engine import WatchEngine
from hankwatch.watches.evaluator import Evaluator
from hankwatch.watches.feed import Feed
from hankwatch.watches.outbox import Outbox, instant
from hankwatch.watches.policies import Caps
from hankwatch.watches.requests import read_request
from hankwatch.watches.scope import Scope
from hankwatch.watches.service import WatchService
from hankwatch.watches.store import WatchStore
from hankwatch.watches.verifiers import Verifiers
from hankwatch.watches.watch import Kind, Outcome, Status, Watch

Answer = Finding | bool | Exception | float
"""What a dial says: a finding, true or false, a failure, or after so many seconds that it has hung for."""
EVERYWHERE = Scope(None, homeless=True)


class Dials:
    """The check ``dial``, which says of each name what a test has set; ``polled`` counts."""

    def __init__(self) -> None:
        self.says = dict[str, Answer]()
        self.polled = dict[str, int]()
        self.clock: Clock | None = None

    async def __call__(self, _: CheckContext, args: Mapping[str, Any]) -> Finding | bool:
        name = args["name"]
        self.polled[name] = self.polled.get(name, 0) + 1
        says = self.says.get(name, False)
        if isinstance(says, Exception):
            raise says
        if isinstance(says, float):
            assert self.clock is not None
            await self.clock.sleep(says)
            return False
        return says


class Inbox:
    """Sessions that accept every wake once; ``answers`` go first, a number is how many seconds that takes."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.accepted = dict[str, str]()
        self.answers = list[Woken | float | Exception]()
        self.begun = anyio.Event()

    async def wake(self, _: str, text: str, delivery: Delivery) -> Woken:
        self.begun.set()
        answer = self.answers.pop(0) if self.answers else Woken.ACCEPTED
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, float):
            await self.clock.sleep(answer)
            answer = Woken.ACCEPTED
        if answer is Woken.ACCEPTED:
            self.accepted.setdefault(delivery.id, text)
        return answer


class Journaled:
    """The events of watches, by delivery id."""

    def __init__(self) -> None:
        self.events = dict[str, Payload]()

    def tell(self, delivery: Delivery) -> bool:
        self.events.setdefault(delivery.id, payload_of(delivery))
        return True

    def types(self) -> list[str]:
        return [event.TYPE for event in self.events.values()]


class WatchBench:
    """One process over a store; several of them are several workers."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        dials: Dials | None = None,
        inbox: Inbox | None = None,
        authorizer: Authorizer | None = None,
        scope: Scope = EVERYWHERE,
        home: Path | None = None,
        journal: Path | None = None,
        caps: Mapping[Kind, Caps] | None = None,
        checks: tuple[Check, ...] = (),
        journal_end: Callable[[], int] = lambda: 0,
    ) -> None:
        self.clock, self.dials, self.inbox = clock, dials or Dials(), inbox or Inbox(clock)
        self.dials.clock = clock
        self.journaled = Journaled()
        time = StreamTime(clock)
        self.database = Database(url)
        self.store, self.outbox = WatchStore(self.database, caps), Outbox(self.database)
        dial = Check("dial", self.dials, behaviour="dial", cost=Cost.CHEAP, trust=Trust.SAFE, read_only=True)
        verifiers = Verifiers(Checks([dial, *checks]), clock, {"PATH": os.environ["PATH"]}, Redactor())
        self.authorizer = authorizer or LocalAuthorizer()
        self.now: Callable[[], datetime] = lambda: instant(time.now_ms())
        self.evaluator = Evaluator(self.store, verifiers, self.authorizer, clock, self.now)
        self.deliverer = Deliverer(
            self.store,
            self.outbox,
            self.authorizer,
            clock,
            self.now,
            scope,
            journals=self.journaled,
            sessions=self.inbox,
        )
        feeds = [] if home is None or journal is None else [Feed(home, journal, home, self._overrun)]
        self.engine = WatchEngine(self.evaluator, scope, clock, feeds=feeds, on_decided=self.deliverer.nudge)
        self.service = WatchService(
            self.store,
            self.outbox,
            self.evaluator,
            self.authorizer,
            Defaults(home=None if home is None else str(home)),
            journal_end=journal_end,
            on_changed=self.engine.nudge,
            hooks=self.deliverer.hooks,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Engine and deliverer run; afterwards they have ended."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.engine.run)
            tasks.start_soon(self.deliverer.run)
            yield
            tasks.cancel_scope.cancel()

    async def arm(self, name: str = "a", principal: Principal | None = None, **request: Any) -> Watch:
        """A watch on a dial in session ``main``."""
        written = {
            "condition": f"dial {name}",
            "session": "main",
            "verifier": {"type": "check", "name": "dial", "args": {"name": name}},
            "interval_s": 5,
        } | request
        return (await self.service.create_watch(principal or operator(), read_request(written))).watch

    def stands(self, watch: Watch) -> Watch:
        found = self.store.get(watch.id)
        assert found is not None
        return found

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; the test's own limit ends what never comes."""
        while not holds():  # noqa: ASYNC110 - it polls the store, which other processes write
            await anyio.sleep(0.005)

    async def ended(self, watch: Watch) -> Watch:
        await self.until(lambda: self.stands(watch).status is Status.ENDED)
        return self.stands(watch)

    async def checked(self, watch: Watch, times: int) -> Watch:
        """The watch after so many checks."""
        await self.until(lambda: self.stands(watch).check_count >= times)
        return self.stands(watch)

    def wakes(self) -> list[str]:
        return list(self.inbox.accepted)

    def _overrun(self, watch_id: str, reason: str) -> None:
        raise AssertionError(f"{watch_id}: {reason}")


def finding(value: Any, outcome: Outcome = Outcome.PENDING) -> Finding:
    return Finding(outcome, value=value, evidence=str(value))
