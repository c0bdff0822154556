"""REST of watches (spec watches 7): thin over the one service that everybody uses."""

from dataclasses import asdict, replace
from datetime import datetime
from typing import Annotated, Any, Final

import anyio.to_thread
from fastapi import APIRouter, Body, Path, Query
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from hankwatch.config.source import Document
from hankwatch.core.errors import ConfigError, Forbidden, Untimely, WatchInvalid
from hankwatch.serve.context import Asking, Served
from hankwatch.serve.homes import where_it_stands
from hankwatch.serve.verifiers import VerifierView, known_verifiers
from hankwatch.watches.delivery import Channel, Delivery, DeliveryStatus
from hankwatch.watches.evaluation import Evaluation
from hankwatch.watches.files import read_watches
from hankwatch.watches.requests import read_edit, read_request, require_distinct
from hankwatch.watches.service import described
from hankwatch.watches.watch import Signal, Status

router = APIRouter(prefix="/api", tags=["watches"])
WatchView = dict[str, Any]
"""A watch as it is listed everywhere; keys are snake_case."""
WatchId = Annotated[str, Path(max_length=200)]
Run = Annotated[str | None, Query(max_length=300, description="The id of an execution or run that it belongs to.")]
WRITTEN: Final = {
    "condition": "the deploy has finished",
    "verifier": {"type": "document", "path": "deploy.json", "pointer": "/status"},
    "expires_in_s": 3600,
}
Written = Annotated[dict[str, Any], Body(openapi_examples={"a file": {"value": WRITTEN}})]
Edited = Annotated[dict[str, Any], Body(openapi_examples={"more often": {"value": {"interval_s": 10}}})]
Applied = Annotated[
    dict[str, Any], Body(openapi_examples={"a set": {"value": {"watches": [{"id": "deploy", **WRITTEN}]}}})
]


class WatchPage(BaseModel):
    """Some watches by id, and whether watches are checked at all."""

    watches: list[WatchView]
    next: str | None
    """The id to go on behind; None at the end."""
    last_loop_at: datetime | None
    """When an engine last looked; None when none ever did."""
    lag_s: float
    """How long the most overdue watch has waited."""


class DeliveryView(BaseModel):
    """One thing to be told, once, and what came of it."""

    id: str
    watch_id: str
    channel: Channel
    signal: Signal
    tenant: str
    owner: str
    session: str | None
    home: str | None
    created_at: datetime
    content: dict[str, Any]
    status: DeliveryStatus
    reason: str | None
    """Why it is held, suppressed, dead or was tried again."""
    attempts: int
    next_attempt_at: datetime | None
    finished_at: datetime | None


class AppliedView(BaseModel):
    """What applying a set has changed, by id."""

    armed: tuple[str, ...]
    kept: tuple[str, ...]
    cancelled: tuple[str, ...]


class EvaluationView(BaseModel):
    """One check, as it was decided on."""

    watch_id: str
    number: int
    generation: int
    observed_at: datetime
    late_s: float
    outcome: str
    reason: str
    digest: str
    text: str
    evidence: str
    error: str | None

    @classmethod
    def of(cls, evaluation: Evaluation) -> "EvaluationView":
        return cls(**asdict(evaluation))


class NotificationView(BaseModel):
    """Something that a watch has to tell its owner."""

    id: str
    watch_id: str
    signal: str
    session: str | None
    created_at: datetime
    status: str
    reason: str | None
    content: dict[str, Any]

    @classmethod
    def of(cls, told: Delivery) -> "NotificationView":
        return cls(
            id=told.id,
            watch_id=told.watch_id,
            signal=told.signal.value,
            session=told.session,
            created_at=told.created_at,
            status=told.status.value,
            reason=told.reason,
            content=dict(told.content),
        )


@router.get("/watches")
async def list_watches(
    serving: Served,
    caller: Asking,
    *,
    prefix: Annotated[str, Query(max_length=200, description="Of the ids.")] = "",
    session: Annotated[str | None, Query(max_length=4_096)] = None,
    status: Annotated[list[Status], Query(description="Repeat it for several; all by default.")] = list(Status),  # noqa: B006 - FastAPI copies it
    after: Annotated[str, Query(max_length=200, description="Only ids behind this one.")] = "",
    limit: Annotated[int, Query(ge=1, le=1_000)] = 200,
) -> WatchPage:
    """The watches that the caller may read."""
    caller.require("watches:read")
    found = await serving.watches.list_watches(
        caller.principal, prefix, session=session, statuses=status, after=after, limit=limit + 1
    )
    liveness = await anyio.to_thread.run_sync(
        serving.watches.store.engines.liveness, serving.scope, serving.watches.evaluator.now()
    )
    return WatchPage(
        watches=[described(watch) for watch in found[:limit]],
        next=found[limit - 1].id if len(found) > limit else None,
        last_loop_at=liveness.last_loop_at,
        lag_s=liveness.lag_s,
    )


@router.post("/watches", status_code=201, responses={200: {"model": WatchView, "description": "There was one."}})
async def create_watch(written: Written, serving: Served, caller: Asking, run: Run = None) -> Response:
    """Arm a watch, or propose it; an identical live one is returned instead with 200.

    With ``run`` it belongs to that run's execution: its events can be waited for, and relative paths lie there.
    """
    caller.require("watches:write")
    service = serving.watches if run is None else await anyio.to_thread.run_sync(serving.watches_of, caller, run)
    request = await anyio.to_thread.run_sync(read_request, written)  # thousands of faults take their time
    armed = await service.create_watch(caller.principal, request)
    return JSONResponse(described(armed.watch), 201 if armed.is_new else 200)


@router.get("/watches/{watch_id}")
async def get_watch(watch_id: WatchId, serving: Served, caller: Asking) -> WatchView:
    """One watch."""
    caller.require("watches:read")
    return described(await serving.watches.get(caller.principal, watch_id))


@router.patch("/watches/{watch_id}")
async def update_watch(watch_id: WatchId, written: Edited, serving: Served, caller: Asking) -> WatchView:
    """Change only what is given; null clears."""
    caller.require("watches:write")
    service = await where_it_stands(serving.watches, caller.principal, watch_id)
    edit = await anyio.to_thread.run_sync(read_edit, written)
    return described(await service.update_watch(caller.principal, watch_id, edit))


@router.delete("/watches/{watch_id}", status_code=204)
async def delete_watch(watch_id: WatchId, serving: Served, caller: Asking) -> None:
    """Cancel a watch and forget it."""
    caller.require("watches:write")
    await serving.watches.cancel_watch(caller.principal, watch_id)  # which says whether there is one
    await serving.watches.clear_watch(caller.principal, watch_id)


@router.post("/watches/{watch_id}/check")
async def check_watch(watch_id: WatchId, serving: Served, caller: Asking) -> WatchView:
    """Check it now, and wait for that."""
    caller.require("watches:write")
    return described(await serving.watches.evaluate_now(caller.principal, watch_id))


@router.post("/watches/{watch_id}/cancel")
async def cancel_watch(watch_id: WatchId, serving: Served, caller: Asking) -> WatchView:
    """End it; once this is answered nothing of it fires or wakes."""
    caller.require("watches:write")
    return described(await serving.watches.cancel_watch(caller.principal, watch_id))


@router.post("/watches/{watch_id}/approve")
async def approve_watch(watch_id: WatchId, serving: Served, caller: Asking) -> WatchView:
    """Activate a proposal and check it at once; what that finds stands in the answer."""
    caller.require("watches:write")
    service = await where_it_stands(serving.watches, caller.principal, watch_id)
    return described(await service.approve(caller.principal, watch_id))


@router.post("/watches/{watch_id}/reject")
async def reject_watch(watch_id: WatchId, serving: Served, caller: Asking) -> WatchView:
    """End a proposal without activating it."""
    caller.require("watches:write")
    return described(await serving.watches.reject(caller.principal, watch_id))


@router.get("/watches/{watch_id}/evaluations")
async def list_evaluations(
    watch_id: WatchId, serving: Served, caller: Asking, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> list[EvaluationView]:
    """Its latest checks, newest first."""
    caller.require("watches:read")
    return [EvaluationView.of(one) for one in await serving.watches.evaluations(caller.principal, watch_id, limit)]


@router.get("/notifications")
async def list_notifications(
    serving: Served, caller: Asking, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
) -> list[NotificationView]:
    """What the caller's watches have to tell, newest first."""
    caller.require("watches:read")
    return [NotificationView.of(told) for told in await serving.watches.notifications(caller.principal, limit)]


@router.get("/deliveries")
async def list_deliveries(
    serving: Served,
    caller: Asking,
    *,
    watch: Annotated[str | None, Query(max_length=200, description="Only those of this watch.")] = None,
    channel: Annotated[Channel | None, Query(description="Only those that go out so.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> list[DeliveryView]:
    """Everything that the caller's watches have to tell, by whatever channel, and what came of it; newest first."""
    caller.require("watches:read")
    found = await serving.watches.deliveries(caller.principal, watch_id=watch, channel=channel, limit=limit)
    return [DeliveryView(**asdict(told)) for told in found]


@router.put("/watches")
async def apply_watches(
    written: Applied, serving: Served, caller: Asking, owner: Annotated[str | None, Query(max_length=200)] = None
) -> AppliedView:
    """Make the applied watches of the caller be exactly these; a second time changes nothing.

    Operators may name another owner. A set that cannot be applied as a whole changes nothing.
    """
    caller.require("watches:write")
    principal = caller.principal
    if owner is not None and owner != principal.actor:
        if not principal.is_operator:
            raise Forbidden("apply", "*", "only an operator applies the watches of another owner")
        principal = replace(principal, actor=owner)
    if isinstance(asked := written.get("watches"), list):
        require_distinct(one.get("id") for one in asked if isinstance(one, dict))
    service, now = serving.watches, serving.watches.evaluator.now()
    document = Document.from_value(written, "watches")
    try:
        requests = await anyio.to_thread.run_sync(
            read_watches, document, principal, service.verifiers, service.defaults, now
        )
    except ConfigError as error:
        is_late = {fault.code for fault in error.diagnostics} == {Untimely.code}
        kind = Untimely if is_late else WatchInvalid
        raise kind([f"{fault.pointer.removeprefix('/')}: {fault.message}" for fault in error.diagnostics]) from error
    applied = await service.apply_watches(principal, requests)
    return AppliedView(armed=applied.armed, kept=applied.kept, cancelled=applied.cancelled)


@router.get("/verifiers")
def list_verifiers(serving: Served, caller: Asking) -> list[VerifierView]:
    """What can be checked, and how it is written."""
    caller.require("watches:read")
    return known_verifiers(serving.watches)
