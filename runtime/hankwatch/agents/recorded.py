"""The agent ``recorded:PATH``: plays a recorded native stream or journal as a real child process.

PATH is a file, which is played whatever is asked, or a folder with one file for each turn of a session: ``1.jsonl``,
``2.jsonl`` and so on.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from hankwatch.agents import player
from hankwatch.agents.detect import DetectingDialect
from hankwatch.agents.mcp import McpServer
from hankwatch.agents.program import Command, TurnRequest
from hankwatch.core.errors import UsageError
from hankwatch.hank.files import recorded_turns


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

    def with_mcp(self, command: Command, server: McpServer) -> Command:  # noqa: ARG002 - its calls are recorded
        """See ``TakesMcp``; a recording calls nobody."""
        return command

    def dialect(self) -> DetectingDialect:
        """See ``AgentProgram.dialect``."""
        return DetectingDialect()


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """Plays the files of a folder, one each turn of its session, whatever the prompts.

    A further turn is played by what still counts of the run, so after a rollback or a kill a file is played again.
    """

    folder: Path
    """Absolute; its files are named by the turn: ``1.jsonl``, ``2.jsonl.gz``."""
    max_gap_ms: float = 250.0
    """Longest wait before a line; 0 plays without waits."""
    name: str = "recorded"
    env_names: tuple[str, ...] = ()
    """See ``AgentProgram.env_names``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``."""
        turns = recorded_turns(self.folder)
        if request.turn > len(turns):
            raise UsageError(
                f"turn {request.turn} of the session is not recorded in {self.folder}",
                hint=f"it has {len(turns)}; the next is {len(turns) + 1}.jsonl",
            )
        return RecordedAgent(turns[request.turn - 1], self.max_gap_ms).command(request)

    def resume(self, request: TurnRequest, session_id: str) -> Command:  # noqa: ARG002 - a folder is one session
        """See ``Resumes``."""
        return self.command(request)

    def with_mcp(self, command: Command, server: McpServer) -> Command:  # noqa: ARG002 - its calls are recorded
        """See ``TakesMcp``; a recording calls nobody."""
        return command

    def dialect(self) -> DetectingDialect:
        """See ``AgentProgram.dialect``."""
        return DetectingDialect()
