"""``GET /api/sessions``: sessions of agents, and the watches that are armed in them."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Final

import anyio.to_thread
from fastapi import APIRouter

from hankwatch.runner.sessions import SESSION_CODON
from hankwatch.serve.context import Asking, Served
from hankwatch.serve.shelf import Followed, Shelf
from hankwatch.serve.views import SessionView
from hankwatch.watches.watch import Status, Watch

router = APIRouter(prefix="/api", tags=["watches"])
_EXECUTIONS: Final = 50
_OF_RUN: Final = 200
"""Sessions of one run, the latest."""


@router.get("/sessions")
async def list_sessions(serving: Served, caller: Asking) -> list[SessionView]:
    """The sessions of the newest executions, and those that only watches know of."""
    caller.require("runs:read")
    caller.require("watches:read")
    live = (Status.ACTIVE, Status.PROPOSED)
    watches = await serving.watches.list_watches(caller.principal, statuses=live)
    runs = await anyio.to_thread.run_sync(_sessions, serving.shelf) if caller.sees_runs else []
    counts = Counter((watch.session, watch.home, watch.status) for watch in watches)
    return [*_with_watches(runs, counts), *_of_watches(watches, {(name, home) for name, home, _, _ in runs})]


_Found = tuple[str, str, Followed, str]
"""Name, home, its execution, its state."""


def _sessions(shelf: Shelf) -> list[_Found]:
    found: list[_Found] = []
    for followed in islice(shelf.executions(), _EXECUTIONS):
        followed.catch_up()
        home = str(followed.execution.layout.root.resolve())
        found += [(name, home, followed, state) for name, state in _of_execution(followed)]
    return found


def _of_execution(followed: Followed) -> Iterator[tuple[str, str]]:
    run = followed.state.current
    if run is None:
        return
    live, named = followed.live, dict[str, str]()
    for record in run.codons:
        name = (record.base_codon_id or record.codon_id).removeprefix(SESSION_CODON)
        named[name] = "ended" if not live else "idle" if record.final or record is not run.current else "working"
    yield from list(named.items())[-_OF_RUN:]


def _with_watches(runs: list[_Found], counts: Counter[tuple[str | None, str | None, Status]]) -> Iterator[SessionView]:
    for name, home, followed, state in runs:
        current = followed.state.current
        yield SessionView(
            name=name,
            execution=followed.execution.name,
            run=current.run_id if current else None,
            state=state,
            active_watches=counts[name, home, Status.ACTIVE],
            proposed_watches=counts[name, home, Status.PROPOSED],
        )


def _of_watches(watches: list[Watch], known: set[tuple[str, str]]) -> Iterator[SessionView]:
    counts: Counter[tuple[str, Status]] = Counter()
    for watch in watches:
        if watch.session is not None and (watch.session, watch.home) not in known:
            counts[watch.session, watch.status] += 1
    for name in sorted({name for name, _ in counts}):
        yield SessionView(
            name=name,
            execution=None,
            run=None,
            state="unknown",
            active_watches=counts[name, Status.ACTIVE],
            proposed_watches=counts[name, Status.PROPOSED],
        )
