"""``sentinel rebuild``: reports written anew from the journal."""

from contextlib import ExitStack
from pathlib import Path

from hankwatch.app import base_dir
from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.core.errors import UsageError
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
