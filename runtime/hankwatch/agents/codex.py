"""Codex: ``codex exec --json``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import orjson

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.launch import Launch, without_provider
from hankwatch.agents.mcp import NAME, START_S, McpServer
from hankwatch.agents.program import Command, TurnRequest, with_system_prompt
from hankwatch.agents.records import Record, joined_text, remainder
from hankwatch.agents.signals import (
    CallOutcome,
    Reported,
    Result,
    Retried,
    Signal,
    Spoke,
    Started,
    Tokens,
    ToolFinished,
    ToolUsed,
    Used,
)

_STATE_KEYS = frozenset({"id", "type", "status", "aggregated_output", "exit_code", "result", "error"})
_SPEECH = frozenset({"agent_message", "reasoning", "error", "todo_list"})


class CodexDialect(TableDialect):
    """Reads threads, turns and items; every item that is no speech is a tool call.

    Item ids begin anew in each process, also when a thread is resumed; a call's id is thread and item, and
    the translator keeps the processes apart. The stated usage runs from the thread's start, so only its
    growth counts. Cached input is part of the stated input and is taken out of it here.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "thread.started": self._thread,
                "item.started": self._item_started,
                "item.completed": self._item_completed,
                "turn.completed": self._turn_completed,
                "turn.failed": self._turn_failed,
                "error": self._error,
            }
        )
        self._thread_id = ""
        self._open: set[str] = set()
        self._answer = ""

    def _thread(self, record: Record) -> Iterator[Signal]:
        self._thread_id = record.text("thread_id")
        yield Started(self._thread_id, numbers_anew=True)

    def _item_started(self, record: Record) -> Iterator[Signal]:
        item = record.child("item")
        # A search's query is empty until it has ended.
        if item.text("type") not in _SPEECH | {"web_search"}:
            yield self._call(item)

    def _call(self, item: Record) -> ToolUsed:
        call = self._key(item)
        self._open.add(call)
        kind = item.text("type")
        if kind == "mcp_tool_call":
            return ToolUsed(call, f"mcp__{item.text('server')}__{item.text('tool')}", item.child("arguments").raw)
        return ToolUsed(call, kind, {key: value for key, value in item.raw.items() if key not in _STATE_KEYS})

    def _item_completed(self, record: Record) -> Iterator[Signal]:
        item = record.child("item")
        match item.text("type"):
            case "agent_message":
                self._answer = item.text("text")
                yield Spoke("message", self._answer, message_id=self._key(item))
            case "reasoning":
                yield Spoke("thinking", item.text("text"), message_id=self._key(item))
            case "error":
                yield Reported(item.text("message"), "warning")
            case "todo_list" | "":
                pass
            case _:
                call = self._key(item)
                if call not in self._open:
                    yield self._call(item)
                self._open.discard(call)
                outcome = _outcome(item)
                yield ToolFinished(call, _result_text(item), outcome, outcome != "ok")

    def _turn_completed(self, record: Record) -> Iterator[Signal]:
        usage = record.child("usage")
        cached, written = usage.count("cached_input_tokens"), usage.count("cache_write_input_tokens")
        fresh = remainder(usage.count("input_tokens"), cached, written)
        tokens = Tokens(fresh, usage.count("output_tokens"), written, cached)
        yield Used(tokens, total=True, session=self._thread_id or "thread")
        yield Result(success=True, text=self._answer, subtype="turn.completed")

    def _turn_failed(self, record: Record) -> Iterator[Signal]:
        yield Result(success=False, is_error=True, text=record.text("error", "message"), subtype="turn.failed")

    def _error(self, record: Record) -> Iterator[Signal]:
        message = record.text("message")
        yield Retried(message) if message.startswith("Reconnecting") else Reported(message)

    def _key(self, item: Record) -> str:
        return f"{self._thread_id}:{item.text('id')}"


def _outcome(item: Record) -> CallOutcome:
    if item.text("status") == "declined":
        return "denied"
    failed = item.text("status") == "failed" or bool(item.get("error")) or item.number("exit_code") not in (None, 0.0)
    return "error" if failed else "ok"


def _result_text(item: Record) -> str:
    if "aggregated_output" in item.raw:
        return item.text("aggregated_output")
    if changes := [f"{change.text('kind')} {change.text('path')}" for change in item.children("changes")]:
        return "\n".join(changes)
    return item.text("error", "message") or joined_text(item.get("result", "content") or item.get("result"))


@dataclass(frozen=True, slots=True)
class Codex(Launch):
    """The real program. It takes no system prompt besides its own; sessions can be resumed."""

    executable: Sequence[str] = ("codex",)
    name: str = "codex"
    env_names: tuple[str, ...] = ("CODEX_*", "OPENAI_*")
    compaction_off: str | None = None
    """See ``Compacts``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``; approvals and sandbox are bypassed unless ``executable`` says something."""
        return self._exec((), request)

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """See ``Resumes``."""
        return self._exec(("resume",), request, session_id)

    def with_mcp(self, command: Command, server: McpServer) -> Command:
        """See ``TakesMcp``; as values of its configuration, in which TOML's strings and lists are JSON's.

        It fails when the server does not answer, and shows the tools to a model that searches for them.
        """
        env = ", ".join(f"{name} = {_toml(value)}" for name, value in server.env.items())
        settings = {
            "command": _toml(server.argv[0]),
            "args": _toml(server.argv[1:]),
            "env": f"{{ {env} }}",
            "startup_timeout_sec": str(START_S),
            "required": "true",
            "default_tools_approval_mode": _toml("approve"),
        }
        flags = [word for key, value in settings.items() for word in ("-c", f"mcp_servers.{NAME}.{key}={value}")]
        start = len(self.executable)
        return replace(command, argv=(*command.argv[:start], *flags, *command.argv[start:]))

    def dialect(self) -> CodexDialect:
        """See ``AgentProgram.dialect``."""
        return CodexDialect()

    def _exec(self, command: Sequence[str], request: TurnRequest, *session: str) -> Command:
        bypass = self.unless_said(
            "--dangerously-bypass-approvals-and-sandbox", instead_of=("--sandbox", "-s", "--approve-for-me")
        )
        model = ("--model", without_provider(request.model, "openai", "codex")) if request.model else ()
        arguments = ("exec", *command, "--json", "--skip-git-repo-check", *bypass, *model, *session, "-")
        return self.fed(arguments, with_system_prompt(request))


def _toml(value: object) -> str:
    return orjson.dumps(value).decode()
