"""Signals become the codon's payloads, and nothing disappears uncounted."""

import json
from typing import Any

import pytest

from hankwatch.agents.envelope import EnvelopeDialect
from hankwatch.agents.signals import (
    ContextExceeded,
    Junk,
    LeftOut,
    ModelUse,
    Recorded,
    Reported,
    Result,
    Retried,
    Signal,
    Spoke,
    Started,
    Tokens,
    ToolFinished,
    ToolUsed,
    Used,
)
from hankwatch.agents.translate import Translator


def dumped(translator: Translator, *signals: Signal, at_ms: int = 0) -> list[dict[str, Any]]:
    return [
        {"type": payload.TYPE, **payload.dump()}
        for signal in signals
        for payload in translator.translate(signal, at_ms)
    ]


def test_every_event_carries_the_runtime_id_and_the_authored_one() -> None:
    [event] = dumped(Translator("loop#2", "loop"), Spoke("message", "hello"))
    assert (event["codonId"], event["baseCodonId"]) == ("loop#2", "loop")


def test_a_result_names_its_tool_and_the_time_since_its_call() -> None:
    translator = Translator("c")
    dumped(translator, ToolUsed("t1", "Bash", {"command": "ls"}), at_ms=1_000)
    [result] = dumped(translator, ToolFinished("t1", "a b", "error", is_error=True), at_ms=1_250)
    assert result["toolName"] == "Bash"
    assert result["executionTimeMs"] == 250
    assert (result["outcome"], result["isError"]) == ("error", True)


def test_a_clock_that_goes_back_gives_no_negative_time() -> None:
    translator = Translator("c")
    dumped(translator, ToolUsed("t1", "Bash", {}), at_ms=1_000)
    [result] = dumped(translator, ToolFinished("t1", ""), at_ms=900)
    assert result["executionTimeMs"] == 0


@pytest.mark.parametrize(("length", "shown", "truncated"), [(2_500, 2_500, False), (2_501, 2_503, True)])
def test_a_long_result_is_cut_and_says_how_long_it_was(length: int, shown: int, truncated: bool) -> None:
    translator = Translator("c")
    dumped(translator, ToolUsed("t1", "Bash", {}))
    [result] = dumped(translator, ToolFinished("t1", "x" * length))
    assert (len(result["result"]), result["truncated"], result["originalLength"]) == (shown, truncated, length)


def test_a_cut_leaves_no_half_of_a_secret_behind() -> None:
    translator = Translator("c", tool_result_chars=20, redact=lambda text: text.replace("sk-0123456789", "[redacted]"))
    dumped(translator, ToolUsed("t1", "Bash", {}))
    [result] = dumped(translator, ToolFinished("t1", "the key is sk-0123456789, keep it"))
    assert result["result"] == "the key is [redacted..."


def test_the_fingerprint_is_taken_before_the_cut() -> None:
    translator = Translator("c", tool_result_chars=4)
    dumped(translator, ToolUsed("t1", "Bash", {}), ToolUsed("t2", "Bash", {}))
    one, two = dumped(translator, ToolFinished("t1", "same end 1"), ToolFinished("t2", "same end 2"))
    assert one["result"] == two["result"] == "same..."
    assert one["fingerprint"] != two["fingerprint"]


def test_parallel_results_are_matched_by_id() -> None:
    translator = Translator("c")
    dumped(translator, ToolUsed("a", "Read", {}), ToolUsed("b", "Bash", {}))
    results = dumped(translator, ToolFinished("b", "2"), ToolFinished("a", "1"))
    assert [(r["toolUseId"], r["toolName"]) for r in results] == [("b", "Bash"), ("a", "Read")]


def test_a_result_before_its_call_is_held_until_the_call() -> None:
    translator = Translator("c")
    assert dumped(translator, ToolFinished("t1", "early")) == []
    events = dumped(translator, ToolUsed("t1", "Bash", {}))
    assert [event["type"] for event in events] == ["assistant.action", "tool.result"]


def test_a_result_whose_call_never_comes_is_counted() -> None:
    translator = Translator("c")
    dumped(translator, ToolFinished("ghost", "x"))
    translator.finish()
    assert translator.counts["unknown_results"] == 1


def test_calls_left_open_are_counted_at_the_end() -> None:
    translator = Translator("c")
    dumped(translator, ToolUsed("a", "Bash", {}), ToolUsed("b", "Bash", {}), ToolFinished("a", ""))
    translator.finish()
    assert translator.counts["calls_without_result"] == 1


def test_copies_of_what_was_seen_are_counted_and_left_out() -> None:
    translator = Translator("c")
    history: list[Signal] = [
        Spoke("message", "hi", message_id="m1"),
        ToolUsed("a", "Bash", {}),
        ToolFinished("a", "done"),
        Used(Tokens(1, 2), "m1"),
    ]
    assert len(dumped(translator, *history)) == 4
    assert dumped(translator, Started("again"), *history) == []
    assert translator.counts["replayed"] == 3


def test_equal_words_of_different_messages_both_count() -> None:
    translator = Translator("c")
    said: list[Signal] = [Spoke("message", "Again.", message_id="m1"), Spoke("message", "Again.", message_id="m2")]
    assert len(dumped(translator, *said, Spoke("message", "Again."), Spoke("message", "Again."))) == 4


def test_a_sub_agents_events_name_the_call_that_started_it() -> None:
    translator = Translator("c")
    signals: list[Signal] = [
        Spoke("message", "hi", "t0"),
        ToolUsed("t1", "Bash", {}, "t0"),
        ToolFinished("t1", "", parent="t0"),
    ]
    assert {event["parentToolUseId"] for event in dumped(translator, *signals)} == {"t0"}


def test_a_retry_is_an_info_and_a_problem_an_error_that_ends_nothing() -> None:
    retry, warning, failure = dumped(
        Translator("c"), Retried("529"), Reported("loop detected", "warning"), Result(success=False, text="boom")
    )
    assert (retry["type"], retry["code"]) == ("info", "transport-retry")
    assert (warning["type"], warning["severity"], warning["fatal"]) == ("error", "warning", False)
    assert (failure["type"], failure["severity"], failure["fatal"]) == ("error", "codon", False)


def test_an_error_repeated_by_the_last_line_is_one_event() -> None:
    translator = Translator("c")
    said = dumped(translator, Reported("no key"), Result(success=False, text="no key"))
    assert len(said) == 1
    assert translator.counts["repeated_problems"] == 1


def test_the_same_problem_after_further_work_is_a_new_one() -> None:
    translator = Translator("c")
    signals: list[Signal] = [Reported("too long"), Spoke("message", "again"), Reported("too long")]
    assert [event["type"] for event in dumped(translator, *signals)] == ["error", "assistant.action", "error"]


def test_the_final_usage_is_last_and_sums_the_others() -> None:
    translator = Translator("c")
    dumped(translator, Used(Tokens(1, 2, 3, 4), "a", "m", 0.5), Used(Tokens(1, 1, 1, 1), "b", "m", 0.25))
    [final] = (payload.dump() for payload in translator.finish())
    assert final["isFinal"] is True
    assert [final[f"{k}Tokens"] for k in ("input", "output", "cacheCreation", "cacheRead")] == [2, 3, 4, 5]
    assert (final["totalCost"], final["modelId"]) == (0.75, "m")


def test_an_unknown_cost_stays_null_in_the_final_usage() -> None:
    translator = Translator("c")
    dumped(translator, Used(Tokens(1, 2)))
    [final] = (payload.dump() for payload in translator.finish())
    assert final["totalCost"] is None


def test_without_any_usage_there_is_no_final_one() -> None:
    assert Translator("c").finish() == []


def test_the_final_usage_is_split_by_model_where_the_program_says_so() -> None:
    translator = Translator("c")
    part = {"m": ModelUse(Tokens(1, 2, 3, 4), 0.5)}
    [increment] = dumped(translator, Used(Tokens(1, 2, 3, 4), cost_usd=0.5, total=True, by_model=part))
    [final] = (payload.dump() for payload in translator.finish())
    assert "modelUsage" not in increment
    assert final["modelUsage"] == {
        "m": {
            "inputTokens": 1,
            "outputTokens": 2,
            "cacheReadInputTokens": 4,
            "cacheCreationInputTokens": 3,
            "costUSD": 0.5,
        }
    }


@pytest.mark.parametrize("signal", [Retried("529"), ContextExceeded("compacted")])
def test_what_the_program_does_about_its_model_is_told_and_read_back(signal: Retried | ContextExceeded) -> None:
    [info] = dumped(Translator("c"), signal)
    line = json.dumps({"id": "1", "timestamp": "2026-11-30T15:18:34Z", "type": "info", "data": info}).encode()
    assert EnvelopeDialect().feed(line) == [signal]


def test_junk_is_counted() -> None:
    translator = Translator("c")
    assert dumped(translator, Junk(b"Welcome!", "not JSON")) == []
    assert translator.counts["junk"] == 1


def test_what_does_not_fit_becomes_an_info_that_says_why() -> None:
    translator = Translator("c")
    signals: list[Signal] = [ToolUsed("", "Bash", {}), Recorded("tool.result", {"toolUseId": "x", "toolName": 5}, "e1")]
    infos = dumped(translator, *signals)
    assert [info["code"] for info in infos] == ["bad-line", "bad-line"]
    assert infos[1]["details"]["type"] == "tool.result"
    assert translator.counts["bad_line"] == 2


def test_a_recorded_event_takes_the_running_codons_id() -> None:
    translator = Translator("now#1", "now")
    data = {"codonId": "then", "action": "message", "content": "hi"}
    [event] = dumped(translator, Recorded("assistant.action", data, "e1"))
    assert (event["codonId"], event["baseCodonId"], event["content"]) == ("now#1", "now", "hi")


def test_the_same_foreign_id_twice_is_one_event() -> None:
    translator = Translator("c")
    event = Recorded("assistant.action", {"action": "message", "content": "hi"}, "e1")
    assert len(dumped(translator, event, event)) == 1
    assert translator.counts["replayed"] == 1


def test_a_recorded_call_copied_under_a_new_id_is_one_call() -> None:
    translator = Translator("c")
    call = {"action": "tool_use", "content": "", "toolName": "Bash", "toolUseId": "t1", "toolInput": {}}
    result = {
        "toolUseId": "t1",
        "toolName": "Bash",
        "result": "",
        "truncated": False,
        "originalLength": 0,
        "executionTimeMs": 1,
        "isError": False,
    }
    once = [Recorded("assistant.action", call, "e1"), Recorded("tool.result", result, "e2")]
    copy = [Recorded("assistant.action", call, "f1"), Recorded("tool.result", result, "f2")]
    assert len(dumped(translator, *once, *copy)) == 2


def test_unknown_keys_of_a_recorded_event_are_dropped_and_counted() -> None:
    translator = Translator("c")
    data = {"action": "message", "content": "hi", "mood": "good"}
    [event] = dumped(translator, Recorded("assistant.action", data, "e1"))
    assert "mood" not in event
    assert translator.counts["dropped_keys"] == 1


def test_refused_usage_and_what_was_left_out_are_counted_by_their_reason() -> None:
    translator = Translator("c")
    signals: list[Signal] = [
        Used(Tokens(1, 1), cost_usd=1e308),
        Used(Tokens(1, 1), cost_usd=1e308),
        LeftOut("infos"),
        LeftOut("observer_events"),
        LeftOut("infos"),
    ]
    assert dumped(translator, *signals) == []
    assert translator.finish() == []
    assert {name: n for name, n in translator.counts.items() if n} == {
        "impossible_usage": 2,
        "infos": 2,
        "observer_events": 1,
    }
