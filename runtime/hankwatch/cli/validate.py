"""``validate``: every fault and lint of a hank or of one config file, and the settings that hold."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from hankwatch.cli import output
from hankwatch.cli.structure import at_a_glance
from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.resources import resource
from hankwatch.config.source import Document
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import ConfigError, UsageError
from hankwatch.hank.fault import report
from hankwatch.hank.load import FILE, LoadedHank, check_sentinel, load_hank
from hankwatch.hank.model import Hank
from hankwatch.hank.templates import sentinel_template_faults, template_faults
from hankwatch.hank.watchdog_file import is_watchdog, read_watchdog
from hankwatch.runner.program_faults import program_faults
from hankwatch.runner.settings import RunBudget
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.source import read_config_file
from hankwatch.settings import LEGACY_FILE, LoadedSettings, load_settings

_SUFFIX = ".schema.json"


@dataclass(frozen=True, slots=True)
class _Checked:
    """What was found out about a path."""

    faults: list[Diagnostic]
    settings: LoadedSettings | None = None
    hank: LoadedHank | None = None


def validate(path: Path, *, config: Path | None, as_json: bool, print_schema: str | None, verbose: int) -> int:
    """Report; 0 without errors, 1 with any. Warnings alone are no failure."""
    if print_schema is not None:
        return _print_schema(print_schema)
    if not path.exists():
        raise UsageError(f"{path} does not exist", hint="name a hank.json, its folder, or a config file")
    checked = _check(path, config)
    errors = sum(fault.severity == "error" for fault in checked.faults)
    if as_json:
        output.print_json({"diagnostics": [fault.as_json() for fault in checked.faults], "ok": errors == 0})
    else:
        _show(path, checked, errors, verbose)
    return 1 if errors else 0


def _check(path: Path, config: Path | None) -> _Checked:
    shown = output.shown_path(path / FILE if path.is_dir() else path)
    match _kind(path):
        case "sentinel":
            return _Checked(
                [*check_sentinel(Path(shown), env=os.environ), *anyio.run(_sentinel_templates, Path(shown))]
            )
        case "check":
            return _Checked(_check_faults(Path(shown)))
        case "watchdog":
            found = Diagnostics()
            read_watchdog(Path(shown), found)
            return _Checked(list(found))
        case "watch":
            return _Checked(_watch_faults(Path(shown)))
        case "settings":
            settings = load_settings(environ=os.environ, cwd=Path(), config=Path(shown))
            return _Checked(list(settings.diagnostics), settings)
        case _:
            hank = load_hank(path, shown, env=os.environ)
            templates = anyio.run(_hank_templates, hank) if any(hank.sentinels.values()) else []
            overrides = hank.config.overrides if hank.config else None
            settings = load_settings(
                environ=os.environ, cwd=Path(), hank_dir=Path(shown).parent, overrides=overrides, config=config
            )
            faults = [*hank.diagnostics, *templates, *_program_faults(hank, settings), *settings.diagnostics]
            return _Checked(faults, settings, hank)


def _program_faults(hank: LoadedHank, settings: LoadedSettings) -> Diagnostics:
    found, at = Diagnostics(), hank.hank_dir.resolve()
    if hank.config is not None:
        run, agents = settings.settings.run, settings.settings.agents
        report(program_faults(hank.config, hank_dir=at, model=run.model, agents=agents), hank.document, found)
    return found


def _kind(path: Path) -> str:
    """Which config a file is: by its name, else by the keys that only one kind has."""
    if path.is_dir():
        return "hank"
    if path.suffix == ".toml" or path.name == LEGACY_FILE:
        return "settings"
    if path.name.endswith("check.json"):
        from hankwatch.bench.check.load import is_check  # loads what plays recordings

        if is_check(path):
            return "check"
    if is_watchdog(path):
        return "watchdog"
    value: Any = Document.load(path).value
    keys = set(value) if isinstance(value, dict) else set()
    if "watches" in keys or {"condition", "verifier"} <= keys:
        return "watch"
    of_sentinels, of_hanks = (
        len(keys & {field.alias or name for name, field in model.model_fields.items()})
        for model in (SentinelConfig, Hank)
    )
    return "sentinel" if "hank" not in keys and of_sentinels > of_hanks else "hank"


def _watch_faults(path: Path) -> list[Diagnostic]:
    from hankwatch.watches.files import watch_faults

    return watch_faults(Document.load(path))


def _check_faults(path: Path) -> list[Diagnostic]:
    from hankwatch.bench.check.load import load_check

    try:
        load_check(path)
    except ConfigError as error:
        return list(error.diagnostics)
    return []


async def _hank_templates(hank: LoadedHank) -> list[Diagnostic]:
    async with Sandbox(clock=SystemClock()) as sandbox:
        return await template_faults(hank, sandbox)


async def _sentinel_templates(path: Path) -> list[Diagnostic]:
    async with Sandbox(clock=SystemClock()) as sandbox:
        return await sentinel_template_faults(read_config_file(path, Diagnostics()), sandbox)


def _show(path: Path, checked: _Checked, errors: int, verbose: int) -> None:
    if checked.faults:
        output.print_diagnostics(checked.faults, output.stdout())
    if checked.hank is not None and verbose >= 0:
        if checked.settings is not None:
            for line in at_a_glance(checked.hank, checked.settings.settings, os.environ):
                output.say(line)
        _show_budget(checked)
    if checked.settings is not None and verbose >= 0:
        rows = [row for row in checked.settings.rows() if verbose > 0 or row[2] != "default"]
        if rows:
            _show_settings(rows)
    warnings = len(checked.faults) - errors
    found = f"{_some(errors, 'error')}, {_some(warnings, 'warning')}" if checked.faults else "no faults"
    output.say(f"{output.shown_path(path)}: {found}{_counts(checked)}")


def _show_budget(checked: _Checked) -> None:
    if checked.hank is None or checked.hank.config is None or checked.settings is None:
        return
    hank, ceiling = checked.hank.config, checked.settings.settings.run.budget
    if hank.has_budgets or ceiling != RunBudget():
        from hankwatch.cli.budget_table import COLUMNS, budget_rows

        _show_table(COLUMNS, list(budget_rows(hank, ceiling)))


def _show_settings(rows: list[tuple[str, str, str]]) -> None:
    _show_table(("setting", "value", "from"), rows)


def _show_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from hankwatch.cli.terminal import table

    shown = table(*columns)
    for row in rows:
        shown.add_row(*row)
    output.stdout().print(shown)


def _counts(checked: _Checked) -> str:
    if checked.hank is None or checked.hank.config is None:
        return ""
    codons, sentinels = len(list(checked.hank.config.codons())), sum(map(len, checked.hank.sentinels.values()))
    return f" ({_some(codons, 'codon')}, {_some(sentinels, 'sentinel')})"


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _print_schema(name: str) -> int:
    files = sorted(resource("schemas").glob(f"*{_SUFFIX}"))
    known = {file.name.removesuffix(_SUFFIX): file for file in files}
    if name not in known:
        raise UsageError(f"no schema is named {name!r}", hint=f"one of {', '.join(known)}")
    sys.stdout.write(known[name].read_text(encoding="utf-8"))
    return 0
