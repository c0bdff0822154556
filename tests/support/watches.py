"""Watches and observations as tests need them."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from hankwatch.watches.specs import CommandSpec, VerifierSpec
from hankwatch.watches.watch import (
    DEFAULT_NOTIFY_ON,
    ErrorKind,
    Kind,
    Observation,
    Outcome,
    Trigger,
    Watch,
)

START: Final = datetime(2030, 1, 1, tzinfo=UTC)
COMMAND: Final = CommandSpec(type="command", command=["true"])


def at(seconds: float) -> datetime:
    """So long after the start."""
    return START + timedelta(seconds=seconds)


def a_watch(
    *,
    kind: Kind = Kind.WATCH,
    trigger: Trigger = Trigger.MET,
    repeat: bool = False,
    expires_s: float | None = 3_600,
    stall_after: int | None = None,
    interval_s: float = 30,
    verifier: VerifierSpec = COMMAND,
    **more: Any,
) -> Watch:
    """An active watch of alice's in session ``main``, armed at the start."""
    fields: dict[str, Any] = {
        "id": "deploy-done-1a2b3c",
        "tenant": "acme",
        "owner": "alice",
        "session": "main",
        "home": None,
        "condition": "the deploy is done",
        "behaviour_digest": "d0",
        "run_prompt": None,
        "run_session": None,
        "actions": frozenset({"wake", "in_app", "event"}),
        "notify_on": DEFAULT_NOTIFY_ON,
        "depth": 0,
        "created_at": START,
        "next_check_at": START,
    }
    return Watch(
        kind=kind,
        trigger=trigger,
        repeat=repeat,
        interval_s=interval_s,
        expires_at=None if expires_s is None else at(expires_s),
        stall_after=stall_after,
        verifier=verifier,
        **(fields | more),
    )


def seen(outcome: Outcome, value: Any = None, *, error: ErrorKind | None = None, at_s: float = 0) -> Observation:
    """What a check said."""
    return Observation(
        outcome,
        outcome.value.replace("_", "-"),
        "as a test says",
        at(at_s),
        value,
        orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode(),
        evidence=f"value {value}",
        error=error or (ErrorKind.TIMEOUT if outcome is Outcome.UNAVAILABLE else None),
    )


def satisfied(value: Any = None) -> Observation:
    return seen(Outcome.SATISFIED, value)


def pending(value: Any = None) -> Observation:
    return seen(Outcome.PENDING, value)


def impossible() -> Observation:
    return seen(Outcome.TERMINAL_UNSATISFIED)


def unavailable(error: ErrorKind = ErrorKind.TIMEOUT) -> Observation:
    return seen(Outcome.UNAVAILABLE, error=error)
