"""Prompts and costs from the call log, beside the fires they belong to."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import Story, call_line, eventful_story

from hankwatch.llm.recorded import RecordedCalls
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fold import RunFold
from hankwatch.pages.gather import add_calls
from hankwatch.pages.limits import Limits


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


def with_calls(story: Story, lines: Sequence[dict[str, Any]], log: Path, limits: Limits | None = None) -> RunFacts:
    fold = RunFold(None, limits)
    for event in story.events:
        fold.take(event)
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))
    facts = fold.facts(live=False)
    add_calls(facts, RecordedCalls(log))
    return facts


def one_fire() -> Story:
    story = Story()
    story.begin()
    story.load("build", "narrator")
    story.at(500).fire("build", "narrator", [story.say("build", "hello")], "text")
    return story


def test_the_exact_prompt_and_its_cost_stand_beside_the_entry(log: Path) -> None:
    facts = with_calls(
        one_fire(), [call_line("call-build-narrator-1", "What <happened>?", cost=0.0042, at_ms=500)], log
    )
    (fire,) = facts.sentinels[0].fires
    (call,) = fire.calls
    assert [(said.role, said.text.text) for said in call.messages] == [
        ("system", "You watch."),
        ("user", "What <happened>?"),
    ]
    assert (str(call.cost), call.tokens_in, call.tokens_out, call.duration_ms) == ("$0.0042", 210, 42, 830)


def test_a_failed_call_is_found_by_its_labels_and_time(log: Path) -> None:
    story, calls = eventful_story()
    facts = with_calls(story, calls, log)
    failed = [fire for fire in facts.sentinels[0].fires if fire.outcome == "failed"]
    assert [[call.error for call in fire.calls] for fire in failed] == [["overloaded (529)"]]


def test_a_call_of_another_run_with_the_same_labels_is_not_taken_for_this_ones(log: Path) -> None:
    labels = {"sentinelId": "narrator", "codonId": "build", "triggerNumber": 1}
    facts = with_calls(one_fire(), [call_line("elsewhere", "?", cost=None, at_ms=90_000, **labels)], log)
    (fire,) = facts.sentinels[0].fires
    assert fire.calls == []
    assert facts.unpriced_calls == 0


def test_calls_without_a_price_make_the_cost_a_lower_bound(log: Path) -> None:
    lines = [
        call_line("call-build-narrator-1", "?", cost=None, at_ms=500),
        call_line("partial", "?", cost=0.1, at_ms=500, costComplete=False),
    ]
    facts = with_calls(one_fire(), lines, log)
    assert facts.unpriced_calls == 2
    assert str(facts.sentinel_cost) == "≥ $0.0010"


def test_prompts_share_a_limit_and_say_what_is_missing(log: Path) -> None:
    limits = replace(Limits(), prompt_chars=15, all_prompt_chars=20)
    facts = with_calls(one_fire(), [call_line("call-build-narrator-1", "x" * 100, at_ms=500)], log, limits)
    (fire,) = facts.sentinels[0].fires
    assert [(len(said.text.text), said.text.left_out) for said in fire.calls[0].messages] == [(10, 0), (10, 90)]
