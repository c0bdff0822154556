"""``try``: a sentinel on recorded events."""

from collections.abc import Iterator
from pathlib import Path

import anyio
from rich.console import Console
from rich.text import Text

from hankwatch.bench.attempt import Attempt, Fire, render
from hankwatch.bench.sources import Source, open_source
from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import ConfigError, RenderFault
from hankwatch.events.envelope import format_stamp
from hankwatch.hank.templates import sentinel_template_faults
from hankwatch.options import base_dir
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.prompts import Prompts, read_prompts
from hankwatch.sentinels.source import SentinelSource, read_config_file

Texts = dict[str, str | None]
"""``system`` and ``user``, and ``renderError`` where they could not be made."""


def attempt(
    path: Path,
    target: str,
    *,
    render: bool,
    codon: str | None,
    agent: str | None,
    drain: bool,
    config: Path | None,
    as_json: bool,
) -> int:
    """Show each trigger that would have fired; 0 also when there was none."""
    settings, environ = cli_settings(config)
    diagnostics = Diagnostics()
    sentinel = read_config_file(path, diagnostics)
    if sentinel.config is None or not diagnostics.ok:
        raise ConfigError(diagnostics.errors)
    redactor = settings.redaction.redactor(environ)
    source = open_source(
        target,
        base_dir(settings, environ),
        agent=agent,
        codon=codon,
        tool_result_chars=settings.run.tool_result_chars,
        redact=redactor.text,
    )
    attempted = Attempt(sentinel.config)
    fires = attempted.fires(source, redactor, drain=drain)
    console = output.people(as_json=as_json, endless=True)
    with output.working(f"Playing {output.shown_path(source.path)}"):
        if render:
            anyio.run(_show_rendered, fires, sentinel, console, as_json)
        else:
            for fire in fires:
                _show(fire, sentinel.config, {}, console, as_json=as_json)
    if as_json:
        output.print_json({"summary": attempted.summary(source, None)})
    _say(attempted, source, console)
    return 0


def _show(fire: Fire, config: SentinelConfig, texts: Texts, console: Console, *, as_json: bool) -> None:
    if as_json:
        output.print_json(fire.as_json(config.execution.strategy) | texts, endless=True)
        return
    types = sorted({event.type for event in fire.batch.events})
    count = len(fire.batch.events)
    stamp, cause = format_stamp(fire.batch.at_ms), f"{fire.batch.cause!s:<10}"
    head = f"  {stamp}  {cause} {count} event{'s' * (count != 1)}: {', '.join(types)}"
    console.print(Text.assemble((f"#{fire.number}", "bold cyan"), head))
    for name, text in texts.items():
        if text is not None:
            console.print(Text(f"  {name}:", style="bold"))
            console.print("    " + text.replace("\n", "\n    "))


async def _show_rendered(fires: Iterator[Fire], source: SentinelSource, console: Console, as_json: bool) -> None:
    config = source.config
    assert config is not None
    prompts = read_prompts(config, base_dir=source.base_dir, root=source.root)
    async with Sandbox(clock=SystemClock()) as sandbox:
        if faults := await sentinel_template_faults(source, sandbox):
            raise ConfigError(faults)
        for fire in fires:
            _show(fire, config, await _texts(fire, config, prompts, sandbox), console, as_json=as_json)


async def _texts(fire: Fire, config: SentinelConfig, prompts: Prompts, sandbox: Sandbox) -> Texts:
    try:
        return await render(fire, config, prompts, sandbox)
    except RenderFault as fault:
        return {"system": None, "user": None, "renderError": str(fault)}


def _say(attempted: Attempt, source: Source, console: Console) -> None:
    console.print(
        f"would have fired {attempted.triggers} ×: {attempted.matched} matches in {attempted.events} events "
        f"of {output.shown_path(source.path)} ({source.program})"
    )
    if source.bad_lines:
        more = f"; `hankwatch journal stats {source.path}` says more" if source.program == "journal" else ""
        console.print(f"{source.bad_lines} lines became no event{more}")
    if source.replayed:
        console.print(f"{source.replayed} events were copies of earlier ones and left out")
    if attempted.given_up:
        console.print(f"matching was given up: {attempted.given_up}")
