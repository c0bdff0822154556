"""The queue's bounds and its drop rule."""

from typing import get_args

from hankwatch.events.envelope import Event, format_stamp
from hankwatch.events.observers import TriggerCause
from hankwatch.sentinels.queue import MAX_WAITING_BYTES, MAX_WAITING_EVENTS, MAX_WAITING_TRIGGERS, TriggerQueue
from hankwatch.sentinels.strategies import Batch, Cause


def batch(count: int, *, size_bytes: int = 100, name: str = "e") -> Batch:
    events = tuple(Event(f"{name}{n}", format_stamp(0), "info", {}, 0, 0, size_bytes) for n in range(count))
    return Batch(events, Cause.MATCH, 0)


def put(queue: TriggerQueue, item: Batch) -> list[int]:
    """Match and fire at once; the numbers of what was dropped."""
    return [trigger.number for trigger in [*queue.hold(item.events), *queue.put(item)]]


def test_triggers_leave_in_the_order_they_came() -> None:
    queue = TriggerQueue()
    for name in "abc":
        put(queue, batch(1, name=name))
    taken = [queue.take() for _ in range(4)]
    assert [t and t.event_ids for t in taken] == [["a0"], ["b0"], ["c0"], None]


def test_the_hundred_and_first_waiting_trigger_drops_the_oldest() -> None:
    queue = TriggerQueue()
    dropped = [number for _ in range(MAX_WAITING_TRIGGERS + 2) for number in put(queue, batch(1))]
    assert dropped == [1, 2]
    assert len(queue) == MAX_WAITING_TRIGGERS


def test_more_waiting_events_than_allowed_drop_the_oldest_until_the_new_fit() -> None:
    queue = TriggerQueue()
    for _ in range(MAX_WAITING_EVENTS // 1_000):
        put(queue, batch(1_000))
    assert put(queue, batch(1_001)) == [1, 2]
    assert queue.statistics.waiting_events == MAX_WAITING_EVENTS - 2_000 + 1_001


def test_more_waiting_bytes_than_allowed_drop_the_oldest() -> None:
    queue = TriggerQueue()
    for _ in range(4):
        put(queue, batch(1, size_bytes=MAX_WAITING_BYTES // 4))
    assert put(queue, batch(1, size_bytes=1)) == [1]


def test_what_a_strategy_buffers_counts_against_the_bound() -> None:
    queue = TriggerQueue()
    for _ in range(10):
        put(queue, batch(999))
    for _ in range(10):
        assert queue.hold(batch(1).events) == []
    assert [trigger.number for trigger in queue.hold(batch(1).events)] == [1]
    assert queue.statistics.buffered_events == 11


def test_a_trigger_too_big_by_itself_is_taken_when_nothing_else_waits() -> None:
    queue = TriggerQueue()
    put(queue, batch(1))
    assert put(queue, batch(1, size_bytes=MAX_WAITING_BYTES + 1)) == [1]
    assert len(queue) == 1


def test_an_overflow_is_told_once_with_all_it_cost() -> None:
    queue = TriggerQueue()
    for _ in range(MAX_WAITING_TRIGGERS + 3):
        put(queue, batch(2))
    episode = queue.end_episode()
    assert episode is not None
    assert (episode.triggers, episode.events, episode.trigger_numbers) == (3, 6, [1, 2, 3])
    assert queue.end_episode() is None
    assert (queue.statistics.dropped_triggers, queue.statistics.dropped_events) == (3, 6)


def test_cleared_triggers_are_handed_over_and_not_counted_as_dropped() -> None:
    queue = TriggerQueue()
    for _ in range(3):
        put(queue, batch(1))
    assert [trigger.number for trigger in queue.clear()] == [1, 2, 3]
    assert len(queue) == 0
    assert queue.statistics.waiting_bytes == 0
    assert queue.statistics.dropped_triggers == 0


def test_the_causes_of_batches_are_those_that_events_may_name() -> None:
    assert set(get_args(TriggerCause)) == {cause.value for cause in Cause}
