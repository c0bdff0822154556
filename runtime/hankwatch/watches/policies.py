"""What each kind of watch may do: one row per kind, and nothing else reads the kind (spec watches 2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from hankwatch.watches.watch import Kind

MINUTE_S: Final = 60.0
HOUR_S: Final = 3_600.0
DAY_S: Final = 86_400.0


class Activation(Enum):
    """How a watch becomes active."""

    BY_TRUST = auto()
    """An operator's, or one with a safe verifier: at once; else it is a proposal."""
    BY_APPROVAL = auto()
    """Always a proposal; the approval checks at once."""
    AT_ONCE = auto()
    """Armed by an agent's turn."""


class AtExpiry(Enum):
    """What happens at the deadline."""

    FINAL_CHECK = auto()
    """Once more; true exactly at the deadline still notifies."""
    NEVER_FIRES = auto()


class Evidence(Enum):
    """What is kept of what a check saw."""

    TEXT = auto()
    DIGESTS = auto()
    """Hashes, reason codes, stamps; never text."""
    SNAPSHOT = auto()


class WakeForm(Enum):
    """What the woken session is told."""

    CONDITION = auto()
    """Condition, prompt, evidence block."""
    PING = auto()
    """That there is something to read; no content."""
    MONITOR_EVENT = auto()
    """The marker ``[monitor event]``, the note, a snapshot block."""


class OnCheckChanged(Enum):
    """What a changed behaviour of the check does."""

    UNAVAILABLE = auto()
    """Until an operator accepts it."""
    END = auto()
    """At once, with a notice."""


@dataclass(frozen=True, slots=True)
class Caps:
    """How many may be active at once; None where there is no such cap. Operators are not capped."""

    per_session: int | None = None
    per_owner: int | None = None
    per_instance: int | None = None
    per_tenant_actor_session: int | None = None
    tools_per_owner: int | None = None
    """Watches of an owner whose verifier is a check."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One row of the table."""

    activation: Activation
    verifiers: frozenset[str]
    """Types it may have."""
    pinned_only: bool
    """A check needs its exact version."""
    floors_s: Mapping[str, float]
    """Least seconds between two checks, by cost: cheap, process, remote."""
    check_floor_s: float
    """The same for registered checks, whatever they cost."""
    cadences_s: tuple[float, ...] | None
    """The only intervals allowed, or None for any above the floor."""
    default_window_s: float | None
    """None: a window must be named."""
    max_window_s: float
    windows_s: tuple[float, ...] | None
    """The only windows allowed, or None for any."""
    at_expiry: AtExpiry
    caps: Caps
    max_fires_per_day: int
    """Of a session; what is over it is held."""
    repeats: bool
    """It may fire more than once."""
    max_depth: int | None
    """Deepest turn that may arm one: 0 a user's, 1 a woken one; None for no limit."""
    actions: frozenset[str]
    """What it may do."""
    wake: WakeForm
    evidence: Evidence
    on_check_changed: OnCheckChanged


_FLOORS_S: Final = {"cheap": 5.0, "process": 15.0, "remote": 60.0}

POLICIES: Final[Mapping[Kind, Policy]] = {
    Kind.WATCH: Policy(
        activation=Activation.BY_TRUST,
        verifiers=frozenset({"event", "time", "document", "command", "check"}),
        pinned_only=False,
        floors_s=_FLOORS_S,
        check_floor_s=0.0,
        cadences_s=None,
        default_window_s=DAY_S,
        max_window_s=7 * DAY_S,
        windows_s=None,
        at_expiry=AtExpiry.FINAL_CHECK,
        caps=Caps(per_session=20, per_instance=200),
        max_fires_per_day=20,
        repeats=True,
        max_depth=None,
        actions=frozenset({"hook", "wake", "in_app", "event"}),
        wake=WakeForm.CONDITION,
        evidence=Evidence.TEXT,
        on_check_changed=OnCheckChanged.UNAVAILABLE,
    ),
    Kind.AGENT_WATCH: Policy(
        activation=Activation.BY_APPROVAL,
        verifiers=frozenset({"check"}),
        pinned_only=True,
        floors_s={"cheap": MINUTE_S, "process": MINUTE_S, "remote": MINUTE_S},
        check_floor_s=MINUTE_S,
        cadences_s=(MINUTE_S, 5 * MINUTE_S, 15 * MINUTE_S, 60 * MINUTE_S),
        default_window_s=None,
        max_window_s=DAY_S,
        windows_s=(30 * MINUTE_S, HOUR_S, 2 * HOUR_S, 6 * HOUR_S, 12 * HOUR_S, DAY_S),
        at_expiry=AtExpiry.FINAL_CHECK,
        caps=Caps(per_tenant_actor_session=3),
        max_fires_per_day=20,
        repeats=False,
        max_depth=None,
        actions=frozenset({"in_app", "wake", "event"}),
        wake=WakeForm.PING,
        evidence=Evidence.DIGESTS,
        on_check_changed=OnCheckChanged.UNAVAILABLE,
    ),
    Kind.MONITOR: Policy(
        activation=Activation.AT_ONCE,
        verifiers=frozenset({"document", "time", "check"}),
        pinned_only=False,
        floors_s={"cheap": MINUTE_S, "process": 5 * MINUTE_S, "remote": 5 * MINUTE_S},
        check_floor_s=5 * MINUTE_S,
        cadences_s=None,
        default_window_s=DAY_S,
        max_window_s=7 * DAY_S,
        windows_s=None,
        at_expiry=AtExpiry.NEVER_FIRES,
        caps=Caps(per_session=10, per_owner=50, tools_per_owner=10),
        max_fires_per_day=20,
        repeats=False,
        max_depth=1,
        actions=frozenset({"wake", "event"}),
        wake=WakeForm.MONITOR_EVENT,
        evidence=Evidence.SNAPSHOT,
        on_check_changed=OnCheckChanged.END,
    ),
}
"""The table."""


def policy(kind: Kind) -> Policy:
    """The row of a kind."""
    return POLICIES[kind]
