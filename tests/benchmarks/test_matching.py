"""What an event costs with few and with many sentinels, and with a sequence.

Each ratio is measured side by side: all ways take turns in short rounds within one run, and the median round
of each counts, so that a busy machine slows all of them.
"""

import gc
import statistics
import time
from collections.abc import Callable, Sequence

import pytest

from hankwatch.events.envelope import Event
from hankwatch.matching.triggers import EventTrigger, SequenceTrigger, TriggerIndex
from hankwatch.testing import make_event

pytestmark = pytest.mark.benchmark

ROUNDS = 40
EVENTS_PER_ROUND = 1_000
SEQUENCE_EVENTS = 20_000


def tool_results(count: int, tool: str) -> list[Event]:
    return [
        make_event(
            "tool.result", 1_000 * number, codonId="build", toolName=tool, result="line\n" * 40 + "done", isError=False
        )
        for number in range(count)
    ]


def with_sentinels(count: int) -> TriggerIndex[int]:
    """Sentinels on one type, each for its own tool and one text; only the last one's tool occurs."""
    index: TriggerIndex[int] = TriggerIndex(lambda key, reason: pytest.fail(f"{key}: {reason}"))
    for number in range(count):
        conditions = [
            {"path": "toolName", "operator": "equals", "value": f"Tool{count - number}"},
            {"path": "result", "operator": "contains", "value": "done"},
        ]
        index.add(
            number, EventTrigger.model_validate({"type": "event", "on": ["tool.result"], "conditions": conditions})
        )
    return index


def seconds_per_event(ways: Sequence[tuple[Callable[[Event], object], Sequence[Event]]]) -> list[float]:
    """The median round of each way; they take turns, in both orders."""
    rounds: list[list[float]] = [[] for _ in ways]
    gc.collect()
    gc.disable()
    try:
        for turn in range(ROUNDS):
            order = range(len(ways)) if turn % 2 else range(len(ways) - 1, -1, -1)
            for way in order:
                route, events = ways[way]
                start = time.perf_counter()
                for event in events:
                    route(event)
                rounds[way].append((time.perf_counter() - start) / len(events))
    finally:
        gc.enable()
    return [statistics.median(times) for times in rounds]


def test_ten_thousand_sentinels_cost_at_most_twice_ten() -> None:
    events = tool_results(EVENTS_PER_ROUND, "Tool1")
    counts = (10, 100, 1_000, 10_000)
    indexes = [with_sentinels(count) for count in counts]
    for count, index in zip(counts, indexes, strict=True):
        assert [match.key for match in index.route(events[0])] == [count - 1]
    costs = seconds_per_event([(index.route, events) for index in indexes])
    for count, cost in zip(counts, costs, strict=True):
        print(f"\n{count:6,} sentinels: {1 / cost:10,.0f} events/s, {cost / costs[0]:.2f} x the cost with 10", end="")
    assert costs[-1] <= 2 * costs[0]


def test_a_sequence_with_gaps_costs_at_most_three_event_triggers() -> None:
    # Every event is considered; of the sequence's steps one fits each second event.
    tools = tool_results(SEQUENCE_EVENTS // 2, "Bash"), tool_results(SEQUENCE_EVENTS // 2, "Read")
    events = [event for pair in zip(*tools, strict=True) for event in pair]
    single: TriggerIndex[str] = TriggerIndex(lambda key, reason: pytest.fail(f"{key}: {reason}"))
    condition = {"path": "toolName", "operator": "notEquals", "value": "Read"}
    single.add(
        "event", EventTrigger.model_validate({"type": "event", "on": ["tool.result"], "conditions": [condition]})
    )
    gapped: TriggerIndex[str] = TriggerIndex(lambda key, reason: pytest.fail(f"{key}: {reason}"))
    gapped.add(
        "sequence",
        SequenceTrigger.model_validate(
            {
                "type": "sequence",
                "interestFilter": {"on": ["tool.result"]},
                "pattern": [{"type": "tool.result", "conditions": [condition]}] * 4,
                "options": {"consecutive": False},
            }
        ),
    )
    assert sum(len(gapped.route(event)) for event in events) == SEQUENCE_EVENTS // 2 // 4
    one, sequence = seconds_per_event([(single.route, events), (gapped.route, events)])
    print(f"\nsequence of 4 with gaps over {SEQUENCE_EVENTS:,} events: {sequence / one:.2f} x an event trigger", end="")
    assert sequence <= 3 * one
