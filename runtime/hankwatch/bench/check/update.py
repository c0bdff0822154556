"""``--update``: golden files and exact lists as they would be right; everything else of a check is people's own."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hankwatch.bench.check.judge import Miss, NewFile, NewList
from hankwatch.config.source import Document
from hankwatch.core.errors import not_written
from hankwatch.core.files import replace_file

_INDENT = re.compile(r"[ \t]*")


def update(check: Path, misses: Iterable[Miss]) -> list[Path]:
    """Write what the misses of one check would have it be; returns the files that changed.

    Of the check's own file only the lists change: every other character stays as it is.

    Raises:
        UsageError: a file cannot be written.
        InfrastructureError: there is no room for it.
    """
    lists: list[NewList] = []
    files: dict[Path, bytes] = {}
    for miss in misses:
        match miss.rewrite:
            case NewList():
                lists.append(miss.rewrite)
            case NewFile(path, data):
                files[path] = data
            case None:
                pass
    if lists:
        files[check] = _with_lists(check, lists)
    for path, data in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data)
        except OSError as error:
            raise not_written(path, error) from error
    return list(files)


def _with_lists(check: Path, lists: Iterable[NewList]) -> bytes:
    text = check.read_bytes().decode("utf-8")
    newline = "\r\n" if "\r\n" in text else "\n"
    document = Document.parse(text, str(check))
    bom = "\ufeff" if text.startswith("\ufeff") else ""
    body = text.removeprefix("\ufeff")
    assert document.places is not None
    for start, items in sorted(((document.places[one.pointer].value, one.items) for one in lists), reverse=True):
        _, end = json.JSONDecoder().raw_decode(body, start)
        before = body[:start]
        line = before[before.rfind("\n") + 1 :]
        indent = _INDENT.match(line)
        body = before + listed(items, indent[0] if indent else "", newline) + body[end:]
    return (bom + body).encode()


def listed(items: Iterable[Any], indent: str, newline: str = "\n") -> str:
    """One item a line, two columns further in than the line it begins on."""
    lines = [f"{indent}  {_item(item)}" for item in items]
    return f"[{newline}{f',{newline}'.join(lines)}{newline}{indent}]" if lines else "[]"


def _item(item: Any) -> str:
    text = json.dumps(item, ensure_ascii=False)
    return f"{{ {text[1:-1]} }}" if isinstance(item, dict) else text
