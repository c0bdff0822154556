"""Watches of one session, proposed and approved: the second family of paths (spec watches 7)."""

from typing import Annotated, Any, Final

import anyio.to_thread
from fastapi import APIRouter, Body, Depends, Path, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response

from hankwatch.core.errors import WatchInvalid, WatchNotFound
from hankwatch.core.request_errors import WrongProtocolVersion
from hankwatch.serve.context import Asking, Served, Serving
from hankwatch.serve.watches import WatchView
from hankwatch.watches.authority import Action, Principal
from hankwatch.watches.requests import read_request
from hankwatch.watches.service import described
from hankwatch.watches.watch import EndReason, Kind, Watch

HEADER: Final = "Ductor-Agent-Protocol-Version"
VERSION: Final = "1"
GIVEN: Final = frozenset({"kind", "session"})
"""Keys of a watch that the path says."""
_PARAMETER: Final = {
    "name": HEADER,
    "in": "header",
    "required": True,
    "schema": {"type": "string", "enum": [VERSION]},
    "description": "The version of this protocol that the client speaks.",
}


def _require_version(request: Request) -> None:
    if (given := request.headers.get(HEADER)) != VERSION:
        raise WrongProtocolVersion(HEADER, VERSION, given)


router = APIRouter(
    prefix="/api/v1/chat/sessions/{session_id}/watches",
    tags=["session watches"],
    dependencies=[Depends(_require_version)],
)
_OPENAPI: Final = {"parameters": [_PARAMETER]}
Session = Annotated[str, Path(alias="session_id", max_length=4_096)]
Proposed = Annotated[
    dict[str, Any],
    Body(
        openapi_examples={
            "a run": {
                "value": {
                    "condition": "the nightly run has completed",
                    "verifier": {
                        "type": "check",
                        "name": "workflow.run.status",
                        "version": "v1",
                        "args": {"run": "latest", "statuses": ["completed"]},
                    },
                    "interval_s": 300,
                    "expires_in_s": 3600,
                    "actions": ["in_app", "wake_session"],
                }
            }
        }
    ),
]


class SessionWatches(BaseModel):
    """The watches of a session."""

    watches: list[WatchView]


@router.post(
    "/proposals",
    status_code=201,
    responses={200: {"model": WatchView, "description": "An identical one is live already."}},
    openapi_extra=_OPENAPI,
)
async def propose(session: Session, written: Proposed, serving: Served, caller: Asking) -> Response:
    """Propose a watch; nothing is checked before an owner or manager of the session approves it."""
    caller.require("watches:write")
    if extra := sorted(GIVEN & written.keys()):
        raise WatchInvalid([f"{name}: is given by the path" for name in extra])
    whole = {**written, "kind": Kind.AGENT_WATCH.value, "session": session}
    request = await anyio.to_thread.run_sync(read_request, whole)
    armed = await serving.watches.create_watch(caller.principal, request)
    return JSONResponse(_shown(armed.watch), 201 if armed.is_new else 200)


@router.post("/proposals/{proposal_id}/approve", openapi_extra=_OPENAPI)
async def approve(session: Session, proposal_id: str, serving: Served, caller: Asking) -> WatchView:
    """Activate a proposal and check it at once; what that finds stands in the answer."""
    caller.require("watches:write")
    await _of_session(serving, caller.principal, session, proposal_id, Action.APPROVE)
    return _shown(await serving.watches.approve(caller.principal, proposal_id))


@router.get("", openapi_extra=_OPENAPI)
async def list_watches(session: Session, serving: Served, caller: Asking) -> SessionWatches:
    """The watches of the session that the caller may read."""
    caller.require("watches:read")
    found = await serving.watches.list_watches(caller.principal, session=session)
    return SessionWatches(watches=[_shown(watch) for watch in found])


@router.get("/{watch_id}", openapi_extra=_OPENAPI)
async def inspect(session: Session, watch_id: str, serving: Served, caller: Asking) -> WatchView:
    """One watch of the session."""
    caller.require("watches:read")
    return _shown(await _of_session(serving, caller.principal, session, watch_id, Action.READ))


@router.post("/{watch_id}/cancel", openapi_extra=_OPENAPI)
async def cancel(session: Session, watch_id: str, serving: Served, caller: Asking) -> WatchView:
    """End a watch of the session; once this is answered nothing of it fires or wakes."""
    caller.require("watches:write")
    await _of_session(serving, caller.principal, session, watch_id, Action.CANCEL)
    return _shown(await serving.watches.cancel_watch(caller.principal, watch_id))


async def _of_session(serving: Serving, principal: Principal, session: str, watch_id: str, action: Action) -> Watch:
    watch = await serving.watches.get(principal, watch_id, action)
    if watch.session != session:
        raise WatchNotFound(watch_id)
    return watch


def _shown(watch: Watch) -> WatchView:
    """In this family's words a watch that was met is satisfied."""
    view = described(watch)
    if watch.end_reason is EndReason.SATISFIED:
        view["state"] = EndReason.SATISFIED.value
    return view
