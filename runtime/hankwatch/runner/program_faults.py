"""What the agent programs of a hank cannot do, as ``validate`` tells it; a run refuses the errors itself."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from hankwatch.agents.catalogue import agent_for
from hankwatch.agents.settings import AgentSettings
from hankwatch.core.errors import UsageError
from hankwatch.hank.fault import Fault
from hankwatch.hank.model import Codon, Hank
from hankwatch.runner.compaction import compaction_lack
from hankwatch.runner.mcp import mcp_lack
from hankwatch.runner.sessions import require_resuming


def program_faults(
    hank: Hank, *, hank_dir: Path, model: str | None, agents: Mapping[str, AgentSettings]
) -> Iterator[Fault]:
    """Faults of every codon's program.

    Args:
        hank: The hank.
        hank_dir: Absolute; where it stands.
        model: Of all codons, instead of their own.
        agents: How programs are started here, by name.
    """
    for pointer, codon in hank.codons():
        try:
            program = agent_for(codon.agent, model or codon.model, hank_dir=hank_dir, settings=agents)
        except UsageError as error:
            yield Fault(f"{pointer}/agent", "agent-unknown", str(error), error.hint)
            continue
        try:
            require_resuming(codon, program)
        except UsageError as error:
            yield Fault(f"{pointer}/{_continues(codon)}", "agent-resumes-not", str(error), error.hint)
        if (lack := compaction_lack(codon, program)) is not None:
            hint = "leave it out, or use a program that has it, as claude and opencode do"
            yield Fault(f"{pointer}/autoCompact", "auto-compact", lack, hint, "warning")
        if (lack := mcp_lack(codon, program)) is not None:
            hint = "use a program that takes one, as claude and codex do, and pip install 'hankwatch[serve]'"
            yield Fault(f"{pointer}/mcp", "no-mcp", lack, hint, "warning")


def _continues(codon: Codon) -> str:
    return "continuationMode" if codon.continuation_mode == "continue-previous" else "exhaustWithPrompt"
