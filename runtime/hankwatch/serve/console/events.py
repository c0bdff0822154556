"""A run's events: windows of them, and one whole."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

import anyio.to_thread
from fastapi import APIRouter, Depends, Path, Query
from starlette.responses import RedirectResponse, Response

from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fires import Fire
from hankwatch.pages.render import since_start
from hankwatch.pages.rows import EventRow, WholeEvent
from hankwatch.serve.console.page import PageRoute, Visiting
from hankwatch.serve.console.runs import facts_of, named_run, run_context
from hankwatch.serve.context import Served
from hankwatch.serve.events import LAST_CURSOR
from hankwatch.serve.query import Codon, Types
from hankwatch.serve.search import Search, Window, event_at, lines_behind, window
from hankwatch.serve.shelf import Named, Span

router = APIRouter(route_class=PageRoute, include_in_schema=False)
_SHOWN: Final = 100
Offset = Annotated[int, Query(ge=0, le=LAST_CURSOR)]


@dataclass(frozen=True, slots=True)
class _Filter:
    """What the address asks for, and addresses that ask for the same."""

    base: str
    types: tuple[str, ...]
    codon: str
    text: str

    @property
    def search(self) -> Search:
        return Search.of(self.types, self.codon, self.text)

    def query(self, **more: int) -> str:
        """With the ``?``; empty when nothing is asked for."""
        asked = [("type", name) for name in self.types]
        asked += [(name, value) for name, value in (("codon", self.codon), ("text", self.text)) if value]
        asked += [(name, str(value)) for name, value in more.items()]
        return f"?{urlencode(asked)}" if asked else ""

    def window(self, **more: int) -> str:
        """The address of a window: ``until=CURSOR``, ``after=CURSOR``, or the newest."""
        return f"{self.base}{self.query(**more)}"

    def event(self, cursor: int) -> str:
        """The address of one event."""
        return f"{self.base}/{cursor}{self.query()}"


def _filter(
    run_id: str,
    type: Types = [],  # noqa: A002, B006 - as the address has it; FastAPI copies it
    codon: Codon = None,
    text: Annotated[str, Query(max_length=300)] = "",
) -> _Filter:
    names = tuple(dict.fromkeys(name for written in type for name in written.split(",") if name))
    return _Filter(f"/runs/{quote(run_id, safe='')}/events", names, codon or "", text.strip())


Asked = Annotated[_Filter, Depends(_filter)]


@router.get("/runs/{run_id}/events")
async def show_events(
    run_id: str,
    serving: Served,
    visit: Visiting,
    asked: Asked,
    *,
    until: Offset | None = None,
    after: Offset | None = None,
) -> Response:
    """The newest events, or those up to or behind a cursor; the newest first."""
    named = await named_run(serving, visit, run_id)
    facts = await anyio.to_thread.run_sync(facts_of, named)
    found = await anyio.to_thread.run_sync(_window, named, facts, asked, until, after)
    if after is not None and not found.window.has_newer:
        return RedirectResponse(asked.window(), HTTPStatus.SEE_OTHER)
    return await visit.page(
        "events",
        tab="events",
        asked=asked,
        found=found,
        newest=until is None and after is None,
        elapsed=since_start(facts),
        **run_context(visit, named, facts),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    window: Window
    rows: list[EventRow]
    newer: int
    """Events behind the window, whether they are wanted or not; as far as they were counted."""


def _window(named: Named, facts: RunFacts, asked: _Filter, until: int | None, after: int | None) -> _Found:
    journal, span = named.followed.journal, _span(named, facts)
    found = window(journal, span, asked.search, limit=_SHOWN, until=until, after=after)
    newer = lines_behind(journal, span, found.until) if found.has_newer else 0
    return _Found(found, [EventRow.of(event) for event in found.events], newer)


def _span(named: Named, facts: RunFacts) -> Span:
    """Where the run stands that the page is about: of an execution, its latest."""
    return named.followed.span(named.run or facts.run_id)


@router.get("/runs/{run_id}/events/{cursor}")
async def show_event(
    run_id: str,
    cursor: Annotated[int, Path(ge=0, le=LAST_CURSOR)],
    serving: Served,
    visit: Visiting,
    asked: Asked,
) -> Response:
    """One event, and what it led to."""
    named = await named_run(serving, visit, run_id)
    facts = await anyio.to_thread.run_sync(facts_of, named)
    found = await anyio.to_thread.run_sync(_event, named, facts, asked, cursor)
    if found is None:
        detail, hint = f"no event of this run ends at {cursor}", f"the run's events: {asked.base}"
        return await visit.page("error", status=HTTPStatus.NOT_FOUND, detail=detail, hint=hint)
    context = run_context(visit, named, facts)
    return await visit.page("event", tab="events", asked=asked, elapsed=since_start(facts), **found, **context)


def _event(named: Named, facts: RunFacts, asked: _Filter, cursor: int) -> dict[str, Any] | None:
    journal, span = named.followed.journal, _span(named, facts)
    event = event_at(journal, span, cursor)
    if event is None:
        return None
    whole = WholeEvent.of(event)
    before = window(journal, span, asked.search, limit=1, until=whole.begins).events
    behind = window(journal, span, asked.search, limit=1, after=cursor).events
    return {
        "event": whole,
        "older": before[0].cursor if before else None,
        "newer": behind[0].cursor if behind else None,
        "fires": _fires(facts, event.id, cursor),
    }


def _fires(facts: RunFacts, event_id: str, cursor: int) -> list[Fire]:
    """Those that it caused, or that it is part of."""
    fires = [fire for sentinel in facts.sentinels for fire in sentinel.fires]
    return [fire for fire in fires if event_id in fire.event_ids or cursor in {fire.cursor, fire.ended_cursor}]
