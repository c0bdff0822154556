"""Where watches live: every change of one is a transaction with its evaluation and its deliveries (spec watches 7).

All methods block for a database; call them in a worker thread. Several processes may use one store.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Update,
    and_,
    delete,
    func,
    insert,
    or_,
    select,
    true,
    update,
)

from hankwatch.core.errors import BadLine, CapReached
from hankwatch.watches.codec import decode, encode, identity
from hankwatch.watches.database import Database
from hankwatch.watches.decide import Decision, Raised
from hankwatch.watches.delivery import Channel, DeliveryStatus, reactions, told
from hankwatch.watches.evaluation import Evaluation
from hankwatch.watches.outbox import held_notice, instant, millis, row_of
from hankwatch.watches.policies import POLICIES, Caps, policy
from hankwatch.watches.tables import deliveries, engines, evaluations, watches
from hankwatch.watches.watch import EndReason, Kind, Observation, Signal, Status, Watch

_LOG = logging.getLogger(__name__)
_LONGEST_LEASE_MS: Final = 2 * 3_600_000
"""A lease that ends later was taken before the clock went back."""
_CLOCK_SLACK_MS: Final = 1_000
_SHOWN_HOLDERS: Final = 20
_WITHDRAWN: Final = frozenset({EndReason.CANCELLED, EndReason.ACCESS_REVOKED})
"""Endings after which nothing may wake a session any more."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose watches an engine checks and delivers (design "How it runs" 13)."""

    homes: frozenset[str] | None
    """Execution directories; None for all."""
    homeless: bool
    """Those without a home too."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to check one watch, until somebody else takes it."""

    watch: Watch
    """As it was when the lease was taken."""
    fence: int
    due_at: datetime


@dataclass(frozen=True, slots=True)
class Liveness:
    """Whether watches are being polled."""

    last_loop_at: datetime | None
    """Of the engine that looked last; None when none ever did."""
    most_overdue: str | None
    """Id of the active watch that has waited longest past its instant."""
    lag_s: float
    """How long; 0 when nothing is overdue."""


class WatchStore:
    """See the module.

    Args:
        database: Where.
        caps: Caps instead of the policy table's.
    """

    def __init__(self, database: Database, caps: Mapping[Kind, Caps] | None = None) -> None:
        self.database = database
        self._caps = {kind: row.caps for kind, row in POLICIES.items()} | dict(caps or {})

    def arm(self, watch: Watch, *, counts: bool, now: datetime, applied: bool = False) -> tuple[Watch, bool]:
        """Store a proposed or active watch; an identical one under another id that is live is returned instead.

        A row of the same id is replaced when it is the same owner's: its generation goes up by one.

        Args:
            watch: Valid by its policy row.
            counts: It is held to the caps; an operator's is not.
            now: The instant of arming.
            applied: It belongs to its owner's applied set.

        Returns:
            The watch as it stands, and whether it is new.

        Raises:
            CapReached: too many are active.
            StoreFailed: the database failed.
        """
        same = identity(
            kind=watch.kind,
            tenant=watch.tenant,
            owner=watch.owner,
            session=watch.session,
            spec=watch.verifier,
            condition=watch.condition,
        )

        def work(connection: Connection) -> tuple[Watch, bool]:
            mine = connection.execute(select(watches).where(watches.c.id == watch.id).with_for_update()).first()
            if mine is None and (twin := _live_twin(connection, same)) is not None:
                return twin, False
            fresh = watch
            if mine is not None:
                fresh = replace(watch, generation=decode(mine.record).generation + 1)
            if fresh.status is Status.ACTIVE and counts:
                self._require_room(connection, fresh)
            version = 1 if mine is None else mine.version + 1
            values = _columns(fresh) | {
                "identity": same,
                "applied": applied,
                "counts": counts,
                "version": version,
                "leased_until_ms": 0,
            }
            if mine is None:
                connection.execute(insert(watches).values(id=fresh.id, fence=0, **values))
            else:
                connection.execute(
                    update(watches).where(watches.c.id == fresh.id).values(fence=mine.fence + 1, **values)
                )
            if fresh.status is Status.ACTIVE:
                for delivery in told(fresh, Raised(Signal.ARMED, None, "armed"), version, now):
                    connection.execute(insert(deliveries).values(row_of(delivery)))
            return fresh, True

        return self.database.serializable(work)

    def get(self, watch_id: str) -> Watch | None:
        """The watch, or None when there is none (or its record cannot be read)."""
        with self.database.reading() as connection:
            row = connection.execute(select(watches).where(watches.c.id == watch_id)).first()
        return None if row is None else _read(row)

    def find(
        self,
        *,
        tenant: str | None = None,
        owner: str | None = None,
        session: str | None = None,
        home: str | None = None,
        statuses: Iterable[Status] = tuple(Status),
        prefix: str = "",
        applied: bool | None = None,
        verifiers: Iterable[str] | None = None,
        limit: int = 10_000,
    ) -> list[Watch]:
        """The watches that fit everything given, by id."""
        asked = {"tenant": tenant, "owner": owner, "session": session, "home": home, "applied": applied}
        query = select(watches).where(watches.c.status.in_([status.value for status in statuses]))
        for name, value in asked.items():
            if value is not None:
                query = query.where(watches.c[name] == value)
        if verifiers is not None:
            query = query.where(watches.c.verifier.in_(sorted(verifiers)))
        if prefix:
            query = query.where(watches.c.id.startswith(prefix, autoescape=True))
        with self.database.reading() as connection:
            rows = connection.execute(query.order_by(watches.c.id).limit(limit)).all()
        return [watch for row in rows if (watch := _read(row)) is not None]

    def change(self, watch_id: str, work: Callable[[Watch], Decision | None], now: datetime) -> Watch | None:
        """Replace a watch by what ``work`` makes of it as it stands, with the deliveries of that.

        A check that runs meanwhile is decided on what stands then; one that became something else is not.

        Args:
            watch_id: Which.
            work: Pure; None leaves all as it is. May be called again.
            now: The instant of the change.

        Returns:
            The watch afterwards, or None when there is none.

        Raises:
            CapReached: it would become active, and too many are.
        """

        def apply(connection: Connection) -> Watch | None:
            row = connection.execute(select(watches).where(watches.c.id == watch_id).with_for_update()).first()
            if row is None:
                return None
            before = decode(row.record)
            decision = work(before)
            if decision is None:
                return before
            if decision.watch.status is Status.ACTIVE and before.status is not Status.ACTIVE and row.counts:
                self._require_room(connection, decision.watch)
            self._write(connection, row, decision, now)
            return decision.watch

        return self.database.serializable(apply)

    def delete(self, watch_id: str) -> bool:
        """Forget a watch, its evaluations and what was to be told of it; False when there is none."""
        with self.database.writing() as connection:
            found = connection.execute(delete(watches).where(watches.c.id == watch_id)).rowcount
            connection.execute(delete(evaluations).where(evaluations.c.watch_id == watch_id))
            connection.execute(delete(deliveries).where(deliveries.c.watch_id == watch_id))
        return found > 0

    def purge(self, finished_before: datetime) -> int:
        """Forget watches that ended before; what still waits to be told keeps its watch. Returns how many."""
        waits = select(deliveries.c.watch_id).where(deliveries.c.status.in_(["pending", "delivering"]))
        with self.database.writing() as connection:
            old = connection.scalars(
                select(watches.c.id).where(
                    watches.c.status == Status.ENDED.value,
                    watches.c.finished_ms < millis(finished_before),
                    watches.c.id.not_in(waits),
                )
            ).all()
            for table, key in ((watches, "id"), (evaluations, "watch_id"), (deliveries, "watch_id")):
                connection.execute(delete(table).where(table.c[key].in_(old)))
        return len(old)

    def take(
        self,
        scope: Scope,
        now: datetime,
        *,
        limit: int,
        lease_s: Callable[[Watch], float],
        final: bool = False,
    ) -> list[Lease]:
        """Lease up to ``limit`` due watches that nobody checks, most overdue first.

        Args:
            scope: Whose.
            now: The instant to be due at.
            limit: How many at most.
            lease_s: How long a check may take before somebody else may take it over.
            final: Only those at their deadline.
        """
        now_ms = millis(now)
        query = _due(select(watches), scope, now_ms).order_by(watches.c.due_ms).limit(limit)
        if final:
            query = query.where(watches.c.expires_ms <= now_ms)
        leases = list[Lease]()
        with self.database.writing() as connection:
            for row in connection.execute(query.with_for_update(skip_locked=True)).all():
                watch = _read(row)
                values: dict[str, Any] = {"fence": row.fence + 1}
                if watch is None:  # delays no other
                    values["due_ms"] = None
                else:
                    values["leased_until_ms"] = now_ms + int(lease_s(watch) * 1000)
                connection.execute(update(watches).where(watches.c.id == row.id).values(**values))
                if watch is not None:
                    leases.append(Lease(watch, row.fence + 1, instant(row.due_ms)))
        return leases

    def take_one(self, watch_id: str, now: datetime, *, lease_s: Callable[[Watch], float]) -> Lease | None:
        """Lease an active watch now, whether or not it is due; None when somebody checks it."""
        now_ms = millis(now)
        query = select(watches).where(
            watches.c.id == watch_id, watches.c.status == Status.ACTIVE.value, watches.c.leased_until_ms <= now_ms
        )
        with self.database.writing() as connection:
            row = connection.execute(query.with_for_update(skip_locked=True)).first()
            if row is None or (watch := _read(row)) is None:
                return None
            connection.execute(
                update(watches)
                .where(watches.c.id == watch_id)
                .values(fence=row.fence + 1, leased_until_ms=now_ms + int(lease_s(watch) * 1000))
            )
        return Lease(watch, row.fence + 1, now)

    def recover_clock(self, now: datetime) -> None:
        """Let nothing wait for instants that were set before the clock went back."""
        now_ms = millis(now)
        active = watches.c.status == Status.ACTIVE.value
        with self.database.writing() as connection:
            connection.execute(
                update(watches).where(active, watches.c.checked_ms > now_ms + _CLOCK_SLACK_MS).values(due_ms=now_ms)
            )
            for table in (watches, deliveries):
                connection.execute(
                    update(table).where(table.c.leased_until_ms > now_ms + _LONGEST_LEASE_MS).values(leased_until_ms=0)
                )

    def next_due(self, scope: Scope) -> datetime | None:
        """When the next watch of the scope is due; None when none waits."""
        query = select(func.min(watches.c.due_ms)).where(watches.c.status == Status.ACTIVE.value, _in_scope(scope))
        with self.database.reading() as connection:
            due_ms = connection.execute(query).scalar()
        return None if due_ms is None else instant(due_ms)

    def expedite(self, watch_ids: Sequence[str], now: datetime) -> None:
        """Let active watches be due now, because something about them happened."""
        with self.database.writing() as connection:
            connection.execute(
                update(watches)
                .where(watches.c.id.in_(watch_ids), watches.c.status == Status.ACTIVE.value)
                .values(due_ms=millis(now))
            )

    def settle(
        self, lease: Lease, seen: Observation, work: Callable[[Watch], Decision | None], now: datetime
    ) -> Decision | None:
        """Decide a check on the watch as it stands, and commit transition, evaluation and deliveries together.

        Returns:
            The decision, or None when ``work`` made none or the lease is stale: the watch is gone, has ended,
            was re-aimed, or somebody else checks it.
        """
        with self.database.writing() as connection:
            row = connection.execute(
                select(watches)
                .where(
                    watches.c.id == lease.watch.id,
                    watches.c.fence == lease.fence,
                    watches.c.status == Status.ACTIVE.value,
                )
                .with_for_update()
            ).first()
            if row is None or (watch := decode(row.record)).generation != lease.watch.generation:
                return None
            late_s = max(0.0, (now - lease.due_at).total_seconds())
            if (decision := work(watch)) is None:
                connection.execute(update(watches).where(watches.c.id == row.id).values(leased_until_ms=0))
                return None
            decision = replace(
                decision,
                watch=replace(decision.watch, max_lateness_s=max(decision.watch.max_lateness_s, round(late_s, 3))),
            )
            self._write(connection, row, decision, now)
            connection.execute(
                insert(evaluations).values(Evaluation.of(watch, seen, row.version + 1, late_s).columns())
            )
        return decision

    def release(self, lease: Lease) -> None:
        """Give a lease back without a check."""
        with self.database.writing() as connection:
            connection.execute(
                update(watches)
                .where(watches.c.id == lease.watch.id, watches.c.fence == lease.fence)
                .values(leased_until_ms=0)
            )

    def evaluations(self, watch_id: str, limit: int = 100) -> list[Evaluation]:
        """The latest evaluations of a watch, newest first."""
        query = select(evaluations).where(evaluations.c.watch_id == watch_id)
        with self.database.reading() as connection:
            rows = connection.execute(query.order_by(evaluations.c.number.desc()).limit(limit)).all()
        return [Evaluation.of_row(row) for row in rows]

    def beat(self, engine_id: str, scope: str, now: datetime) -> None:
        """An engine says that it looks."""
        values = {"scope": scope, "looped_ms": millis(now)}
        with self.database.writing() as connection:
            if not connection.execute(update(engines).where(engines.c.id == engine_id).values(**values)).rowcount:
                connection.execute(insert(engines).values(id=engine_id, **values))

    def retire(self, engine_id: str) -> None:
        """An engine has ended in order."""
        with self.database.writing() as connection:
            connection.execute(delete(engines).where(engines.c.id == engine_id))

    def liveness(self, scope: Scope, now: datetime) -> Liveness:
        """Who looked last, and what waits past its instant."""
        overdue = (
            select(watches.c.id, watches.c.due_ms)
            .where(watches.c.status == Status.ACTIVE.value, _in_scope(scope), watches.c.due_ms < millis(now))
            .order_by(watches.c.due_ms)
            .limit(1)
        )
        with self.database.reading() as connection:
            looped = connection.execute(select(func.max(engines.c.looped_ms))).scalar()
            most = connection.execute(overdue).first()
        return Liveness(
            None if looped is None else instant(looped),
            None if most is None else most.id,
            0.0 if most is None else (millis(now) - most.due_ms) / 1000,
        )

    def _write(self, connection: Connection, row: Row[Any], decision: Decision, now: datetime) -> None:
        """One change of a row, and what it sets in motion."""
        version = row.version + 1
        connection.execute(
            update(watches)
            .where(watches.c.id == row.id)
            .values(version=version, leased_until_ms=0, **_columns(decision.watch))
        )
        if decision.watch.end_reason in _WITHDRAWN:
            connection.execute(_suppress_wakes(row.id, decision.watch.end_reason, now))
        limit = policy(decision.watch.kind).max_fires_per_day
        for delivery in reactions(decision, version, now):
            if delivery.channel is Channel.WAKE and _woken_today(connection, delivery, now) >= limit:
                notice = held_notice(delivery, limit)
                delivery = replace(delivery, status=DeliveryStatus.HELD, reason="day-limit", finished_at=now)  # noqa: PLW2901
                if not connection.execute(select(deliveries.c.id).where(deliveries.c.id == notice.id)).first():
                    connection.execute(insert(deliveries).values(row_of(notice)))
            connection.execute(insert(deliveries).values(row_of(delivery)))

    def _require_room(self, connection: Connection, watch: Watch) -> None:
        caps, of_kind = self._caps[watch.kind], watches.c.kind == watch.kind.value
        tenant, owner = watches.c.tenant == watch.tenant, watches.c.owner == watch.owner
        session = watches.c.session == watch.session
        is_tool = watches.c.verifier == "check"
        limits: list[tuple[str, int | None, ColumnElement[bool]]] = [
            ("session", caps.per_session, and_(tenant, session)),
            ("owner", caps.per_owner, and_(tenant, owner)),
            ("instance", caps.per_instance, true()),
            ("tenant, actor and session", caps.per_tenant_actor_session, and_(tenant, owner, session)),
            (
                "owner that check a tool",
                caps.tools_per_owner if watch.verifier.type == "check" else None,
                and_(tenant, owner, is_tool),
            ),
        ]
        live = and_(
            of_kind,
            watches.c.status == Status.ACTIVE.value,
            watches.c.counts.is_(other=True),
            watches.c.id != watch.id,
        )
        for what, limit, where in limits:
            if limit is None:
                continue
            held_by = connection.scalars(select(watches.c.id).where(live, where).order_by(watches.c.id)).all()
            if len(held_by) >= limit:
                shown = [*held_by[:_SHOWN_HOLDERS]] if what != "instance" else []
                raise CapReached(watch.kind.value, what, limit, shown)


def _columns(watch: Watch) -> dict[str, Any]:
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
        "verifier": watch.verifier.type,
        "due_ms": millis(min(due)) if active and due else None,
        "expires_ms": None if watch.expires_at is None else millis(watch.expires_at),
        "checked_ms": None if watch.last_checked_at is None else millis(watch.last_checked_at),
        "finished_ms": None if watch.finished_at is None else millis(watch.finished_at),
        "record": encode(watch),
    }


def _read(row: Row[Any]) -> Watch | None:
    try:
        return decode(row.record)
    except BadLine as error:
        _LOG.warning("watch %s is left out: %s", row.id, error)
        return None


def _live_twin(connection: Connection, same: str) -> Watch | None:
    query = select(watches).where(
        watches.c.identity == same, watches.c.status.in_([Status.ACTIVE.value, Status.PROPOSED.value])
    )
    row = connection.execute(query.order_by(watches.c.id).limit(1)).first()
    return None if row is None else _read(row)


def _in_scope(scope: Scope) -> ColumnElement[bool]:
    homeless = watches.c.home.is_(None)
    homes = watches.c.home.is_not(None) if scope.homes is None else watches.c.home.in_(sorted(scope.homes))
    return or_(homes, homeless) if scope.homeless else homes


def _due(query: Select[Any], scope: Scope, now_ms: int) -> Select[Any]:
    return query.where(
        watches.c.status == Status.ACTIVE.value,
        _in_scope(scope),
        watches.c.leased_until_ms <= now_ms,
        watches.c.due_ms <= now_ms,
    )


def _suppress_wakes(watch_id: str, reason: str, now: datetime) -> Update:
    """What nobody has begun to deliver; the rows stay as receipts."""
    return (
        update(deliveries)
        .where(
            deliveries.c.watch_id == watch_id,
            deliveries.c.channel == Channel.WAKE.value,
            deliveries.c.status == DeliveryStatus.PENDING.value,
        )
        .values(status=DeliveryStatus.SUPPRESSED.value, finished_ms=millis(now), reason=reason)
    )


def _woken_today(connection: Connection, delivery: Any, now: datetime) -> int:
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    query = select(func.count()).where(
        deliveries.c.channel == Channel.WAKE.value,
        deliveries.c.tenant == delivery.tenant,
        deliveries.c.session == delivery.session,
        deliveries.c.created_ms >= millis(today),
        deliveries.c.created_ms < millis(today + timedelta(days=1)),
        deliveries.c.status.not_in([DeliveryStatus.HELD.value, DeliveryStatus.SUPPRESSED.value]),
    )
    return int(connection.execute(query).scalar() or 0)
