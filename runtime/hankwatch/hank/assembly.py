"""The texts that an agent is given, from files and fields (reference 2.7)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hankwatch.config.refs import read_ref
from hankwatch.hank.front_matter import Metadata, split
from hankwatch.hank.model import Codon, Hank, refs

DATA_DIR = "read_only_data_source"
"""Name of the data below the agent's workspace."""
_VARIABLE = re.compile(r"<%(AGENT_ROOT|PROJECT_DIR|EXECUTION_DIR|DATA_DIR)%>")
_COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A text ready to be sent."""

    text: str
    metadata: Metadata = field(default_factory=Metadata)
    """Front matter of the first file; ``codon.started`` carries it."""


def user_prompt(codon: Codon, *, hank_dir: Path, agent_root: Path) -> Prompt:
    """The codon's prompt; raises ``PathRefused`` when a file changed for the worse since it was checked."""
    files = refs(codon.prompt_file)
    if not files:
        return Prompt(fill(codon.prompt_text or "", agent_root))
    metadata, text = _read(files, hank_dir)
    return Prompt(fill(text, agent_root), metadata)


def system_prompt(codon: Codon, hank: Hank, *, hank_dir: Path, agent_root: Path) -> str | None:
    """What is appended to the agent's system prompt: the global part, then the codon's; None for nothing.

    Raises ``PathRefused`` as ``user_prompt`` does.
    """
    parts = []
    for files, text in (
        (hank.global_system_prompt_file, hank.global_system_prompt_text),
        (codon.append_system_prompt_file, codon.append_system_prompt_text),
    ):
        if refs(files):
            parts.append(_read(refs(files), hank_dir)[1])
        elif text:
            parts.append(text)
    return fill("\n\n".join(parts), agent_root) if parts else None


def fill(text: str, agent_root: Path) -> str:
    """Put the folders in for their variables, once; then take HTML comments and the newline after each out."""
    folders = {"DATA_DIR": str(agent_root / DATA_DIR)}
    filled = _VARIABLE.sub(lambda variable: folders.get(variable[1], str(agent_root)), text)
    return _COMMENT.sub("", filled)


def _read(files: Sequence[str], hank_dir: Path) -> tuple[Metadata, str]:
    read = [split(read_ref(ref, base=hank_dir, root=hank_dir)) for ref in files]
    return read[0][0], "\n\n".join(text for _, text in read)
