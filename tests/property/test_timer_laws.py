"""Laws of the timer heap, against a naive list."""

from hypothesis import given
from hypothesis import strategies as st

from hankwatch.core.clock import Timers

DUE = st.integers(0, 20)
INSTANTS = st.lists(st.integers(0, 30), min_size=1, max_size=5).map(sorted)


@given(st.lists(st.tuples(DUE, st.booleans()), max_size=15), INSTANTS)
def test_due_timers_run_in_order_of_instant_then_scheduling(plan: list[tuple[int, bool]], instants: list[int]) -> None:
    timers, ran = Timers(), list[tuple[int, int]]()
    for order, (due_ms, cancelled) in enumerate(plan):

        def run(at_ms: int, order: int = order) -> None:
            ran.append((at_ms, order))

        timer = timers.at(due_ms, run)
        if cancelled:
            timer.cancel()
    for now_ms in instants:
        timers.run_due(now_ms)
    live = [(due_ms, order) for order, (due_ms, cancelled) in enumerate(plan) if not cancelled]
    assert ran == sorted(entry for entry in live if entry[0] <= instants[-1])


@given(st.lists(st.tuples(DUE, st.integers(0, 5)), max_size=10), INSTANTS)
def test_a_timer_scheduled_by_a_timer_runs_in_the_same_span(plan: list[tuple[int, int]], instants: list[int]) -> None:
    timers, ran = Timers(), list[int]()
    for due_ms, delay_ms in plan:

        def first(at_ms: int, delay_ms: int = delay_ms) -> None:
            ran.append(at_ms)
            timers.at(at_ms + delay_ms, ran.append)

        timers.at(due_ms, first)
    for now_ms in instants:
        timers.run_due(now_ms)
    last = instants[-1]
    due = [d for d, _ in plan if d <= last] + [d + delay for d, delay in plan if d + delay <= last]
    assert ran == sorted(due)
