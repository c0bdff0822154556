"""``autoCompact``: whether an agent program may shorten a conversation whose context gets full (reference 2.2).

Off, the default, a full context ends the turn as an error; on, the program goes on in a shorter conversation. Both
are the end that loops until the context is full and ``exhaustWithPrompt`` wait for, where the program tells of it.
"""

from hankwatch.agents.program import AgentProgram, Compacts
from hankwatch.hank.model import Codon


def compaction_env(codon: Codon, program: AgentProgram) -> dict[str, str]:
    """What the program is given for it; every other source of variables goes before."""
    if codon.auto_compact or not isinstance(program, Compacts) or program.compaction_off is None:
        return {}
    return {program.compaction_off: "1"}


def compaction_lack(codon: Codon, program: AgentProgram) -> str | None:
    """Why what the codon says of it has no effect; None when it has, or when the codon says nothing."""
    if "auto_compact" not in codon.model_fields_set:
        return None
    if codon.auto_compact and not isinstance(program, Compacts):
        return f"autoCompact has no effect: {program.name} is not known to compact a context by itself"
    if not codon.auto_compact and isinstance(program, Compacts) and program.compaction_off is None:
        return f"autoCompact false has no effect: {program.name} compacts a full context by itself, whatever it is told"
    return None
