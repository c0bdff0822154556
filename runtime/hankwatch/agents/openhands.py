"""OpenHands: ``openhands --headless --json``."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.launch import PROVIDERS, Launch
from hankwatch.agents.program import Command, TurnRequest, as_argument, with_system_prompt
from hankwatch.agents.records import Record, joined_text, read_record
from hankwatch.agents.signals import (
    CallOutcome,
    ContextExceeded,
    Junk,
    Reported,
    Result,
    Signal,
    Spoke,
    Started,
    ToolFinished,
    ToolUsed,
)

_FINISHED = b"Agent finished"
_UNANSWERED = "finished without an answer of the agent"
_CONVERSATION = re.compile(rb"Conversation ID: ([0-9a-f]{32})")
_STILL_RUNNING = -1.0
"""The exit code of a command that has none yet."""
_OWN_ARGUMENTS = frozenset({"security_risk", "summary"})
"""Asked for by the program with every call; not the tool's."""


class OpenhandsDialect(TableDialect):
    """Reads events by their ``kind``, between lines of plain text of which two say something.

    ``Agent finished`` is the result line: a success when the agent's own words, or its ``finish`` tool, came
    last. Otherwise the program gave up, as it does (exiting with 0) when its model fails again and again. The
    session's id is printed at the very end. No tokens, no money, no model.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "MessageEvent": self._message,
                "ActionEvent": self._action,
                "ObservationEvent": self._observation,
                "AgentErrorEvent": self._tool_error,
                "UserRejectObservation": self._rejection,
                "ConversationErrorEvent": self._error,
                "Condensation": self._condensation,
            }
        )
        self._begun = False
        self._answer: str | None = None
        """The agent's last word, None after anything else."""

    def kind_of(self, record: Record) -> str:
        """See ``TableDialect.kind_of``."""
        return record.text("kind")

    def banner(self, junk: Junk) -> Iterable[Signal]:
        """See ``TableDialect.banner``."""
        line = junk.line.strip()
        if line == _FINISHED and self._begun:
            answered = self._answer is not None
            yield Result(answered, text=self._answer or _UNANSWERED, subtype="finished" if answered else _UNANSWERED)
        elif found := _CONVERSATION.fullmatch(line):
            yield Started(found[1].decode())
        else:
            yield junk

    def meaning(self, kind: str, record: Record) -> Iterable[Signal]:
        """See ``TableDialect.meaning``; the first event begins a session that has no name yet."""
        if not self._begun:
            self._begun = True
            yield Started("")
        yield from super().meaning(kind, record)

    def _message(self, record: Record) -> Iterator[Signal]:
        if record.text("source") != "agent":
            return
        message = record.child("llm_message")
        yield Spoke("thinking", message.text("reasoning_content"), message_id=record.text("id"))
        self._answer = joined_text(message.get("content"))
        yield Spoke("message", self._answer, message_id=record.text("id"))

    def _action(self, record: Record) -> Iterator[Signal]:
        yield Spoke("thinking", record.text("reasoning_content"), message_id=record.text("id"))
        yield Spoke("message", joined_text(record.get("thought")), message_id=record.text("id"))
        yield ToolUsed(record.text("tool_call_id"), record.text("tool_name"), _arguments(record))
        self._answer = record.text("action", "message") if record.text("tool_name") == "finish" else None

    def _observation(self, record: Record) -> Iterator[Signal]:
        observation = record.child("observation")
        exit_code = observation.number("exit_code")
        failed = observation.flag("is_error") or exit_code not in (None, 0.0, _STILL_RUNNING)
        yield self._ended(record, joined_text(observation.get("content")), "error" if failed else "ok")

    def _tool_error(self, record: Record) -> Iterator[Signal]:
        yield self._ended(record, record.text("error"), "error")

    def _rejection(self, record: Record) -> Iterator[Signal]:
        yield self._ended(record, record.text("rejection_reason"), "denied")

    def _ended(self, record: Record, text: str, outcome: CallOutcome) -> ToolFinished:
        if record.text("tool_name") != "finish":
            self._answer = None
        return ToolFinished(record.text("tool_call_id"), text, outcome, outcome != "ok")

    def _error(self, record: Record) -> Iterator[Signal]:
        self._answer = None
        yield Reported(record.text("detail") or record.text("code"))

    def _condensation(self, _: Record) -> Iterator[Signal]:
        yield ContextExceeded("the conversation was condensed")


def _arguments(record: Record) -> Mapping[str, Any]:
    """The call's own arguments, as the model wrote them; as the program read them where that fails."""
    written = read_record(record.text("tool_call", "arguments").encode())
    if isinstance(written, Junk):
        return {key: value for key, value in record.child("action").raw.items() if key != "kind" and value is not None}
    return {key: value for key, value in written.raw.items() if key not in _OWN_ARGUMENTS}


@dataclass(frozen=True, slots=True)
class Openhands(Launch):
    """The real program. It takes no system prompt, and its prompt as an argument only."""

    executable: Sequence[str] = ("openhands",)
    name: str = "openhands"
    env_names: tuple[str, ...] = ("LLM_*", "OPENHANDS_*", *PROVIDERS)
    compaction_off: str | None = None
    """See ``Compacts``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``; headless, it approves everything."""
        return self._command(request)

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """See ``Resumes``."""
        return self._command(request, "--resume", session_id)

    def dialect(self) -> OpenhandsDialect:
        """See ``AgentProgram.dialect``."""
        return OpenhandsDialect()

    def _command(self, request: TurnRequest, *session: str) -> Command:
        # On a pipe its output would otherwise come in blocks, and be lost when it is killed.
        env = {"PYTHONUNBUFFERED": "1"}
        if request.model:
            env["LLM_MODEL"] = request.model
        task = as_argument(f"--task={with_system_prompt(request)}")
        argv = (*self.executable, "--headless", "--json", "--override-with-envs", *session, task)
        return Command(argv, {**env, **self.env})
