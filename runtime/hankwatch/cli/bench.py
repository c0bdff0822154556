"""``try``: a sentinel, or a loop watchdog, on recorded events."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from rich.console import Console
from rich.text import Text

from hankwatch.bench.attempt import Attempt, Fire, render
from hankwatch.bench.estimate import Estimate, FireSample, estimate, known_at_once
from hankwatch.bench.near_misses import as_json as near_misses_json
from hankwatch.bench.sources import Source, open_source
from hankwatch.cli import output
from hankwatch.cli.near_misses import near_misses
from hankwatch.cli.saves import Fired, fired, on_each_save
from hankwatch.cli.settings import cli_settings
from hankwatch.cli.timeline import Timeline
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import ConfigError, RenderFault, SchemaFault, UsageError
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import format_stamp
from hankwatch.hank.templates import sentinel_template_faults
from hankwatch.hank.watchdog_file import is_watchdog
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.matching.near_misses import NearMisses
from hankwatch.options import base_dir
from hankwatch.pages.estimate import cost, cost_basis
from hankwatch.pages.words import plural
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.prompts import Prompts, read_prompts
from hankwatch.sentinels.source import SentinelSource, read_config_file

Texts = dict[str, str | None]
"""``system`` and ``user``, and ``renderError`` where they could not be made."""
_PIPED_TIMELINE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Look:
    """What of an attempt is shown."""

    render: bool = False
    """The prompts."""
    where: bool = False
    """Near misses."""
    timeline: bool | None = None
    """None: on a terminal."""
    drain: bool = True
    """Flush the buffers that are left at the end."""
    as_json: bool = False


def attempt(
    path: Path,
    target: str,
    look: Look,
    *,
    codon: str | None,
    agent: str | None,
    config: Path | None,
    watch: bool,
) -> int:
    """Show each trigger that would have fired, or act of a watchdog; 0 also when there was none.

    With ``watch`` again on each save of the sentinel's files, until interrupted.
    """
    settings, environ = cli_settings(config)
    redactor = settings.redaction.redactor(environ)
    console = output.people(as_json=look.as_json, endless=True)

    def opened() -> Source:
        return open_source(
            target,
            base_dir(settings, environ),
            agent=agent,
            codon=codon,
            tool_result_chars=settings.run.tool_result_chars,
            redact=redactor.text,
        )

    if is_watchdog(path):
        if look.render or look.where or look.timeline or watch:
            raise UsageError("--render, --where, --timeline and --watch are for sentinels", hint="leave them out")
        from hankwatch.cli import watchdog_trial

        watchdog_trial.show(watchdog_trial.read(path), opened(), redactor, console, as_json=look.as_json)
        return 0
    if watch:
        opened()  # no save of the sentinel mends what is wrong with the recording
        return on_each_save(
            path, lambda: _Trial(_read(path), opened(), look, console, keep=True).play(redactor), console
        )
    _Trial(_read(path), opened(), look, console).play(redactor)
    return 0


def _read(path: Path) -> SentinelSource:
    diagnostics = Diagnostics()
    sentinel = read_config_file(path, diagnostics)
    if sentinel.config is None or not diagnostics.ok:
        raise ConfigError(diagnostics.errors)
    return sentinel


@dataclass(slots=True)
class _Trial:
    """One playing of the recording."""

    sentinel: SentinelSource
    source: Source
    look: Look
    console: Console
    keep: bool = False
    """Whether the fires are wanted afterwards."""
    _sample: FireSample = field(default_factory=FireSample)
    _timeline: Timeline | None = None

    def play(self, redactor: Redactor) -> list[Fired]:
        """Show everything; the fires, when they are kept."""
        attempted = Attempt(self._config)
        if self._has_timeline():
            self._timeline = Timeline()
            attempted.onlooker = self._timeline.look
        if self.look.where:
            attempted.misses = NearMisses(self._config.trigger)
        catalog = ModelCatalog({})
        estimated = known_at_once(self._config.model, catalog)
        kept: list[Fired] = []
        fires = self._noting(
            attempted.fires(self.source, redactor, drain=self.look.drain), kept, sampled=estimated is None
        )
        with output.working(f"Playing {output.shown_path(self.source.path)}"):
            if self.look.render:
                anyio.run(self._show_rendered, fires)
            else:
                for fire in fires:
                    self._show(fire, {})
            estimated = estimated or anyio.run(self._estimate, catalog)
        self._conclude(attempted, estimated)
        return kept

    @property
    def _config(self) -> SentinelConfig:
        assert self.sentinel.config is not None
        return self.sentinel.config

    def _has_timeline(self) -> bool:
        wanted = self.look.timeline
        return self.console.is_terminal and not self.look.as_json if wanted is None else wanted

    def _noting(self, fires: Iterable[Fire], kept: list[Fired], *, sampled: bool) -> Iterator[Fire]:
        for fire in fires:
            if sampled:
                self._sample.note(fire)
            if self._timeline is not None:
                self._timeline.fired(fire)
            if self.keep:
                kept.append(fired(fire))
            yield fire

    def _show(self, fire: Fire, texts: Texts) -> None:
        if self.look.as_json:
            output.print_json(fire.as_json(self._config.execution.strategy) | texts, endless=True)
            return
        types = sorted({event.type for event in fire.batch.events})
        count = plural(len(fire.batch.events), "event")
        stamp, cause = format_stamp(fire.batch.at_ms), f"{fire.batch.cause!s:<10}"
        head = f"  {stamp}  {cause} {count}: {', '.join(types)}"
        self.console.print(Text.assemble((f"#{fire.number}", "bold cyan"), head))
        for name, text in texts.items():
            if text is not None:
                self.console.print(Text(f"  {name}:", style="bold"))
                self.console.print("    " + text.replace("\n", "\n    "))

    async def _show_rendered(self, fires: Iterator[Fire]) -> None:
        prompts = read_prompts(self._config, base_dir=self.sentinel.base_dir, root=self.sentinel.root)
        async with Sandbox(clock=SystemClock()) as sandbox:
            if faults := await sentinel_template_faults(self.sentinel, sandbox):
                raise ConfigError(faults)
            for fire in fires:
                self._show(fire, await self._texts(fire, prompts, sandbox))

    async def _texts(self, fire: Fire, prompts: Prompts, sandbox: Sandbox) -> Texts:
        try:
            return await render(fire, self._config, prompts, sandbox)
        except RenderFault as fault:
            return {"system": None, "user": None, "renderError": str(fault)}

    async def _estimate(self, catalog: ModelCatalog) -> Estimate:
        async with Sandbox(clock=SystemClock()) as sandbox:
            try:
                return await estimate(self._sample, self.sentinel, catalog, sandbox)
            except SchemaFault:  # `validate` and a run say what is wrong with it
                return Estimate(None)

    def _conclude(self, attempted: Attempt, estimated: Estimate) -> None:
        self._draw()
        if attempted.misses is not None:
            if self.look.as_json:
                output.print_json({"where": near_misses_json(attempted.misses)})
            for line in near_misses(attempted.misses):
                self.console.print(line)
        if self.look.as_json:
            output.print_json({"summary": attempted.summary(self.source, estimated.cost_usd)})
        self._say(attempted, estimated)

    def _draw(self) -> None:
        if self._timeline is None:
            return
        terminal, width = self.console.is_terminal, self.console.width
        plain = not (terminal and self.console.encoding.startswith("utf"))
        for line in self._timeline.draw(width if terminal else _PIPED_TIMELINE_WIDTH, plain=plain):
            self.console.print(line)

    def _say(self, attempted: Attempt, estimated: Estimate) -> None:
        source, say = self.source, self.console.print
        say(
            f"would have fired {attempted.triggers:,} ×, {cost(estimated)}: {plural(attempted.matched, 'match', 'matches')} "
            f"in {plural(attempted.events, 'event')} of {output.shown_path(source.path)} ({source.program})"
        )
        if basis := cost_basis(estimated, self._config.model, attempted.triggers):
            say(Text(basis, style="dim"))
        if source.bad_lines:
            more = f"; `hankwatch journal stats {source.path}` says more" if source.program == "journal" else ""
            say(f"{plural(source.bad_lines, 'line')} became no event{more}")
        if source.replayed:
            say(f"{source.replayed} events were copies of earlier ones and left out")
        if attempted.given_up:
            say(f"matching was given up: {attempted.given_up}")
        if attempted.events and not attempted.matched and not self.look.where:
            say("nothing matched; --where shows which condition failed")
