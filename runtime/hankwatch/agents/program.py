"""What the runner needs of an agent program: its command line and its dialect (spec hank 3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from hankwatch.agents.mcp import McpServer
from hankwatch.agents.signals import Signal
from hankwatch.core.errors import UsageError
from hankwatch.core.text import clean_text

MAX_ARGUMENT_BYTES = 131_071
"""What one argument or variable of a Linux process can hold."""


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn to run: everything a command line is built from."""

    prompt: str
    model: str | None = None
    """Model id as the hank names it, or None for the program's own default."""
    system_prompt: str | None = None
    """Appended to the program's own system prompt; put before the prompt where the program takes none."""
    turn: int = 1
    """Which turn of its session this is, counted from 1; above 1 only in ``Resumes.resume``."""


@dataclass(frozen=True, slots=True)
class Command:
    """How to start the program for one turn. The runner adds the codon's environment and the marker."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables the program needs on top of the codon's."""
    stdin_lines: tuple[bytes, ...] = ()
    """Lines (each with its newline) to write at once; stdin is then closed unless ``stdin_open``."""
    stdin_open: bool = False
    """Keep stdin open until the first ``Result``, so that lines can be added while it works."""


def as_argument(text: str) -> str:
    """``text`` as an argument or a variable can hold it: valid Unicode, no NUL.

    Raises:
        UsageError: it is longer than the system allows.
    """
    argument = clean_text(text).replace("\0", "")
    if (size_bytes := len(argument.encode())) > MAX_ARGUMENT_BYTES:
        raise UsageError(
            f"a text of {size_bytes:,} bytes does not fit into a command line",
            hint=f"at most {MAX_ARGUMENT_BYTES:,} bytes; put the rest into a file that the prompt names",
        )
    return argument


def as_input(text: str) -> bytes:
    """``text`` as it is written to a program's stdin: whole lines of valid Unicode."""
    return clean_text(text).removesuffix("\n").encode() + b"\n"


def with_system_prompt(request: TurnRequest) -> str:
    """The prompt for a program that takes no system prompt: what it would say stands first, in its own block."""
    if not request.system_prompt:
        return request.prompt
    return f"<instructions>\n{request.system_prompt}\n</instructions>\n\n{request.prompt}"


class Dialect(Protocol):
    """Turns one process's output lines into signals. Stateful, one per process, never raises."""

    @property
    def states_result(self) -> bool:
        """False for a program without a result line: its exit and its last word alone end the turn."""
        ...

    @property
    def stamp_ms(self) -> int | None:
        """Epoch milliseconds that the last line fed bears, or None when it has no stamp."""
        ...

    def feed(self, line: bytes) -> list[Signal]:
        """The signals of one line (without its newline); whatever it holds, this returns."""
        ...

    def finish(self) -> list[Signal]:
        """What was held back when the output ended; call once."""
        ...


@runtime_checkable
class AgentProgram(Protocol):
    """One agent program."""

    @property
    def name(self) -> str:
        """As in a hank's ``agent`` and in the name of the raw log."""
        ...

    @property
    def env_names(self) -> tuple[str, ...]:
        """Variables of ours it may see beyond what any program needs; a ``*`` at the end makes a prefix."""
        ...

    def command(self, request: TurnRequest) -> Command:
        """The command line of one turn; raises ``UsageError`` for what the program cannot do."""
        ...

    def dialect(self) -> Dialect:
        """A fresh reader for one process's output."""
        ...


@runtime_checkable
class Resumes(Protocol):
    """A program that can continue a session; a missing method is the capability's absence."""

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """The command line of a further turn of that session."""
        ...


@runtime_checkable
class Compacts(Protocol):
    """A program that by itself shortens a conversation whose context gets full."""

    @property
    def compaction_off(self) -> str | None:
        """The variable that keeps it from that when it is ``1``; None when nothing does."""
        ...


@runtime_checkable
class Steers(Protocol):
    """A program that takes messages while it works."""

    def steer(self, text: str) -> bytes:
        """The line to write to stdin; it is taken at the agent's next step."""
        ...


@runtime_checkable
class Interrupts(Protocol):
    """A program that stops its running step on request and stays alive."""

    def interrupt(self, request_id: str) -> bytes:
        """The line to write to stdin."""
        ...


@runtime_checkable
class TakesMcp(Protocol):
    """A program that can be given an MCP server for one turn, with nothing written where its user or agent works."""

    def with_mcp(self, command: Command, server: McpServer) -> Command:
        """``command``, whose ``env`` is the whole environment of its turn, with the server added."""
        ...
