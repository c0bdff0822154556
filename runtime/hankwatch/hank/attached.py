"""The sentinels of a hank's codons: read, and held against the codon that each observes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault
from hankwatch.core.errors import PathRefused
from hankwatch.hank.assembly import system_prompt, user_prompt
from hankwatch.hank.budget import ContainerBudget
from hankwatch.hank.lint import Places, Subject, Surroundings, lint_sentinel
from hankwatch.hank.mentions import WORKSPACE
from hankwatch.hank.model import Codon, Hank
from hankwatch.sentinels.prompts import read_prompts
from hankwatch.sentinels.source import SentinelSource, read_entry

if TYPE_CHECKING:
    from hankwatch.llm.catalog import ModelCatalog


@dataclass(frozen=True, slots=True)
class SentinelReader:
    """Reads the sentinels of one hank; faults and lints go to its diagnostics."""

    hank: Hank
    hank_dir: Path
    document: Document
    """hank.json."""
    diagnostics: Diagnostics
    models: "ModelCatalog | None"
    """None: models are not looked up."""

    def read(self, codon: Codon, pointer: str, pools: Sequence[ContainerBudget]) -> tuple[SentinelSource, ...]:
        """The codon's sentinels in file order; ``pools`` are the budgets above it."""
        sources: list[SentinelSource] = []
        for index, entry in enumerate(codon.sentinels):
            at = f"{pointer}/sentinels/{index}"
            source = read_entry(
                entry, hank_dir=self.hank_dir, document=self.document, pointer=at, diagnostics=self.diagnostics
            )
            if any(source.id == other.id for other in sources):
                message = f"codon {codon.id!r} already has a sentinel with the id {source.id!r}"
                hint = "give one of them another id"
                add_fault(self.diagnostics, self.document, at, "duplicate-sentinel", message, hint=hint)
            lint_source(source, self._places(source, at), self._around(codon, source, pools), self.diagnostics)
            sources.append(source)
        return tuple(sources)

    def _places(self, source: SentinelSource, at: str) -> Places:
        config = self.document, f"{at}/sentinelConfig"
        if source.source == "file" and source.source_path is not None:
            # Read once more, for its lines.
            shown = str(Path(self.document.file).parent / source.source_path)
            config = Document.load(self.hank_dir / source.source_path, shown), ""
        return Places(config, (self.document, f"{at}/settings"), whole=source.source == "stock")

    def _around(self, codon: Codon, source: SentinelSource, pools: Sequence[ContainerBudget]) -> Surroundings:
        limits = [budget.max_time_seconds for budget in (codon.budget, *pools) if budget is not None]
        return Surroundings(
            settings=source.settings,
            agent_prompt=self._agent_prompt(codon),
            checkpointed=codon.checkpointed_files,
            time_limit_s=min((limit for limit in limits if limit is not None), default=None),
            models=self.models,
        )

    def _agent_prompt(self, codon: Codon) -> str:
        """Everything that the agent is told; nothing where a file of it cannot be read, which is a fault."""
        root = Path(WORKSPACE)
        try:
            system = system_prompt(codon, self.hank, hank_dir=self.hank_dir, agent_root=root)
            user = user_prompt(codon, hank_dir=self.hank_dir, agent_root=root).text
        except PathRefused:
            return ""
        return "\n".join(part for part in (system, user, codon.exhaust_with_prompt) if part)


def lint_source(source: SentinelSource, places: Places, around: Surroundings, diagnostics: Diagnostics) -> None:
    """Add the lints of a sentinel that was read without faults."""
    if source.config is None:
        return
    try:
        prompts = read_prompts(source.config, base_dir=source.base_dir, root=source.root)
    except PathRefused:  # the files changed since the loader read them a moment ago
        return
    lint_sentinel(Subject(source.config, prompts, around), places, diagnostics)
