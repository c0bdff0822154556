"""What every store of watches does, on SQLite and PostgreSQL (spec watches 7)."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from tests.support.watch_stores import store_url
from tests.support.watches import a_watch, at, pending, satisfied

from hankwatch.core.errors import CapReached, StoreFailed, UsageError
from hankwatch.watches import signals
from hankwatch.watches.database import Database
from hankwatch.watches.decide import Decision, Raised, decide, end
from hankwatch.watches.delivery import Channel, DeliveryStatus
from hankwatch.watches.instance import Configured
from hankwatch.watches.outbox import DeliveryLease, Outbox
from hankwatch.watches.policies import Caps
from hankwatch.watches.scope import Scope
from hankwatch.watches.specs import CommandSpec
from hankwatch.watches.store import Lease, WatchStore
from hankwatch.watches.watch import EndReason, Kind, Memory, Observation, Signal, Status, Trigger, Watch

ALL = Scope(homes=None, homeless=True)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with store_url(request.param, tmp_path) as address:
        yield address


@pytest.fixture
def store(url: str) -> Iterator[WatchStore]:
    database = Database(url)
    yield WatchStore(database)
    database.close()


def armed(store: WatchStore, **fields: object) -> Watch:
    number = fields.pop("number", 1)
    spec = CommandSpec(type="command", command=["check", str(number)])
    watch, _ = store.arm(a_watch(id=f"watch-{number}", verifier=spec, **fields), counts=True, now=at(0))  # type: ignore[arg-type]
    return watch


def leased(store: WatchStore, seconds: float = 0) -> list[Lease]:
    return store.take(ALL, at(seconds), limit=10, lease_s=lambda _: 30)


def settled(store: WatchStore, lease: Lease, seen: Observation, seconds: float) -> Decision | None:
    return store.settle(lease, seen, lambda watch: decide(watch, seen, at(seconds)), at(seconds))


def test_a_watch_is_read_as_it_was_armed(store: WatchStore) -> None:
    watch = armed(store, session="s", home="/runs/1", stall_after=3, trigger=Trigger.CHANGE)

    assert store.get(watch.id) == watch
    assert store.get("another") is None


def test_an_identical_live_watch_is_returned_instead_of_a_second(store: WatchStore) -> None:
    first = armed(store)

    second, is_new = store.arm(replace(first, id="other-id"), counts=True, now=at(0))

    assert (second, is_new) == (first, False)
    assert len(store.find()) == 1


def test_the_same_in_another_execution_is_another_watch(store: WatchStore) -> None:
    first = armed(store, home="/runs/1")

    second, is_new = store.arm(replace(first, id="other-id", home="/runs/2"), counts=True, now=at(0))

    assert (second.home, is_new) == ("/runs/2", True)


def test_a_second_of_the_same_may_be_asked_for(store: WatchStore) -> None:
    first = armed(store)

    second, is_new = store.arm(replace(first, id="other-id"), counts=True, now=at(0), twins=True)

    assert (second.id, is_new) == ("other-id", True)


def test_who_has_the_id_decides_whether_it_gives_way(store: WatchStore) -> None:
    first = armed(store)

    kept, is_new = store.arm(
        replace(first, condition="another"), counts=True, now=at(0), twins=True, takes_over=lambda _: False
    )

    assert (kept, is_new) == (first, False)


def test_what_is_armed_after_a_deletion_has_delivery_ids_of_its_own(store: WatchStore) -> None:
    told = set[str]()
    for round_ in range(3):
        watch = armed(store)
        (lease,) = leased(store, 10 * round_)
        settled(store, lease, satisfied(), 10 * round_)
        ids = {delivery.id for delivery in Outbox(store.database).find(watch_id=watch.id)}
        assert not ids & told
        told |= ids
        if round_:
            assert store.delete(watch.id)
        else:
            for delivery in [delivery for delivery in Outbox(store.database).find() if delivery.finished_at is None]:
                (taken,) = Outbox(store.database).take(
                    delivery.channel, at(1), homes=None, homeless=True, limit=1, lease_s=1
                )
                Outbox(store.database).finish(taken, DeliveryStatus.DELIVERED, at(1))
            assert store.purge(at(5)) == 1


def test_arming_under_the_same_id_replaces_and_raises_the_generation(store: WatchStore) -> None:
    first = armed(store)
    (lease,) = leased(store)

    again, is_new = store.arm(replace(first, condition="another"), counts=True, now=at(0))

    assert (again.generation, again.condition, is_new) == (2, "another", True)
    assert settled(store, lease, satisfied(), 1) is None


def test_caps_are_held_and_name_what_holds_them(store: WatchStore) -> None:
    capped = WatchStore(store.database, {Kind.WATCH: Caps(per_session=2)})
    armed(capped, number=1)
    armed(capped, number=2)

    with pytest.raises(CapReached, match=r"at most 2 active watches of kind watch per session: watch-1, watch-2"):
        armed(capped, number=3)
    armed(capped, number=4, session="another")
    capped.change("watch-1", lambda watch: end(watch, EndReason.CANCELLED, at(1)), at(1))
    armed(capped, number=5)


def test_a_proposal_takes_its_place_when_it_is_activated(store: WatchStore) -> None:
    capped = WatchStore(store.database, {Kind.WATCH: Caps(per_session=1)})
    proposal = armed(capped, number=1, status=Status.PROPOSED)
    armed(capped, number=2)

    with pytest.raises(CapReached):
        capped.change(proposal.id, lambda watch: Decision(replace(watch, status=Status.ACTIVE), ()), at(1))
    stands = capped.get(proposal.id)
    assert stands is not None
    assert stands.status is Status.PROPOSED


def test_caps_hold_when_many_arm_at_once(store: WatchStore) -> None:
    capped = WatchStore(store.database, {Kind.WATCH: Caps(per_session=3)})
    start = threading.Barrier(6)

    def arm(number: int) -> bool:
        start.wait()
        try:
            armed(capped, number=number)
        except CapReached:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(arm, range(6))) == 3
    assert len(store.find(statuses=[Status.ACTIVE])) == 3


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


def test_of_a_watchs_evaluations_the_latest_are_kept(store: WatchStore) -> None:
    watch = armed(store, expires_s=None)
    with store.database.writing() as connection:
        connection.execute(text("UPDATE hankwatch_watches SET version = 99"))
    (lease,) = leased(store)
    settled(store, lease, pending(), 0)
    with store.database.writing() as connection:
        connection.execute(text("UPDATE hankwatch_watches SET version = 2199"))
    settled(store, lease, pending(), 1)

    assert [evaluation.number for evaluation in store.evaluations(watch.id)] == [2_200]


def test_proposals_that_nobody_approved_in_time_are_purged(store: WatchStore) -> None:
    armed(store, status=Status.PROPOSED, expires_s=100)

    assert store.purge(at(100)) == 0
    assert store.purge(at(101)) == 1


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


def test_ended_watches_are_purged_when_their_time_is_over_and_active_ones_never(store: WatchStore) -> None:
    armed(store, number=1, actions=frozenset({"event"}))
    armed(store, number=2, created_at=at(-1_000_000))
    store.change("watch-1", lambda watch: end(watch, EndReason.CANCELLED, at(10)), at(10))

    assert store.purge(at(10)) == 0
    assert store.purge(at(11)) == 1
    assert [watch.id for watch in store.find()] == ["watch-2"]


def test_a_watch_that_still_has_to_be_told_is_not_purged(store: WatchStore) -> None:
    armed(store)
    (lease,) = leased(store)
    settled(store, lease, satisfied(), 1)

    assert store.purge(at(1_000_000)) == 0


def test_a_record_that_cannot_be_read_delays_no_other(store: WatchStore) -> None:
    armed(store, number=1)
    armed(store, number=2)
    with store.database.writing() as connection:
        connection.execute(text("UPDATE hankwatch_watches SET record = '{}' WHERE id = 'watch-1'"))

    assert [lease.watch.id for lease in leased(store)] == ["watch-2"]
    assert [watch.id for watch in store.find() if watch.fault is None] == ["watch-2"]


def test_a_listed_watch_that_nobody_polls_is_seen(store: WatchStore) -> None:
    armed(store, next_check_at=at(10))
    before = store.engines.liveness(ALL, at(5))
    store.engines.beat("engine-1", "all", at(60))
    store.engines.beat("engine-1", "all", at(61))

    after = store.engines.liveness(ALL, at(100))

    assert (before.last_loop_at, before.most_overdue, before.lag_s) == (None, None, 0)
    assert (after.last_loop_at, after.most_overdue, after.lag_s) == (at(61), "watch-1", 90)


def test_watches_are_found_by_what_is_asked(store: WatchStore) -> None:
    armed(store, number=1, tenant="a")
    armed(store, number=2, tenant="b", session=None)
    armed(store, number="%_x", tenant="b")

    assert [watch.id for watch in store.find(tenant="b")] == ["watch-%_x", "watch-2"]
    assert [watch.id for watch in store.find(prefix="watch-%")] == ["watch-%_x"]
    assert store.find(statuses=[Status.ENDED]) == []


def test_a_store_of_another_schema_is_refused(url: str, store: WatchStore) -> None:
    with store.database.writing() as connection:
        connection.execute(text("UPDATE hankwatch_meta SET value = '99'"))

    with pytest.raises(UsageError, match="schema 99"):
        Database(url)


def test_a_store_survives_being_opened_again(url: str, store: WatchStore) -> None:
    watch = armed(store)

    again = WatchStore(Database(url))

    assert again.get(watch.id) == watch
    assert again.next_due(ALL, at(0)) == watch.next_check_at
    again.database.close()


def test_a_deleted_watch_leaves_nothing(store: WatchStore) -> None:
    armed(store)
    (lease,) = leased(store)
    settled(store, lease, satisfied(), 1)

    assert store.delete("watch-1")
    assert not store.delete("watch-1")
    assert store.evaluations("watch-1") == []
    assert Outbox(store.database).find() == []


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


def test_every_signal_is_told_in_the_order_it_was_committed(store: WatchStore) -> None:
    watch = armed(store)
    (lease,) = leased(store)
    settled(store, lease, satisfied(), 0)
    told = store.signals.read(store.signals.behind(0))
    assert [(one.signal, one.watch.id) for one in told] == [(Signal.ARMED, watch.id), (Signal.MET, watch.id)]
    assert told[-1].number == store.signals.newest()
    assert store.signals.behind(told[0].number) == [told[1].number]


def test_old_signals_make_room(store: WatchStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "KEPT", 3)
    monkeypatch.setattr(signals, "_PRUNED_EVERY", 5)
    for number in range(10):
        armed(store, number=number)
    assert store.signals.behind(0) == [8, 9, 10]


def test_a_change_of_any_watch_changes_the_tally(store: WatchStore) -> None:
    seen = [store.signals.tally()]
    watch = armed(store)
    seen.append(store.signals.tally())
    (lease,) = leased(store)
    settled(store, lease, pending(), 0)
    seen.append(store.signals.tally())
    store.change(watch.id, lambda stands: end(stands, EndReason.CANCELLED, at(1)), at(1))
    seen.append(store.signals.tally())
    store.delete(watch.id)
    assert len({*seen}) == 4
    assert store.signals.tally() == seen[0]


def test_what_is_set_for_the_store_holds_until_it_is_taken_back(store: WatchStore) -> None:
    configured = Configured(30.0, True, 24.0)
    store.settings.write({"interval": 60.0, "enabled": False}, "root", at(5))
    other = WatchStore(store.database).settings.holding(configured)
    assert (other["interval"].value, other["interval"].configured, other["interval"].set_by) == (60.0, 30.0, "root")
    assert (other["enabled"].value, other["enabled"].set_at) == (False, at(5))
    assert other["keep_terminal_h"].set_at is None
    store.settings.write({"interval": None}, "root", at(6))
    assert store.settings.holding(configured)["interval"].value == pytest.approx(30.0)


def test_a_text_is_found_anywhere_in_a_record(store: WatchStore) -> None:
    armed(store, number=1, condition='The "Deploy" is 100%_done')
    armed(store, number=2, condition="another")
    for text_ in ('"deploy"', "100%_D", "DEPLOY"):
        assert [watch.id for watch in store.find(text=text_)] == ["watch-1"], text_
    assert store.find(text="100%%") == []
