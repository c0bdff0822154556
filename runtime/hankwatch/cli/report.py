"""``report``: what reviewers read of a run."""

import os
import re
from pathlib import Path

from hankwatch.bench.sources import Source, open_source
from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.core.errors import UsageError, not_written
from hankwatch.core.files import open_folder_below, replace_at, replace_file
from hankwatch.llm.recorded import RecordedCalls
from hankwatch.options import base_dir
from hankwatch.pages.digest import digest
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fold import RunFold
from hankwatch.pages.gather import add_calls, cite
from hankwatch.runner.execution import Execution, open_execution
from hankwatch.runner.summary import is_live
from hankwatch.stream.damage import damage_named
from hankwatch.stream.reader import JournalReader

_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A journal can name a run anything; only such a one names a folder."""


def report(target: str, *, out: Path | None, markdown: bool, config: Path | None, as_json: bool) -> int:
    """Write a run's report; 0 whatever became of the run itself."""
    if markdown and as_json:
        raise UsageError("--markdown and --json both want stdout", hint="use one of them")
    settings, environ = cli_settings(config)
    source = open_source(target, base_dir(settings, environ))
    if source.program != "journal":
        raise UsageError(
            f"{source.path} is a stream of {source.program}, not a journal",
            hint="`hankwatch journal import` makes a journal of it",
        )
    execution = _execution(source)
    with output.working(f"Reading {output.shown_path(source.path)}"):
        facts = _facts(source, execution)
        facts.name = _name(source, execution, base_dir(settings, environ))
        page = _page(facts, markdown=markdown)
    if markdown and out is None:
        output.say(page.rstrip("\n"))
        return 0
    written = _write(page, facts, source, execution, out)
    if as_json:
        output.print_json({"report": str(written)} | digest(facts))
    else:
        _say(facts, written)
    return 0


def _execution(source: Source) -> Execution | None:
    """The execution that a journal is part of."""
    root = source.path.absolute().parent.parent.parent
    execution = open_execution(root) if (root / ".hankweave").is_dir() else None
    return execution if execution and execution.layout.journal == source.path.absolute() else None


def _facts(source: Source, execution: Execution | None) -> RunFacts:
    reader, fold = JournalReader(source.path), RunFold(source.run)
    live = is_live(source.path)
    with damage_named(source.path):
        for event in reader.read():
            fold.take(event)
        facts = fold.facts(live=live)
        if not facts.event_count:
            raise UsageError(
                f"{source.path} has no event that can be read", hint="`hankwatch journal stats` says what it has"
            )
        cite(facts, reader.find)
    facts.bad_lines = reader.bad_lines
    facts.misfits += reader.flags["payload-misfit"]
    hank = Path(str(execution.meta.get("hankPath") or "")) if execution else source.path
    facts.hank = hank.parent.name if hank.name == "hank.json" else hank.name
    if execution is not None and execution.layout.calls.exists():
        calls = RecordedCalls(execution.layout.calls)
        try:
            add_calls(facts, calls)
        except OSError as error:  # it lies within the agent's reach; the journal does not need it
            facts.call_log_fault = error.strerror or str(error)
        facts.unread_calls = calls.bad_lines
    return facts


def _name(source: Source, execution: Execution | None, base: Path) -> str:
    if execution is None:
        return output.shown_path(source.path)
    if execution.layout.root.parent == base.absolute():
        return source.run or execution.name
    return output.shown_path(execution.layout.root)


def _page(facts: RunFacts, *, markdown: bool) -> str:
    if markdown:
        from hankwatch.pages.markdown import markdown as as_markdown

        return as_markdown(facts)
    from hankwatch.pages.render import html

    return html(facts)


def _write(page: str, facts: RunFacts, source: Source, execution: Execution | None, out: Path | None) -> Path:
    """Where the page is now.

    Raises:
        UsageError: it cannot be written there.
        InfrastructureError: there is no room for it.
    """
    path = out or Path(f"{source.path.name.partition('.')[0]}.report.html")
    if path.exists() and not path.is_file():
        # To replace a device by a file would break it for everybody.
        raise UsageError(f"{path} is not a regular file", hint="--out names the file to write")
    try:
        if out is None and execution is not None and _SAFE_ID.fullmatch(facts.run_id):
            path = execution.layout.report(facts.run_id)
            # The agent can reach this folder: no link is followed.
            folder = open_folder_below(execution.layout.root, path.parent)
            try:
                replace_at(folder, path.name, page.encode())
            finally:
                os.close(folder)
        else:
            replace_file(path, page.encode())
    except OSError as error:
        raise not_written(path, error, hint="--out FILE writes it elsewhere") from error
    return path


def _say(facts: RunFacts, written: Path) -> None:
    from hankwatch.pages.problems import problems
    from hankwatch.pages.words import plural

    console = output.stdout()
    found = len(problems(facts))
    outcome = "still running" if facts.live else facts.status
    attention = f"{plural(found, 'point')} to look at" if found else "nothing needs attention"
    console.print(f"{facts.hank or facts.run_id} {outcome}: {plural(facts.fired, 'fire')}, {attention}")
    console.print(f"Report: {output.shown_path(written)}")
