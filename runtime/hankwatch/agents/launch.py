"""What the command lines of the programs have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from hankwatch.agents.program import Command, as_input

PROVIDERS: tuple[str, ...] = (
    "ANTHROPIC_*",
    "AWS_*",
    "AZURE_*",
    "CEREBRAS_*",
    "CLOUDFLARE_*",
    "DEEPSEEK_*",
    "FIREWORKS_*",
    "GEMINI_*",
    "GOOGLE_*",
    "GROQ_*",
    "MISTRAL_*",
    "MOONSHOT_*",
    "OPENAI_*",
    "OPENROUTER_*",
    "XAI_*",
    "ZAI_*",
)
"""Variables of the model providers, for programs that run the models of any of them."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Launch:
    """A program that reads its prompt from stdin, which is then closed; see ``AgentProgram`` for the members.

    A prompt never stands in the command line then: it cannot be taken for a flag, has no length limit, and
    no other user of the machine reads it in the list of processes.
    """

    executable: Sequence[str] = ()
    """How to start it; fixed arguments may follow the path."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Set for it; goes before what the program is started with by default."""
    name: str = ""
    env_names: tuple[str, ...] = ()
    """See ``AgentProgram.env_names``."""

    def fed(self, arguments: Sequence[str], prompt: str, env: Mapping[str, str] = _NOTHING) -> Command:
        """The command with ``prompt`` on stdin."""
        return Command((*self.executable, *arguments), {**env, **self.env}, (as_input(prompt),))

    def unless_said(self, *words: str, instead_of: Sequence[str] = ()) -> tuple[str, ...]:
        """``words``, unless ``executable`` holds the first of them, or one of ``instead_of``, itself."""
        flags = (words[0], *instead_of)
        said = any(word == flag or word.startswith(f"{flag}=") for word in self.executable for flag in flags)
        return () if said else words


def without_provider(model: str, *providers: str) -> str:
    """The model's own name, where the hank's id puts one of ``providers`` before it."""
    provider, slash, name = model.partition("/")
    return name if slash and provider in providers else model
