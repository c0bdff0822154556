"""Small JSON files that are whole after any crash: the old content or the new, never a mixture."""

import json
import os
from pathlib import Path
from typing import Any


def write_json(path: Path, value: Any) -> None:
    """Replace the file at once; it survives a crash of the machine when this returns. Blocks, for a thread.

    Raises:
        OSError: it could not be written; the old content stands.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.tmp")
    with fresh.open("wb") as file:
        # The standard library's, because it keeps file names that are no valid text.
        file.write(json.dumps(value, indent=2).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    sync_folder(path.parent)


def read_json(path: Path) -> Any:
    """The value, or None when there is no file.

    Raises:
        ValueError: it is no JSON.
        OSError: it cannot be read.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None


def sync_folder(folder: Path) -> None:
    """Make what happened to the names in a folder survive a crash of the machine."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
