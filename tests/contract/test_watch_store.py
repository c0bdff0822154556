"""What every store of watches does, on SQLite and PostgreSQL (spec watches 7)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import text
from tests.support.watch_stores import ALL, armed, leased, settled
from tests.support.watches import at, pending, satisfied

from hankwatch.core.errors import CapReached, UsageError
from hankwatch.watches import signals
from hankwatch.watches.database import Database
from hankwatch.watches.decide import Decision, end
from hankwatch.watches.delivery import DeliveryStatus
from hankwatch.watches.instance import Configured
from hankwatch.watches.outbox import Outbox
from hankwatch.watches.policies import Caps
from hankwatch.watches.store import WatchStore
from hankwatch.watches.watch import EndReason, Kind, Signal, Status, Trigger


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
