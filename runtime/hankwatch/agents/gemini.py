"""Gemini CLI: ``gemini --output-format stream-json``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.launch import Launch, without_provider
from hankwatch.agents.program import Command, TurnRequest, with_system_prompt
from hankwatch.agents.records import Record, remainder
from hankwatch.agents.signals import (
    CallOutcome,
    ModelUse,
    Reported,
    Result,
    Signal,
    Spoke,
    Started,
    Streamed,
    Tokens,
    ToolFinished,
    ToolUsed,
    Used,
)

_OUTCOMES: Mapping[str, CallOutcome] = {"policy_violation": "denied", "cancelled": "cancelled"}


class GeminiDialect(TableDialect):
    """Reads the stream; assistant text comes in pieces without an end mark, joined until another type.

    A command that exits non-zero has status ``success`` and no code, so it is ``ok`` here. ``stats``
    states the input without its cached part as ``input``; thoughts are in its total only.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "init": self._init,
                "message": self._message,
                "tool_use": self._tool_use,
                "tool_result": self._tool_result,
                "error": self._error,
                "result": self._result,
            }
        )
        self._model: str | None = None
        self._pieces: list[str] = []
        self._answer = ""

    def meaning(self, kind: str, record: Record) -> Iterable[Signal]:
        """See ``TableDialect.meaning``; whatever is not a further piece ends the text before it."""
        if not (kind == "message" and record.text("role") == "assistant"):
            yield from self.finish()
        yield from super().meaning(kind, record)

    def finish(self) -> list[Signal]:
        """The text held back, as one message."""
        text = "".join(self._pieces)
        self._pieces.clear()
        if not text:
            return []
        self._answer = text
        return [Spoke("message", text)]

    def _init(self, record: Record) -> Iterator[Signal]:
        self._model = record.text("model") or None
        yield Started(record.text("session_id"), self._model)

    def _message(self, record: Record) -> Iterator[Signal]:
        if record.text("role") != "assistant":
            return
        text = record.text("content")
        if record.flag("delta"):
            self._pieces.append(text)
            yield Streamed("message", text)
        # A whole message repeats the pieces before it, or stands alone.
        elif text != "".join(self._pieces):
            yield from self.finish()
            self._pieces.append(text)

    def _tool_use(self, record: Record) -> Iterator[Signal]:
        yield ToolUsed(record.text("tool_id"), record.text("tool_name"), record.child("parameters").raw)

    def _tool_result(self, record: Record) -> Iterator[Signal]:
        error = record.child("error")
        failed = bool(error) or record.text("status") not in ("success", "")
        kind = error.text("type") or record.text("status")
        outcome: CallOutcome = _OUTCOMES.get(kind, "error") if failed else "ok"
        yield ToolFinished(record.text("tool_id"), record.text("output") or error.text("message"), outcome, failed)

    def _error(self, record: Record) -> Iterator[Signal]:
        severity = record.text("severity")
        yield Reported(record.text("message"), "warning" if severity == "warning" else "error")

    def _result(self, record: Record) -> Iterator[Signal]:
        stats = record.child("stats")
        models = stats.child("models")
        by_model = {name: ModelUse(_tokens(models.child(name))) for name in models.raw}
        yield Used(_tokens(stats), model=self._model, total=True, by_model=by_model)
        status = record.text("status")
        yield Result(
            success=status == "success",
            is_error=bool(record.child("error")),
            text=record.text("error", "message") or self._answer,
            subtype=status,
        )


def _tokens(stats: Record) -> Tokens:
    cached = stats.count("cached")
    return Tokens(remainder(stats.count("input_tokens"), cached), stats.count("output_tokens"), 0, cached)


@dataclass(frozen=True, slots=True)
class Gemini(Launch):
    """The real program. A system prompt of one's own would replace its own, so ours goes into the prompt.

    It can be given no MCP server for one run: beside its user's and the workspace's settings it reads only root's.
    """

    executable: Sequence[str] = ("gemini",)
    name: str = "gemini"
    env_names: tuple[str, ...] = ("GEMINI_*", "GOOGLE_*")
    compaction_off: str | None = None
    """See ``Compacts``."""

    def command(self, request: TurnRequest) -> Command:
        """See ``AgentProgram.command``; all tools are approved unless ``executable`` says something itself."""
        return self._command(request)

    def resume(self, request: TurnRequest, session_id: str) -> Command:
        """See ``Resumes``."""
        return self._command(request, "--resume", session_id)

    def dialect(self) -> GeminiDialect:
        """See ``AgentProgram.dialect``."""
        return GeminiDialect()

    def _command(self, request: TurnRequest, *session: str) -> Command:
        approval = self.unless_said("--approval-mode", "yolo", instead_of=("--yolo", "-y"))
        model = ("--model", without_provider(request.model, "google", "gemini")) if request.model else ()
        # It runs its tools in trusted folders only, and starts itself anew to get more memory.
        env = {"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_CLI_NO_RELAUNCH": "1"}
        return self.fed(
            ("--output-format", "stream-json", *approval, *model, *session), with_system_prompt(request), env
        )
