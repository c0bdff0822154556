"""Execution directories: making one, finding one, and what it was made from."""

import hashlib
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from hankwatch import __version__
from hankwatch.core.errors import RunNotFound, UsageError
from hankwatch.runner.layout import Layout

DATA_FOLDER = "read_only_data_source"
"""Name under which the agent sees the data (contract 0.10)."""


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


def new_execution_dir(base: Path, data: Path | None, now: datetime) -> Path:
    """A fresh path ``<epoch ms>-<4 base36>-<6 hex of the data's path>`` under ``base``; not made yet."""
    digest = hashlib.sha256(str(data.resolve() if data else "").encode()).hexdigest()[:6]
    salt = "".join(random.SystemRandom().choices(string.digits + string.ascii_lowercase, k=4))
    return base / f"{int(now.timestamp() * 1000)}-{salt}-{digest}"


def prepare(layout: Layout, *, hank: Path, data: Path | None, now: datetime) -> Execution:
    """Make the directories, link the data, write the meta file; keeps what is there.

    Raises:
        UsageError: ``data`` does not exist, or the execution was made from other data.
    """
    if data is not None and not data.exists():
        raise UsageError(f"the data {data} does not exist")
    for folder in (layout.agent_root, layout.journal.parent, layout.managed / "logs"):
        folder.mkdir(parents=True, exist_ok=True)
    if data is not None:
        _link_data(layout.agent_root / DATA_FOLDER, data.resolve())
    meta = {
        "version": "1.1.0",
        "hankPath": str(hank.resolve()),
        "hankHash": hashlib.sha256(hank.read_bytes()).hexdigest(),
        "dataPath": str(data.resolve()) if data else None,
        "createdAt": now.isoformat().replace("+00:00", "Z"),
        "hankwatchVersion": __version__,
    }
    if not layout.meta.exists():
        layout.meta.write_bytes(orjson.dumps(meta, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return open_execution(layout.root)


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
    try:
        meta = orjson.loads(layout.meta.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        meta = {}
    return Execution(layout, meta if isinstance(meta, dict) else {})


def executions(base: Path) -> Iterator[Execution]:
    """All executions under ``base``, newest first; nothing when the folder is missing."""
    if base.is_dir():
        for root in sorted(base.iterdir(), key=lambda path: path.name, reverse=True):
            if (root / ".hankweave").is_dir():
                yield open_execution(root)


def _is_named(execution: Execution, prefix: str) -> bool:
    runs = execution.layout.managed / "runs"
    return execution.name.startswith(prefix) or any(run.name.startswith(prefix) for run in _children(runs))


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def find_execution(name: str, base: Path) -> Execution:
    """What ``RUN`` means on the command line: a path, the beginning of an execution's or run's id, or ``latest``.

    Raises:
        RunNotFound: nothing matches.
        UsageError: a prefix matches several.
    """
    path = Path(name)
    if (path / ".hankweave").is_dir():
        return open_execution(path)
    found = list(executions(base))
    found = found[:1] if name == "latest" else [e for e in found if _is_named(e, name)]
    if not found:
        raise RunNotFound(name, base)
    if len(found) > 1:
        raise UsageError(
            f"{name!r} means {len(found)} runs: " + ", ".join(e.name for e in found[:5]), hint="name more of it"
        )
    return found[0]
