"""A loop watchdog in a file of its own, as ``try`` and ``validate`` take one; a hank holds its own."""

from pathlib import Path

from pydantic import Field

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import validate
from hankwatch.watchdog import WatchdogPolicy


class WatchdogFile(WatchdogPolicy):
    """When a loop watchdog nudges an agent and when it interrupts it; every key has a default."""

    schema_url: str | None = Field(default=None, alias="$schema")
    """JSON Schema for editors."""


def is_watchdog(path: Path) -> bool:
    """Whether a file is a watchdog's: by its name, or else by any key of it."""
    value = Document.load(path).value
    return isinstance(value, dict) and bool(
        path.name.endswith("watchdog.json") or value.keys() & WatchdogPolicy.model_fields.keys()
    )


def read_watchdog(path: Path, diagnostics: Diagnostics) -> WatchdogFile | None:
    """The watchdog of a file; None when it has faults, which are added to ``diagnostics``."""
    return validate(WatchdogFile, Document.load(path), diagnostics)
