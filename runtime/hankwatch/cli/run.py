"""``run`` and ``demo``: carry out a hank, show it, say what its sentinels wrote."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
from rich.console import Console
from rich.text import Text

from hankwatch.app import LiveRun, RunOptions, open_run
from hankwatch.cli import output
from hankwatch.cli.event_lines import event_line
from hankwatch.cli.screen import Screen
from hankwatch.cli.stops import AT_ONCE_S, Stops
from hankwatch.cli.terminal import table
from hankwatch.config.resources import resource
from hankwatch.core.tasks import task_group
from hankwatch.events.envelope import Event
from hankwatch.runner.run import RunResult

_QUIET = frozenset({"state.snapshot", "filetree.updated", "sentinel.triggered"})
"""Types that plain log lines leave out; ``-v`` shows all."""


def run(
    hank: Path,
    data: Path | None,
    *,
    execution: Path | None,
    start_new: bool,
    model: str | None,
    config: Path | None,
    as_json: bool,
    verbose: int,
) -> int:
    """Carry out a hank; 0 when every codon succeeded, 1 when one failed, 130 when interrupted."""
    options = RunOptions(hank, data, execution, start_new, model, config)
    return anyio.run(_run, options, as_json, verbose)


def demo(execution: Path | None, *, verbose: int) -> int:
    """Carry out the shipped hank and say where to look."""
    options = RunOptions(resource("fixtures", "demo", "hank.json"), execution=execution)
    code = anyio.run(_run, options, False, verbose)
    if code == 0 and verbose >= 0:
        output.stdout().print(
            "\nThis was a recorded agent; its sentinels, their prompts and reports were real. Next:\n"
            "  hankwatch runs                       what ran so far\n"
            "  hankwatch tail latest                every event of this run\n"
            f"  hankwatch try {output.shown_path(resource('fixtures', 'demo', 'sentinels', 'error-streak.json'))} latest --render"
        )
    return code


async def _run(options: RunOptions, as_json: bool, verbose: int) -> int:
    console = output.people(as_json=as_json)
    screen = Screen(lambda count: _say(console, f"{count} lines are not shown; `hankwatch tail` shows every event"))

    def tell(line: str) -> None:
        screen.show(partial(_say, console, line))

    try:
        with anyio.CancelScope() as at_once:
            stops = Stops(tell, at_once)
            async with task_group() as tasks:
                await tasks.start(stops.watch)
                async with open_run(options) as live:
                    stops.began(live)
                    if verbose >= 0:
                        hank, root = live.execution.meta.get("hankPath"), live.execution.layout.root
                        tell(f"Running {hank} in {output.shown_path(root)}")
                        live.stream.subscribe(_printer(screen, console, verbose=verbose), name="terminal")
                    result = await live.carry_out()
                    stops.ended(0 if result.success else 1)
                    # Before closing: what hangs there must not keep anybody from the reports.
                    summary = partial(_summarise, result, live, as_json=as_json, console=console)
                    screen.show(summary, even_when_full=True)
                stops.closed()
                await screen.finish()
                tasks.cancel_scope.cancel()
        if at_once.cancelled_caught:
            tell("Ended at once; what was under way is lost, the journal is whole.")
    finally:
        with anyio.CancelScope(shield=True):
            await screen.finish(within_s=AT_ONCE_S)
    stops.leave()
    return 0 if result.success else 1


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False)


def _printer(screen: Screen, console: Console, *, verbose: int) -> Callable[[Event], None]:
    width = 2_000 if verbose > 0 else max(40, console.width - 40) if console.is_terminal else 160

    def show(event: Event) -> None:
        if verbose > 0 or (event.type not in _QUIET and not _is_bookkeeping(event)):
            screen.show(lambda: console.print(event_line(event, width=width)), size_bytes=event.size_bytes)

    return show


def _is_bookkeeping(event: Event) -> bool:
    kind = event.data.get("transitionType")
    return event.type == "state.transition" and kind not in {"CodonTransitioned", "RunStarted", "RunFailed"}


def _summarise(result: RunResult, live: LiveRun, *, as_json: bool, console: Console) -> None:
    root = live.execution.layout.root
    if as_json:
        output.print_json(
            {
                "execution": str(root),
                "run": result.record.run_id,
                "success": result.success,
                "reason": result.reason,
                "costUsd": result.record.cost_usd,
                "sentinels": [
                    {
                        "sentinelId": s.sentinel_id,
                        "codonId": s.codon_id,
                        "fired": s.fired,
                        "failed": s.failed,
                        "calls": s.calls,
                        "costUsd": s.cost_usd,
                        "unpricedCalls": s.unpriced_calls,
                        "droppedTriggers": s.dropped_triggers,
                        "droppedEvents": s.dropped_events,
                        "abandonedTriggers": s.abandoned_triggers,
                        "report": str(root / s.report),
                    }
                    for s in result.sentinels
                ],
                "notLoaded": [
                    {"sentinelId": n.sentinel_id, "codonId": n.codon_id, "reason": n.reason} for n in result.not_loaded
                ],
            }
        )
        return
    console.print()
    if result.sentinels:
        rows = table("sentinel", "codon", "#fired", "#failed", "#calls", "#cost", "#dropped", "report")
        for s in result.sentinels:
            cost = output.money(s.cost_usd, unpriced=s.unpriced_calls)
            dropped = s.dropped_triggers + s.abandoned_triggers
            rows.add_row(s.sentinel_id, s.codon_id, *map(str, (s.fired, s.failed, s.calls, cost, dropped)), s.report)
        console.print(rows)
        console.print(f"Reports lie below {output.shown_path(root)}")
    for missing in result.not_loaded:
        console.print(
            f"warning: sentinel {missing.sentinel_id} of {missing.codon_id} did not run: {missing.reason}",
            style="yellow",
            markup=False,
        )
    outcome = ("succeeded", "bold green") if result.success else ("failed", "bold red")
    why = "" if result.success else f" ({result.reason})"
    cost = output.money(result.record.cost_usd)
    console.print(Text.assemble(f"\nRun {result.record.run_id} ", outcome, f"{why}; agents cost {cost}."))
    console.print(f"Journal: {output.shown_path(live.execution.layout.journal)}")
