"""``run`` and ``demo``: carry out a hank, show it, say what its sentinels wrote."""

import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import anyio
from rich.console import Console

from hankwatch.app import LiveRun, RunOptions, open_run
from hankwatch.cli import output
from hankwatch.config.resources import resource
from hankwatch.events.envelope import Event
from hankwatch.runner.run import RunResult

INTERRUPTED = 130

_QUIET = frozenset({"state.snapshot", "filetree.updated", "sentinel.triggered"})
"""Types that plain log lines leave out; ``-v`` shows all."""


@dataclass(slots=True)
class _Interrupts:
    """Counts stop signals: the first ends the run in order, the second at once."""

    count: int = 0


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
    if code == 0:
        output.stdout().print(
            "\nThis was a recorded agent; its sentinels, their prompts and reports were real. Next:\n"
            "  hankwatch runs                       what ran so far\n"
            "  hankwatch tail latest                every event of this run\n"
            f"  hankwatch try {output.shown_path(resource('fixtures', 'demo', 'sentinels', 'error-streak.json'))} latest --render"
        )
    return code


async def _run(options: RunOptions, as_json: bool, verbose: int) -> int:
    interrupts = _Interrupts()
    console = output.people(as_json=as_json)
    async with open_run(options) as live:
        if verbose >= 0:
            console.print(
                f"Running {live.execution.meta.get('hankPath')} in {output.shown_path(live.execution.layout.root)}"
            )
            live.stream.subscribe(_printer(console, verbose=verbose), name="terminal")
        with anyio.CancelScope() as at_once:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch_signals, live, interrupts, console, at_once)
                result = await live.carry_out()
                tasks.cancel_scope.cancel()
        if at_once.cancelled_caught:
            console.print("Ended at once; what was under way is lost, the journal is whole.")
            return INTERRUPTED
    _summarise(result, live, as_json=as_json, console=console)
    if interrupts.count:
        return INTERRUPTED
    return 0 if result.success else 1


async def _watch_signals(live: LiveRun, interrupts: _Interrupts, console: Console, at_once: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            interrupts.count += 1
            if interrupts.count > 1:
                at_once.cancel()
                return
            live.stop()
            budget_s = live.settings.run.stop_budget_s
            console.print(
                f"Stopping: the agent is ended, sentinels finish, at most {budget_s:g} s. Again to stop at once."
            )


def _printer(console: Console, *, verbose: int) -> Callable[[Event], None]:
    def show(event: Event) -> None:
        if verbose > 0:
            console.print(output.event_line(event, width=2_000))
        elif event.type not in _QUIET and not _is_bookkeeping(event):
            console.print(output.event_line(event, width=max(40, console.width - 40) if console.is_terminal else 160))

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
            }
        )
        return
    console.print()
    if result.sentinels:
        rows = output.table("sentinel", "codon", "#fired", "#failed", "#calls", "#cost", "#dropped", "report")
        for s in result.sentinels:
            cost = output.money(s.cost_usd, unpriced=s.unpriced_calls)
            dropped = s.dropped_triggers + s.abandoned_triggers
            rows.add_row(s.sentinel_id, s.codon_id, *map(str, (s.fired, s.failed, s.calls, cost, dropped)), s.report)
        console.print(rows)
        console.print(f"Reports lie below {output.shown_path(root)}", markup=False)
    outcome = "[bold green]succeeded[/]" if result.success else f"[bold red]failed[/] ({result.reason})"
    console.print(f"\nRun {result.record.run_id} {outcome}; agents cost {output.money(result.record.cost_usd)}.")
    console.print(f"Journal: {output.shown_path(live.execution.layout.journal)}", markup=False)
