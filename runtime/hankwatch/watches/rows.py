"""A watch as a row of its table: the record, and beside it what is looked for."""

import logging
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, select

from hankwatch.core.errors import BadLine
from hankwatch.watches.codec import decode, encode, identity
from hankwatch.watches.outbox import millis
from hankwatch.watches.tables import watches
from hankwatch.watches.watch import Status, Watch

_CHUNK: Final = 500
"""Ids that fit into one statement."""
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
        return decode(row.record)
    except BadLine as error:
        _LOG.warning("watch %s is left out: %s", row.id, error)
        return None


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
