"""A hank from its file, with everything it refers to read and every fault of all of it collected."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault, validate
from hankwatch.core.errors import PathRefused
from hankwatch.hank.advice import advise
from hankwatch.hank.fault import report
from hankwatch.hank.files import codon_files, prompt_files
from hankwatch.hank.lint import lint_sentinel
from hankwatch.hank.mend import mended
from hankwatch.hank.model import Codon, Hank
from hankwatch.hank.rules import NEIGHBOUR_RULES, RULES
from hankwatch.hank.support import not_yet
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.loader import SentinelSource, read_config_file, read_entry
from hankwatch.sentinels.prompts import read_prompts

FILE = "hank.json"


@dataclass(frozen=True, slots=True)
class LoadedHank:
    """What could be read of a hank, and all that is wrong with it."""

    path: Path
    """The hank's file."""
    hank_dir: Path
    """Absolute; what refs are relative to and may not leave."""
    document: Document
    config: Hank | None
    """None when hank.json itself has faults."""
    diagnostics: Diagnostics
    """Faults and lints of hank.json and of every file it names."""
    sentinels: Mapping[str, tuple[SentinelSource, ...]] = field(default_factory=dict)
    """Authored codon id -> its sentinels, in file order."""

    @property
    def blocking(self) -> list[Diagnostic]:
        """The errors that keep the hank from running (spec sentinels 1).

        A sentinel that is not required is skipped when it cannot load, so faults of its files are left out.
        """
        sources = [source for of_codon in self.sentinels.values() for source in of_codon]
        required = [fault for s in sources if s.settings.fail_codon_if_not_loaded for fault in s.faults]
        skipped = [fault for s in sources if not s.settings.fail_codon_if_not_loaded for fault in s.faults]
        return [fault for fault in self.diagnostics.errors if fault in required or fault not in skipped]


def load_hank(path: Path, shown_as: str | None = None) -> LoadedHank:
    """Read the hank at ``path`` (a folder: its ``hank.json``) and everything it names.

    Never raises for bad input. Where hank.json has faults, the rest of it and the files it names are still
    looked into, so that one reading shows the faults of all.
    """
    file = path / FILE if path.is_dir() else path
    hank_dir = file.parent.absolute()
    diagnostics = Diagnostics()
    document = Document.load(file, shown_as or str(file))
    config = validate(Hank, document, diagnostics, advise=advise)
    hank = config or mended(document)
    sentinels: dict[str, tuple[SentinelSource, ...]] = {}
    if hank is not None:
        # What was put in for a faulty codon says nothing about its neighbours.
        for rule in (*RULES, *(NEIGHBOUR_RULES if config is not None else ()), not_yet):
            report(rule(hank), document, diagnostics)
        files = hank.global_system_prompt_file
        report(prompt_files(files, "/globalSystemPromptFile", hank_dir), document, diagnostics)
        for pointer, codon in hank.codons():
            report(codon_files(codon, pointer, hank_dir), document, diagnostics)
            sentinels[codon.id] = _sentinels(codon, pointer, hank_dir, document, diagnostics)
    diagnostics.items.sort(key=lambda d: (d.file != document.file, d.file, d.line or 0, d.column or 0))
    return LoadedHank(file, hank_dir, document, config, diagnostics, sentinels)


def check_sentinel(path: Path) -> Diagnostics:
    """Every fault and lint of a sentinel config by itself and of the files it names."""
    diagnostics = Diagnostics()
    source = read_config_file(path, diagnostics)
    if source.config is not None:
        _lint(source, source.config, Document.load(path), "", diagnostics)
    return diagnostics


def _sentinels(
    codon: Codon, pointer: str, hank_dir: Path, document: Document, diagnostics: Diagnostics
) -> tuple[SentinelSource, ...]:
    sources: list[SentinelSource] = []
    for index, entry in enumerate(codon.sentinels):
        where = f"{pointer}/sentinels/{index}"
        source = read_entry(entry, hank_dir=hank_dir, document=document, pointer=where, diagnostics=diagnostics)
        if any(source.id == other.id for other in sources):
            message = f"codon {codon.id!r} already has a sentinel with the id {source.id!r}"
            add_fault(diagnostics, document, where, "duplicate-sentinel", message, hint="give one of them another id")
        if source.config is not None and source.source != "stock":
            own = _own_document(source, hank_dir, document)
            at = "" if own else f"{where}/sentinelConfig"
            _lint(source, source.config, own or document, at, diagnostics)
        sources.append(source)
    return tuple(sources)


def _own_document(source: SentinelSource, hank_dir: Path, document: Document) -> Document | None:
    """The file of a sentinel that has one of its own, read again for its lines."""
    if source.source != "file" or source.source_path is None:
        return None
    return Document.load(hank_dir / source.source_path, str(Path(document.file).parent / source.source_path))


def _lint(
    source: SentinelSource, config: SentinelConfig, document: Document, pointer: str, diagnostics: Diagnostics
) -> None:
    try:
        prompts = read_prompts(config, base_dir=source.base_dir, root=source.root)
    except PathRefused:  # the files changed since the loader read them a moment ago
        return
    lint_sentinel(config, prompts, document, diagnostics, pointer)
