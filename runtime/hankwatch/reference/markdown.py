"""The few shapes of Markdown that the pages are made of."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with an empty line behind it; nothing for no rows."""
    lines = [_row(row) for row in rows]
    return "\n".join([_row(head), _row(["---"] * len(head)), *lines, "", ""]) if lines else ""


def code(value: object) -> str:
    """``value`` in backticks, as JSON unless it is a string; one that has backticks gets two."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def anchor(heading: str) -> str:
    """What GitHub links a heading by."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def prose(docstring: str | None) -> str:
    """A docstring for readers of a page: its first paragraph, double backticks single, with a full stop."""
    text = " ".join((docstring or "").partition("\n\n")[0].split()).replace("``", "`")
    text = re.sub(r" \((?:spec|design rule|reference) [^()]*\)", "", text)
    # GitHub takes <name> for HTML, except in backticks.
    text = re.sub(r"(`[^`]*`)|<", lambda found: found[1] or "&lt;", text)
    return text if not text or text[-1] in ".:?!" else f"{text}."


def with_bounds(words: str, shape: dict[str, Any]) -> str:
    """``a number`` -> ``a number, 0 to 2``: what a JSON Schema says of the size of a value."""
    low, high = shape.get("minimum"), shape.get("maximum")
    said = [
        f"{low:,} to {high:,}" if low is not None and high is not None else "",
        f"at least {low:,}" if low is not None and high is None else "",
        f"above {shape['exclusiveMinimum']:,}" if "exclusiveMinimum" in shape else "",
        f"at most {high:,}" if high is not None and low is None else "",
        "not empty" if shape.get("minLength") == 1 or shape.get("minItems") == 1 else "",
        f"at most {shape['maxLength']:,} characters" if "maxLength" in shape else "",
        f"at most {shape['maxItems']:,} items" if "maxItems" in shape else "",
    ]
    return ", ".join([words, *filter(None, said)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
