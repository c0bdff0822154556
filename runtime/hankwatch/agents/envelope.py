"""Our own journals, and any command that prints our envelope, read as an agent's output."""

from collections.abc import Iterable, Iterator

from hankwatch.agents.dialect import TableDialect
from hankwatch.agents.records import Record, model_uses
from hankwatch.agents.signals import (
    ContextExceeded,
    LeftOut,
    Recorded,
    Result,
    Retried,
    Signal,
    Started,
    Tokens,
    Used,
)
from hankwatch.agents.translate import CONTEXT_TEXT, RETRY_TEXT
from hankwatch.events.catalogue import KNOWN_TYPES, OPEN_TYPES

_REPEATED = (
    "assistant.action",
    "tool.result",
    "file.updated",
    "filetree.updated",
    "rig.output",
    "rig.setup.completed",
    "rig.setup.failed",
)


class EnvelopeDialect(TableDialect):
    """Reads ``{"id","timestamp","type","data"}`` lines: what the agent did is repeated, the rest is history.

    Totals of a recorded codon (``isFinal``, or a model named as in 0.10) correct the usage before them; a
    recorded ``codon.completed`` is the result. A journal may be cut before it, so none is required.
    What a runtime or its observers say (state, sentinels, watches, infos) is theirs alone, whoever prints it:
    it is left out and counted, as ``unknown_types`` are.
    """

    states_result = False

    def __init__(self) -> None:
        super().__init__(
            {
                **dict.fromkeys(_REPEATED, self._repeated),
                "token.usage": self._usage,
                "info": self._info,
                "codon.started": self._started,
                "codon.completed": self._completed,
            }
        )

    def meaning(self, kind: str, record: Record) -> Iterable[Signal]:
        """See ``TableDialect``; a line that becomes no event here leaves its count."""
        if kind in self._handlers:
            return super().meaning(kind, record)
        if kind in OPEN_TYPES:
            return (LeftOut("runtime_events"),)
        return (LeftOut("observer_events" if kind in KNOWN_TYPES else "unknown_types"),)

    def _repeated(self, record: Record) -> Iterator[Signal]:
        yield Recorded(record.text("type"), record.child("data").raw, record.text("id"))

    def _usage(self, record: Record) -> Iterator[Signal]:
        data = record.child("data")
        yield Used(
            Tokens(
                data.count("inputTokens"),
                data.count("outputTokens"),
                data.count("cacheCreationTokens"),
                data.count("cacheReadTokens"),
            ),
            message_id=record.text("id"),
            model=data.text("modelId") or None,
            cost_usd=data.number("totalCost"),
            total=data.flag("isFinal") or bool(data.child("modelUsage")),
            by_model=model_uses(data.child("modelUsage")),
        )

    def _info(self, record: Record) -> Iterator[Signal]:
        match record.text("data", "code"):
            case "transport-retry":
                yield Retried(record.text("data", "message").removeprefix(RETRY_TEXT))
            case "context-exceeded":
                yield ContextExceeded(record.text("data", "message").removeprefix(CONTEXT_TEXT))
            case _:
                yield LeftOut("infos")

    def _started(self, record: Record) -> Iterator[Signal]:
        yield Started(record.text("data", "sessionId"))

    def _completed(self, record: Record) -> Iterator[Signal]:
        data = record.child("data")
        success = data.flag("success")
        reason = data.text("failureReason", "message") or data.text("failureReason", "type")
        yield Result(success, not success, reason, subtype="success" if success else "failed")
