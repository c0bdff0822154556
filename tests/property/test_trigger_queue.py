"""The queue against a list that drops from its front."""

from hypothesis import given
from hypothesis import strategies as st

from hankwatch.events.envelope import Event
from hankwatch.sentinels.queue import MAX_WAITING_BYTES, MAX_WAITING_EVENTS, MAX_WAITING_TRIGGERS, TriggerQueue
from hankwatch.sentinels.strategies import Batch, Cause

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(1, 1_500), st.integers(1, 20_000)),
        st.tuples(st.just("take"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


def make(count: int, size_bytes: int) -> Batch:
    return Batch((Event("x", "", "info", {}, 0, 0, size_bytes),) * count, Cause.MATCH, 0)


def fits(sizes: list[tuple[int, int, int]]) -> bool:
    return (
        len(sizes) <= MAX_WAITING_TRIGGERS
        and sum(count for _, count, _ in sizes) <= MAX_WAITING_EVENTS
        and sum(count * size for _, count, size in sizes) <= MAX_WAITING_BYTES
    )


@given(STEPS)
def test_the_queue_keeps_the_newest_that_fit_and_counts_the_rest(steps: list[tuple[str, int, int]]) -> None:
    queue, model, number, dropped = TriggerQueue(), list[tuple[int, int, int]](), 0, 0
    for action, count, size in steps:
        if action == "take":
            taken = queue.take()
            assert (taken and taken.number) == (model.pop(0)[0] if model else None)
            continue
        number += 1
        batch = make(count, size)
        queue.hold(batch.events)
        queue.put(batch)
        model.append((number, count, size))
        while len(model) > 1 and not fits(model):
            model.pop(0)
            dropped += 1
    statistics = queue.statistics
    assert [trigger.number for trigger in queue.clear()] == [n for n, _, _ in model]
    assert statistics.dropped_triggers == dropped
    assert statistics.waiting_events == sum(count for _, count, _ in model)
    assert statistics.buffered_events == 0
