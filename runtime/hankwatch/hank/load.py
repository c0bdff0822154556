"""A hank from its file, with everything it refers to read and every fault of all of it collected."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import validate
from hankwatch.hank.advice import advise
from hankwatch.hank.attached import SentinelReader, lint_source
from hankwatch.hank.budget_rules import in_pools
from hankwatch.hank.fault import report
from hankwatch.hank.files import codon_files, prompt_files
from hankwatch.hank.lint import Places, Surroundings
from hankwatch.hank.mend import mended
from hankwatch.hank.model import Hank
from hankwatch.hank.prices import unpriced_models
from hankwatch.hank.rules import NEIGHBOUR_RULES, RULES
from hankwatch.sentinels.source import SentinelSource, read_config_file

if TYPE_CHECKING:
    from hankwatch.llm.catalog import ModelCatalog

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


def load_hank(path: Path, shown_as: str | None = None, *, env: Mapping[str, str] | None = None) -> LoadedHank:
    """Read the hank at ``path`` (a folder: its ``hank.json``) and everything it names.

    Never raises for bad input. Where hank.json has faults, the rest of it and the files it names are still
    looked into, so that one reading shows the faults of all. With ``env``, the environment that a run would
    have, models are looked up too (known? key? price?); a run needs none, as its loader does that.
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
        for rule in (*RULES, *(NEIGHBOUR_RULES if config is not None else ())):
            report(rule(hank), document, diagnostics)
        if env is not None:
            report(unpriced_models(hank), document, diagnostics)
        files = hank.global_system_prompt_file
        report(prompt_files(files, "/globalSystemPromptFile", hank_dir), document, diagnostics)
        reader = SentinelReader(hank, hank_dir, document, diagnostics, _models(env))
        for pointer, codon, pools in in_pools(hank):
            report(codon_files(codon, pointer, hank_dir), document, diagnostics)
            sentinels[codon.id] = reader.read(codon, pointer, pools)
    diagnostics.put_in_order_of(document.file)
    return LoadedHank(file, hank_dir, document, config, diagnostics, sentinels)


def check_sentinel(path: Path, *, env: Mapping[str, str] | None = None) -> Diagnostics:
    """Every fault and lint of a sentinel config by itself and of the files it names; ``env`` as for ``load_hank``."""
    diagnostics = Diagnostics()
    source = read_config_file(path, diagnostics)
    here = Document.load(path), ""
    lint_source(source, Places(here, here), Surroundings(models=_models(env)), diagnostics)
    return diagnostics


def _models(env: Mapping[str, str] | None) -> "ModelCatalog | None":
    if env is None:
        return None
    from hankwatch.llm.catalog import ModelCatalog  # a run has its own, and reads no registry for this

    return ModelCatalog(env)
