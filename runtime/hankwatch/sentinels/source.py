"""What a codon's entry says of a sentinel, every fault of its files found (spec sentinels 1).

All that ``validate`` needs: nothing here runs a sentinel.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.refs import check_ref, read_ref, resolve_ref
from hankwatch.config.resources import resource
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault
from hankwatch.core.errors import PathRefused, SchemaFault
from hankwatch.sentinels.config import (
    Output,
    OutputPaths,
    SentinelConfig,
    SentinelEntry,
    SentinelSettings,
    parse_sentinel,
)
from hankwatch.sentinels.prompts import prompt_refs
from hankwatch.sentinels.report_files import ReportPlaces
from hankwatch.sentinels.schema import read_json_schema, schema_source

_STOCK = "stock:"


@dataclass(frozen=True, slots=True)
class SentinelSource:
    """One sentinel entry of a codon as its files say; made again for each load from the same files."""

    config: SentinelConfig | None
    """None when it has faults."""
    id: str
    """The config's id, or what comes nearest to one where there is none."""
    faults: tuple[Diagnostic, ...]
    """Every error of its config and the files it names; the same objects that went to the caller's diagnostics."""
    settings: SentinelSettings
    """The codon entry's, which win over the sentinel's own."""
    source: Literal["file", "inline", "stock", "retry"]
    """``retry``: failed triggers of an ended run are carried out again."""
    source_path: str | None
    """As the entry names it; None for an inline one."""
    base_dir: Path
    """What the refs in its config are relative to."""
    root: Path
    """What they may not leave."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a config is found: a document, and what its refs are relative to."""

    source: Literal["file", "inline", "stock"]
    document: Document
    pointer: str
    base_dir: Path
    root: Path
    files: Collection[str] | None = None
    """The only refs that may be read; None for any."""


def read_entry(
    entry: SentinelEntry, *, hank_dir: Path, document: Document, pointer: str, diagnostics: Diagnostics
) -> SentinelSource:
    """The sentinel that a codon's entry names, with every fault of its config and prompt files.

    ``entry`` was read from ``pointer`` of ``document`` (hank.json). Faults are added to ``diagnostics`` and kept
    in the result, so that a caller can tell a sentinel's faults from the hank's own.
    """
    settings = entry.settings or SentinelSettings()
    named = entry.sentinel_config if isinstance(entry.sentinel_config, str) else None
    place = _find(named, hank_dir, document, f"{pointer}/sentinelConfig")
    return _source(place, settings, (document, f"{pointer}/settings"), named, diagnostics)


def read_config_file(path: Path, diagnostics: Diagnostics) -> SentinelSource:
    """A sentinel config by itself, as ``validate`` and ``try`` are given one.

    Its refs may go as far as the folder of the nearest hank.json above it, or else not leave its own folder.
    """
    here = path.parent.resolve()
    root = next((folder for folder in (here, *here.parents) if (folder / "hank.json").is_file()), here)
    place = _Place("file", Document.load(path), "", here, root)
    return _source(place, SentinelSettings(), (place.document, ""), str(path), diagnostics)


def read_config_text(
    document: Document, diagnostics: Diagnostics, *, base_dir: Path, root: Path, files: Collection[str] = ()
) -> SentinelSource:
    """A sentinel config that somebody sent, who may name no files of this machine but ``files``.

    Args:
        document: What was sent.
        diagnostics: Gets every fault.
        base_dir: What its refs are relative to.
        root: What they may not leave.
        files: The refs that may be read, each spelled exactly so; no other is even looked for.
    """
    place = _Place("inline", document, "", base_dir, root, files)
    return _source(place, SentinelSettings(), (document, ""), None, diagnostics)


def stock_ids() -> list[str]:
    """The ids of the sentinels that come along, sorted."""
    return sorted(path.parent.name for path in resource("sentinels").glob("*/sentinel.json"))


def refs(config: SentinelConfig) -> Iterator[tuple[str, str]]:
    """Every file that a config names to be read, as (JSON pointer of the ref, ref)."""
    yield from prompt_refs(config)
    if config.structured_output is not None and config.structured_output.schema_file is not None:
        yield "/structuredOutput/schemaFile", config.structured_output.schema_file


def _source(
    place: _Place,
    settings: SentinelSettings,
    settings_at: tuple[Document, str],
    written: str | None,
    diagnostics: Diagnostics,
) -> SentinelSource:
    found = Diagnostics()
    config = parse_sentinel(place.document, found, place.pointer)
    if config is not None:
        if _may_read(config, place, found):
            _check_prompt_files(config, place, found)
            _check_schema(config, place, found)
        _check_report_paths(config, settings, place, settings_at, found)
    for diagnostic in found:
        diagnostics.add(diagnostic)
    return SentinelSource(
        config=config if found.ok else None,
        id=_identity(config, place, written),
        faults=tuple(found.errors),
        settings=settings,
        source=place.source,
        source_path=written,
        base_dir=place.base_dir,
        root=place.root,
    )


def _find(named: str | None, hank_dir: Path, document: Document, pointer: str) -> _Place:
    if named is None:
        return _Place("inline", document, pointer, hank_dir, hank_dir)
    if not named.startswith(_STOCK):
        shown = str(Path(document.file).parent / named)
        return _read(_Place("file", document, pointer, hank_dir, hank_dir), named, shown)
    root = resource("sentinels")
    known = stock_ids()
    stock_id = named.removeprefix(_STOCK)
    place = _Place("stock", document, pointer, root, root)
    if stock_id in known:
        return _read(place, f"{stock_id}/sentinel.json", named)
    hint = f"stock sentinels: {', '.join(known)}"
    return _unreadable(place, named, "is not the id of a stock sentinel", hint)


def _read(place: _Place, ref: str, shown: str) -> _Place:
    try:
        text = read_ref(ref, base=place.root, root=place.root)
        base_dir = resolve_ref(ref, base=place.root, root=place.root).parent
    except PathRefused as refused:
        return _unreadable(place, ref, refused.reason)
    return replace(place, document=Document.parse(text, shown), pointer="", base_dir=base_dir)


def _unreadable(place: _Place, named: str, reason: str, hint: str | None = None) -> _Place:
    """A document whose only fault is that it could not be read; shown where the entry names it."""
    line, column = place.document.locate(place.pointer) or (None, None)
    message = f"{named!r} {reason}"
    fault = Diagnostic(place.document.file, place.pointer, "file-unreadable", message, hint, "error", line, column)
    return replace(place, document=Document(None, named, readable=False, faults=(fault,)), pointer="")


def _may_read(config: SentinelConfig, place: _Place, found: Diagnostics) -> bool:
    """Whether it names only files that may be read; a fault for each other."""
    others = [] if place.files is None else [named for named in refs(config) if named[1] not in place.files]
    for pointer, ref in others:
        message, hint = f"{ref!r} is not a file that may be named here", "write the text into the config itself"
        add_fault(found, place.document, place.pointer + pointer, "path-refused", message, hint=hint)
    return not others


def _check_prompt_files(config: SentinelConfig, place: _Place, found: Diagnostics) -> None:
    for pointer, ref in prompt_refs(config):
        if check_ref(ref) is not None:
            continue  # a fault of the config already
        at = place.pointer + pointer
        try:
            read_ref(ref, base=place.base_dir, root=place.root)
        except PathRefused as refused:
            add_fault(found, place.document, at, "file-unreadable", f"{ref!r} {refused.reason}")


def _check_schema(config: SentinelConfig, place: _Place, found: Diagnostics) -> None:
    """What can be said of a schema text without the sandbox: its file is there, and JSON is JSON."""
    wanted = config.structured_output
    if wanted is None or (wanted.schema_file is not None and check_ref(wanted.schema_file) is not None):
        return
    key = "schemaStr" if wanted.schema_file is None else "schemaFile"
    at = f"{place.pointer}/structuredOutput/{key}"
    try:
        read_json_schema(schema_source(wanted, base_dir=place.base_dir, root=place.root) or "")
    except PathRefused as refused:
        add_fault(found, place.document, at, "file-unreadable", f"{wanted.schema_file!r} {refused.reason}")
    except SchemaFault as fault:
        add_fault(found, place.document, at, fault.code, f"the schema of its answers cannot be used: {fault}")


def _check_report_paths(
    config: SentinelConfig,
    settings: SentinelSettings,
    place: _Place,
    settings_at: tuple[Document, str],
    found: Diagnostics,
) -> None:
    # Any execution's places have this shape, so what is refused here is refused in every run.
    places = ReportPlaces(Path("/execution/.hankweave"), Path("/execution/agentRoot"))
    output, paths = config.output or Output(), settings.output_paths or OutputPaths()
    own, codons = (place.document, place.pointer), settings_at
    for (document, pointer), name in (
        ((own[0], f"{own[1]}/output/file"), output.file),
        ((own[0], f"{own[1]}/output/lastValueFile"), output.last_value_file),
        ((codons[0], f"{codons[1]}/outputPaths/logFile"), paths.log_file),
        ((codons[0], f"{codons[1]}/outputPaths/lastValueFile"), paths.last_value_file),
    ):
        if name is None:
            continue
        try:
            places.resolve(name, config.id)
        except PathRefused as refused:
            add_fault(found, document, pointer, "path-refused", f"{name!r} {refused.reason}")


def _identity(config: SentinelConfig | None, place: _Place, written: str | None) -> str:
    """The id, or what comes nearest to one where there is none."""
    if config is not None:
        return config.id
    value = place.document.at(place.pointer) if place.document.readable else None
    claimed = value.get("id") if isinstance(value, dict) else None
    return claimed if isinstance(claimed, str) and claimed else (written or "inline")
