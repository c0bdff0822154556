"""What events count to."""

from typing import Any

from hankwatch.events.envelope import Event, format_stamp
from hankwatch.serve.counters import LATENCIES_S, Counters, bucket_of


def counted(*events: tuple[int, str, dict[str, Any]]) -> Counters:
    counters = Counters()
    for at_ms, type_name, data in events:
        counters.take(Event(str(at_ms), format_stamp(at_ms), type_name, data, at_ms))
    return counters


def fire(number: int, **more: Any) -> dict[str, Any]:
    return {"sentinelId": "s", "codonId": "c", "triggerNumber": number, **more}


def usage(taken: int, given: int, **more: Any) -> dict[str, Any]:
    return {"codonId": "c", "inputTokens": taken, "outputTokens": given, **more}


def test_a_fire_waits_until_it_has_an_end() -> None:
    counters = counted(
        (0, "sentinel.triggered", fire(1)),
        (0, "sentinel.triggered", fire(2)),
        (0, "sentinel.triggered", fire(3)),
        (400, "sentinel.output", fire(1, cost=0.5, tokens={"input": 3, "output": 4})),
        (2_000, "sentinel.error", fire(2, errorType="llm-call-failed")),
    )
    assert (counters.fired, dict(counters.fires), counters.waiting) == (3, {"answered": 1, "failed": 1}, 1)
    assert counters.latencies[bucket_of(0.4, LATENCIES_S)] == counters.latencies[bucket_of(2.0, LATENCIES_S)] == 1
    assert counters.latency_sum_s == 2.4
    assert (counters.sentinel_cost_usd, counters.tokens["sentinel output"]) == (0.5, 4)


def test_calls_are_counted_as_they_end_and_at_the_unloading_what_no_fire_told() -> None:
    fires = (
        (0, "sentinel.output", fire(1)),
        (1, "sentinel.error", fire(2, errorType="llm-call-failed")),
        (1, "sentinel.error", fire(3, errorType="template-render-failed")),
    )
    unloaded = {**fire(0), "llmCallCount": 5, "droppedTriggers": 2, "droppedEvents": 7}
    assert counted(*fires).calls == 2
    done = counted(*fires, (2, "sentinel.unloaded", unloaded))
    assert (done.calls, done.dropped, done.dropped_events) == (5, 2, 7)
    again = (3, "sentinel.output", fire(1)), (4, "sentinel.unloaded", {**fire(0), "llmCallCount": 1})
    assert counted(*fires, (2, "sentinel.unloaded", unloaded), *again).calls == 6


def test_what_was_given_up_waits_no_more() -> None:
    counters = counted(
        (0, "sentinel.triggered", fire(1)),
        (0, "sentinel.triggered", fire(2)),
        (1, "sentinel.error", {**fire(0), "errorType": "abandoned", "count": 2, "triggerNumbers": [1, 2]}),
    )
    assert (counters.waiting, counters.abandoned, dict(counters.fires)) == (0, 2, {})


def test_a_report_that_was_not_written_is_no_end_of_a_fire() -> None:
    counters = counted(
        (0, "sentinel.triggered", fire(1)), (1, "sentinel.error", fire(1, errorType="file-write-failed"))
    )
    assert (counters.waiting, dict(counters.fires)) == (1, {})


def test_tokens_are_the_final_count_whatever_the_increments_said() -> None:
    final = usage(10, 20, isFinal=True, totalCost=0.25)
    whole = counted((0, "token.usage", usage(4, 5)), (1, "token.usage", usage(6, 15)), (2, "token.usage", final))
    only = counted((0, "token.usage", final))
    assert dict(whole.tokens) == dict(only.tokens) == {"agent input": 10, "agent output": 20}
    assert whole.agent_cost_usd == only.agent_cost_usd == 0.25


def test_a_foreign_journal_can_say_anything() -> None:
    hostile: list[Any] = [None, True, -1, 2**70, "x", [], {}, 1e300]
    for value in hostile:
        names = ("triggerNumber", "cost", "tokens", "count", "triggerNumbers", "droppedTriggers", "inputTokens")
        data = dict.fromkeys([*names, "errorType", "isFinal", "totalCost", "llmCallCount"], value)
        for type_name in (
            "sentinel.triggered",
            "sentinel.output",
            "sentinel.error",
            "sentinel.unloaded",
            "token.usage",
        ):
            counted((0, type_name, data))
    assert dict(counted((0, "made.up", {})).events) == {"other": 1}
