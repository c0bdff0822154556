"""``runs``: what ran, how it ended, what its sentinels did."""

from pathlib import Path

from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.cli.terminal import table
from hankwatch.options import base_dir
from hankwatch.pages.words import money
from hankwatch.runner.execution import executions
from hankwatch.runner.summary import is_live, summarise

_SHOWN = 20


def runs(*, config: Path | None, as_json: bool) -> int:
    """List the newest runs and all live ones; always 0."""
    settings, environ = cli_settings(config)
    base = base_dir(settings, environ)
    with output.working("Reading journals"):
        found = [
            summarise(execution)
            for number, execution in enumerate(executions(base))
            if number < _SHOWN or is_live(execution.layout.journal)
        ]
    if as_json:
        for run in found:
            output.print_json(run.as_json())
        return 0
    console = output.stdout()
    if not found:
        console.print(f"No runs under {output.shown_path(base)} yet. `hankwatch demo` makes one.")
        return 0
    rows = table("execution", "hank", "outcome", "#codons", "#cost", "#fired", "#failed", "#dropped")
    for run in found:
        record, hank = run.record, str(run.execution.meta.get("hankPath", "?"))
        numbers = (run.fired, run.failed, run.dropped)
        codons, cost = (len(record.codons), record.cost_usd) if record else (0, 0.0)
        shown = output.shown_path(Path(hank))
        rows.add_row(run.execution.name, shown, run.outcome, str(codons), money(cost), *map(str, numbers))
    console.print(rows)
    for run in found:
        if run.unreadable is not None:
            console.print(f"{run.execution.name} is unreadable: {run.unreadable}")
    return 0
