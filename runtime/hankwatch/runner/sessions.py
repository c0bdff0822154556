"""Sessions of agent programs: which one a codon continues, and what it has used so far (reference 3.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hankwatch.agents.program import AgentProgram, Resumes
from hankwatch.agents.signals import Tokens
from hankwatch.agents.translate import Translator
from hankwatch.core.errors import NoSession, UsageError
from hankwatch.hank.model import Codon
from hankwatch.runner.state import CodonRecord, RunState, total_cost

WAITS: Final = "waits-for-watches"
"""Code of the ``info`` with which a codon begins to wait for the watches of its session."""
WAKE: Final = "wake"
"""Code of the ``info`` with which a wake is accepted: its turn runs then, and never twice (spec watches 6)."""
SESSION_CODON: Final = "session:"
"""What the id of a codon begins with that is a turn of a session between codons."""


@dataclass(slots=True)
class LastSession:
    """What the session told that an agent used last in this process, for a codon that continues it."""

    _told: Translator | None = None

    def keep(self, told: Translator) -> None:
        """An attempt has ended."""
        self._told = told

    def recall(self, session_id: str, translator: Translator) -> None:
        """Let ``translator`` know what was told of the session that it continues."""
        if self._told is not None and self._told.session_id == session_id:
            translator.recall(self._told)


def require_resuming(codon: Codon, program: AgentProgram) -> None:
    """Check before a run that a codon's program can do what the codon is about.

    Raises:
        UsageError: it has to continue a session and cannot.
    """
    features = {
        "continuationMode": codon.continuation_mode == "continue-previous",
        "exhaustWithPrompt": codon.exhaust_with_prompt is not None,
        "waitForWatches": codon.wait_for_watches,
    }
    uses = [name for name, is_used in features.items() if is_used]
    if uses and not isinstance(program, Resumes):
        raise UsageError(
            f"codon {codon.id}: {uses[0]} continues a session, which the agent {program.name} cannot",
            hint="use a program that can, as claude, exec:COMMAND and recorded:FOLDER do, or a fresh session",
        )


def session_to_continue(previous: CodonRecord | None, program: AgentProgram) -> str:
    """The session of the codon before.

    Raises:
        NoSession: there is none, or it is no use to ``program``.
    """
    if previous is None:
        raise NoSession("no codon ran before it")
    if previous.status != "completed" and not (previous.status == "skipped" and previous.assistant_messages):
        raise NoSession(f"codon {previous.codon_id} before it is {previous.status}")
    if previous.session_id is None:
        raise NoSession(f"the session of codon {previous.codon_id} has no id")
    if previous.agent != program.name:
        raise NoSession(f"codon {previous.codon_id} ran on {previous.agent}, this one runs on {program.name}")
    return previous.session_id


def session_usage(session_id: str, state: RunState) -> tuple[Tokens, float | None]:
    """What all attempts of a session have counted; the cost is None when a part is unknown."""
    records = [record for run in state.runs for record in run.codons if record.session_id == session_id]
    tokens = sum((record.tokens for record in records), Tokens())
    return tokens, total_cost(record.cost_usd for record in records)


def turns_of(session_id: str, records: Sequence[CodonRecord]) -> int:
    """How many turns a session has had in ``records``, oldest first; it may have changed its id when it was resumed."""
    count = 0
    for record in reversed(records):
        if record.session_id == session_id:
            if record.session_turn is not None:
                return count + record.session_turn
            count += 1 + record.extensions + record.nudge_turns + record.wake_turns
            session_id = record.previous_session_id or session_id
    return count


def session_record(name: str, state: RunState) -> CodonRecord | None:
    """The latest attempt in a session: by the id of its codon, as authored or in its loop; None when there is none.

    A turn between codons counts as one of the session that it names.
    """
    names = {name, f"{SESSION_CODON}{name}"}
    records = (record for run in reversed(state.runs) for record in reversed(run.codons))
    return next((record for record in records if {record.codon_id, record.base_codon_id} & names), None)


def resumable(name: str, state: RunState) -> CodonRecord | None:
    """The latest attempt of what still counts whose session can be given another turn; None when there is none."""
    names = {name, f"{SESSION_CODON}{name}"}
    for record in reversed(state.thread):
        is_whole = record.status == "completed" or (record.status == "skipped" and record.assistant_messages)
        if {record.codon_id, record.base_codon_id} & names and is_whole and record.session_id is not None:
            return record
    return None
