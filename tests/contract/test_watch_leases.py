"""Who may check and deliver, and what is committed under a lease, on SQLite and PostgreSQL (spec watches 7)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest
from sqlalchemy import Connection
from tests.support.watch_stores import ALL, armed, leased, settled
from tests.support.watches import at, pending, satisfied

from hankwatch.core.errors import StoreFailed
from hankwatch.watches.database import Database
from hankwatch.watches.decide import Decision, Raised, end
from hankwatch.watches.delivery import Channel, DeliveryStatus
from hankwatch.watches.outbox import DeliveryLease, Outbox
from hankwatch.watches.scope import Scope
from hankwatch.watches.store import WatchStore
from hankwatch.watches.watch import EndReason, Memory, Signal, Trigger, Watch


def test_a_due_watch_is_leased_once_until_the_lease_ends(store: WatchStore) -> None:
    armed(store)

    assert [lease.watch.id for lease in leased(store)] == ["watch-1"]
    assert leased(store, 29) == []
    assert [lease.watch.id for lease in leased(store, 30)] == ["watch-1"]


def test_a_watch_is_not_leased_before_it_is_due_and_the_most_overdue_first(store: WatchStore) -> None:
    for number, due_s in enumerate([50, 10, 100], 1):
        armed(store, number=number, next_check_at=at(due_s))

    assert store.next_due(ALL, at(0)) == at(10)
    assert [lease.watch.id for lease in leased(store, 60)] == ["watch-2", "watch-1"]


def test_the_deadline_makes_a_watch_due_that_is_not_polled(store: WatchStore) -> None:
    armed(store, next_check_at=None, expires_s=100)

    assert store.next_due(ALL, at(0)) == at(100)
    assert leased(store, 99) == []
    assert [lease.watch.id for lease in store.take(ALL, at(100), limit=1, lease_s=lambda _: 1, final=True)] == [
        "watch-1"
    ]


def test_an_engine_takes_only_what_is_in_its_scope(store: WatchStore) -> None:
    for number, home in enumerate(["/a", "/b", None], 1):
        armed(store, number=number, home=home)

    def ids(scope: Scope) -> list[str]:
        leases = store.take(scope, at(0), limit=10, lease_s=lambda _: 1)
        for lease in leases:
            store.release(lease)
        return sorted(lease.watch.id for lease in leases)

    assert ids(Scope(frozenset({"/a"}), homeless=False)) == ["watch-1"]
    assert ids(Scope(None, homeless=False)) == ["watch-1", "watch-2"]
    assert ids(Scope(frozenset(), homeless=True)) == ["watch-3"]


def test_a_lease_ends_at_the_deadline_so_that_the_final_check_waits_for_nobody(store: WatchStore) -> None:
    armed(store, expires_s=10)
    leased(store)

    assert store.next_due(ALL, at(1)) == at(10)
    assert [lease.watch.id for lease in store.take(ALL, at(10), limit=1, lease_s=lambda _: 1, final=True)] == [
        "watch-1"
    ]


def test_whoever_holds_a_home_takes_over_from_the_dead_at_once(store: WatchStore) -> None:
    armed(store, number=1, home="/a")
    armed(store, number=2, home="/b")
    assert len(leased(store)) == 2

    store.reclaim(Scope(frozenset({"/a"}), homeless=False, is_held=True))
    store.reclaim(Scope(frozenset({"/b"}), homeless=False))

    assert [lease.watch.id for lease in leased(store, 1)] == ["watch-1"]


def test_an_edit_leaves_the_lease_of_a_check_that_it_does_not_touch(store: WatchStore) -> None:
    watch = armed(store)
    leased(store)

    store.change(watch.id, lambda stands: Decision(replace(stands, run_prompt="p"), ()), at(1))
    assert leased(store, 2) == []
    store.change(watch.id, lambda stands: Decision(replace(stands, expires_at=at(50)), ()), at(3))
    assert len(leased(store, 4)) == 1


@pytest.mark.parametrize("checked", [False, True])
def test_a_clock_that_went_back_silences_nothing(store: WatchStore, *, checked: bool) -> None:
    armed(store, expires_s=None)
    if checked:
        (lease,) = leased(store)
        assert settled(store, lease, pending(), 0) is not None

    years = 10 * 365 * 86_400
    store.recover_clock(at(-years))
    assert [lease.watch.id for lease in leased(store, -years)] == ["watch-1"]


def test_transition_evaluation_and_deliveries_commit_together(store: WatchStore) -> None:
    watch = armed(store, home="/runs/1")
    (lease,) = leased(store)

    decision = settled(store, lease, satisfied("v2"), 2)

    assert decision is not None
    stands = store.get(watch.id)
    assert stands == decision.watch
    assert stands is not None
    assert (stands.end_reason, stands.max_lateness_s) == (EndReason.SATISFIED, 2.0)
    (evaluation,) = store.evaluations(watch.id)
    assert (evaluation.outcome.value, evaluation.late_s, evaluation.evidence) == ("satisfied", 2.0, "value v2")
    told = Outbox(store.database).find(watch_id=watch.id)
    assert sorted(delivery.id for delivery in told) == [
        "event:watch-1:1:1",
        "event:watch-1:1:armed.1",
        "in_app:watch-1:1:1",
        "wake:watch-1:1:1",
    ]


def test_nothing_of_a_decision_that_fails_to_commit_stays(store: WatchStore) -> None:
    watch = armed(store)
    (lease,) = leased(store)

    def fail(_: Watch) -> Decision:
        twice = Raised(Signal.MET, 1, "r")
        return Decision(replace(watch, condition="never"), (twice, twice))  # two deliveries of one id

    with pytest.raises(StoreFailed):
        store.settle(lease, satisfied(), fail, at(1))
    assert store.get(watch.id) == watch
    assert store.evaluations(watch.id) == []
    assert Outbox(store.database).find() == []


def test_a_stale_worker_commits_nothing(store: WatchStore) -> None:
    armed(store)
    (stale,) = leased(store)
    (fresh,) = leased(store, 31)

    assert settled(store, stale, satisfied(), 32) is None
    assert settled(store, fresh, pending(), 32) is not None
    assert settled(store, fresh, satisfied(), 33) is not None  # its holder may decide again until another takes it


def test_an_edit_during_a_check_survives_it(store: WatchStore) -> None:
    watch = armed(store, interval_s=30)
    (lease,) = leased(store)
    store.change(watch.id, lambda stands: Decision(replace(stands, interval_s=90), ()), at(1))

    decision = settled(store, lease, pending(), 2)

    assert decision is not None
    assert decision.watch.interval_s == 90
    assert decision.watch.next_check_at == at(92)


def test_a_cancel_wins_over_a_check_in_flight(store: WatchStore) -> None:
    watch = armed(store)
    (lease,) = leased(store)
    store.change(watch.id, lambda stands: end(stands, EndReason.CANCELLED, at(1)), at(1))

    assert settled(store, lease, satisfied(), 2) is None
    assert Outbox(store.database).find(channel=Channel.WAKE) == []


def test_a_cancel_suppresses_the_wakes_that_nobody_has_begun(store: WatchStore) -> None:
    watch = armed(store, repeat=True)
    (lease,) = leased(store)
    settled(store, lease, satisfied(), 1)

    store.change(watch.id, lambda stands: end(stands, EndReason.CANCELLED, at(2)), at(2))

    (wake,) = Outbox(store.database).find(channel=Channel.WAKE)
    assert (wake.status, wake.reason) == (DeliveryStatus.SUPPRESSED, "cancelled")


def test_wakes_over_the_days_limit_are_held_with_one_notice(store: WatchStore) -> None:
    armed(store, repeat=True, trigger=Trigger.CHANGE, expires_s=None)
    for number in range(24):
        (lease,) = leased(store, 100 * number)
        settled(store, lease, pending(number), 100 * number)
    outbox = Outbox(store.database)

    wakes = [delivery.status for delivery in outbox.find(channel=Channel.WAKE)]
    notices = [delivery for delivery in outbox.find(channel=Channel.IN_APP) if delivery.content["reason"] == "held"]

    assert (wakes.count(DeliveryStatus.PENDING), wakes.count(DeliveryStatus.HELD)) == (20, 3)
    assert len(notices) == 1


def test_a_delivery_is_leased_once_and_ends_once(store: WatchStore) -> None:
    armed(store, actions=frozenset({"wake"}))
    (lease,) = leased(store)
    settled(store, lease, satisfied(), 0)
    outbox = Outbox(store.database)

    def take(seconds: float) -> list[DeliveryLease]:
        return outbox.take(Channel.WAKE, at(seconds), homes=None, homeless=True, limit=5, lease_s=60)

    (first,) = take(0)
    assert take(59) == []
    (second,) = take(60)
    assert not outbox.finish(first, DeliveryStatus.DELIVERED, at(61))
    assert outbox.retry(second, at(100), "busy")
    assert take(99) == []
    (third,) = take(100)
    assert outbox.finish(third, DeliveryStatus.DELIVERED, at(101))
    assert take(500) == []
    (ended,) = outbox.find()
    assert (ended.status, ended.attempts, ended.finished_at) == (DeliveryStatus.DELIVERED, 3, at(101))


def test_two_workers_never_both_commit_a_decision(url: str, store: WatchStore) -> None:
    for number in range(20):
        armed(store, number=number, session=f"s{number}")
    start = threading.Barrier(2)

    def work(_: int) -> list[str]:
        mine = WatchStore(Database(url))
        start.wait()
        done = list[str]()
        while leases := mine.take(ALL, at(1), limit=3, lease_s=lambda _: 30):
            done += [lease.watch.id for lease in leases if settled(mine, lease, satisfied(), 2) is not None]
        mine.database.close()
        return done

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(work, range(2))

    assert sorted(one + other) == sorted(f"watch-{number}" for number in range(20))
    assert len(Outbox(store.database).find(channel=Channel.WAKE)) == 20


def test_only_a_check_that_moves_something_waits_for_the_disk(
    store: WatchStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed(store, number=1, repeat=True)
    begun, writing = list[bool](), store.database.writing

    def noted(*, durable: bool = True) -> AbstractContextManager[Connection]:
        begun.append(durable)
        return writing(durable=durable)

    monkeypatch.setattr(store.database, "writing", noted)
    for second, seen in enumerate([pending(), satisfied(), satisfied(), pending(), pending()]):
        (lease,) = leased(store, second * 100)
        settled(store, lease, seen, second * 100)

    assert begun[1::2] == [False, True, False, True, False]  # between them are the leases


def test_what_stands_otherwise_than_when_it_was_leased_is_decided_as_it_stands(store: WatchStore) -> None:
    watch = armed(store, number=1, repeat=True)
    (lease,) = leased(store)
    edge_is_up = replace(lease, watch=replace(watch, memory=Memory(was_met=True)))

    decision = settled(store, edge_is_up, satisfied(), 1)

    assert decision is not None
    assert [raised.signal for raised in decision.raised] == [Signal.MET]
    assert store.get(watch.id) == decision.watch
