"""Whether one more watch may be active (spec watches 2, "caps")."""

from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, select, true

from hankwatch.core.errors import CapReached
from hankwatch.watches.policies import Caps
from hankwatch.watches.tables import watches
from hankwatch.watches.watch import Status, Watch

_SHOWN_HOLDERS: Final = 20


def require_room(connection: Connection, watch: Watch, caps: Caps) -> None:
    """See that a watch may become active; what an operator armed takes no place.

    Raises:
        CapReached: as many are active as may be; those of the asker are named.
    """
    tenant, owner = watches.c.tenant == watch.tenant, watches.c.owner == watch.owner
    session = watches.c.session == watch.session
    of_tools = caps.tools_per_owner if watch.verifier.type == "check" else None
    limits: list[tuple[str, int | None, ColumnElement[bool]]] = [
        ("session", caps.per_session, and_(tenant, session)),
        ("owner", caps.per_owner, and_(tenant, owner)),
        ("instance", caps.per_instance, true()),
        ("tenant, actor and session", caps.per_tenant_actor_session, and_(tenant, owner, session)),
        ("owner that check a tool", of_tools, and_(tenant, owner, watches.c.verifier == "check")),
    ]
    live = and_(
        watches.c.kind == watch.kind.value,
        watches.c.status == Status.ACTIVE.value,
        watches.c.counts.is_(other=True),
        watches.c.id != watch.id,
    )
    for what, limit, where in limits:
        if limit is None:
            continue
        holders = connection.execute(
            select(watches.c.id, watches.c.tenant, watches.c.owner).where(live, where).order_by(watches.c.id)
        ).all()
        if len(holders) >= limit:
            mine = [row.id for row in holders if (row.tenant, row.owner) == (watch.tenant, watch.owner)]
            raise CapReached(watch.kind.value, what, limit, mine[:_SHOWN_HOLDERS])
