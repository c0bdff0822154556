"""A watch: what was armed, and what its checks have left behind (spec watches 1 and 3)."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from hankwatch.watches.specs import VerifierSpec

MAX_EVIDENCE_CHARS: Final = 2_000
"""Of a check's evidence, what is kept."""


class Kind(StrEnum):
    """A row of the policy table; only ``policies`` reads it."""

    WATCH = "watch"
    AGENT_WATCH = "agent_watch"
    MONITOR = "monitor"


class Trigger(StrEnum):
    """When a watch fires."""

    MET = "met"
    """The condition becomes true."""
    CHANGE = "change"
    """The value moves."""


class Status(StrEnum):
    """Where a watch is in its life."""

    PROPOSED = "proposed"
    ACTIVE = "active"
    ENDED = "ended"


class EndReason(StrEnum):
    """Why a watch has ended."""

    SATISFIED = "satisfied"
    CHANGED = "changed"
    IMPOSSIBLE = "impossible"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    ACCESS_REVOKED = "access_revoked"
    CHECK_CHANGED = "check_changed"
    REJECTED = "rejected"

    @property
    def signal(self) -> "Signal":
        """What tells of such an ending; those without a signal of their own are cancelled (spec watches 3)."""
        return _SIGNALS.get(self, Signal.CANCELLED)


class Signal(StrEnum):
    """Everything a watch can tell: event type, hook, toast, metric and ``notify_on`` are all this list."""

    ARMED = "armed"
    UPDATED = "updated"
    MET = "met"
    CHANGED = "changed"
    IMPOSSIBLE = "impossible"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    STALLED = "stalled"
    BROKEN = "broken"
    RECOVERED = "recovered"
    FLAPPING = "flapping"


_SIGNALS: Final = {
    EndReason.SATISFIED: Signal.MET,
    EndReason.CHANGED: Signal.CHANGED,
    EndReason.IMPOSSIBLE: Signal.IMPOSSIBLE,
    EndReason.EXPIRED: Signal.EXPIRED,
}
WITHDRAWN: Final = frozenset({EndReason.CANCELLED, EndReason.ACCESS_REVOKED})
"""Endings after which no fire of the watch wakes a session or calls a hook any more."""
DEFAULT_NOTIFY_ON: Final = frozenset({Signal.MET, Signal.CHANGED, Signal.IMPOSSIBLE, Signal.BROKEN})


class Outcome(StrEnum):
    """What a check says."""

    SATISFIED = "satisfied"
    TERMINAL_UNSATISFIED = "terminal_unsatisfied"
    """It can no longer become true."""
    PENDING = "pending"
    UNAVAILABLE = "unavailable"
    """No claim is made."""


class ErrorKind(StrEnum):
    """Why a check made no claim."""

    TIMEOUT = "timeout"
    CRASHED = "crashed"
    NOT_FOUND = "not_found"
    UNAUTHORIZED = "unauthorized"
    RATE_LIMITED = "rate_limited"
    BAD_OUTPUT = "bad_output"
    MISSING = "missing"
    CHECK_CHANGED = "check_changed"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of one check."""

    outcome: Outcome
    reason: str
    """A code, kebab-case, for example ``exit-0``."""
    text: str
    """The reason in words."""
    observed_at: datetime
    value: Any = None
    """JSON; what ``change`` watches compare."""
    digest: str = ""
    """Of the canonical JSON of ``value``; equal values have equal digests."""
    evidence: str = ""
    """For people, at most ``MAX_EVIDENCE_CHARS``; text from the watched world."""
    error: ErrorKind | None = None
    """For ``unavailable``."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What the checks since the last re-aim have left behind; a re-aim starts with a fresh one."""

    was_met: bool = False
    """The last settled check was satisfied: the edge is up."""
    baseline: str | None = None
    """Digest that a ``change`` watch compares with; None until the first settled check."""
    last_digest: str | None = None
    """Of the last settled check, for stalls."""
    stall_streak: int = 0
    """Settled checks in a row that saw no change."""
    stalled: bool = False
    """This stall episode was told."""
    recent_fires: int = 0
    """One bit for each of the last ten settled checks, the latest lowest: whether it fired."""
    flapping: bool = False
    """This flapping episode was told."""
    consecutive_fires: int = 0
    consecutive_errors: int = 0
    """Checks in a row that made no claim."""
    broken: bool = False
    """This episode of no claims was told."""


@dataclass(frozen=True, slots=True)
class Watch:
    """One standing tripwire; changed only by making another one."""

    id: str
    kind: Kind
    tenant: str
    owner: str
    session: str | None
    """The session it belongs to; None for one armed by an operator for nobody."""
    home: str | None
    """Execution directory it was armed in; None: any ``serve`` checks it."""
    condition: str
    verifier: VerifierSpec
    behaviour_digest: str
    """Of what the verifier would do, when it was armed."""
    trigger: Trigger
    repeat: bool
    interval_s: float
    """Seconds between two checks, before jitter."""
    created_at: datetime
    expires_at: datetime | None
    """None: never, which only an operator may say."""
    stall_after: int | None
    run_prompt: str | None
    """The reaction turn's prompt, or the monitor's note."""
    run_session: str | None
    """Where the reaction turn runs; None: in ``session``."""
    actions: frozenset[str]
    """Of ``in_app``, ``wake``, ``hook``, ``event``."""
    notify_on: frozenset[Signal]
    depth: int
    """0 when armed by a user or operator; one more than the turn that armed it was woken at."""
    generation: int = 1
    """Goes up with every re-aim; a check carries the one it read."""
    status: Status = Status.ACTIVE
    end_reason: EndReason | None = None
    finished_at: datetime | None = None
    check_count: int = 0
    fire_count: int = 0
    """Fires of its life, all generations."""
    last_checked_at: datetime | None = None
    last_outcome: Outcome | None = None
    last_reason: str | None = None
    last_evidence: str | None = None
    cursor: int = 0
    """An ``event`` watch: the cursor of the home's journal behind which it still has to look."""
    next_check_at: datetime | None = None
    """None: not polled, because it waits for an event or has ended."""
    max_lateness_s: float = 0.0
    """The most that a check or an expiry came late."""
    memory: Memory = field(default_factory=Memory)
    fault: str | None = None
    """Why its record cannot be read: it is not checked, and nothing is known but what the fields before
    ``condition`` and the status say. It can be cancelled, cleared and replaced."""
