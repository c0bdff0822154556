"""``try`` with a loop watchdog: what it would have done, in words and as lines of JSON."""

from pathlib import Path

from rich.console import Console
from rich.text import Text

from hankwatch.bench.sources import Source
from hankwatch.bench.watchdog_trial import Act, WatchdogTrial
from hankwatch.cli import output
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.core.errors import ConfigError
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import strip_controls
from hankwatch.hank.watchdog_file import WatchdogFile, read_watchdog
from hankwatch.pages.gist import evidence
from hankwatch.pages.words import plural


def read(path: Path) -> WatchdogFile:
    """The watchdog of a file.

    Raises:
        ConfigError: it has faults; all of them.
    """
    diagnostics = Diagnostics()
    policy = read_watchdog(path, diagnostics)
    if policy is None or not diagnostics.ok:
        raise ConfigError(diagnostics.errors)
    return policy


def show(policy: WatchdogFile, source: Source, redactor: Redactor, console: Console, *, as_json: bool) -> None:
    """Play the recording; each act, and the sum of all."""
    trial = WatchdogTrial(policy)
    with output.working(f"Playing {output.shown_path(source.path)}"):
        for act in trial.acts(source, redactor):
            if as_json:
                output.print_json(act.as_json(), endless=True)
            else:
                console.print(_line(act))
    summary = trial.summary()
    if as_json:
        output.print_json({"summary": summary})
    nudges, interrupts = plural(summary["nudges"], "nudge"), plural(summary["interrupts"], "interrupt")
    console.print(
        f"would have acted {trial.counts.total():,} ×: {nudges}, {interrupts} in {plural(summary['rounds'], 'round')}, "
        f"{plural(trial.events, 'event')} of {output.shown_path(source.path)} ({source.program})"
    )
    if source.bad_lines:
        console.print(f"{plural(source.bad_lines, 'line')} became no event")
    if trial.counts["nudge"]:
        console.print(Text("in a run the agent would have gone on from the first nudge in another way", style="dim"))


def _line(act: Act) -> Text:
    style = "bold red" if act.action == "interrupt" else "bold cyan"
    kind = f" ({act.kind})" if act.kind else ""
    where = f"  {act.event.timestamp}  codon {act.told.codon_id}"
    return Text.assemble(
        (f"round {act.told.round:<4}", "bold"),
        (f"{act.action}{kind}", style),
        f"  {act.told.trigger}: {strip_controls(evidence(act.told.detail))}",
        (where, "dim"),
    )
