"""The agent ``recorded:PATH``: plays a recorded native stream or journal as a real child process."""

import sys
from dataclasses import dataclass
from pathlib import Path

from hankwatch.agents import player
from hankwatch.agents.detect import DetectingDialect
from hankwatch.agents.program import Command, TurnRequest


@dataclass(frozen=True, slots=True)
class RecordedAgent:
    """Plays one file each turn, whatever the prompt; which program wrote it shows while it plays."""

    path: Path
    """Absolute; a ``.gz`` file is read too."""
    max_gap_ms: float = 250.0
    """Longest wait before a line; 0 plays without waits."""
    stderr: Path | None = None
    """A file to write to stderr after the first line."""
    exit_code: int = 0
    name: str = "recorded"
    env_names: tuple[str, ...] = ()
    """See ``AgentProgram.env_names``."""

    def command(self, request: TurnRequest) -> Command:  # noqa: ARG002 - a recording knows its prompt
        """See ``AgentProgram.command``."""
        # Isolated: this room's modules must not shadow the standard library's.
        argv = [
            sys.executable,
            "-I",
            "-S",
            str(player.__file__),
            str(self.path),
            "--max-gap-ms",
            f"{self.max_gap_ms:g}",
        ]
        if self.stderr is not None:
            argv += ["--stderr", str(self.stderr)]
        if self.exit_code:
            argv += ["--exit", str(self.exit_code)]
        return Command(tuple(argv))

    def dialect(self) -> DetectingDialect:
        """See ``AgentProgram.dialect``."""
        return DetectingDialect()
