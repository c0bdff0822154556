"""REST of runs: what they are, what they wrote, what they are asked for."""

from functools import partial
from itertools import islice
from typing import Annotated, Any, Final, Literal

import anyio.to_thread
from fastapi import APIRouter, Header, Query
from starlette.responses import Response

from hankwatch.core.errors import OrderRefused, RunNotFound
from hankwatch.runner.aiming import aimed
from hankwatch.runner.execution import Found
from hankwatch.runner.inbox import ask, post
from hankwatch.serve.context import Asking, Served
from hankwatch.serve.events import Wanted, page
from hankwatch.serve.query import Cursor, OneCodon, Types
from hankwatch.serve.reports import report, reports
from hankwatch.serve.shelf import Named
from hankwatch.serve.views import (
    CommandRequest,
    CommandView,
    EventPage,
    ReportText,
    ReportView,
    RollbackRequest,
    RunDetail,
    RunView,
    SentinelView,
)
from hankwatch.stream.reader import JournalReader

router = APIRouter(prefix="/api/runs", tags=["runs"])
_LINES: Final = "application/x-ndjson"
_EVENT_EXAMPLE: Final = {
    "cursor": 842,
    "id": "0199d3c4-5b6a-7c8d-9e0f-112233445566",
    "timestamp": "2026-11-30T17:00:32.123Z",
    "type": "codon.started",
    "data": {"codonId": "build", "attempt": 1},
}
_EVENTS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "A page of events; with `Accept: application/x-ndjson` one event a line.",
        "model": EventPage,
        "content": {
            "application/json": {"example": {"events": [_EVENT_EXAMPLE], "next": 842, "more": False}},
            _LINES: {"schema": {"type": "string"}},
        },
    }
}


@router.get("")
def list_runs(
    serving: Served, caller: Asking, limit: Annotated[int, Query(ge=1, le=200, description="At most so many.")] = 50
) -> list[RunView]:
    """The latest run of each execution, the one that began last first."""
    caller.require("runs:read")
    if not caller.sees_runs:
        return []
    found = []
    for followed in islice(serving.shelf.executions(), limit):
        followed.catch_up()
        found.append(RunView.of(followed, followed.facts()))
    return found


@router.get("/{run_id}")
def get_run(run_id: str, serving: Served, caller: Asking) -> RunDetail:
    """One run: outcome, codons, costs, and what needs attention."""
    named = serving.run(caller, run_id)
    return RunDetail.of(named.followed, named.facts())


@router.get("/{run_id}/events", responses=_EVENTS, response_class=Response)
def get_events(
    run_id: str,
    serving: Served,
    caller: Asking,
    *,
    after: Cursor = 0,
    types: Types = [],  # noqa: B006 - FastAPI copies it
    codon: OneCodon = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="At most so many.")] = 100,
    form: Annotated[Literal["json", "ndjson"] | None, Query(alias="format")] = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """Events in journal order. Follow ``next`` while ``more``, or poll it for what is written later."""
    named = serving.run(caller, run_id)
    span = named.followed.span(named.run)
    found = page(JournalReader(named.followed.journal), span, after, Wanted.of(types, codon), limit)
    if form == "ndjson" or (form is None and _LINES in accept):
        headers = {"X-Next-Cursor": str(found.next), "X-More": str(found.more).lower()}
        return Response(found.as_lines(), headers=headers, media_type=_LINES)
    return Response(found.as_json(), media_type="application/json")


@router.get("/{run_id}/sentinels")
def get_sentinels(run_id: str, serving: Served, caller: Asking) -> list[SentinelView]:
    """What each sentinel did: fires, answers, losses, cost."""
    named = serving.run(caller, run_id)
    return [SentinelView.of(sentinel) for sentinel in named.followed.facts(named.run).sentinels]


@router.get("/{run_id}/reports")
def list_reports(run_id: str, serving: Served, caller: Asking) -> list[ReportView]:
    """The reports of a run's sentinels."""
    named = serving.run(caller, run_id)
    return reports(JournalReader(named.followed.journal), named.followed.span(named.run))


@router.get("/{run_id}/reports/{name:path}")
def get_report(run_id: str, name: str, serving: Served, caller: Asking) -> ReportText:
    """One report, as the journal has it."""
    named = serving.run(caller, run_id)
    found = report(JournalReader(named.followed.journal), named.followed.span(named.run), name)
    if found is None:
        raise RunNotFound(f"{run_id}/reports/{name}", serving.shelf.folder)
    return found


@router.post("/{run_id}/commands", status_code=202)
async def command_run(run_id: str, asked: CommandRequest, serving: Served, caller: Asking) -> CommandView:
    """Ask a live run for something; the run answers with an event that carries the command's id.

    It is meant for the run, codon and attempt that are current now, and refused by any other.
    """
    named: Named = await anyio.to_thread.run_sync(serving.run, caller, run_id, "runs:control")
    caller.require_steering()
    found = Found(named.followed.execution, named.run)
    if isinstance(asked, RollbackRequest):
        aim = partial(aimed, found, asked.command, asked.target, serving.clock, go_on=asked.go_on)
    else:
        aim = partial(aimed, found, asked.command, None, serving.clock)
    command = await anyio.to_thread.run_sync(aim)
    layout = named.followed.execution.layout
    if not asked.wait_s:
        await anyio.to_thread.run_sync(post, layout, command)
        return CommandView.of(command, "sent", None)
    answer = await ask(layout, command, within_s=asked.wait_s, clock=serving.clock)
    if answer.type == "error":
        raise OrderRefused(str(answer.data.get("message")))
    return CommandView.of(command, "done", str(answer.data.get("message")))
