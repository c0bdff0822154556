"""Execution directories: making one, finding one, and what it was made from."""

import hashlib
import os
import random
import string
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from hankwatch import __version__
from hankwatch.core.errors import ExecutionUnusable, RunNotFound, UsageError
from hankwatch.core.files import reading, replace_file
from hankwatch.runner.layout import Layout

DATA_FOLDER = "read_only_data_source"
"""Name under which the agent sees the data (contract 0.10)."""
_META_BYTES = 256 * 1024
"""Of ``execution-meta.json``, which an agent can write to; a larger one is none."""


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution directory that exists."""

    layout: Layout
    meta: dict[str, Any]
    """``execution-meta.json``; empty when it is missing or unreadable."""

    @property
    def name(self) -> str:
        """What people call it: the directory's name."""
        return self.layout.root.name

    def began_with(self, hank: Path) -> bool:
        """Whether the file ``hank`` is as it was when the execution was made; True too when that is not known."""
        return self.meta.get("hankHash") in {None, _digest(hank)}


def new_execution_dir(base: Path, data: Path | None, now: datetime) -> Path:
    """A fresh path ``<epoch ms>-<4 base36>-<6 hex of the data's path>`` under ``base``; not made yet."""
    digest = hashlib.sha256(str(data.resolve() if data else "").encode()).hexdigest()[:6]
    salt = "".join(random.SystemRandom().choices(string.digits + string.ascii_lowercase, k=4))
    return base / f"{int(now.timestamp() * 1000)}-{salt}-{digest}"


def prepare(layout: Layout, *, hank: Path, data: Path | None, now: datetime) -> Execution:
    """Make the directories, link the data, write the meta file; keeps what is there.

    Raises:
        UsageError: ``data`` does not exist, or the execution was made from other data.
        ExecutionUnusable: the directory cannot be written.
    """
    require_data(data)
    try:
        return _prepare(layout, hank, data, now)
    except OSError as error:
        raise ExecutionUnusable(layout.root, error) from error


def require_data(data: Path | None) -> None:
    """Raises ``UsageError`` when the data is not there."""
    if data is not None and not data.exists():
        raise UsageError(f"the data {data} does not exist")
    if data is not None and not (data.is_file() or data.is_dir()):
        raise UsageError(f"the data {data} is neither a file nor a folder")


def _prepare(layout: Layout, hank: Path, data: Path | None, now: datetime) -> Execution:
    for folder in (layout.agent_root, layout.journal.parent, layout.log.parent):
        folder.mkdir(parents=True, exist_ok=True)
    if data is not None:
        _link_data(layout.agent_root / DATA_FOLDER, data.resolve())
    meta = {
        "version": "1.1.0",
        "hankPath": str(hank.resolve()),
        "hankHash": _digest(hank),
        "dataPath": str(data.resolve()) if data else None,
        "createdAt": now.isoformat().replace("+00:00", "Z"),
        "hankwatchVersion": __version__,
    }
    if not layout.meta.exists():
        replace_file(layout.meta, orjson.dumps(meta, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return open_execution(layout.root)


def _digest(hank: Path) -> str:
    return hashlib.sha256(hank.read_bytes()).hexdigest()


def _link_data(link: Path, data: Path) -> None:
    if data.is_file():  # a single file is seen inside a folder of the well-known name
        link.mkdir(exist_ok=True)
        link = link / data.name
    if link.is_symlink() and link.readlink() == data:
        return
    if link.exists() or link.is_symlink():
        raise UsageError(
            f"{link} exists already and is not the data {data}",
            hint="use another --execution directory for other data",
        )
    link.symlink_to(data)


def open_execution(root: Path) -> Execution:
    """The execution at ``root``.

    Raises:
        RunNotFound: there is none.
    """
    layout = Layout(root)
    if not layout.managed.is_dir():
        raise RunNotFound(str(root), root.parent)
    return _with_meta(layout)


def _with_meta(layout: Layout) -> Execution:
    try:
        with reading(layout.meta) as file:
            meta = orjson.loads(file.read(_META_BYTES))
    except (OSError, orjson.JSONDecodeError):
        meta = {}
    return Execution(layout, meta if isinstance(meta, dict) else {})


def executions(base: Path) -> Iterator[Execution]:
    """All executions under ``base``, the one whose latest run began last first; none when the folder is missing.

    One that this user may not look into is among them.
    """
    if base.is_dir():
        found = [_with_meta(Layout(root)) for root in base.iterdir() if _is_execution(root)]
        yield from sorted(found, key=_began, reverse=True)


def _is_execution(root: Path) -> bool:
    try:
        return Layout(root).managed.is_dir()
    except OSError:  # closed to this user: only its name can tell
        return root.name.partition("-")[0].isdecimal()


def _began(execution: Execution) -> tuple[int, str]:
    """When its latest run began, in epoch milliseconds as ids begin with them; else when it was made."""
    stamps = [int(ms) for name in (execution.name, *run_ids(execution)) if (ms := name.partition("-")[0]).isdecimal()]
    if not stamps:
        with suppress(TypeError, ValueError):
            stamps.append(int(datetime.fromisoformat(str(execution.meta.get("createdAt"))).timestamp() * 1000))
    return max(stamps, default=0), execution.name


def run_ids(execution: Execution) -> list[str]:
    """Ids of its runs that started an agent; none where they may not be read."""
    try:
        return [run.name for run in (execution.layout.managed / "runs").iterdir()]
    except OSError:  # none yet, or none of this user's business
        return []


@dataclass(frozen=True, slots=True)
class Found:
    """What ``RUN`` on the command line means."""

    execution: Execution
    run: str | None
    """The run that was named; None for the execution's latest."""


def find_run(name: str, base: Path) -> Found:
    """A path to an execution, the beginning of an execution's or run's id (a whole id wins), or ``latest``.

    Raises:
        RunNotFound: nothing matches.
        UsageError: a prefix matches several.
    """
    path = Path(name)
    if name and (path / ".hankweave").is_dir():
        return Found(open_execution(path), None)
    known = list(executions(base))
    if name == "latest":
        found = [Found(execution, None) for execution in known[:1]]
    else:
        found = [one for execution in known for one in _named(execution, name)] if name else []
    if not found:
        raise RunNotFound(name, base)
    whole = [one for one in found if name in {one.run, one.execution.name}]
    if len(whole or found) > 1:
        several = ", ".join(one.run or one.execution.name for one in found[:5])
        raise UsageError(f"{name!r} means {len(found)} runs: {several}", hint="name more of it")
    return (whole or found)[0]


def _named(execution: Execution, prefix: str) -> list[Found]:
    if execution.name.startswith(prefix):
        return [Found(execution, None)]
    return [Found(execution, run) for run in sorted(run_ids(execution)) if run.startswith(prefix)]


def find_journal(name: str, base: Path) -> Path:
    """The journal of what ``name`` means: a file is itself, else as ``find_run``.

    Raises:
        RunNotFound: nothing matches.
        UsageError: a prefix matches several, there is no journal, or the path is none that can be read.
    """
    path = Path(name)
    if name and path.exists() and not (path / ".hankweave").is_dir():
        return _readable(path)
    journal = find_run(name, base).execution.layout.journal
    if not journal.exists():
        raise UsageError(f"{name} has no journal yet", hint="its run ended before it wrote anything")
    return _readable(journal)


def _readable(path: Path) -> Path:
    if path.is_dir():
        raise UsageError(
            f"{path} is a directory without .hankweave, so nothing ran there",
            hint="`hankwatch runs` lists what ran; a journal or recording is named by its file",
        )
    if not path.is_file():
        raise UsageError(f"{path} is not a regular file", hint="save what comes out of it to a file first")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{path} may not be read by this user", hint="change its mode or run as its owner")
    return path
