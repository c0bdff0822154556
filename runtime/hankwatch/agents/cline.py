"""Cline: ``cline --json``."""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.launch import PROVIDERS, Launch
from hankwatch.agents.program import Command, TurnRequest, as_argument, with_system_prompt
from hankwatch.agents.records import Record, joined_text, remainder
from hankwatch.agents.signals import (
    CallOutcome,
    Channel,
    ContextExceeded,
    Reported,
    Result,
    Signal,
    Spoke,
    Started,
    Tokens,
    ToolFinished,
    ToolUsed,
    Used,
)

_PROVIDERS: Mapping[str, str] = {"openai": "openai-native", "google": "gemini"}
"""Providers that it calls otherwise than a hank does."""
_SPAWN = "spawn_agent"
_REPEATS_RESULTS = re.compile(r"\d+ tool call\(s\) failed: ")
_CONTEXT_NOTICE = "context_overflow_recovery"


class ClineDialect(TableDialect):
    """Reads the ends of pieces of content; their beginnings repeat everything with each delta.

    A line does not say whose it is. A sub-agent speaks between its start and its end, and belongs to the
    oldest call of ``spawn_agent`` that has none yet; of several at once, to the one started last. Tokens
    come per message, those of sub-agents too, which the result line's sum leaves out.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "agent_start": self._agent_started,
                "agent_end": self._agent_ended,
                "content_end text": lambda record: self._speech("message", record.text("event", "text")),
                "content_end reasoning": lambda record: self._speech("thinking", record.text("event", "reasoning")),
                "content_start tool": self._tool_started,
                "content_end tool": self._tool_ended,
                "usage": self._usage,
                "error": self._error,
                "notice": self._notice,
                "run_result": self._result,
            }
        )
        self._spawning: deque[str] = deque()
        self._agents: dict[str, str | None] = {}
        """Sub-agents at work and the calls they belong to, oldest first."""
        self._parents: dict[str, str | None] = {}
        self._problem = ""

    def kind_of(self, record: Record) -> str:
        """See ``TableDialect.kind_of``: what an event is stands inside it."""
        match record.text("type"):
            case "hook_event":
                return record.text("hookEventName")
            case "agent_event":
                return f"{record.text('event', 'type')} {record.text('event', 'contentType')}".strip()
            case kind:
                return kind

    @property
    def _parent(self) -> str | None:
        return next(reversed(self._agents.values()), None)

    def _agent_started(self, record: Record) -> Iterator[Signal]:
        if record.text("parentAgentId"):
            self._agents[record.text("agentId")] = self._spawning.popleft() if self._spawning else None
        else:
            yield Started(record.text("taskId"))

    def _agent_ended(self, record: Record) -> Iterator[Signal]:
        self._agents.pop(record.text("agentId"), None)
        return iter(())

    def _speech(self, kind: Channel, text: str) -> Iterator[Signal]:
        yield Spoke(kind, text, self._parent)

    def _tool_started(self, record: Record) -> Iterator[Signal]:
        event = record.child("event")
        call, name = event.text("toolCallId"), event.text("toolName")
        if call not in self._parents:
            self._parents[call] = self._parent
            if name == _SPAWN:
                self._spawning.append(call)
        yield ToolUsed(call, name, event.child("input").raw, self._parents[call])

    def _tool_ended(self, record: Record) -> Iterator[Signal]:
        event = record.child("event")
        call, output = event.text("toolCallId"), event.get("output")
        parts = [Record(part) for part in (output if isinstance(output, list) else [output])]
        problems = [event.text("error"), *(part.text("error") for part in parts)]
        failed = any(problems) or any(part.get("success") is False for part in parts)
        outcome: CallOutcome = "ok"
        if failed:
            outcome = "cancelled" if any("was aborted" in problem for problem in problems) else "error"
        yield ToolFinished(call, _result_text(output, parts), outcome, failed, self._parents.get(call))

    def _usage(self, record: Record) -> Iterator[Signal]:
        event = record.child("event")
        yield Used(_tokens(event), cost_usd=event.number("cost"))

    def _error(self, record: Record) -> Iterator[Signal]:
        message = record.text("event", "error", "message")
        if not _REPEATS_RESULTS.match(message):
            self._problem = message
            yield Reported(message, "warning" if record.flag("event", "recoverable") else "error")

    def _notice(self, record: Record) -> Iterator[Signal]:
        if record.text("event", "metadata", "kind") == _CONTEXT_NOTICE:
            yield ContextExceeded(record.text("event", "metadata", "providerError") or record.text("event", "message"))

    def _result(self, record: Record) -> Iterator[Signal]:
        usage = record.child("aggregateUsage") or record.child("usage")
        model = record.text("model", "id") or None
        yield Used(_tokens(usage), model=model, cost_usd=usage.number("totalCost"), total=True)
        reason = record.text("finishReason")
        yield Result(
            success=reason == "completed",
            is_error=reason == "error",
            # What an aborted run has as its text is the last thing that was said.
            text=(self._problem if reason == "aborted" else "") or record.text("text"),
            subtype=reason,
            terminal_reason=reason,
        )


def _result_text(output: Any, parts: list[Record]) -> str:
    texts = [part.text("result") or part.text("text") or part.text("error") for part in parts]
    return "\n".join(texts) if any(texts) else joined_text(output)


def _tokens(usage: Record) -> Tokens:
    cached, written = usage.count("cacheReadTokens"), usage.count("cacheWriteTokens")
    return Tokens(remainder(usage.count("inputTokens"), cached, written), usage.count("outputTokens"), written, cached)


@dataclass(frozen=True, slots=True)
class Cline(Launch):
    """The real program. It resumes sessions only for a person at a terminal.

    It takes its prompt as an argument only, as it reads a stdin that is a pipe and not one that is a socket. A
    system prompt of one's own would replace its own, so ours goes into the prompt.
    """

    executable: Sequence[str] = ("cline",)
    name: str = "cline"
    env_names: tuple[str, ...] = ("CLINE_*", *PROVIDERS)

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``; it approves everything unless told otherwise."""
        provider, slash, name = (request.model or "").partition("/")
        model: tuple[str, ...] = ()
        if slash:
            model = (
                *self.unless_said("--provider", _PROVIDERS.get(provider, provider), instead_of=("-P",)),
                "-m",
                name,
            )
        elif provider:
            model = ("-m", provider)
        # A newline more, and no prompt is taken for one of its commands, such as "history".
        prompt = as_argument(f"{with_system_prompt(request)}\n")
        return Command((*self.executable, "--json", *model, "--", prompt), self.env)

    def dialect(self) -> ClineDialect:
        """See ``AgentProgram.dialect``."""
        return ClineDialect()
