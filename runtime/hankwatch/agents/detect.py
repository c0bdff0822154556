"""Which program wrote this line? Decided by its shape alone, so any stream can be read."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from hankwatch.agents.claude import ClaudeDialect
from hankwatch.agents.cline import ClineDialect
from hankwatch.agents.codex import CodexDialect
from hankwatch.agents.copilot import CopilotDialect
from hankwatch.agents.envelope import EnvelopeDialect
from hankwatch.agents.gemini import GeminiDialect
from hankwatch.agents.opencode import OpencodeDialect
from hankwatch.agents.openhands import OpenhandsDialect
from hankwatch.agents.pi import PiDialect
from hankwatch.agents.program import Dialect
from hankwatch.agents.qwen import QwenDialect
from hankwatch.agents.records import Record, read_record
from hankwatch.agents.signals import Junk, Signal
from hankwatch.agents.vibe import VibeDialect
from hankwatch.events.catalogue import KNOWN_TYPES

ENVELOPE = "journal"
"""The name that ``program_of`` gives to our own envelope."""

DIALECTS: Mapping[str, Callable[[], Dialect]] = {
    ENVELOPE: EnvelopeDialect,
    "claude": ClaudeDialect,
    "codex": CodexDialect,
    "gemini": GeminiDialect,
    "opencode": OpencodeDialect,
    "pi": PiDialect,
    "qwen": QwenDialect,
    "copilot": CopilotDialect,
    "vibe": VibeDialect,
    "openhands": OpenhandsDialect,
    "cline": ClineDialect,
}
"""Every dialect by its program's name; our own envelope is one of them."""

_CODEX_PREFIXES = ("thread.", "turn.", "item.")
_OPENHANDS_KEYS = frozenset({"kind", "source", "timestamp", "id"})
_COPILOT_KEYS = frozenset({"data", "id", "parentId", "timestamp"})
_COPILOT_RESULT_KEYS = frozenset({"sessionId", "exitCode"})
_VIBE_KEYS = frozenset({"sessionId", "turnId", "generationStatus"})
_GEMINI_KEYS: Mapping[str, str] = {
    "init": "session_id",
    "message": "role",
    "tool_use": "tool_name",
    "tool_result": "tool_id",
    "error": "severity",
    "result": "status",
}
_CLAUDE_KEYS: Mapping[str, str] = {
    "system": "subtype",
    "assistant": "message",
    "user": "message",
    "result": "subtype",
    "stream_event": "event",
}
_CLINE_KEYS: Mapping[str, str] = {
    "hook_event": "hookEventName",
    "agent_event": "event",
    "run_result": "finishReason",
    "run_aborted": "reason",
}
_PI_KEYS: Mapping[str, str] = {
    "session": "version",
    "message_start": "message",
    "message_update": "message",
    "message_end": "message",
    "tool_execution_start": "toolCallId",
    "tool_execution_end": "toolCallId",
    "agent_end": "messages",
}


def _is_copilot(kind: str, record: Record) -> bool:
    keys = _COPILOT_RESULT_KEYS if kind == "result" else _COPILOT_KEYS
    return record.raw.keys() >= keys


def _is_qwen(kind: str, record: Record) -> bool:
    """Claude's lines, told apart by what qwen alone writes; its ``user`` lines have nothing of the kind."""
    if kind == "assistant":
        message_id = record.text("message", "id")
        return message_id != "" and message_id == record.text("uuid")
    return "qwen_code_version" in record.raw or (kind == "result" and "total_tokens" in record.child("usage").raw)


_SHAPES: tuple[tuple[str, Callable[[str, Record], bool]], ...] = (
    (ENVELOPE, lambda kind, record: kind in KNOWN_TYPES and isinstance(record.get("data"), dict)),
    ("openhands", lambda kind, record: not kind and record.raw.keys() >= _OPENHANDS_KEYS),
    ("copilot", _is_copilot),
    ("vibe", lambda _, record: record.raw.keys() >= _VIBE_KEYS),
    ("cline", lambda kind, record: "ts" in record.raw and _CLINE_KEYS.get(kind) in record.raw),
    ("opencode", lambda _, record: record.text("sessionID").startswith("ses_")),
    ("codex", lambda kind, _: kind.startswith(_CODEX_PREFIXES)),
    ("qwen", _is_qwen),
    ("claude", lambda kind, record: _CLAUDE_KEYS.get(kind) in record.raw),
    ("gemini", lambda kind, record: _GEMINI_KEYS.get(kind) in record.raw),
    ("pi", lambda kind, record: _PI_KEYS.get(kind) in record.raw),
)


def program_of(line: bytes) -> str | None:
    """The program whose line this is, or None when the line does not say."""
    record = read_record(line)
    if isinstance(record, Junk):
        return None
    kind = record.text("type")
    return next((name for name, fits in _SHAPES if fits(kind, record)), None)


def detect(lines: Iterable[bytes]) -> str | None:
    """The program that wrote these lines: the first line that says so decides."""
    return next((name for line in lines if (name := program_of(line)) is not None), None)


class DetectingDialect:
    """A dialect that becomes the right one at the first line it knows; what comes before is junk.

    See ``Dialect`` for the members.
    """

    def __init__(self, candidates: Sequence[str] = tuple(DIALECTS)) -> None:
        self._candidates = candidates
        self._dialect: Dialect | None = None

    @property
    def states_result(self) -> bool:
        """See ``Dialect.states_result``; True while unknown, as an output that never says anything has failed."""
        return self._dialect is None or self._dialect.states_result

    @property
    def stamp_ms(self) -> int | None:
        """See ``Dialect.stamp_ms``."""
        return None if self._dialect is None else self._dialect.stamp_ms

    def feed(self, line: bytes) -> list[Signal]:
        """See ``Dialect.feed``."""
        if self._dialect is None:
            if not line.strip():
                return []
            name = program_of(line)
            if name is None or name not in self._candidates:
                return [Junk(line, "no program's line")]
            self._dialect = DIALECTS[name]()
        return self._dialect.feed(line)

    def finish(self) -> list[Signal]:
        """See ``Dialect.finish``."""
        return [] if self._dialect is None else self._dialect.finish()
