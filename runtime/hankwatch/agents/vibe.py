"""Mistral Vibe: ``vibe --output streaming``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.launch import Launch, without_provider
from hankwatch.agents.program import Command, TurnRequest, with_system_prompt
from hankwatch.agents.records import Record, joined_text
from hankwatch.agents.signals import CallOutcome, Signal, Spoke, Started, ToolFinished, ToolUsed

_OUTCOMES: Mapping[str, CallOutcome] = {"cancelled": "cancelled", "skipped": "denied"}


class VibeDialect(TableDialect):
    """Reads entries, each written once it is finished; so a call and its result come at once.

    There is neither a start line (the session's id is on every line) nor a result line, tokens or money: the
    process's exit tells how the turn ended. A command that exits non-zero is a completed one whose
    ``display`` is no success. Of a file that was read the text stands in the structured output only.
    """

    states_result = False

    def __init__(self) -> None:
        super().__init__({"message": self._message, "reasoning": self._reasoning, "effect": self._effect})
        self._session_id = ""

    def meaning(self, kind: str, record: Record) -> Iterable[Signal]:
        """See ``TableDialect.meaning``; the first line that names the session starts it."""
        session_id = record.text("sessionId")
        if session_id and not self._session_id:
            self._session_id = session_id
            yield Started(session_id)
        yield from super().meaning(kind, record)

    def _message(self, record: Record) -> Iterator[Signal]:
        if record.text("role") == "assistant":
            yield Spoke("message", joined_text(record.get("content")), message_id=record.text("id"))

    def _reasoning(self, record: Record) -> Iterator[Signal]:
        yield Spoke("thinking", record.text("text"), message_id=record.text("id"))

    def _effect(self, record: Record) -> Iterator[Signal]:
        call, detail, state = record.text("id"), record.child("detail"), record.child("state")
        yield ToolUsed(call, detail.text("toolName"), detail.child("input").raw)
        status = state.text("status")
        failed = status != "completed" or state.get("display", "success") is False
        outcome: CallOutcome = _OUTCOMES.get(status, "error") if failed else "ok"
        yield ToolFinished(call, _result_text(detail.text("kind"), state), outcome, failed)


def _result_text(kind: str, state: Record) -> str:
    if text := state.text("outputText") or state.text("error", "message"):
        return text
    if kind == "file_read" and (content := state.text("output", "content")):
        return content
    return f"{state.text('display', 'verb')} {state.text('display', 'message')}".strip()


@dataclass(frozen=True, slots=True)
class Vibe(Launch):
    """The real program. It takes no system prompt; its model is the alias of one in its configuration."""

    executable: Sequence[str] = ("vibe",)
    name: str = "vibe"
    env_names: tuple[str, ...] = ("VIBE_*", "MISTRAL_*")
    compaction_off: str | None = None
    """See ``Compacts``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``; all tools are approved unless ``executable`` says something itself."""
        return self._command(request)

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """See ``Resumes``."""
        return self._command(request, "--resume", session_id)

    def dialect(self) -> VibeDialect:
        """See ``AgentProgram.dialect``."""
        return VibeDialect()

    def _command(self, request: TurnRequest, *session: str) -> Command:
        approval = self.unless_said("--auto-approve", instead_of=("--yolo", "--smart-approve", "--agent"))
        env = {"VIBE_ACTIVE_MODEL": without_provider(request.model, "mistral")} if request.model else {}
        return self.fed(("--prompt", "--output", "streaming", *approval, *session), with_system_prompt(request), env)
