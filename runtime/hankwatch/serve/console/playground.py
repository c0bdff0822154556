"""The playground of a run: a sentinel config to edit, and beside it what would fire."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import anyio.to_thread
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from hankwatch.bench.origins import STOCK, Origin, stock_origin
from hankwatch.pages.console import console_page
from hankwatch.pages.estimate import cost, cost_basis
from hankwatch.pages.timeline import HEIGHT, WIDTH
from hankwatch.pages.words import plural
from hankwatch.sentinels.source import stock_ids
from hankwatch.serve.console.page import PATIENCE_S, PageRoute, Visiting, html
from hankwatch.serve.console.runs import facts_of, named_run, run_context
from hankwatch.serve.context import Served
from hankwatch.serve.playground import (
    GONE,
    TrialRequest,
    asked_of,
    find_origin,
    hank_sentinels,
    recording_of,
)
from hankwatch.serve.shelf import Named
from hankwatch.serve.trial import Trial
from hankwatch.serve.trial_room import unless_gone

router = APIRouter(route_class=PageRoute, include_in_schema=False)
WHOLE_S: Final = 8.0
"""How long the run is played when more than a first answer is asked for."""
_SHOWN: Final = 100
_BEGUN_WITH: Final = f"{STOCK}narrator"
Key = Annotated[str | None, Query(max_length=300)]


@router.get("/runs/{run_id}/playground")
async def show_playground(
    run_id: str,
    request: Request,
    serving: Served,
    visit: Visiting,
    *,
    sentinel: Key = None,
    codon: Key = None,
    render: bool = False,
    where: bool = False,
    whole: bool = False,
) -> Response:
    """The page, with what one of the run's own sentinels, or a stock one, would do as it is written."""
    named = await named_run(serving, visit, run_id)
    origins, begun = await anyio.to_thread.run_sync(_origins, named, sentinel)
    wanted = TrialRequest(
        config=begun.text,
        origin=begun.key,
        codon=codon or None,
        render=render,
        where=where,
        within_s=WHOLE_S if whole else PATIENCE_S,
    )
    trial = await _trial(named, wanted, begun, request, serving)
    if trial is None:
        return Response(status_code=GONE)
    facts = await anyio.to_thread.run_sync(facts_of, named)
    return await visit.page(
        "playground",
        tab="playground",
        origins=[origin.key for origin in origins],
        stock=[STOCK + stock_id for stock_id in stock_ids()],
        has_changed=await anyio.to_thread.run_sync(_has_changed, named),
        begun=begun,
        wanted=wanted,
        codons=list(dict.fromkeys(codon.codon_id for codon in facts.codons if not codon.earlier)),
        whole_s=WHOLE_S,
        first_s=PATIENCE_S,
        **run_context(visit, named, facts),
        **_told(trial, wanted),
    )


@router.post("/runs/{run_id}/playground")
async def try_edited(run_id: str, wanted: TrialRequest, request: Request, serving: Served, visit: Visiting) -> Response:
    """What an edited config would do: the part of the page that says so."""
    named = await named_run(serving, visit, run_id)
    begun = None
    if wanted.origin is not None:
        begun = await anyio.to_thread.run_sync(find_origin, named, wanted.origin)
    trial = await _trial(named, wanted, begun, request, serving)
    if trial is None:
        return Response(status_code=GONE)
    run = named.run or named.followed.execution.name
    shown = partial(console_page, "playground_result", run_id=run, wanted=wanted, **_told(trial, wanted))
    return await html(shown)


async def _trial(
    named: Named, wanted: TrialRequest, begun: Origin | None, request: Request, serving: Served
) -> Trial | None:
    recording = await anyio.to_thread.run_sync(recording_of, named, wanted.codon)
    asked = await anyio.to_thread.run_sync(partial(asked_of, wanted, begun, links=True))
    return await unless_gone(request, partial(serving.trials.trial, asked, recording))


def _origins(named: Named, key: str | None) -> tuple[list[Origin], Origin]:
    """Those of the run, and the one that is asked for or comes first."""
    own = hank_sentinels(named)
    if key:
        found = next((origin for origin in own if origin.key == key), None)
        return own, found or find_origin(named, key)
    first = own[0] if own else stock_origin(_BEGUN_WITH.removeprefix(STOCK))
    assert first is not None
    return own, first


def _has_changed(named: Named) -> bool:
    """Whether hank.json is not what the run began with, as far as that can be told from here."""
    execution = named.followed.execution
    path = execution.meta.get("hankPath")
    try:
        return isinstance(path, str) and Path(path).is_absolute() and not execution.began_with(Path(path))
    except OSError:
        return False


def _told(trial: Trial, wanted: TrialRequest) -> dict[str, Any]:
    """What the fragment knows."""
    attempt, estimate = trial.attempt, trial.estimate
    config = None if trial.source is None else trial.source.config
    said = basis = ""
    if attempt is not None and config is not None and estimate is not None:
        said = f"Would have fired {attempt.triggers:,} ×, {cost(estimate)}"
        basis = cost_basis(estimate, config.model, attempt.triggers)
    return {
        "trial": trial,
        "goes_on": trial.recording.broken_off and wanted.within_s < WHOLE_S,
        "said": said,
        "basis": basis,
        "matches": "" if attempt is None else plural(attempt.matched, "match", "matches"),
        "fires": trial.fires[:_SHOWN],
        "unshown": 0 if attempt is None else attempt.triggers - len(trial.fires[:_SHOWN]),
        "timeline": trial.strip.drawn(),
        "as_json": partial(json.dumps, ensure_ascii=False),
        "lane_width": WIDTH,
        "lane_height": HEIGHT,
    }
