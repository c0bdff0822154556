"""Small JSON files that are whole after any crash: the old content or the new, never a mixture."""

import json
from pathlib import Path
from typing import Any

from hankwatch.core.files import reading, replace_file


def write_json(path: Path, value: Any) -> None:
    """Replace the file at once; it survives a crash of the machine when this returns. Blocks, for a thread.

    Raises:
        OSError: it could not be written; the old content stands.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The standard library's, because it keeps file names that are no valid text.
    replace_file(path, json.dumps(value, indent=2).encode() + b"\n", durable=True)


def read_json(path: Path) -> Any:
    """The value, or None when there is no file.

    Raises:
        ValueError: it is no JSON.
        OSError: it cannot be read.
    """
    try:
        with reading(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return None
