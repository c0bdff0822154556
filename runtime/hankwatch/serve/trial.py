"""A sentinel config that somebody sent, on a run: what ``validate`` and ``try`` say of it, within limits.

What was sent is not trusted: it is read by the rules of files, names no file but those that the config it began as
names, its patterns and templates run under their own limits, nothing is written and no model is asked.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from hankwatch.bench.attempt import Attempt, Fire, render
from hankwatch.bench.estimate import Estimate, FireSample, estimate, known_at_once
from hankwatch.bench.near_misses import as_json as near_misses_json
from hankwatch.bench.origins import Origin
from hankwatch.bench.sources import Source
from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.source import Document
from hankwatch.core.clock import Clock
from hankwatch.core.errors import NotOfRun, PathRefused, RenderFault, SchemaFault, UsageError
from hankwatch.core.limits import within
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import shorten
from hankwatch.core.threads import run_cancellable
from hankwatch.hank.attached import lint_source
from hankwatch.hank.lint import Places, Surroundings
from hankwatch.hank.templates import sentinel_template_faults
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.matching.jsregex import RegexInvalid, translate
from hankwatch.matching.near_misses import NearMisses
from hankwatch.pages.strip import Strip
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.prompts import read_prompts
from hankwatch.sentinels.source import SentinelSource, read_config_text
from hankwatch.sentinels.strategies import event_bytes
from hankwatch.serve.live import size_of
from hankwatch.stream.reader import JournalReader

MAX_VALUES: Final = 2_000
"""Of JSON in a config: each may cost a search for what was meant instead."""
MAX_ATOMS: Final = 5_000
"""Of all patterns of a config with their repeats written out, which bounds what compiling them takes."""
KEPT_FIRES: Final = 500
"""Fires that are told one by one, the first ones."""
KEPT_IDS: Final = 20_000
"""Ids of events that are told with them."""
SHOWN_EVENTS: Final = 8
"""Events of a fire that a page links."""
RENDERED: Final = 20
"""Fires whose prompts are rendered, the first ones."""
RENDERED_BYTES: Final = 16 * 1024 * 1024
"""Of events, the same."""
PROMPT_CHARS: Final = 20_000
"""Of a prompt that is told."""
SANDBOX_S: Final = 4.0
"""For all templates of a trial, to check them, to render them and to estimate the cost."""
_PATTERNS: Final = ("matches", "notMatches")
_NOWHERE: Final = Path("/")


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody wants to know."""

    document: Document
    """The config."""
    origin: Origin | None = None
    """The config that it began as; its files may be read."""
    renders: bool = False
    """The prompts of the first fires."""
    where: bool = False
    """Near misses."""
    links: bool = False
    """Where the events of the fires stand in the journal."""
    within_s: float = 5.0
    """How long the run may be played; the answer then is of its beginning."""


@dataclass(slots=True)
class Told:
    """A fire, without its events."""

    json: dict[str, Any]
    """As ``try --json`` has it."""
    events: tuple[tuple[str, str], ...]
    """Id and type of the first ones."""


@dataclass(slots=True)
class Trial:
    """What came of it."""

    source: SentinelSource | None
    """None when the config was too large to be read."""
    recording: Source
    diagnostics: list[Diagnostic]
    attempt: Attempt | None = None
    """None when the config cannot be tried."""
    fires: list[Told] = field(default_factory=list)
    """The first ones."""
    strip: Strip = field(default_factory=Strip)
    estimate: Estimate | None = None
    cursors: dict[str, int] = field(default_factory=dict)
    """Where events stand, by id."""
    share_played: float = 1.0
    """Of the journal, from 0 to 1."""
    _sample: FireSample = field(default_factory=FireSample)
    _to_render: list[Fire] = field(default_factory=list)
    _ids: int = 0

    @property
    def ok(self) -> bool:
        """Whether a run would load this config."""
        return not any(one.severity == "error" for one in self.diagnostics)

    @property
    def left_out(self) -> int:
        """Fires that are only counted."""
        return 0 if self.attempt is None else self.attempt.triggers - len(self.fires)

    @property
    def where(self) -> dict[str, Any] | None:
        """Near misses as ``try --where --json`` has them, if they were asked for."""
        misses = None if self.attempt is None else self.attempt.misses
        return None if misses is None else near_misses_json(misses)

    @property
    def summary(self) -> dict[str, Any] | None:
        """The last line of ``try --json``."""
        if self.attempt is None:
            return None
        return self.attempt.summary(self.recording, None if self.estimate is None else self.estimate.cost_usd)

    def as_json(self) -> dict[str, Any]:
        """The answer of REST."""
        return {
            "ok": self.ok,
            "diagnostics": [one.as_json() for one in self.diagnostics],
            "triggers": [fire.json for fire in self.fires],
            "triggersLeftOut": self.left_out,
            "where": self.where,
            "summary": self.summary,
            "complete": not self.recording.broken_off,
            "sharePlayed": round(self.share_played, 4),
            "givenUp": None if self.attempt is None else self.attempt.given_up,
        }

    def keep(self, fire: Fire, *, sampled: bool, renders: bool) -> None:
        """Take the next fire."""
        self.strip.fired(fire)
        if sampled:
            self._sample.note(fire)
        events = fire.batch.events
        if len(self.fires) >= KEPT_FIRES or self._ids + len(events) > KEPT_IDS:
            self._ids = KEPT_IDS  # what is told is a beginning, without gaps
            return
        self._ids += len(events)
        if renders and len(self._to_render) < RENDERED:
            held = sum(event_bytes(event) for one in self._to_render for event in one.batch.events)
            if held + sum(map(event_bytes, events)) <= RENDERED_BYTES:
                self._to_render.append(fire)
        assert self.attempt is not None
        self.fires.append(
            Told(
                fire.as_json(self.attempt.config.execution.strategy),
                tuple((event.id, event.type) for event in events[:SHOWN_EVENTS]),
            )
        )

    def tell_of_time(self, file: str) -> None:
        """Its templates have had their time."""
        message = f"its templates took longer than {SANDBOX_S:g} s in all; the rest was left out"
        hint = "make them quicker, or try it without its prompts"
        self.diagnostics.append(Diagnostic(file, "", "template-time", message, hint, "warning"))
        self.estimate = self.estimate or Estimate(None)

    async def ask_templates(self, asked: Asked, catalog: ModelCatalog, sandbox: Sandbox) -> None:
        """Everything of it that runs templates: their faults, the prompts, what the calls would cost."""
        source = self.source
        if source is None or source.config is None:
            return
        self.diagnostics += await sentinel_template_faults(source, sandbox, asked.document)
        try:
            await self._render(source, sandbox)
            if self.estimate is None and self.attempt is not None:
                self.estimate = await estimate(self._sample, source, catalog, sandbox)
        except (SchemaFault, PathRefused):  # which stands among the faults
            self.estimate = Estimate(None)

    async def _render(self, source: SentinelSource, sandbox: Sandbox) -> None:
        if not self._to_render or source.config is None:
            return
        prompts = read_prompts(source.config, base_dir=source.base_dir, root=source.root)
        for fire, told in zip(self._to_render, self.fires, strict=False):
            try:
                texts = await render(fire, source.config, prompts, sandbox)
            except RenderFault as fault:
                told.json |= {"system": None, "user": None, "renderError": str(fault)}
            else:
                told.json |= {name: text and shorten(text, PROMPT_CHARS) for name, text in texts.items()}


async def try_on(asked: Asked, recording: Source, *, sandbox: Sandbox, catalog: ModelCatalog, clock: Clock) -> Trial:
    """What the config would do on ``recording``; cancelling it ends the work.

    Raises:
        NotOfRun: the run lacks the codon asked for.
        UsageError: its journal cannot be read.
    """
    trial = await run_cancellable(partial(_played, asked, recording, catalog, clock))
    try:
        await within(clock, SANDBOX_S, partial(trial.ask_templates, asked, catalog, sandbox))
    except TimeoutError:
        trial.tell_of_time(asked.document.file)
    return trial


def _played(
    asked: Asked, recording: Source, catalog: ModelCatalog, clock: Clock, is_given_up: Callable[[], bool]
) -> Trial:
    ends_s = clock.monotonic() + asked.within_s
    found = Diagnostics()
    source = _read(asked, found)
    trial = Trial(source, recording, found.items)
    if source is None or source.config is None:
        return trial
    config = source.config
    trial.attempt = attempt = Attempt(config, onlooker=trial.strip.look)
    if asked.where:
        attempt.misses = NearMisses(config.trigger)
    trial.estimate = known_at_once(config.model, catalog)
    sampled = trial.estimate is None
    recording.goes_on = lambda: not is_given_up() and clock.monotonic() < ends_s
    size_bytes = size_of(recording.path)
    if not size_bytes:
        return trial
    try:
        for fire in attempt.fires(recording, Redactor()):
            trial.keep(fire, sampled=sampled, renders=asked.renders)
    except NotOfRun as error:
        raise NotOfRun("codon", error.name, error.known) from error
    except UsageError as error:  # which names a file of this machine
        raise UsageError(str(error).replace(str(recording.path), "this run"), hint=error.hint) from error
    if recording.broken_off:
        trial.share_played = min(1.0, recording.place.read_bytes / size_bytes)
    if asked.links:
        trial.cursors = _cursors(trial, is_given_up)
    return trial


def _read(asked: Asked, found: Diagnostics) -> SentinelSource | None:
    document, origin = asked.document, asked.origin
    if (too_much := _too_much(document)) is not None:
        hint = "a config that is larger is tried with `hankwatch try`"
        found.add(Diagnostic(document.file, "", "too-long", too_much, hint))
        return None
    source = read_config_text(
        document,
        found,
        base_dir=_NOWHERE if origin is None else origin.base_dir,
        root=_NOWHERE if origin is None else origin.root,
        files=frozenset() if origin is None else origin.files(),
    )
    here = document, ""
    lint_source(source, Places(here, here), Surroundings(), found)
    return source


def _too_much(document: Document) -> str | None:
    """Why it is not even read, or None."""
    values = atoms = 0
    for value in islice(_values(document.value), MAX_VALUES + 1):
        values += 1
        pattern = value.get("value") if isinstance(value, dict) and value.get("operator") in _PATTERNS else None
        if isinstance(pattern, str):
            try:
                atoms += translate(pattern)[1]
            except RegexInvalid:  # a fault of the config, which is told
                continue
    if values > MAX_VALUES:
        return f"a config that is tried here has at most {MAX_VALUES:,} values"
    if atoms > MAX_ATOMS:
        return f"its patterns come to {atoms:,} characters with all repeats; at most {MAX_ATOMS:,} are tried here"
    return None


def _values(value: Any) -> Iterator[Any]:
    """Each value in it, itself first."""
    left = [value]
    while left:
        one = left.pop()
        yield one
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list):
            left += one


def _cursors(trial: Trial, is_given_up: Callable[[], bool]) -> dict[str, int]:
    wanted = {event_id for fire in trial.fires for event_id, _ in fire.events}
    misses = None if trial.attempt is None else trial.attempt.misses
    for step in () if misses is None else misses.steps:
        for seen in step.by_type.values():
            wanted.update(event_id for one in seen.conditions for event_id in one.examples)
    found: dict[str, int] = {}
    for event in JournalReader(trial.recording.path).find(wanted):
        found.setdefault(event.id, event.cursor)
        if len(found) == len(wanted) or is_given_up():
            break
    return found
