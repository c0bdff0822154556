"""Laws of the slots: bounded, first come first served, nobody to a provider that is held back."""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from hankwatch.core.clock import VirtualClock
from hankwatch.llm.slots import Slots


@dataclass(frozen=True)
class Job:
    """Somebody who wants a slot."""

    at_s: int
    provider: str
    takes_s: int
    asks_s: int
    """At its end the provider asks to be left alone for that long; 0: it does not."""
    gives_up_s: int | None
    """Cancelled so long after it asked."""


jobs = st.lists(
    st.builds(
        Job,
        at_s=st.integers(0, 8),
        provider=st.sampled_from("ab"),
        takes_s=st.integers(1, 5),
        asks_s=st.sampled_from([0, 0, 0, 3, 7]),
        gives_up_s=st.none() | st.integers(1, 12),
    ),
    min_size=1,
    max_size=12,
)


@dataclass
class Record:
    """What happened, in order: (second, job number)."""

    asked: list[tuple[float, int]]
    got: list[tuple[float, int]]
    left: list[tuple[float, int]]
    holds: list[tuple[float, str, float]]


async def _play(jobs: Sequence[Job], total: int) -> tuple[Record, Slots]:
    clock = VirtualClock()
    slots = Slots(total, clock)
    record = Record([], [], [], [])

    async def run(number: int, job: Job, scope: anyio.CancelScope) -> None:
        with scope:
            await clock.sleep(job.at_s)
            ticket = slots.ticket(job.provider)
            record.asked.append((clock.monotonic(), number))
            if job.gives_up_s is not None:
                watchers.start_soon(give_up, scope, job.gives_up_s)
            async with slots.take(ticket):
                record.got.append((clock.monotonic(), number))
                assert slots.statistics().taken <= total
                try:
                    await clock.sleep(job.takes_s)
                    if job.asks_s:
                        slots.hold_back(job.provider, job.asks_s)
                        record.holds.append((clock.monotonic(), job.provider, clock.monotonic() + job.asks_s))
                finally:
                    record.left.append((clock.monotonic(), number))

    async def give_up(scope: anyio.CancelScope, after_s: int) -> None:
        await clock.sleep(after_s)
        scope.cancel()

    async with anyio.create_task_group() as watchers, anyio.create_task_group() as tasks:
        for number, job in enumerate(jobs):
            tasks.start_soon(run, number, job, anyio.CancelScope())
        await clock.advance(500)
    return record, slots


@settings(max_examples=80)
@given(jobs=jobs, total=st.integers(1, 3))
async def test_nobody_starts_while_its_provider_is_held_back_and_all_slots_come_back(
    jobs: list[Job], total: int
) -> None:
    record, slots = await _play(jobs, total)
    for second, number in record.got:
        holds = [(began, ended) for began, provider, ended in record.holds if provider == jobs[number].provider]
        assert not any(began < second < ended for began, ended in holds)
    statistics = slots.statistics()
    assert (statistics.taken, statistics.waiting, statistics.held_providers) == (0, 0, ())
    gave_up = {number for number, job in enumerate(jobs) if job.gives_up_s is not None}
    assert {number for _, number in record.got} | gave_up == set(range(len(jobs)))


@settings(max_examples=80)
@given(jobs=jobs, total=st.integers(1, 3))
async def test_of_one_provider_first_come_is_first_served(jobs: list[Job], total: int) -> None:
    record, _ = await _play(jobs, total)
    got = [number for _, number in record.got]
    for provider in "ab":
        asked = [n for _, n in record.asked if jobs[n].provider == provider and n in got]
        at = {number: second for second, number in record.got}
        # Those that got theirs at one instant may be noted in any order.
        assert sorted(asked, key=lambda n: (at[n], asked.index(n))) == asked


@settings(max_examples=80)
@given(jobs=jobs, total=st.integers(1, 3))
async def test_no_slot_stays_free_while_somebody_may_have_it(jobs: list[Job], total: int) -> None:
    """Whoever waited did so for a reason: every slot was taken, or its provider was held back, at each instant."""
    record, _ = await _play(jobs, total)
    got_at = {number: second for second, number in record.got}
    left_at = {number: second for second, number in record.left}
    for asked_s, number in record.asked:
        if number not in got_at:
            continue
        for second in range(int(asked_s), int(got_at[number])):
            taken = sum(got_at[n] <= second < left_at[n] for n in got_at)
            held = any(p == jobs[number].provider and began <= second < ended for began, p, ended in record.holds)
            assert taken == total or held
