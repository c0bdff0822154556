"""Watches: those that the reader may see, the page of one, and the form for another."""

from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Self

import anyio.to_thread
import orjson
from fastapi import APIRouter, Query
from fastapi import Path as InPath
from starlette.responses import Response

from hankwatch.core.errors import Forbidden, WatchNotFound
from hankwatch.pages import watch_words
from hankwatch.serve.console.page import PageRoute, Visit, Visiting
from hankwatch.serve.context import Served, Serving
from hankwatch.serve.verifiers import known_verifiers
from hankwatch.watches.authority import Action
from hankwatch.watches.checks import Trust
from hankwatch.watches.codec import spec_json
from hankwatch.watches.delivery import Channel
from hankwatch.watches.roll import Liveness
from hankwatch.watches.watch import Kind, Signal, Status, Trigger, Watch

router = APIRouter(route_class=PageRoute, include_in_schema=False)
WatchId = Annotated[str, InPath(max_length=200)]
_SHOWN: Final = 50
_CHECKS: Final = 50
_RUNS: Final = 50


@dataclass(frozen=True, slots=True)
class Group:
    """The watches of one status, as far as they are shown."""

    status: Status
    watches: list[Watch]
    next: str | None
    """The id to go on behind."""

    @classmethod
    def of(cls, status: Status, found: list[Watch], limit: int) -> Self:
        """The first ``limit``; one more was asked for."""
        return cls(status, found[:limit], found[limit - 1].id if len(found) > limit else None)


@router.get("/watches")
async def list_watches(
    serving: Served,
    visit: Visiting,
    *,
    status: Status | None = None,
    q: Annotated[str, Query(max_length=200)] = "",
    after: Annotated[str, Query(max_length=200)] = "",
    limit: Annotated[int, Query(ge=1, le=200)] = _SHOWN,
) -> Response:
    """Proposals first, then what is active, then what has ended; each in pages by id."""
    visit.caller.require("watches:read")
    text = q.strip()
    find = partial(serving.watches.list_watches, visit.caller.principal, text=text, after=after, limit=limit + 1)
    asked = [one for one in Status if status is None or one is status]
    groups = [Group.of(one, await find(statuses=(one,)), limit) for one in asked]
    shown = [watch for group in groups for watch in group.watches]
    told = await anyio.to_thread.run_sync(serving.watches.outbox.tally, [watch.id for watch in shown])
    return await visit.page(
        "watches",
        groups=groups,
        told=told,
        q=text,
        after=after,
        only=status,
        limit=limit,
        may_arm=not visit.caller.principal.is_scoped and "watches:write" in visit.caller.scopes,
        runs={watch.id: _run_of(serving, visit, watch) for watch in shown},
        **await _looked_at(serving, shown),
    )


@router.get("/watches/new")
async def new_watch(
    serving: Served, visit: Visiting, run: Annotated[str | None, Query(max_length=300)] = None
) -> Response:
    """The form."""
    visit.caller.require("watches:write")
    checks = [one for one in known_verifiers(serving.watches) if one.name is not None]
    settings = await serving.watches.settings()
    return await visit.page(
        "watch_new",
        run=run,
        executions=await anyio.to_thread.run_sync(_executions, serving, visit),
        kinds=list(Kind),
        checks=checks,
        interval_s=settings["interval"].value,
    )


@router.get("/watches/{watch_id}")
@router.get("/watches/{watch_id}/")
async def show_watch(watch_id: WatchId, serving: Served, visit: Visiting) -> Response:
    """All that is known of one watch, and what its reader may do with it."""
    visit.caller.require("watches:read")
    principal, service = visit.caller.principal, serving.watches
    watch = await service.get(principal, watch_id)
    checks = await service.evaluations(principal, watch_id, limit=_CHECKS)
    find = partial(service.outbox.find, watch_id=watch_id, limit=100)
    deliveries = await anyio.to_thread.run_sync(find)
    return await visit.page(
        "watch",
        watch=watch,
        checks=checks,
        deliveries=[one for one in deliveries if one.channel is not Channel.IN_APP],
        notifications=[one for one in deliveries if one.channel is Channel.IN_APP],
        told=await anyio.to_thread.run_sync(service.outbox.tally, [watch_id]),
        run=_run_of(serving, visit, watch),
        may=_may(serving, visit, watch),
        spec=orjson.dumps(spec_json(watch.verifier)).decode(),
        told_of=[(signal.value, signal.value) for signal in Signal],
        triggers=list(Trigger),
        **await _looked_at(serving, [watch]),
    )


async def _looked_at(serving: Serving, shown: list[Watch]) -> dict[str, Any]:
    """Whether watches are checked at all, in words."""
    now = serving.watches.evaluator.now()
    liveness: Liveness = await anyio.to_thread.run_sync(serving.watches.store.engines.liveness, serving.scope, now)
    warning = watch_words.not_looked_at(shown, liveness, now)
    return {"liveness": liveness, "warning": warning, "now": now, "words": watch_words}


def _may(serving: Serving, visit: Visit, watch: Watch) -> frozenset[str]:
    """What buttons are shown; the service decides again."""
    caller, service = visit.caller, serving.watches
    if "watches:write" not in caller.scopes:
        return frozenset()
    allowed = set[str]()
    for action in (Action.APPROVE, Action.EDIT, Action.CANCEL):
        try:
            service.authorizer.check(caller.principal, action, watch)
        except (Forbidden, WatchNotFound):
            continue
        allowed.add(action.value)
    if not caller.principal.is_operator and service.verifiers.trust(watch.verifier) is not Trust.SAFE:
        allowed -= {Action.APPROVE.value, Action.EDIT.value}
        if Action.CANCEL.value in allowed:
            allowed.add("check")
    if Action.EDIT.value in allowed:
        allowed.add("check")
    return frozenset(allowed)


def _run_of(serving: Serving, visit: Visit, watch: Watch) -> str | None:
    """The execution that it belongs to, by the name that its page has here."""
    if watch.home is None or not visit.caller.sees_runs or "runs:read" not in visit.caller.scopes:
        return None
    home, folder = Path(watch.home), serving.shelf.folder.resolve()
    return home.name if folder in (home, *home.parents) else None


def _executions(serving: Serving, visit: Visit) -> list[str]:
    """Those that a new watch may belong to, latest first; blocks."""
    if not visit.caller.sees_runs or "runs:read" not in visit.caller.scopes:
        return []
    return [one.execution.name for one in islice(serving.shelf.executions(), _RUNS)]
