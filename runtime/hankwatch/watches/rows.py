"""A watch as a row of its table: the record, and beside it what is looked for."""

import logging
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Row, func, select

from hankwatch.core.errors import BadLine
from hankwatch.watches.codec import decode, encode, identity
from hankwatch.watches.delivery import Channel
from hankwatch.watches.outbox import instant, millis
from hankwatch.watches.specs import CheckSpec
from hankwatch.watches.tables import deliveries, evaluations, watches
from hankwatch.watches.watch import DEFAULT_NOTIFY_ON, Kind, Status, Trigger, Watch

E = TypeVar("E", bound=StrEnum)
_CHUNK: Final = 500
"""Ids that fit into one statement."""
_BESIDE: Final = ("id", "tenant", "owner", "session", "home", "kind", "status")
_LOG = logging.getLogger(__name__)


def columns(watch: Watch) -> dict[str, Any]:
    """What the row of a watch says beside its record."""
    due = [at for at in (watch.next_check_at, watch.expires_at) if at is not None]
    active = watch.status is Status.ACTIVE
    return {
        "tenant": watch.tenant,
        "owner": watch.owner,
        "session": watch.session,
        "home": watch.home,
        "kind": watch.kind.value,
        "status": watch.status.value,
        "identity": identity_of(watch),
        "verifier": watch.verifier.type,
        "due_ms": millis(min(due)) if active and due else None,
        "expires_ms": None if watch.expires_at is None else millis(watch.expires_at),
        "touched_ms": millis(watch.last_checked_at or watch.created_at),
        "finished_ms": None if watch.finished_at is None else millis(watch.finished_at),
        "record": encode(watch),
    }


def rows_of(connection: Connection, ids: Sequence[str]) -> list[Row[Any]]:
    """The rows of these watches."""
    return [
        row
        for start in range(0, len(ids), _CHUNK)
        for row in connection.execute(select(watches).where(watches.c.id.in_(ids[start : start + _CHUNK]))).all()
    ]


def read(row: Row[Any]) -> Watch | None:
    """The watch of a row; None, said in the log, when its record cannot be read."""
    try:
        return _recorded(row)
    except BadLine as error:
        _LOG.warning("watch %s is left out: %s", row.id, error)
        return None


def watch_of(connection: Connection, row: Row[Any]) -> Watch:
    """The watch of a row, with its ``fault`` when its record cannot be read."""
    try:
        return _recorded(row)
    except BadLine as error:
        return _unreadable(row, str(error), _generation(connection, row.id))


def _recorded(row: Row[Any]) -> Watch:
    """The watch as its record has it; it is found by the columns beside, so both have to say the same."""
    watch = decode(row.record)
    for name in _BESIDE:
        if getattr(watch, name) != getattr(row, name):
            raise BadLine(f"the record of a watch: its {name} is not that of its row")
    return watch


def _unreadable(row: Row[Any], fault: str, generation: int) -> Watch:
    """What the columns beside the record still say."""
    return Watch(
        id=row.id,
        kind=_known(Kind, row.kind, Kind.WATCH),
        tenant=row.tenant,
        owner=row.owner,
        session=row.session,
        home=row.home,
        condition="(its record cannot be read)",
        verifier=CheckSpec(type="check", name="unreadable"),
        behaviour_digest="",
        trigger=Trigger.MET,
        repeat=False,
        interval_s=0.0,
        created_at=instant(row.touched_ms),
        expires_at=None if row.expires_ms is None else instant(row.expires_ms),
        stall_after=None,
        run_prompt=None,
        run_session=None,
        actions=frozenset({Channel.EVENT.value}),
        notify_on=DEFAULT_NOTIFY_ON,
        depth=0,
        generation=generation,
        status=_known(Status, row.status, Status.ACTIVE),
        finished_at=None if row.finished_ms is None else instant(row.finished_ms),
        fault=fault,
    )


def _known(kind: type[E], said: str, usual: E) -> E:
    try:
        return kind(said)
    except ValueError:
        return usual


def _generation(connection: Connection, watch_id: str) -> int:
    """The highest that was decided on or told of: what comes after it has delivery ids of its own."""
    checked = connection.scalar(select(func.max(evaluations.c.generation)).where(evaluations.c.watch_id == watch_id))
    told = connection.scalars(select(deliveries.c.id).where(deliveries.c.watch_id == watch_id))
    parts = (delivery_id.split(":") for delivery_id in told)
    return max([checked or 0, *(int(part[2]) for part in parts if len(part) == 4 and part[2].isdigit())])


def identity_of(watch: Watch) -> str:
    """See ``codec.identity``."""
    return identity(
        kind=watch.kind,
        tenant=watch.tenant,
        owner=watch.owner,
        session=watch.session,
        home=watch.home,
        spec=watch.verifier,
        condition=watch.condition,
    )
