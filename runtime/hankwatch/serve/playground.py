"""REST of trials: a sentinel config on a run, without a model and without a trace (``hankwatch try`` over HTTP)."""

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import anyio.to_thread
from fastapi import APIRouter, Request
from pydantic import ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel
from starlette.responses import Response

from hankwatch.agents.detect import ENVELOPE
from hankwatch.bench.origins import MAX_KEY_CHARS, STOCK, Origin, hank_origins, stock_origin
from hankwatch.bench.sources import Source, latest_run
from hankwatch.config.source import Document
from hankwatch.core.errors import NotOfRun
from hankwatch.sentinels.source import stock_ids
from hankwatch.serve.context import Asking, Served
from hankwatch.serve.live import size_of
from hankwatch.serve.shelf import Named
from hankwatch.serve.trial import Asked
from hankwatch.serve.trial_room import unless_gone
from hankwatch.serve.views import View

router = APIRouter(prefix="/api/runs", tags=["runs"])
FILE: Final = "sentinel.json"
"""How faults name the config."""
GONE: Final = 499
"""Status of an answer that nobody reads."""

_MODEL: Final = ConfigDict(alias_generator=to_camel, validate_by_name=True, serialize_by_alias=True, extra="forbid")
Key = Annotated[str, StringConstraints(max_length=MAX_KEY_CHARS)]


class TrialRequest(View):
    """A config, and what is wanted of it."""

    model_config = _MODEL

    config: dict[str, Any] | str
    """The sentinel config, as an object or as its text; only faults of a text have lines."""
    origin: Key | None = None
    """The sentinel of the run, or `stock:ID`, that it began as: prompt files that this one names may be named too."""
    codon: Key | None = None
    """Only this codon's events; by default all of the run, as one scope."""
    render: bool = False
    """With the prompts of the first 20 triggers."""
    where: bool = False
    """With near misses."""
    within_s: Annotated[float, Field(ge=0.1, le=10)] = 5.0
    """How long the run may be played; `complete` tells whether that was enough."""


class DiagnosticView(View):
    """A fault or lint of the config, as `validate --json` has it."""

    file: str
    line: int | None
    column: int | None
    pointer: str
    severity: Literal["error", "warning"]
    code: str
    message: str
    hint: str | None


class TriggerView(View):
    """A line of `try --json`."""

    trigger: int
    strategy: str
    cause: str
    at: str
    event_count: int
    event_ids: list[str]
    omitted: int
    system: str | None = None
    user: str | None = None
    render_error: str | None = None


class SummaryView(View):
    """The last line of `try --json`."""

    events: int
    matched: int
    triggers: int
    dropped_triggers: int
    dropped_events: int
    bad_lines: int
    estimated_cost_usd: float | None


class TrialView(View):
    """What the config would do on the run."""

    ok: bool
    """Whether a run would load it."""
    diagnostics: list[DiagnosticView]
    triggers: list[TriggerView]
    """The first 500."""
    triggers_left_out: int
    where: dict[str, Any] | None
    """Near misses as `try --where --json` has them."""
    summary: SummaryView | None
    """None when the config cannot be tried."""
    complete: bool
    """False: time ran out, and all of this is of the run's beginning."""
    share_played: float
    """Of the journal, from 0 to 1."""
    given_up: str | None
    """Why matching was given up."""


_EXAMPLE: Final = {
    "config": {
        "id": "errors",
        "name": "Errors",
        "trigger": {
            "type": "event",
            "on": ["tool.result"],
            "conditions": [{"path": "isError", "operator": "equals", "value": True}],
        },
        "execution": {"strategy": "immediate"},
        "model": "builtin/digest",
        "userPromptText": "{{ events | jsonl }}",
    },
    "where": True,
}
_BODY: Final = {"requestBody": {"content": {"application/json": {"example": _EXAMPLE}}}}


@router.post("/{run_id}/try", response_model=TrialView, openapi_extra=_BODY)
async def try_sentinel(
    run_id: str, wanted: TrialRequest, request: Request, serving: Served, caller: Asking
) -> Response:
    """What a sentinel config would do on the run, in virtual time: no model is asked and nothing is written.

    A config with faults is an answer too: ``diagnostics`` names them. The work ends when the request is given up.
    """
    named = await anyio.to_thread.run_sync(partial(serving.run, caller, run_id, within_s=0.0))
    asked, recording = await anyio.to_thread.run_sync(_prepared, named, wanted)
    trial = await unless_gone(request, partial(serving.trials.trial, asked, recording))
    if trial is None:
        return Response(status_code=GONE)
    # A config may hold numbers of any size, and half surrogates.
    return Response(json.dumps(trial.as_json()), media_type="application/json")


def _prepared(named: Named, wanted: TrialRequest) -> tuple[Asked, Source]:
    origin = None if wanted.origin is None else find_origin(named, wanted.origin)
    return asked_of(wanted, origin), recording_of(named, wanted.codon)


def asked_of(wanted: TrialRequest, origin: Origin | None, *, links: bool = False) -> Asked:
    """The same, read."""
    config = wanted.config
    document = Document.parse(config, FILE) if isinstance(config, str) else Document.from_value(config, FILE)
    return Asked(document, origin, wanted.render, wanted.where, links, wanted.within_s)


def recording_of(named: Named, codon: str | None) -> Source:
    """The run as ``try`` plays it; blocks."""
    followed, run = named.followed, named.run
    if run is None and followed.state.runs and followed.share_read == 1:
        run = followed.state.runs[-1].run_id
    elif run is None and size_of(followed.journal):
        run = latest_run(followed.journal)
    return Source(followed.journal, ENVELOPE, codon or None, run)


def hank_sentinels(named: Named) -> list[Origin]:
    """The configs of the run's hank, as far as it can be read from here; blocks."""
    path = named.followed.execution.meta.get("hankPath")
    return hank_origins(Path(path)) if isinstance(path, str) and Path(path).is_absolute() else []


def find_origin(named: Named, key: str) -> Origin:
    """The config that a key means; blocks.

    Raises:
        NotOfRun: there is none.
    """
    if key.startswith(STOCK):
        found = stock_origin(key.removeprefix(STOCK))
    else:
        found = next((origin for origin in hank_sentinels(named) if origin.key == key), None)
    if found is None:
        raise NotOfRun(
            "sentinel", key, [*(origin.key for origin in hank_sentinels(named)), *map(STOCK.__add__, stock_ids())]
        )
    return found
