"""Where everything of an execution lives (design rule 12, reference 9)."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one execution directory; makes nothing by itself."""

    root: Path
    """The execution directory."""

    @property
    def agent_root(self) -> Path:
        """The agent's working directory."""
        return self.root / "agentRoot"

    @property
    def managed(self) -> Path:
        """The folder the runtime owns."""
        return self.root / ".hankweave"

    @property
    def journal(self) -> Path:
        """The run's only truth."""
        return self.managed / "events" / "events.jsonl"

    @property
    def meta(self) -> Path:
        """What the execution was made from: hank, data, version."""
        return self.managed / "execution-meta.json"

    @property
    def calls(self) -> Path:
        """The log of all model calls."""
        return self.managed / "sentinels" / "calls.jsonl"

    @property
    def commands(self) -> Path:
        """Where a live run takes commands from, one file each."""
        return self.managed / "commands"

    @property
    def log(self) -> Path:
        """What this program has to say about its own work."""
        return self.managed / "logs" / "runtime.log"

    def report(self, run_id: str) -> Path:
        """The page of a run, for its reviewers."""
        return self.managed / "runs" / run_id / "report.html"

    def agent_log(self, run_id: str, codon_id: str, attempt: int, agent: str) -> Path:
        """Raw lines of one turn, redacted; ``#`` of a loop's runtime id becomes ``-``."""
        return self.managed / "runs" / run_id / f"{codon_id.replace('#', '-')}-{attempt}-{agent}.log"
