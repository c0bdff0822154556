"""``validate``: every fault and lint of a hank or of one sentinel config."""

import os
from pathlib import Path
from typing import Any

import orjson

from hankwatch.cli import output
from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.resources import resource
from hankwatch.config.source import Document
from hankwatch.core.errors import UsageError
from hankwatch.hank.load import LoadedHank, load_hank
from hankwatch.sentinels.config import parse_sentinel
from hankwatch.settings import load_settings

SCHEMAS = ("hank", "sentinel")


def validate(path: Path, *, config: Path | None, as_json: bool, print_schema: str | None) -> int:
    """Report; 0 without errors, 1 with any. Warnings alone are no failure."""
    if print_schema is not None:
        return _print_schema(print_schema)
    if not path.exists():
        raise UsageError(f"{path} does not exist", hint="name a hank.json, its folder, or a sentinel config")
    hank: LoadedHank | None = None
    if _is_sentinel(path):
        diagnostics = _sentinel_faults(path)
    else:
        hank = load_hank(path, output.shown_path(path / "hank.json" if path.is_dir() else path))
        diagnostics = [*hank.diagnostics, *_settings_faults(hank, config)]
    errors = sum(d.severity == "error" for d in diagnostics)
    if as_json:
        output.print_json({"diagnostics": [d.as_json() for d in diagnostics], "ok": errors == 0})
        return 1 if errors else 0
    console = output.stdout()
    output.print_diagnostics(diagnostics, console)
    what = f"{errors} error{'s' * (errors != 1)}, {len(diagnostics) - errors} warning{'s' * (len(diagnostics) - errors != 1)}"
    console.print(f"{output.shown_path(path)}: {what if diagnostics else 'no faults'}{_counts(hank)}")
    return 1 if errors else 0


def _counts(hank: LoadedHank | None) -> str:
    if hank is None or hank.config is None:
        return ""
    codons = len(list(hank.config.codons()))
    sentinels = sum(map(len, hank.sentinels.values()))
    return f" ({codons} codon{'s' * (codons != 1)}, {sentinels} sentinel{'s' * (sentinels != 1)})"


def _is_sentinel(path: Path) -> bool:
    """A file is a sentinel config when it has what only those have."""
    if path.is_dir():
        return False
    value: Any = Document.load(path).value
    return isinstance(value, dict) and "hank" not in value and bool({"trigger", "execution"} & value.keys())


def _sentinel_faults(path: Path) -> list[Diagnostic]:
    diagnostics = Diagnostics()
    document = Document.load(path, output.shown_path(path))
    parse_sentinel(document, diagnostics)
    return list(diagnostics)


def _settings_faults(hank: LoadedHank, config: Path | None) -> Diagnostics:
    overrides = hank.config.overrides if hank.config else None
    loaded = load_settings(
        environ=os.environ, cwd=Path.cwd(), hank_dir=hank.hank_dir, overrides=overrides, config=config
    )
    return loaded.diagnostics


def _print_schema(name: str) -> int:
    if name not in SCHEMAS:
        raise UsageError(f"no schema is named {name!r}", hint=f"one of {', '.join(SCHEMAS)}")
    schema = orjson.loads(resource("schemas", f"{name}.schema.json").read_bytes())
    output.stdout().print(orjson.dumps(schema, option=orjson.OPT_INDENT_2).decode(), markup=False)
    return 0
