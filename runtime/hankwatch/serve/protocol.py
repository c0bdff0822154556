"""The 0.10 WebSocket protocol as data: what clients send, and which order each command is (reference 5)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hankwatch.core.errors import OrderRefused
from hankwatch.runner.orders import Order
from hankwatch.runner.rollback_plan import LAST_SUCCESS

HANDSHAKE_REQUIRED: Final = "HANDSHAKE_REQUIRED"
INSUFFICIENT_PERMISSIONS: Final = "INSUFFICIENT_PERMISSIONS"
HISTORY_LIMIT: Final = 50
"""Events in the answer to a handshake, the newest first."""
READ_ONLY_TOO: Final = frozenset(
    {"checkpoint.list", "ping", "history.sync", "server.shutdown", "server.force_shutdown"}
)
"""What a read-only client may ask for."""


class _Incoming(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class HandshakeData(_Incoming):
    """What a client wants to do."""

    mode: Literal["readonly", "readandwrite"]
    send_previous_events: bool = Field(default=False, alias="sendPreviousEvents")


class Handshake(_Incoming):
    """The first message."""

    type: Literal["handshake"]
    data: HandshakeData


class Request(_Incoming):
    """A command."""

    type: Annotated[str, Field(max_length=100)]
    id: Annotated[str, Field(max_length=200)] | None = None
    data: dict[str, Any] = Field(default={})


def handshake(text: str) -> HandshakeData | None:
    """What the first message asks for; None when it is no handshake."""
    try:
        return Handshake.model_validate_json(text).data
    except ValidationError:
        return None


def request(text: str) -> Request | None:
    """A command; None for what is none."""
    try:
        return Request.model_validate_json(text)
    except ValidationError:
        return None


@dataclass(frozen=True, slots=True)
class Ordered:
    """What a command asks of a run."""

    order: Order
    target: str | None = None
    """Of a rollback."""
    go_on: bool = False
    """After a rollback, start the next codon at once."""


def order_of(asked: Request) -> Ordered:
    """The order that a command is.

    Raises:
        OrderRefused: this runtime does not have it, or it lacks what it needs.
    """
    if (instead := _INSTEAD.get(asked.type)) is not None:
        raise OrderRefused(f"{asked.type} is not carried out here: {instead}")
    found = _ORDERS.get(asked.type)
    if found is None:
        raise OrderRefused(f"{asked.type!r} is no command here; there are {', '.join(sorted({*_ORDERS, *_OTHERS}))}")
    return found(asked.data)


def _rollback(target: Callable[[Mapping[str, Any]], str]) -> Callable[[Mapping[str, Any]], Ordered]:
    return lambda data: Ordered(Order.ROLLBACK, target(data), go_on=data.get("autoRestart") is True)


def _codon(data: Mapping[str, Any]) -> str:
    return f"{_text(data, 'codonId')}:{_text(data, 'checkpointType')}"


def _text(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not value:
        raise OrderRefused(f"data.{name} is missing")
    return value


def _plain(order: Order) -> Callable[[Mapping[str, Any]], Ordered]:
    return lambda _: Ordered(order)


_ORDERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Ordered]]] = {
    "codon.next": _plain(Order.NEXT),
    "codon.skip": _plain(Order.SKIP),
    "codon.forceStop": _plain(Order.FORCE_STOP),
    "checkpoint.list": _plain(Order.CHECKPOINTS),
    "rollback.toCheckpoint": _rollback(lambda data: _text(data, "checkpointSha")),
    "rollback.toCodon": _rollback(_codon),
    "rollback.toLastSuccess": _rollback(lambda _: LAST_SUCCESS),
    "server.shutdown": _plain(Order.STOP),
    "server.force_shutdown": _plain(Order.STOP),
}
_INSTEAD: Final[Mapping[str, str]] = {
    "codon.start": "codons start in the hank's order; codon.next starts the one that the run waits with, and"
    " rollback.toCodon with autoRestart goes back to an earlier one",
    "codon.redo": "codon.next tries a codon that failed again, and rollback.toCodon with autoRestart goes back to"
    " before one and on from there",
}
"""Commands of the protocol that no reference describes, and what does the same here."""
_OTHERS: Final = frozenset({"ping", "ping.broadcast", "history.sync"})
