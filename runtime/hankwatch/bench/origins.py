"""The sentinel configs that one can begin with when trying another on a run: those of its hank, and the stock ones."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.refs import read_ref, resolve_ref
from hankwatch.config.resources import resource
from hankwatch.config.source import Document
from hankwatch.config.validation import validate
from hankwatch.core.errors import PathRefused
from hankwatch.hank.model import Hank
from hankwatch.sentinels.config import SentinelConfig, SentinelEntry
from hankwatch.sentinels.source import refs, stock_ids

STOCK: Final = "stock:"
MAX_TEXT_CHARS: Final = 128 * 1024
"""Of a config; what is larger is none to begin with."""
MAX_KEY_CHARS: Final = 300
_MAX_ORIGINS: Final = 200


@dataclass(frozen=True, slots=True)
class Origin:
    """A config as it is written somewhere, and the files it may name from there."""

    key: str
    """What it is asked for by: its id, ``CODON/ID`` where an earlier one has that, or ``stock:ID``."""
    text: str
    """The file, or the object in hank.json."""
    base_dir: Path
    """What its refs are relative to."""
    root: Path
    """What they may not leave."""

    def files(self) -> frozenset[str]:
        """The refs that it has itself."""
        config = validate(SentinelConfig, Document.parse(self.text, self.key), Diagnostics())
        return frozenset() if config is None else frozenset(ref for _, ref in refs(config))


def hank_origins(hank_file: Path) -> list[Origin]:
    """Those of the hank's sentinels that can be read, in file order, each once; blocks.

    What the hank says now is read, also when it has changed since a run.
    """
    document = Document.load(hank_file)
    hank = validate(Hank, document, Diagnostics())
    found: dict[str, Origin] = {}
    for codon, entry in _entries(hank):
        origin = _of_entry(entry, hank_file.parent)
        if origin is None or any(_same(origin, other) for other in found.values()):
            continue
        key = origin.key if origin.key not in found else f"{codon}/{origin.key}"
        if len(key) > MAX_KEY_CHARS or len(origin.text) > MAX_TEXT_CHARS:
            continue
        found[key] = Origin(key, origin.text, origin.base_dir, origin.root)
        if len(found) == _MAX_ORIGINS:
            break
    return list(found.values())


def stock_origin(stock_id: str) -> Origin | None:
    """The stock sentinel of that id; None when there is none."""
    if stock_id not in stock_ids():
        return None
    root = resource("sentinels")
    ref = f"{stock_id}/sentinel.json"
    return Origin(STOCK + stock_id, read_ref(ref, base=root, root=root), root / stock_id, root)


def _entries(hank: Hank | None) -> Iterator[tuple[str, SentinelEntry]]:
    for _, codon in () if hank is None else hank.codons():
        for entry in codon.sentinels:
            yield codon.id, entry


def _of_entry(entry: SentinelEntry, hank_dir: Path) -> Origin | None:
    written = entry.sentinel_config
    if not isinstance(written, str):
        text = json.dumps(written, indent=2, ensure_ascii=False)
        return Origin(_id_in(written, "inline"), text, hank_dir, hank_dir)
    if written.startswith(STOCK):
        return None  # it stands among the stock ones
    try:
        text = read_ref(written, base=hank_dir, root=hank_dir)
        base_dir = resolve_ref(written, base=hank_dir, root=hank_dir).parent
    except PathRefused:
        return None
    return Origin(_id_in(Document.parse(text, written).value, Path(written).stem), text, base_dir, hank_dir)


def _id_in(value: Any, otherwise: str) -> str:
    named = value.get("id") if isinstance(value, dict) else None
    return named if isinstance(named, str) and named else otherwise


def _same(one: Origin, other: Origin) -> bool:
    return (one.text, one.base_dir) == (other.text, other.base_dir)
