"""From an entry of a codon to a sentinel that can run, everything that can fail tried on the way (spec sentinels 1)."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.refs import check_ref, read_ref, resolve_ref
from hankwatch.config.resources import resource
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault
from hankwatch.core.contain import contain
from hankwatch.core.errors import PathRefused, SchemaFault, TemplateFault
from hankwatch.sentinels.config import (
    Output,
    OutputPaths,
    SentinelConfig,
    SentinelEntry,
    SentinelSettings,
    parse_sentinel,
)
from hankwatch.sentinels.history import Conversation, history_path
from hankwatch.sentinels.prompts import CodonScope, Prompts, check_prompts, prompt_refs, read_prompts
from hankwatch.sentinels.report_book import ReportBook
from hankwatch.sentinels.report_files import ReportPlaces
from hankwatch.sentinels.reports import ReportWriter
from hankwatch.sentinels.schema import AnswerSchema, answer_schema, read_json_schema, schema_source

if TYPE_CHECKING:
    # Only a run needs these, and they cost `validate` a sixth of its time.
    from hankwatch.llm.client import ModelClient, ModelInfo
    from hankwatch.sandbox.sandbox import Sandbox

_LOG = logging.getLogger(__name__)
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
class LoadFailure:
    """A sentinel that could not be loaded and is skipped."""

    sentinel_id: str
    reason: str
    required: bool
    """``failCodonIfNotLoaded``: the codon fails."""


@dataclass(frozen=True, slots=True)
class LoadedSentinel:
    """All that a running sentinel stands on."""

    config: SentinelConfig
    source: SentinelSource
    prompts: Prompts
    answers: AnswerSchema | None
    """What its answers have to be; None for text."""
    model: "ModelInfo"
    report: ReportWriter
    conversation: Conversation | None
    scope: CodonScope

    @property
    def identity(self) -> dict[str, Any]:
        """What every event about it begins with."""
        return {
            "sentinel_id": self.config.id,
            "codon_id": self.scope.codon_id,
            "base_codon_id": self.scope.base_codon_id,
        }


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a config is found: a document, and what its refs are relative to."""

    source: Literal["file", "inline", "stock"]
    document: Document
    pointer: str
    base_dir: Path
    root: Path


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


@dataclass(frozen=True, slots=True)
class Desk:
    """What every load of a run works with."""

    model: "ModelClient"
    sandbox: "Sandbox"
    book: ReportBook
    managed_dir: Path
    persistence: bool
    """Whether conversations are kept on disk."""


async def load(source: SentinelSource, scope: CodonScope, desk: Desk, at_ms: int) -> LoadedSentinel | LoadFailure:
    """Try everything a run of this sentinel needs; its report file is made. Nothing but cancellation gets out."""
    reasons: list[str] = []
    with contain(lambda error: reasons.append(_reason(error))):
        if source.config is None:
            raise _NotLoadable("; ".join(fault.text() for fault in source.faults))
        return await _load(source, source.config, scope, desk, at_ms)
    return LoadFailure(source.id, reasons[0], source.settings.fail_codon_if_not_loaded)


async def _load(
    source: SentinelSource, config: SentinelConfig, scope: CodonScope, desk: Desk, at_ms: int
) -> LoadedSentinel:
    from hankwatch.llm.client import Unavailable

    prompts = read_prompts(config, base_dir=source.base_dir, root=source.root)
    await check_prompts(prompts, desk.sandbox)
    answers = await answer_schema(config, base_dir=source.base_dir, root=source.root, sandbox=desk.sandbox)
    model = desk.model.check(config.model)
    if isinstance(model, Unavailable):
        _LOG.info("sentinel %s: model %s: %s", source.id, model.model, model.reason)
        raise _NotLoadable(f"model {model.model}: {model.reason} ({model.hint})")
    conversation = _conversation(config, scope, desk)
    report = desk.book.open(config, source.settings, scope, at_ms, same_file=source.source == "retry")
    return LoadedSentinel(config, source, prompts, answers, model, report, conversation, scope)


def _conversation(config: SentinelConfig, scope: CodonScope, desk: Desk) -> Conversation | None:
    """Its conversation, read from disk where it is kept there.

    Damage is fatal, as for a running sentinel, unless the config says that it is not: the sentinel is skipped.
    The damaged file has been set aside by then, so that the next load begins with what was sound.
    """
    if config.conversational is None:
        return None
    path = history_path(desk.managed_dir, config.id, scope.codon_id) if desk.persistence else None
    conversation = Conversation(config.conversational, path)
    if conversation.damage is not None and not config.tolerates_damage:
        raise _NotLoadable(conversation.damage.message)
    return conversation


class _NotLoadable(Exception):
    """Carries the reason to the one place that makes a failure of it."""


def _reason(error: Exception) -> str:
    match error:
        case PathRefused():
            return str(error)
        case TemplateFault():
            return f"a prompt does not parse: {error}"
        case SchemaFault():
            return f"the schema of its answers cannot be used: {error}"
        case _NotLoadable():
            return str(error)
        case _:
            return f"{type(error).__name__}: {error}"


def _find(named: str | None, hank_dir: Path, document: Document, pointer: str) -> _Place:
    if named is None:
        return _Place("inline", document, pointer, hank_dir, hank_dir)
    if not named.startswith(_STOCK):
        shown = str(Path(document.file).parent / named)
        return _read(_Place("file", document, pointer, hank_dir, hank_dir), named, shown)
    root = resource("sentinels")
    stock_ids = sorted(path.parent.name for path in root.glob("*/sentinel.json"))
    stock_id = named.removeprefix(_STOCK)
    place = _Place("stock", document, pointer, root, root)
    if stock_id in stock_ids:
        return _read(place, f"{stock_id}/sentinel.json", named)
    hint = f"stock sentinels: {', '.join(stock_ids)}"
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
