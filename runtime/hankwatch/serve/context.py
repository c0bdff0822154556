"""What all routes work with, and who is asking."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol, get_origin

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.security import HTTPBearer
from starlette.requests import HTTPConnection

from hankwatch.core.clock import Clock
from hankwatch.core.errors import RunNotFound
from hankwatch.core.limits import time_left
from hankwatch.serve.auth import Caller, Door
from hankwatch.serve.bulletin import Bulletin
from hankwatch.serve.homes import in_execution
from hankwatch.serve.live import Streams
from hankwatch.serve.policy import Scope
from hankwatch.serve.shelf import Named, Shelf
from hankwatch.serve.trial_room import TrialRoom
from hankwatch.watches.scope import Scope as WatchScope
from hankwatch.watches.service import WatchService

_BEARER = HTTPBearer(auto_error=False, description="A token whose SHA-256 the policy file has; none on loopback.")


class Peer(Protocol):
    """One client of the 0.10 protocol."""

    async def say(self, type_name: str, data: Mapping[str, Any]) -> None:
        """Send it one message."""
        ...


@dataclass(slots=True)
class Serving:
    """One server's whole state."""

    door: Door
    shelf: Shelf
    clock: Clock
    watches: WatchService
    scope: WatchScope = field(default_factory=lambda: WatchScope(None, homeless=True))
    """Whose watches this server checks; for how late they are."""
    streams: Streams = field(init=False)
    bulletin: Bulletin = field(init=False)
    """What watches tell, for open pages."""
    trials: TrialRoom = field(init=False)
    sockets: set[Peer] = field(default_factory=set)
    """Clients of the 0.10 protocol."""

    def __post_init__(self) -> None:
        self.streams = Streams(self.clock)
        self.bulletin = Bulletin(self.watches.store.signals, self.watches.authorizer, self.clock)
        self.trials = TrialRoom(self.clock)

    def run(self, caller: Caller, name: str, scope: Scope = "runs:read", *, within_s: float | None = None) -> Named:
        """The run of that id, for somebody who may know of it; blocks for the journal.

        Args:
            caller: Who asks.
            name: An execution's or run's id, or ``latest``.
            scope: What for.
            within_s: How long a long journal may be read for; what is known then has to do.

        Raises:
            ScopeMissing: the token is for something else.
            RunNotFound: there is none that the caller may know of.
        """
        caller.require(scope)
        if not caller.sees_runs:
            raise RunNotFound(name, self.shelf.folder)
        if within_s is None:
            return self.shelf.find(name)
        return self.shelf.find(name, time_left(self.clock, within_s))

    def watches_of(self, caller: Caller, name: str) -> WatchService:
        """The same service for watches that belong to a run's execution, behind what its journal has now; blocks.

        Raises:
            ScopeMissing: as ``run``.
            RunNotFound: as ``run``.
        """
        return in_execution(self.watches, self.run(caller, name).followed)


def _serving(request: Request) -> Serving:
    serving: Serving = request.app.state.serving
    return serving


def require_single(request: HTTPConnection) -> None:
    """Refuse a parameter that is given twice where one is meant: which of them was, nobody could say.

    Raises:
        RequestValidationError: it names them.
    """
    given = Counter(name for name, _ in request.query_params.multi_items())
    known = request.scope["route"].dependant.query_params
    lists = {field.alias for field in known if get_origin(field.field_info.annotation) is list}
    twice = [name for name, count in given.items() if count > 1 and name not in lists]
    if twice:
        raise RequestValidationError([{"loc": ("query", name), "msg": "is given more than once"} for name in twice])


def _caller(request: Request, _: Annotated[object, Depends(_BEARER)]) -> Caller:
    return _serving(request).door.caller(request.headers)


Served = Annotated[Serving, Depends(_serving)]
"""The server's state."""
Asking = Annotated[Caller, Depends(_caller)]
"""Whoever makes the request; nobody unknown comes past this."""
