"""``run`` and ``demo``: carry out a hank, show it, say what its sentinels wrote."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from rich.console import Console
from rich.text import Text

from hankwatch.app import LiveRun, open_run
from hankwatch.cli import output
from hankwatch.cli.event_lines import event_line, is_for_people
from hankwatch.cli.live import Live
from hankwatch.cli.screen import Screen
from hankwatch.cli.stops import AT_ONCE_S, Stops
from hankwatch.cli.summaries import sentinel_json, tell_sentinels
from hankwatch.cli.tty import Tty
from hankwatch.cli.view_model import View, planned
from hankwatch.config.resources import resource
from hankwatch.core.tasks import task_group
from hankwatch.core.text import one_line, shorten
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions
from hankwatch.pages.words import money
from hankwatch.runner.run import RunResult
from hankwatch.runner.state import latest

if TYPE_CHECKING:
    from hankwatch.cli.run_server import RunServer

_NAMES_CHARS = 200
"""Of a list of codons; the journal and ``--json`` have all."""


def run(options: RunOptions, look: "Look", server: "RunServer | None" = None) -> int:
    """Carry out a hank; 0 when every codon succeeded, 1 when one failed, 130 when interrupted."""
    return anyio.run(_run, options, look, server)


def demo(execution: Path | None, *, verbose: int) -> int:
    """Carry out the shipped hank and say where to look."""
    options = RunOptions(resource("fixtures", "demo", "hank.json"), execution=execution)
    code = run(options, Look(verbose=verbose))
    if code == 0 and verbose >= 0:
        output.stdout().print(
            "\nThis was a recorded agent; its sentinels, their prompts and reports were real. Next:\n"
            "  hankwatch runs                       what ran so far\n"
            "  hankwatch report latest              one page of this run, for a browser\n"
            "  hankwatch tail latest                every event of this run\n"
            f"  hankwatch try {output.shown_path(resource('fixtures', 'demo', 'sentinels', 'error-streak.json'))} latest --render"
        )
    return code


@dataclass(frozen=True, slots=True)
class Look:
    """How a run is shown."""

    headless: bool = False
    as_json: bool = False
    verbose: int = 0


async def _run(options: RunOptions, look: Look, server: "RunServer | None") -> int:
    console = output.people(as_json=look.as_json)
    screen = Screen(lambda count: _say(console, f"{count} lines are not shown; `hankwatch tail` shows every event"))
    tty = Tty(shows_view=lambda: console.is_alt_screen)

    def tell(line: str) -> None:
        screen.show(partial(_say, console, line))

    try:
        with anyio.CancelScope() as at_once:
            stops = Stops(tell, at_once, tty.give_back)
            async with task_group() as tasks:
                await tasks.start(stops.watch)
                async with open_run(options) as live:
                    stops.began(live)
                    if look.verbose >= 0:
                        tell(f"Running {live.execution.meta.get('hankPath')} in {output.shown_path(_root(live))}")
                    async with nullcontext() if server is None else server.over(live):
                        if server is not None:
                            _tell_address(server.address, live, look, tell)
                        address = "" if server is None else f", {server.address}"
                        async with _shown(live, look, address, console=console, screen=screen, stops=stops, tty=tty):
                            result = await live.carry_out()
                        stops.ended(0 if result.success else 1)
                        # Before closing: what hangs there must not keep anybody from the reports.
                        summary = partial(_summarise, result, live, as_json=look.as_json, console=console)
                        screen.show(summary, even_when_full=True)
                stops.closed()
                await screen.finish()
                tasks.cancel_scope.cancel()
        if at_once.cancelled_caught:
            tell("Ended at once; what was under way is lost, the journal is whole.")
    finally:
        with anyio.CancelScope(shield=True):
            await screen.finish(within_s=AT_ONCE_S)
        tty.give_back()
    stops.leave()
    return 0 if result.success else 1


def _tell_address(address: str, live: LiveRun, look: Look, tell: Callable[[str], None]) -> None:
    if look.as_json:
        output.print_json({"address": address, "execution": str(_root(live))})
    if look.verbose >= 0:
        tell(f"Serving it at {address} until it ends")


@asynccontextmanager
async def _shown(
    live: LiveRun, look: Look, address: str, *, console: Console, screen: Screen, stops: Stops, tty: Tty
) -> AsyncIterator[None]:
    """While the body runs its events are to be seen: in a view, as lines, or not at all."""
    if not _has_view(console, look):
        if look.verbose >= 0:
            live.stream.subscribe(_printer(screen, console, verbose=look.verbose), name="terminal")
        yield
        return
    hank = Path(str(live.execution.meta.get("hankPath"))).parent.name
    view = View(f"{hank} in {_root(live).name}{address}", planned(live.hank), live.state)
    async with Live(live, view, console=console, screen=screen, stops=stops, tty=tty).shown():
        yield


def _root(live: LiveRun) -> Path:
    return live.execution.layout.root


def _has_view(console: Console, look: Look) -> bool:
    """On a terminal, unless somebody asked for lines, for JSON or for silence."""
    wanted = look.verbose == 0 and not look.headless and not look.as_json
    return wanted and console.is_terminal and not console.is_dumb_terminal


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False)


def _printer(screen: Screen, console: Console, *, verbose: int) -> Callable[[Event], None]:
    width = 2_000 if verbose > 0 else max(40, console.width - 40) if console.is_terminal else 160

    def show(event: Event) -> None:
        if verbose > 0 or is_for_people(event):
            screen.show(lambda: console.print(event_line(event, width=width)), size_bytes=event.size_bytes)

    return show


def _not_whole(result: RunResult) -> Iterator[str]:
    """What a run may call success and a reader might not."""
    codons = latest(result.record.codons).values()
    skipped = [c.codon_id for c in codons if c.status == "skipped"]
    cut = [c.codon_id for c in codons if c.status == "completed" and c.verdict.get("budgetExceeded")]
    for ids, fate in ((skipped, "skipped"), (cut, "ended by a budget before the agent was done")):
        if ids:
            yield f"{len(ids)} codon(s) {fate}: {shorten(one_line(', '.join(ids)), _NAMES_CHARS)}"


def _summarise(result: RunResult, live: LiveRun, *, as_json: bool, console: Console) -> None:
    root = _root(live)
    if as_json:
        output.print_json(
            {
                "execution": str(root),
                "run": result.record.run_id,
                "success": result.success,
                "reason": result.reason,
                "costUsd": result.record.cost_usd,
                "codons": [
                    {"codonId": c.codon_id, "attempt": c.attempt, "status": c.status} for c in result.record.codons
                ],
                "sentinels": [sentinel_json(summary, root) for summary in result.sentinels],
                "notLoaded": [
                    {"sentinelId": n.sentinel_id, "codonId": n.codon_id, "reason": n.reason} for n in result.not_loaded
                ],
                "liveWatches": list(result.live_watches),
            }
        )
        return
    console.print()
    if result.sentinels:
        tell_sentinels(result.sentinels, console)
        console.print(f"Reports lie below {output.shown_path(root)}")
    for missing in result.not_loaded:
        console.print(
            f"warning: sentinel {missing.sentinel_id} of {missing.codon_id} did not run: {missing.reason}",
            style="yellow",
            markup=False,
        )
    for told in _not_whole(result):
        console.print(f"warning: {told}", style="yellow", markup=False)
    outcome = ("succeeded", "bold green") if result.success else ("failed", "bold red")
    why = "" if result.success else f" ({result.reason})"
    cost = money(result.record.cost_usd)
    console.print(Text.assemble(f"\nRun {result.record.run_id} ", outcome, f"{why}; agents cost {cost}."))
    console.print(f"Journal: {output.shown_path(live.execution.layout.journal)}")
    if result.live_watches:
        count = len(result.live_watches)
        _say(
            console,
            f"{count} watch{'es' * (count != 1)} of it {'are' if count != 1 else 'is'} active still; nobody checks"
            " them now: `hankwatch watch engine` does.",
        )
    if not result.success:
        hank = output.shown_path(Path(str(live.execution.meta.get("hankPath"))))
        _say(console, f"`hankwatch run {hank} --execution {output.shown_path(root)} --resume` goes on with it.")
