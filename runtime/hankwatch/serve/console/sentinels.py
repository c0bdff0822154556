"""A run's sentinels side by side, and their reports."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import quote

import anyio.to_thread
from fastapi import APIRouter, Query
from starlette.responses import Response

from hankwatch.pages.facts import RunFacts
from hankwatch.pages.lanes import ALONE, BESIDE, SentinelLane, sentinel_lanes
from hankwatch.pages.render import since_start
from hankwatch.serve.console.page import PageRoute, Visiting
from hankwatch.serve.console.runs import facts_of, named_run, run_context
from hankwatch.serve.context import Served
from hankwatch.serve.reports import report
from hankwatch.serve.search import events_of
from hankwatch.serve.shelf import Named
from hankwatch.stream.reader import JournalReader

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_REPORT_CHARS: Final = 300_000
"""Of a report on its page, its end."""


@router.get("/runs/{run_id}/sentinels")
async def show_sentinels(
    run_id: str, serving: Served, visit: Visiting, sentinel: Annotated[str | None, Query(max_length=300)] = None
) -> Response:
    """A lane for each, or one alone."""
    named = await named_run(serving, visit, run_id)
    facts = await anyio.to_thread.run_sync(facts_of, named)
    lanes = await anyio.to_thread.run_sync(_lanes, named, facts, sentinel)
    events = f"/runs/{quote(run_id, safe='')}/events"
    context = run_context(visit, named, facts)
    return await visit.page(
        "sentinels", tab="sentinels", lanes=lanes, only=sentinel, events=events, elapsed=since_start(facts), **context
    )


def _lanes(named: Named, facts: RunFacts, only: str | None) -> list[SentinelLane]:
    measure = BESIDE if only is None else ALONE
    return sentinel_lanes(facts, partial(events_of, named.followed.journal), measure, only)


@router.get("/runs/{run_id}/reports/{name:path}")
async def show_report(run_id: str, name: str, serving: Served, visit: Visiting) -> Response:
    """A report's text, as the journal has it."""
    named = await named_run(serving, visit, run_id)
    facts = await anyio.to_thread.run_sync(facts_of, named)
    span = named.followed.span(named.run or facts.run_id)
    found = await anyio.to_thread.run_sync(report, JournalReader(named.followed.journal), span, name)
    if found is None:
        hint = "a report begins with the first answer of its sentinel"
        return await visit.page("error", status=HTTPStatus.NOT_FOUND, detail="the run has no such report", hint=hint)
    return await visit.page(
        "report",
        tab="sentinels",
        report=found,
        text=found.text[-_REPORT_CHARS:],
        left_out=found.omitted_bytes + max(0, len(found.text) - _REPORT_CHARS),
        **run_context(visit, named, facts),
    )
