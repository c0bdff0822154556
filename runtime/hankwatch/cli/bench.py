"""``try``: a sentinel on recorded events."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
from rich.console import Console
from rich.text import Text

from hankwatch.app import base_dir
from hankwatch.bench.attempt import Attempt, Fire, render
from hankwatch.bench.sources import Source, open_source
from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import ConfigError, RenderFault
from hankwatch.core.text import strip_controls
from hankwatch.events.envelope import format_stamp
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.loader import SentinelSource, read_config_file
from hankwatch.sentinels.prompts import Prompts, check_prompts, read_prompts


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
    source = open_source(target, base_dir(settings, environ), agent=agent, codon=codon)
    console = output.people(as_json=as_json)
    fires: list[Fire] = []
    attempted = Attempt(sentinel.config, fires.append if render else _shower(sentinel.config, console, as_json=as_json))
    with _working(f"Playing {output.shown_path(source.path)}"):
        attempted.run(source, drain=drain)
    if render:
        anyio.run(_show_rendered, fires, sentinel, as_json)
    if as_json:
        output.print_json({"summary": attempted.summary(source)})
    _say(attempted, source, console)
    return 0


@contextmanager
def _working(what: str) -> Iterator[None]:
    console = output.stderr()
    if console.is_terminal:
        with console.status(what):
            yield
    else:
        yield


def _shower(config: SentinelConfig, console: Console, *, as_json: bool) -> Callable[[Fire], None]:
    strategy = config.execution.strategy

    def show(fire: Fire) -> None:
        if as_json:
            output.print_json(fire.as_json(strategy))
        else:
            console.print(_headline(fire))

    return show


def _headline(fire: Fire) -> Text:
    types = sorted({event.type for event in fire.batch.events})
    count = len(fire.batch.events)
    return Text.assemble(
        (f"#{fire.number}", "bold cyan"),
        f"  {format_stamp(fire.batch.at_ms)}  {fire.batch.cause!s:<10} {count} event{'s' * (count != 1)}: {', '.join(types)}",
    )


async def _show_rendered(fires: list[Fire], source: SentinelSource, as_json: bool) -> None:
    config = source.config
    assert config is not None
    prompts = read_prompts(config, base_dir=source.base_dir, root=source.root)
    console = output.people(as_json=as_json)
    async with Sandbox(clock=SystemClock()) as sandbox:
        await check_prompts(prompts, sandbox)
        for fire in fires:
            texts = await _texts(fire, config, prompts, sandbox)
            if as_json:
                output.print_json(fire.as_json(config.execution.strategy) | texts)
                continue
            console.print(_headline(fire))
            for name in ("system", "user", "renderError"):
                if text := texts.get(name):
                    console.print(Text(f"  {name}:", style="bold"))
                    console.print(Text("    " + strip_controls(text).replace("\n", "\n    ")))


async def _texts(fire: Fire, config: SentinelConfig, prompts: Prompts, sandbox: Sandbox) -> dict[str, str | None]:
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
        console.print(f"{source.bad_lines} lines became no event; `hankwatch journal stats` counts them")
    if source.replayed:
        console.print(f"{source.replayed} events were copies of earlier ones and left out")
    if attempted.given_up:
        console.print(f"matching was given up: {attempted.given_up}")
