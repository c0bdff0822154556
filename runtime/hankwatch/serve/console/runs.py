"""The list of runs, and the page of one."""

from functools import partial
from itertools import islice
from typing import Annotated, Any, Final
from urllib.parse import quote

import anyio.to_thread
from fastapi import APIRouter, Query
from starlette.responses import Response

from hankwatch.core.limits import time_left
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.render import page_context
from hankwatch.pages.tree import codon_tree
from hankwatch.serve.auth import Caller
from hankwatch.serve.console.page import PATIENCE_S, PageRoute, Visiting
from hankwatch.serve.context import Served, Serving
from hankwatch.serve.shelf import Named
from hankwatch.serve.views import RunView, hank_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_SHOWN: Final = 50
_MOST: Final = 200


@router.get("/")
async def list_runs(
    serving: Served, visit: Visiting, limit: Annotated[int, Query(ge=1, le=_MOST)] = _SHOWN
) -> Response:
    """The latest run of each execution, the one that began last first."""
    found = await anyio.to_thread.run_sync(_runs, serving, visit.caller, limit)
    return await visit.page("runs", runs=found[:limit], limit=limit, more=len(found) > limit and limit < _MOST)


def _runs(serving: Serving, caller: Caller, limit: int) -> list[RunView]:
    """One more than asked for where there are more; what is long is shown as far as it is read."""
    caller.require("runs:read")
    if not caller.sees_runs:
        return []
    is_time = time_left(serving.clock, PATIENCE_S)
    found = []
    for followed in islice(serving.shelf.executions(), limit + 1):
        followed.catch_up(is_time)
        found.append(RunView.of(followed, followed.facts()))
    return found


@router.get("/runs/{run_id}")
async def show_run(run_id: str, serving: Served, visit: Visiting) -> Response:
    """One run: outcome, what needs attention, codons, cost."""
    named = await named_run(serving, visit, run_id)
    facts = await anyio.to_thread.run_sync(facts_of, named)
    shown = facts.shown_codons
    context = run_context(visit, named, facts) | page_context(facts)
    sentinels_page = f"/runs/{quote(run_id, safe='')}/sentinels"
    return await visit.page(
        "run", tab="overview", tree=codon_tree(shown, shown.left_out), sentinels_page=sentinels_page, **context
    )


async def named_run(serving: Serving, visit: Visiting, run_id: str) -> Named:
    """The run that an address names, read as far as a page's patience goes."""
    return await anyio.to_thread.run_sync(partial(serving.run, visit.caller, run_id, within_s=PATIENCE_S))


def facts_of(named: Named) -> RunFacts:
    """What its pages say; blocks."""
    facts = named.facts()
    facts.hank = hank_of(named.followed) or facts.name
    return facts


def run_context(visit: Visiting, named: Named, facts: RunFacts) -> dict[str, Any]:
    """What the frame of all pages of one run knows."""
    return {
        "run_id": named.name,
        "steers": visit.caller.steers,
        "share_read": named.followed.share_read,
        "run_facts": facts,
    }
