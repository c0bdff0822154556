"""``sentinel rebuild`` and ``sentinel retry``: reports written anew, failed triggers carried out again."""

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import anyio

from hankwatch.app import retry_sentinels
from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.core.errors import UsageError
from hankwatch.options import base_dir
from hankwatch.runner.execution import find_run
from hankwatch.sentinels.reports import rebuild as rebuild_reports
from hankwatch.stream.lock import OwnerLock, lock_path
from hankwatch.stream.reader import JournalReader


def rebuild(target: str, sentinel: str | None, *, config: Path | None, as_json: bool) -> int:
    """Write reports anew; 0, or 1 when one could not be written. Holds the run's lock, so a live run is refused."""
    settings, environ = cli_settings(config)
    execution = find_run(target, base_dir(settings, environ)).execution
    layout = execution.layout
    if not layout.journal.is_file():
        raise UsageError(f"{target} has no journal yet")
    with ExitStack() as stack:
        stack.callback(OwnerLock.acquire(lock_path(layout.journal)).release)
        rebuilt = rebuild_reports(JournalReader(layout.journal).read(), layout.root, sentinel)
    if not rebuilt and sentinel is not None:
        raise UsageError(f"no sentinel {sentinel!r} wrote a report in {execution.name}")
    console = output.people(as_json=as_json)
    for report in rebuilt:
        if as_json:
            output.print_json({"path": report.path, "entries": report.entries, "error": report.error})
        what = f"{report.entries} entries" if report.error is None else f"failed: {report.error}"
        console.print(f"{report.path}: {what}")
    return 1 if any(report.error for report in rebuilt) else 0


def retry(target: str, sentinel: str | None, *, config: Path | None, as_json: bool) -> int:
    """Carry out failed triggers once more; 0 when none of them failed again, else 1."""
    settings, environ = cli_settings(config)
    found = find_run(target, base_dir(settings, environ))
    retried = anyio.run(partial(retry_sentinels, found.execution, sentinel, run_id=found.run, config=config))
    console = output.people(as_json=as_json)
    for one in retried:
        if as_json:
            output.print_json(
                {
                    "sentinelId": one.sentinel_id,
                    "codonId": one.codon_id,
                    "triggerNumber": one.trigger_number,
                    "eventCount": one.event_count,
                    "outcome": one.outcome,
                    "reason": one.reason,
                }
            )
        why = f": {one.reason}" if one.reason else ""
        events = f"{one.event_count} event{'s' * (one.event_count != 1)}"
        console.print(f"{one.sentinel_id} #{one.trigger_number} of {one.codon_id} ({events}): {one.outcome}{why}")
    if not retried:
        console.print("no trigger had failed")
    return 1 if any(one.outcome != "done" for one in retried) else 0
