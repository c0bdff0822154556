"""``runs``: what ran, how it ended, what its sentinels did."""

from itertools import islice
from pathlib import Path

from hankwatch.app import base_dir
from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.runner.execution import executions
from hankwatch.runner.summary import summarise

_SHOWN = 20


def runs(*, config: Path | None, as_json: bool) -> int:
    """List the newest runs; always 0."""
    settings, environ = cli_settings(config)
    base = base_dir(settings, environ)
    found = [summarise(execution) for execution in islice(executions(base), _SHOWN)]
    if as_json:
        for run in found:
            output.print_json(run.as_json())
        return 0
    console = output.stdout()
    if not found:
        console.print(f"No runs under {output.shown_path(base)} yet. `hankwatch demo` makes one.", markup=False)
        return 0
    rows = output.table("execution", "hank", "outcome", "#codons", "#cost", "#fired", "#failed", "#dropped")
    for run in found:
        record, hank = run.record, str(run.execution.meta.get("hankPath", "?"))
        numbers = (run.fired, run.failed, run.dropped)
        codons, cost = (len(record.codons), record.cost_usd) if record else (0, 0.0)
        shown = output.shown_path(Path(hank))
        rows.add_row(run.execution.name, shown, run.outcome, str(codons), output.money(cost), *map(str, numbers))
    console.print(rows)
    return 0
