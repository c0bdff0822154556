"""What ``watch`` commands ask, and who answers: the store of this machine, or a server (``cli.watch_server``)."""

import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.cli.watch_asker import Asker
from hankwatch.config.source import Document
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import UsageError
from hankwatch.home_watches import has_store
from hankwatch.watches.authority import Principal, operator
from hankwatch.watches.delivery import Delivery
from hankwatch.watches.evaluation import Evaluation
from hankwatch.watches.files import read_watches
from hankwatch.watches.instance import Setting
from hankwatch.watches.requests import WatchEdit, WatchRequest
from hankwatch.watches.roll import Liveness
from hankwatch.watches.scope import Scope
from hankwatch.watches.service import Applied, Armed
from hankwatch.watches.turn import Turn
from hankwatch.watches.watch import Status, Watch
from hankwatch.watching import Watching, open_watching

EVERYWHERE: Final = Scope(None, homeless=True)
MANY: Final = 10_000


class Desk(Protocol):
    """Answers one command; what it raises is what ``WatchService`` does."""

    def now(self) -> datetime:
        """The instant watches live in."""
        ...

    async def create(self, request: WatchRequest) -> Armed:
        """Arm or propose."""
        ...

    async def find(
        self, prefix: str = "", *, session: str | None = None, statuses: Iterable[Status] = tuple(Status)
    ) -> list[Watch]:
        """Those that the asker may read, by id."""
        ...

    async def get(self, watch_id: str) -> Watch:
        """One of them."""
        ...

    async def checks(self, watch_id: str, limit: int) -> list[Evaluation]:
        """Its latest ones, newest first."""
        ...

    async def told(self, watch_id: str | None = None) -> list[Delivery]:
        """What it, or all of them, had to tell, newest first."""
        ...

    async def notices(self, limit: int) -> list[Delivery]:
        """What the asker is told."""
        ...

    async def liveness(self) -> Liveness:
        """Whether anybody polls."""
        ...

    async def settings(self) -> dict[str, Setting]:
        """What can be set for the store while it is in use, by name."""
        ...

    @property
    def warns(self) -> bool:
        """Whether the asker is to be told when nobody does."""
        ...

    async def update(self, watch_id: str, edit: WatchEdit) -> Watch:
        """Change what is given."""
        ...

    async def cancel(self, watch_id: str) -> Watch:
        """End it."""
        ...

    async def clear(self, watch_id: str) -> bool:
        """End and forget it; False when there was none."""
        ...

    async def approve(self, watch_id: str) -> Watch:
        """Activate a proposal."""
        ...

    async def reject(self, watch_id: str) -> Watch:
        """End a proposal."""
        ...

    async def check(self, watch_id: str) -> Watch:
        """Check it now."""
        ...

    async def apply(self, owner: str, source: Document) -> Applied:
        """Make an owner's set be that of a file."""
        ...


class Desks(Protocol):
    """Where a command finds its desk."""

    def is_empty(self) -> bool:
        """Whether it is known beforehand that there are no watches."""
        ...

    def open(self, home: str | None = None) -> AbstractAsyncContextManager[Desk]:
        """The desk; new watches belong to the execution ``home``."""
        ...


@dataclass(frozen=True, slots=True)
class Here:
    """The store of this machine."""

    watching: Watching
    asker: Asker
    root: Path | None
    """The execution that new watches belong to."""

    @property
    def principal(self) -> Principal:
        """In whose name everything is asked."""
        return self.asker.principal(self.watching.service.authorizer)

    def now(self) -> datetime:
        """See ``Desk``."""
        return self.watching.now()

    async def create(self, request: WatchRequest) -> Armed:
        """See ``Desk``."""
        placed = self.asker.placed(request, self.root)
        return await self.watching.service.create_watch(self.principal, placed, depth=self.asker.depth)

    async def find(
        self, prefix: str = "", *, session: str | None = None, statuses: Iterable[Status] = tuple(Status)
    ) -> list[Watch]:
        """See ``Desk``."""
        return await self.watching.service.list_watches(self.principal, prefix, session=session, statuses=statuses)

    async def get(self, watch_id: str) -> Watch:
        """See ``Desk``."""
        return await self.watching.service.get(self.principal, watch_id)

    async def checks(self, watch_id: str, limit: int) -> list[Evaluation]:
        """See ``Desk``."""
        return await self.watching.service.evaluations(self.principal, watch_id, limit=limit)

    async def told(self, watch_id: str | None = None) -> list[Delivery]:
        """See ``Desk``."""
        return self.watching.outbox.find(watch_id=watch_id, limit=MANY if watch_id is None else 100)

    async def notices(self, limit: int) -> list[Delivery]:
        """See ``Desk``."""
        return await self.watching.service.notifications(self.principal, limit=limit)

    async def liveness(self) -> Liveness:
        """See ``Desk``."""
        return self.watching.store.engines.liveness(EVERYWHERE, self.now())

    async def settings(self) -> dict[str, Setting]:
        """See ``Desk``."""
        return await self.watching.service.settings()

    @property
    def warns(self) -> bool:
        """See ``Desk``; the watches of an agent's turn are polled by its run."""
        return self.asker.turn is None

    async def update(self, watch_id: str, edit: WatchEdit) -> Watch:
        """See ``Desk``."""
        return await self.watching.service.update_watch(self.principal, watch_id, edit)

    async def cancel(self, watch_id: str) -> Watch:
        """See ``Desk``."""
        return await self.watching.service.cancel_watch(self.principal, watch_id)

    async def clear(self, watch_id: str) -> bool:
        """See ``Desk``."""
        return await self.watching.service.clear_watch(self.principal, watch_id)

    async def approve(self, watch_id: str) -> Watch:
        """See ``Desk``."""
        return await self.watching.service.approve(self.principal, watch_id)

    async def reject(self, watch_id: str) -> Watch:
        """See ``Desk``."""
        return await self.watching.service.reject(self.principal, watch_id)

    async def check(self, watch_id: str) -> Watch:
        """See ``Desk``."""
        return await self.watching.service.evaluate_now(self.principal, watch_id)

    async def apply(self, owner: str, source: Document) -> Applied:
        """See ``Desk``."""
        self.asker.require_operator("apply")
        service, principal = self.watching.service, operator(owner)
        requests = read_watches(source, principal, service.verifiers, service.defaults, self.now())
        placed = [self.asker.placed(request, self.root) for request in requests]
        return await service.apply_watches(principal, placed)


@dataclass(frozen=True, slots=True)
class OnThisMachine:
    """The watches of this user."""

    config: Path | None = None
    """Settings file instead of the one found."""

    def is_empty(self) -> bool:
        """See ``Desks``."""
        settings, environ = cli_settings(self.config)
        return not has_store(settings.watches, environ)

    @asynccontextmanager
    async def open(self, home: str | None = None) -> AsyncIterator[Desk]:
        """See ``Desks``."""
        settings, environ = cli_settings(self.config)
        asker = Asker(Turn.of(environ), home)
        root = asker.root(settings)
        async with open_watching(settings, environ, clock=SystemClock(), home=root) as watching:
            yield Here(watching, asker, root)


def document(source: Path) -> Document:
    """A file, or ``-`` for stdin.

    Raises:
        UsageError: there is none.
        ConfigError: it is no JSON.
    """
    if str(source) == "-":
        return Document.parse(sys.stdin.read(), "stdin")
    if not source.exists():
        raise UsageError(f"{source} does not exist")
    return Document.load(source, output.shown_path(source))
