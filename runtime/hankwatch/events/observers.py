"""Payloads of those that watch: sentinels, the loop watchdog, watches, and the journal's own repair."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from hankwatch.events.payload import CodonPayload, Count, JsonObject, Maybe, Payload, Shape, Usd

StrategyName = Literal["immediate", "debounce", "count", "timeWindow"]
TriggerCause = Literal["match", "quiet", "max_wait", "threshold", "window", "full", "drain"]
FatalErrorType = Literal["template", "configuration", "corruption", "resource"]
SentinelErrorType = Literal[
    "llm-call-failed",
    "template-render-failed",
    "file-write-failed",
    "load-failed",
    "structured-output-invalid",
    "queue-overflow",
    "abandoned",
]
UnloadReason = Literal["codon-complete", "fatal-error", "consecutive-failures", "shutdown"]
WatchKind = Literal["watch", "agent_watch", "monitor"]
DeliveryChannel = Literal["in_app", "wake", "hook", "event"]
DeliveryStatus = Literal["pending", "delivering", "delivered", "held", "suppressed", "dead"]


class SentinelPayload(CodonPayload):
    """A payload that concerns one sentinel of a codon."""

    sentinel_id: str


class ReportToWebsocket(Shape):
    """What connected clients are sent of a sentinel."""

    lifecycle: bool
    errors: bool
    outputs: bool
    triggers: bool


class ReportPlan(Shape):
    """Where and how a sentinel's outputs become report entries (spec sentinels 9)."""

    log_file: str
    last_value_file: str | None
    format: Literal["text", "jsonl"]
    join_string: str | None
    """As it is written between entries, escapes resolved; None where the format has none."""
    start_bytes: Count
    """Size of the file when it was opened; what comes after are this sentinel's entries."""


class SentinelLoaded(SentinelPayload):
    """A sentinel begins to watch its codon."""

    TYPE: ClassVar[str] = "sentinel.loaded"
    model: str
    trigger_type: Literal["event", "sequence"]
    execution_strategy: StrategyName
    conversational: bool
    source: Literal["file", "inline", "stock", "retry"]
    source_path: Maybe[str] = None
    report_to_websocket: Maybe[ReportToWebsocket] = None
    report: Maybe[ReportPlan] = None


class SentinelTriggered(SentinelPayload):
    """A batch of matched events is about to be put to the model."""

    TYPE: ClassVar[str] = "sentinel.triggered"
    trigger_number: int = Field(ge=1)
    strategy: StrategyName
    event_count: Count
    """Events in the batch."""
    queue_size: Count
    """Triggers that still wait behind this one."""
    cause: Maybe[TriggerCause] = None
    """What made the batch due (spec sentinels 4)."""
    event_ids: Maybe[list[str]] = None
    at: Maybe[str] = None
    """The trigger's own instant, a stamp; earlier than the event when it had to wait."""


class OutputTokens(Shape):
    """Tokens of a model call."""

    input: Count
    output: Count


class SentinelOutput(SentinelPayload):
    """What the model said; the report entry is made from this."""

    TYPE: ClassVar[str] = "sentinel.output"
    trigger_number: int = Field(ge=1)
    output_type: Literal["text", "structured"]
    content: str | dict[str, Any] | list[Any]
    """The whole answer: text, or the validated value of a structured one."""
    cost: Usd | None
    tokens: OutputTokens | None
    """None when the provider does not say, or says what cannot be."""
    event_count: Count
    cause: Maybe[TriggerCause] = None
    truncated: Maybe[bool] = None
    """The model stopped at its token limit."""
    omitted: Maybe[Count] = None
    """Events that the prompt did not show whole, for want of room in the model's context window."""
    call_id: Maybe[str] = None
    """The line of the call log."""


class SentinelError(SentinelPayload):
    """A sentinel could not do something; nothing else is touched by it."""

    TYPE: ClassVar[str] = "sentinel.error"
    error_type: SentinelErrorType
    message: str
    retriable: bool
    consecutive_failure_count: Count
    """Failed triggers in a row, this one included."""
    trigger_number: Maybe[int] = None
    """The trigger that failed; ``event_ids`` are its events."""
    event_ids: Maybe[list[str]] = None
    reason: Maybe[Literal["drain", "unload", "crash"]] = None
    """Why triggers were abandoned."""
    count: Maybe[Count] = None
    """How many triggers were dropped or abandoned."""
    trigger_numbers: Maybe[list[int]] = None
    event_counts: Maybe[list[Count]] = None
    """How many of ``event_ids`` belong to each of ``trigger_numbers``, in order."""


class SentinelUnloaded(SentinelPayload):
    """The last thing a sentinel says."""

    TYPE: ClassVar[str] = "sentinel.unloaded"
    reason: UnloadReason
    error_type: Maybe[FatalErrorType] = None
    final_cost: Usd | None
    """Of all calls; None when the price of any is unknown."""
    llm_call_count: Count
    dropped_triggers: Maybe[Count] = None
    """Lost to a full queue, with ``dropped_events`` events in them."""
    dropped_events: Maybe[Count] = None


class WatchdogNudge(CodonPayload):
    """The loop watchdog told the agent that it seems stuck."""

    TYPE: ClassVar[str] = "watchdog.nudge"
    round: Count
    trigger: str
    """The detector that armed: ``error_streak``, ``no_progress``, ``call_repetition``, ``sentence_strict`` …"""
    kind: Literal["escalation", "break_loop"]
    text: str
    nudges_this_turn: Count
    detail: JsonObject
    """Trigger, count, tools; never whole arguments."""
    delivered: Maybe[bool] = None
    """False when the agent can take no nudge."""
    observed: Maybe[bool] = None
    """True when the watchdog only tells what it would do."""


class WatchdogInterrupt(CodonPayload):
    """The loop watchdog ended the agent's turn."""

    TYPE: ClassVar[str] = "watchdog.interrupt"
    round: Count
    trigger: str
    detail: JsonObject
    observed: Maybe[bool] = None
    """True when the watchdog only tells what it would do."""


class WatchSignal(Payload):
    """Something happened to a watch; one type per signal (spec watches 3)."""

    watch_id: str
    kind: WatchKind
    condition: str
    generation: Count
    """Counts the re-aims of the watch."""
    fire: Maybe[Count] = None
    """Number of the fire this reports."""
    session: Maybe[str] = None
    reason: Maybe[str] = None
    value: Maybe[Any] = None
    evidence: Maybe[Any] = None
    """For people; codes and hashes only for an ``agent_watch``."""
    delivery_id: str


class WatchArmed(WatchSignal):
    """A watch became active."""

    TYPE: ClassVar[str] = "watch.armed"


class WatchUpdated(WatchSignal):
    """A watch was edited."""

    TYPE: ClassVar[str] = "watch.updated"


class WatchMet(WatchSignal):
    """A watch's condition came true."""

    TYPE: ClassVar[str] = "watch.met"


class WatchValueChanged(WatchSignal):
    """A watched value moved."""

    TYPE: ClassVar[str] = "watch.value_changed"


class WatchImpossible(WatchSignal):
    """A watch's condition can no longer come true."""

    TYPE: ClassVar[str] = "watch.impossible"


class WatchExpired(WatchSignal):
    """A watch reached its deadline."""

    TYPE: ClassVar[str] = "watch.expired"


class WatchCancelled(WatchSignal):
    """A watch ended without an outcome; ``reason`` says why."""

    TYPE: ClassVar[str] = "watch.cancelled"


class WatchStalled(WatchSignal):
    """A watch saw no change for as long as it was told to mind."""

    TYPE: ClassVar[str] = "watch.stalled"


class WatchBroken(WatchSignal):
    """A watch's verifier could not tell, several times in a row."""

    TYPE: ClassVar[str] = "watch.broken"


class WatchRecovered(WatchSignal):
    """A broken watch's verifier can tell again."""

    TYPE: ClassVar[str] = "watch.recovered"


class WatchFlapping(WatchSignal):
    """A watch fires too often to mean anything."""

    TYPE: ClassVar[str] = "watch.flapping"


class WatchDelivery(Payload):
    """A reaction to a watch did not go out as meant."""

    TYPE: ClassVar[str] = "watch.delivery"
    watch_id: str
    delivery_id: str
    channel: DeliveryChannel
    status: DeliveryStatus
    reason: str


class JournalRepaired(Payload):
    """The journal's torn last line was completed or moved aside."""

    TYPE: ClassVar[str] = "journal.repaired"
    size_bytes: Count = Field(alias="bytes")
    """Length of the torn line."""
    action: Literal["newline", "moved"]
    side_file: Maybe[str] = None


PAYLOADS: tuple[type[Payload], ...] = (
    SentinelLoaded,
    SentinelTriggered,
    SentinelOutput,
    SentinelError,
    SentinelUnloaded,
    WatchdogNudge,
    WatchdogInterrupt,
    WatchArmed,
    WatchUpdated,
    WatchMet,
    WatchValueChanged,
    WatchImpossible,
    WatchExpired,
    WatchCancelled,
    WatchStalled,
    WatchBroken,
    WatchRecovered,
    WatchFlapping,
    WatchDelivery,
    JournalRepaired,
)
"""Every type about those that watch."""
