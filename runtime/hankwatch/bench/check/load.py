"""Checks from their files: found below a folder, read with every fault at once, and who watches in them."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hankwatch.bench.check.model import DEFAULTS, Assertion, Check
from hankwatch.bench.check.rules import check_rules
from hankwatch.bench.replay import EVERYTHING
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.refs import check_ref
from hankwatch.config.resources import resource
from hankwatch.config.scanner import escape
from hankwatch.config.shapes import close_to
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault, validate
from hankwatch.core.errors import ConfigError, UsageError
from hankwatch.hank.load import load_hank
from hankwatch.sentinels.config import SentinelEntry
from hankwatch.sentinels.source import SentinelSource, read_config_file, read_entry

FOLDER_FORM = "check.json"
"""The name of a check whose files have conventional names beside it."""
_SUFFIX = ".check.json"
_STOCK = "stock:"
_KEYS = frozenset({"recording", "sentinel", "hank", "calls", "expect", "agent", "codon"})


@dataclass(frozen=True, slots=True)
class LoadedCheck:
    """A check without faults, its paths resolved."""

    id: str
    path: Path
    document: Document
    config: Check
    recording: Path | None
    """None: it can only be held against a run."""
    calls: Path | None
    sentinels: Mapping[str, tuple[SentinelSource, ...]] = field(default_factory=dict)
    """As ``replay`` takes them: authored codon id, or ``EVERYTHING``, -> its sentinels; empty when it names none."""

    def path_of(self, ref: str) -> Path:
        """The file that a ref in it means."""
        return self.path.parent / ref

    def line(self, pointer: str) -> int | None:
        """1-based line of what is expected at ``pointer``."""
        place = self.document.locate(pointer)
        return place[0] if place else None


def find_checks(paths: list[Path]) -> list[Path]:
    """The files of all checks that are named, or lie below the folders that are named; each once, in order.

    Raises:
        UsageError: a path is not there, or there is no check at all.
    """
    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found |= dict.fromkeys(_below(path))
        elif path.is_file():
            found[path] = None
        else:
            raise UsageError(f"{path} does not exist", hint="name a check's file, or a folder that holds some")
    if not found:
        shown = ", ".join(map(str, paths))
        raise UsageError(f"no check in {shown}", hint="a check is a file *.check.json, or check.json in its own folder")
    return list(found)


def is_check(path: Path) -> bool:
    """Whether a file is a check by its name; a ``check.json`` of somebody else's is told by what it holds."""
    if path.name == FOLDER_FORM:
        document = Document.load(path)
        if not document.readable:  # one with a slip is still one
            return '"expect"' in (document.text or "")
        value: Any = document.value
        return isinstance(value, dict) and bool(_KEYS & value.keys())
    return path.name.endswith(_SUFFIX)


def check_id(path: Path) -> str:
    """What people call it: its folder, or its file without the suffix."""
    shown = os.path.relpath(path) if path.absolute().is_relative_to(Path.cwd()) else str(path)
    for suffix in (f"/{FOLDER_FORM}", _SUFFIX):
        if shown.endswith(suffix):
            return shown.removesuffix(suffix)
    return shown


def load_check(path: Path) -> LoadedCheck:
    """Read a check and the sentinels it names.

    Raises:
        ConfigError: with every fault of it and of what it names.
    """
    document, faults = Document.load(path), Diagnostics()
    config = validate(Check, document, faults)
    if config is None or not faults.ok:
        raise ConfigError(faults.errors)
    if path.name == FOLDER_FORM:
        config = _with_defaults(config, path.parent)
    check_rules(config, document, path.parent, faults)
    reader = _Reader(path, document, faults)
    recording, calls = reader.file("recording", config.recording), reader.file("calls", config.calls)
    sentinels = reader.sentinels(config)
    if faults.ok and sentinels:
        _check_ids(config, sentinels, document, faults)
    if not faults.ok:
        raise ConfigError(faults.errors)
    return LoadedCheck(check_id(path), path, document, config, recording, calls, sentinels)


def _below(folder: Path) -> Iterator[Path]:
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(files):
            path = Path(here, name)
            if (name == FOLDER_FORM or name.endswith(_SUFFIX)) and is_check(path):
                yield path


def _with_defaults(config: Check, folder: Path) -> Check:
    """The check with the files beside it that it does not name."""
    given = {key: getattr(config, key) for key in DEFAULTS}
    found = {
        key: next((name for name in names if (folder / name).is_file()), None)
        for key, names in DEFAULTS.items()
        if given[key] is None
    }
    if given["sentinel"] is not None or found.get("hank") is None:
        found.pop("hank", None)
    if given["hank"] is not None or "hank" in found:
        found.pop("sentinel", None)
    return config.model_copy(update={key: name for key, name in found.items() if name is not None})


@dataclass(slots=True)
class _Reader:
    """The files that one check names."""

    path: Path
    document: Document
    faults: Diagnostics

    def file(self, key: str, ref: str | None) -> Path | None:
        if ref is None:
            return None
        reason = check_ref(ref)
        path = self.path.parent / ref
        if reason is None and not path.is_file():
            reason = "is not a regular file" if path.exists() else "does not exist"
        if reason is not None:
            add_fault(self.faults, self.document, f"/{key}", "file-unreadable", f"{ref!r} {reason}")
            return None
        return path

    def sentinels(self, config: Check) -> dict[str, tuple[SentinelSource, ...]]:
        if config.hank is not None:
            return self._of_hank(config.hank)
        if config.sentinel is None:
            return {}
        source = self._stock(config.sentinel) if config.sentinel.startswith(_STOCK) else self._named(config.sentinel)
        return {config.codon or EVERYTHING: (source,)} if source is not None else {}

    def _named(self, ref: str) -> SentinelSource | None:
        path = self.file("sentinel", ref)
        return replace(read_config_file(path, self.faults), source_path=ref) if path is not None else None

    def _stock(self, name: str) -> SentinelSource | None:
        known = sorted(path.parent.name for path in resource("sentinels").glob("*/sentinel.json"))
        stock_id = name.removeprefix(_STOCK)
        if stock_id not in known:
            meant = close_to(stock_id, known)
            hint = f"did you mean '{_STOCK}{meant}'?" if meant else f"stock sentinels: {', '.join(known)}"
            add_fault(self.faults, self.document, "/sentinel", "unknown-sentinel", f"there is no {name!r}", hint=hint)
            return None
        entry = SentinelEntry(sentinel_config=name)
        here = self.path.parent.absolute()
        return read_entry(entry, hank_dir=here, document=self.document, pointer="", diagnostics=self.faults)

    def _of_hank(self, ref: str) -> dict[str, tuple[SentinelSource, ...]]:
        path = self.file("hank", ref)
        if path is None:
            return {}
        loaded = load_hank(path)
        # What its codons would need to run is not needed here.
        sources = [source for of_codon in loaded.sentinels.values() for source in of_codon]
        wrong = [fault for source in sources for fault in source.faults]
        for fault in loaded.diagnostics.errors if loaded.config is None else wrong:
            self.faults.add(fault)
        return {codon: of_codon for codon, of_codon in loaded.sentinels.items() if of_codon}


def _check_ids(
    config: Check, sentinels: Mapping[str, tuple[SentinelSource, ...]], document: Document, faults: Diagnostics
) -> None:
    known = sorted({source.id for of_codon in sentinels.values() for source in of_codon})
    expect = config.expect
    for key, named in (("fires", expect.fires), ("errors", expect.errors), ("reports", expect.reports)):
        for name in named:
            if name not in known:
                meant = close_to(name, known)
                hint = f"did you mean {meant!r}?" if meant else f"its sentinels: {', '.join(known)}"
                pointer = f"/expect/{key}/{escape(name)}"
                add_fault(
                    faults, document, pointer, "unknown-sentinel", f"no sentinel {name!r} watches here", hint=hint
                )


def assertions(config: Check) -> Iterator[tuple[str, str, Assertion]]:
    """Every assertion on a report: its pointer, its sentinel's id, itself."""
    for name, of_sentinel in config.expect.reports.items():
        for number, assertion in enumerate(of_sentinel):
            yield f"/expect/reports/{escape(name)}/{number}", name, assertion
