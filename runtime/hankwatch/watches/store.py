"""Where watches live: every change of one is a transaction with its evaluation and its deliveries (spec watches 7).

All methods block for a database; call them in a worker thread. Several processes may use one store.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

import orjson
from sqlalchemy import (
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from hankwatch.watches.caps import require_room
from hankwatch.watches.database import Database
from hankwatch.watches.decide import Decision, Raised
from hankwatch.watches.delivery import reactions, told
from hankwatch.watches.evaluation import Evaluation
from hankwatch.watches.forgetting import forget, past_generation
from hankwatch.watches.instance import InstanceSettings
from hankwatch.watches.outbox import instant, millis, withdraw
from hankwatch.watches.policies import POLICIES, Caps
from hankwatch.watches.posting import post
from hankwatch.watches.roll import EngineRoll
from hankwatch.watches.rows import columns, identity_of, read, rows_of, watch_of
from hankwatch.watches.scope import Scope, in_scope
from hankwatch.watches.signals import SignalFeed, note
from hankwatch.watches.tables import deliveries, evaluations, watches
from hankwatch.watches.watch import WITHDRAWN, Kind, Observation, Signal, Status, Watch

_LONGEST_LEASE_MS: Final = 2 * 3_600_000
"""A lease that ends later was taken before the clock went back."""
_LONGEST_RETRY_MS: Final = 3_600_000
_CLOCK_SLACK_MS: Final = 1_000
_KEPT_EVALUATIONS: Final = 2_000
"""Of a watch; a day of an ``agent_watch`` at its shortest cadence fits in."""
_PRUNED_EVERY: Final = 100


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to check one watch, until somebody else takes it."""

    watch: Watch
    """As it was when the lease was taken."""
    fence: int
    due_at: datetime
    is_taken_over: bool = False
    """The check before was neither decided nor given back: whoever had it may have died at it."""


# Made once: building a statement costs more than executing it.
_LEASED: Final = (
    select(watches)
    .where(
        watches.c.id == bindparam("watch_id"),
        watches.c.fence == bindparam("lease_fence"),
        watches.c.status == Status.ACTIVE.value,
    )
    .with_for_update()
)
_CHANGE: Final = update(watches).where(watches.c.id == bindparam("watch_id"))


class _NotDurable(Exception):
    """The transaction decides more than it was begun for."""


class WatchStore:
    """See the module.

    Args:
        database: Where.
        caps: Caps instead of the policy table's.
        max_fires_per_day: Of a session, instead of the policy table's.
    """

    def __init__(
        self, database: Database, caps: Mapping[Kind, Caps] | None = None, *, max_fires_per_day: int | None = None
    ) -> None:
        self.database = database
        self.engines = EngineRoll(database)
        """Who polls, and whether all is polled."""
        self.signals = SignalFeed(database)
        """What watches told last."""
        self.settings = InstanceSettings(database)
        """What was set for this store, whoever works with it."""
        self._day_limits = {kind: max_fires_per_day or row.max_fires_per_day for kind, row in POLICIES.items()}
        self._caps = {kind: row.caps for kind, row in POLICIES.items()} | dict(caps or {})

    def arm(
        self,
        watch: Watch,
        *,
        counts: bool,
        now: datetime,
        applied: bool = False,
        twins: bool = False,
        takes_over: Callable[[Watch], bool] = lambda _: True,
    ) -> tuple[Watch, bool]:
        """Store a proposed or active watch. One that takes the place of another has the next generation.

        Args:
            watch: Valid by its policy row.
            counts: It is held to the caps; an operator's is not.
            now: The instant of arming.
            applied: It belongs to its owner's applied set.
            twins: It may stand beside an identical live one of another id; else that one is returned.
            takes_over: Asked with the watch that has the id already: whether the new one takes its place, or that
                one is returned; raises what forbids both. May be called again.

        Returns:
            The watch as it stands, and whether it is new.

        Raises:
            CapReached: too many are active.
            StoreFailed: the database failed.
        """

        def work(connection: Connection) -> tuple[Watch, bool]:
            if not twins and (twin := _live_twin(connection, identity_of(watch), watch.id)) is not None:
                return twin, False
            mine = connection.execute(select(watches).where(watches.c.id == watch.id).with_for_update()).first()
            if mine is None:
                past = past_generation(connection)
            else:
                before = watch_of(connection, mine)
                if not takes_over(before):
                    return before, False
                past = before.generation
            fresh = replace(watch, generation=past + 1)
            if fresh.status is Status.ACTIVE and counts:
                require_room(connection, fresh, self._caps[fresh.kind])
            version = 1 if mine is None else mine.version + 1
            values = columns(fresh) | {
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
                raised = Raised(Signal.ARMED, None, "armed")
                note(connection, fresh, (raised,))
                armed = told(fresh, raised, version, now)
                post(connection, armed, now, limit=self._day_limits[fresh.kind])
                self.database.announce(connection)
            return fresh, True

        return self.database.serializable(work)

    def get(self, watch_id: str) -> Watch | None:
        """The watch, or None when there is none."""
        with self.database.reading() as connection:
            row = connection.execute(select(watches).where(watches.c.id == watch_id)).first()
            return None if row is None else watch_of(connection, row)

    def read_all(self, watch_ids: Sequence[str]) -> list[Watch]:
        """Those of these watches that are there and can be read."""
        with self.database.reading() as connection:
            rows = rows_of(connection, watch_ids)
        return [watch for row in rows if (watch := read(row)) is not None]

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
        text: str = "",
        after: str = "",
        limit: int = 10_000,
    ) -> list[Watch]:
        """The watches that fit everything given, by id; those with a ``fault`` too.

        ``text`` stands somewhere in the record, in capitals or not.
        """
        asked = {"tenant": tenant, "owner": owner, "session": session, "home": home, "applied": applied}
        query, wanted = select(watches).where(watches.c.id > after), {status.value for status in statuses}
        if len(wanted) < len(Status):  # else the database would sort all of them by id to give the first few
            query = query.where(watches.c.status.in_(sorted(wanted)))
        for name, value in asked.items():
            if value is not None:
                query = query.where(watches.c[name] == value)
        if verifiers is not None:
            query = query.where(watches.c.verifier.in_(sorted(verifiers)))
        if prefix:
            query = query.where(watches.c.id.startswith(prefix, autoescape=True))
        if text:
            query = query.where(watches.c.record.icontains(orjson.dumps(text).decode()[1:-1], autoescape=True))
        with self.database.reading() as connection:
            rows = connection.execute(query.order_by(watches.c.id).limit(limit)).all()
            return [watch_of(connection, row) for row in rows]

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
            before = watch_of(connection, row)
            decision = work(before)
            if decision is None:
                return before
            if decision.watch.status is Status.ACTIVE and before.status is not Status.ACTIVE and row.counts:
                require_room(connection, decision.watch, self._caps[decision.watch.kind])
            keeps_lease = _aim(before) == _aim(decision.watch)
            self._write(connection, row, decision, now, leased_until_ms=row.leased_until_ms if keeps_lease else 0)
            return decision.watch

        return self.database.serializable(apply)

    def delete(self, watch_id: str) -> bool:
        """Forget a watch, its evaluations and what was to be told of it; False when there is none."""
        with self.database.writing() as connection:
            return forget(connection, [watch_id]) > 0

    def purge(self, finished_before: datetime) -> int:
        """Forget what ended before, proposals that nobody approved in time, and what was told; returns how many watches.

        What still waits to be told keeps its watch.
        """
        before_ms = millis(finished_before)
        waits = select(deliveries.c.watch_id).where(deliveries.c.finished_ms.is_(None))
        is_over = or_(
            and_(watches.c.status == Status.ENDED.value, watches.c.finished_ms < before_ms),
            and_(watches.c.status == Status.PROPOSED.value, watches.c.expires_ms < before_ms),
        )
        with self.database.writing() as connection:
            connection.execute(delete(deliveries).where(deliveries.c.finished_ms < before_ms))
            return forget(
                connection, connection.scalars(select(watches.c.id).where(is_over, watches.c.id.not_in(waits))).all()
            )

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

        A lease that begins before the deadline ends at it: the final check waits for nobody.

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
        with self.database.writing(durable=False) as connection:
            for row in connection.execute(query.with_for_update(skip_locked=True)).all():
                watch = read(row)
                values: dict[str, Any] = {"fence": row.fence + 1}
                if watch is None:  # delays no other
                    values["due_ms"] = None
                else:
                    values["leased_until_ms"] = _lease_end(row, now_ms, lease_s(watch))
                connection.execute(update(watches).where(watches.c.id == row.id).values(**values))
                if watch is not None:
                    leases.append(Lease(watch, row.fence + 1, instant(_due_ms(row, now_ms)), row.leased_until_ms > 0))
        return leases

    def take_one(self, watch_id: str, now: datetime, *, lease_s: Callable[[Watch], float]) -> Lease | None:
        """Lease an active watch now, whether or not it is due; None when somebody checks it."""
        now_ms = millis(now)
        query = select(watches).where(
            watches.c.id == watch_id, watches.c.status == Status.ACTIVE.value, watches.c.leased_until_ms <= now_ms
        )
        with self.database.writing(durable=False) as connection:
            row = connection.execute(query.with_for_update(skip_locked=True)).first()
            if row is None or (watch := read(row)) is None:
                return None
            connection.execute(
                update(watches)
                .where(watches.c.id == watch_id)
                .values(fence=row.fence + 1, leased_until_ms=_lease_end(row, now_ms, lease_s(watch)))
            )
        return Lease(watch, row.fence + 1, now, row.leased_until_ms > 0)

    def reclaim(self, scope: Scope) -> None:
        """Take back the leases of whoever died while it held the homes that this process now holds."""
        if scope.is_held:
            with self.database.writing(durable=False) as connection:
                held = watches.c.home.in_(sorted(scope.homes or ()))
                connection.execute(update(watches).where(held).values(leased_until_ms=0))

    def recover_clock(self, now: datetime) -> None:
        """Let nothing wait for instants that were set before the clock went back."""
        now_ms = millis(now)
        active = watches.c.status == Status.ACTIVE.value
        with self.database.writing(durable=False) as connection:
            connection.execute(
                update(watches)
                .where(active, watches.c.touched_ms > now_ms + _CLOCK_SLACK_MS, watches.c.due_ms > now_ms)
                .values(due_ms=now_ms)
            )
            connection.execute(
                update(deliveries)
                .where(deliveries.c.finished_ms.is_(None), deliveries.c.due_ms > now_ms + _LONGEST_RETRY_MS)
                .values(due_ms=now_ms)
            )
            for table in (watches, deliveries):
                connection.execute(
                    update(table).where(table.c.leased_until_ms > now_ms + _LONGEST_LEASE_MS).values(leased_until_ms=0)
                )

    def next_due(self, scope: Scope, now: datetime) -> datetime | None:
        """When the next watch of the scope can be leased; None when none waits."""
        now_ms, mine = millis(now), (watches.c.status == Status.ACTIVE.value, in_scope(scope))
        free = select(watches.c.due_ms).where(*mine, watches.c.leased_until_ms <= now_ms, watches.c.due_ms.is_not(None))
        leased = select(func.min(watches.c.leased_until_ms)).where(
            *mine, watches.c.leased_until_ms > now_ms, watches.c.due_ms <= now_ms
        )
        with self.database.reading() as connection:
            found = [
                connection.execute(free.order_by(watches.c.due_ms).limit(1)).scalar(),
                connection.execute(leased).scalar(),
            ]
        return min((instant(at_ms) for at_ms in found if at_ms is not None), default=None)

    def listeners(self, home: str) -> dict[str, int]:
        """The active ``event`` and ``document`` watches of a home, and the number of the last change of each."""
        query = select(watches.c.id, watches.c.version).where(
            watches.c.home == home,
            watches.c.status == Status.ACTIVE.value,
            watches.c.verifier.in_(["event", "document"]),
        )
        with self.database.reading() as connection:
            return {row.id: row.version for row in connection.execute(query)}

    def settle(
        self, lease: Lease, seen: Observation, work: Callable[[Watch], Decision | None], now: datetime
    ) -> Decision | None:
        """Decide a check on the watch as it stands, and commit transition, evaluation and deliveries together.

        Args:
            lease: Of the check.
            seen: What it said.
            work: Pure; None leaves the watch as it is. May be called again.
            now: The instant of the decision.

        Returns:
            The decision, or None when ``work`` made none or the lease is stale: the watch is gone, has ended,
            was re-aimed, or somebody else checks it.
        """
        durable = _moves(lease.watch, work(lease.watch))
        try:
            return self._settle(lease, seen, work, now, durable=durable)
        except _NotDurable:  # it stands otherwise than when it was leased
            return self._settle(lease, seen, work, now, durable=True)

    def _settle(
        self, lease: Lease, seen: Observation, work: Callable[[Watch], Decision | None], now: datetime, *, durable: bool
    ) -> Decision | None:
        with self.database.writing(durable=durable) as connection:
            row = connection.execute(_LEASED, {"watch_id": lease.watch.id, "lease_fence": lease.fence}).first()
            if row is None or (watch := read(row)) is None or watch.generation != lease.watch.generation:
                return None
            late_s = max(0.0, (now - lease.due_at).total_seconds())
            if (decision := work(watch)) is None:
                connection.execute(_CHANGE, {"watch_id": row.id, "leased_until_ms": 0})
                return None
            if not durable and _moves(watch, decision):
                raise _NotDurable
            decision = replace(
                decision,
                watch=replace(decision.watch, max_lateness_s=max(decision.watch.max_lateness_s, round(late_s, 3))),
            )
            self._write(connection, row, decision, now)
            number = row.version + 1
            connection.execute(insert(evaluations), Evaluation.of(watch, seen, number, late_s).columns())
            if number % _PRUNED_EVERY == 0:
                connection.execute(
                    delete(evaluations).where(
                        evaluations.c.watch_id == row.id, evaluations.c.number <= number - _KEPT_EVALUATIONS
                    )
                )
        return decision

    def release(self, lease: Lease) -> None:
        """Give a lease back without a check."""
        with self.database.writing(durable=False) as connection:
            connection.execute(
                update(watches)
                .where(watches.c.id == lease.watch.id, watches.c.fence == lease.fence)
                .values(leased_until_ms=0)
            )

    def evaluations(self, watch_id: str, limit: int = 100) -> list[Evaluation]:
        """The latest evaluations of a watch that can be read, newest first."""
        query = select(evaluations).where(evaluations.c.watch_id == watch_id)
        with self.database.reading() as connection:
            rows = connection.execute(query.order_by(evaluations.c.number.desc()).limit(limit)).all()
        return [one for row in rows if (one := Evaluation.of_row(row)) is not None]

    def _write(
        self, connection: Connection, row: Row[Any], decision: Decision, now: datetime, *, leased_until_ms: int = 0
    ) -> None:
        """One change of a row, and what it sets in motion."""
        version = row.version + 1
        changed = columns(decision.watch) | {"version": version, "leased_until_ms": leased_until_ms}
        connection.execute(_CHANGE, {"watch_id": row.id, **changed})
        if decision.watch.end_reason in WITHDRAWN:
            withdraw(connection, row.id, decision.watch.end_reason, now)
        post(connection, reactions(decision, version, now), now, limit=self._day_limits[decision.watch.kind])
        if decision.raised:
            note(connection, decision.watch, decision.raised)
            self.database.announce(connection)


def _moves(before: Watch, decision: Decision | None) -> bool:
    """Whether something is told, or the next check is judged by something else: that outlives a loss of power too."""
    if decision is None:
        return False
    after = decision.watch
    edge = (after.memory.was_met, after.memory.baseline, after.cursor)
    return bool(decision.raised) or edge != (before.memory.was_met, before.memory.baseline, before.cursor)


def _aim(watch: Watch) -> tuple[Status, int, datetime | None]:
    """What a check that runs has to go on for."""
    return watch.status, watch.generation, watch.expires_at


def _due_ms(row: Row[Any], now_ms: int) -> int:
    """What lateness counts from: at the deadline from there, whenever the check before was due."""
    due_ms: int = row.due_ms
    is_over = row.expires_ms is not None and row.expires_ms <= now_ms
    return max(due_ms, row.expires_ms) if is_over else due_ms


def _lease_end(row: Row[Any], now_ms: int, lease_s: float) -> int:
    end_ms = now_ms + int(lease_s * 1000)
    return min(end_ms, row.expires_ms) if row.expires_ms is not None and row.expires_ms > now_ms else end_ms


def _live_twin(connection: Connection, same: str, watch_id: str) -> Watch | None:
    query = select(watches).where(
        watches.c.identity == same,
        watches.c.id != watch_id,
        watches.c.status.in_([Status.ACTIVE.value, Status.PROPOSED.value]),
    )
    row = connection.execute(query.order_by(watches.c.id).limit(1)).first()
    return None if row is None else read(row)


def _due(query: Select[Any], scope: Scope, now_ms: int) -> Select[Any]:
    return query.where(
        watches.c.status == Status.ACTIVE.value,
        in_scope(scope),
        watches.c.leased_until_ms <= now_ms,
        watches.c.due_ms <= now_ms,
    )
