"""The facts of a run, from journals made by hand."""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

from tests.support.stories import Story, eventful_story

from hankwatch.events.envelope import Event
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fold import RunFold
from hankwatch.pages.gather import cite
from hankwatch.pages.limits import Limits
from hankwatch.pages.problems import problems
from hankwatch.pages.render import html
from hankwatch.pages.timeline import timeline
from hankwatch.testing import make_event


def folded(
    events: Iterable[Event], run: str | None = None, limits: Limits | None = None, *, live: bool = False
) -> RunFacts:
    fold = RunFold(run, limits)
    for event in events:
        fold.take(event)
    return fold.facts(live=live)


def cited(story: Story, limits: Limits | None = None) -> RunFacts:
    facts = folded(story.events, limits=limits)

    def find(ids: Collection[str]) -> Iterable[Event]:
        return (event for event in story.events if event.id in ids)

    cite(facts, find)
    return facts


def test_outcome_costs_and_duration_are_those_of_the_run() -> None:
    story = Story()
    story.begin()
    story.start_codon("build")
    story.at(5_000).end_codon("build", cost=0.25)
    story.end()
    facts = folded(story.events)
    assert (facts.run_id, facts.status, facts.reason) == (story.run, "completed", "all codons completed")
    assert facts.ended_ms - facts.began_ms == 5_000
    assert (facts.agent_cost.usd, facts.sentinel_cost.usd) == (0.25, 0.0)
    assert [(codon.codon_id, codon.status) for codon in facts.codons] == [("build", "completed")]
    assert problems(facts) == []


def test_a_run_without_an_end_is_running_while_its_process_lives_and_crashed_afterwards() -> None:
    story = Story()
    story.begin()
    story.start_codon("build")
    assert folded(story.events, live=True).status == "running"
    crashed = folded(story.events)
    assert crashed.status == "crashed"
    assert problems(crashed)[0].severity == "failure"


def test_only_the_latest_run_counts_unless_another_is_named() -> None:
    first, second = Story("first"), Story("second")
    for story, cost in ((first, 0.1), (second, 0.2)):
        story.begin()
        story.start_codon("build")
        story.end_codon("build", cost=cost)
        story.end()
    journal = [*first.events, *second.events]
    latest, named = folded(journal), folded(journal, "first")
    assert (latest.run_id, latest.agent_cost.usd, latest.other_runs) == ("second", 0.2, 1)
    assert (named.run_id, named.agent_cost.usd) == ("first", 0.1)
    assert latest.event_count == named.event_count == len(first.events)


def test_a_run_that_goes_on_shows_what_was_done_before_it() -> None:
    first, second = Story("first"), Story("second")
    first.begin()
    first.start_codon("plan")
    first.end_codon("plan", cost=0.1)
    source = {"runId": "first", "afterCodon": "plan"}
    second.move("RunStarted", startingConditions={"type": "continuation", "source": source})
    second.start_codon("build")
    facts = folded([*first.events, *second.events])
    assert [(codon.codon_id, codon.earlier) for codon in facts.codons] == [("plan", True), ("build", False)]
    assert facts.continues == "first"
    assert facts.agent_cost.usd == 0.0


def test_a_recording_that_was_no_run_tells_of_its_codons_all_the_same() -> None:
    story = Story()
    story.add(
        "codon.started", codonId="imported", codonName="Imported", sessionId="", startTime="2000-01-01T00:00:00.000Z"
    )
    story.at(900).add(
        "codon.completed", codonId="imported", success=False, cost=None, duration=900, exitStatus={"type": "success"}
    )
    facts = folded(story.events)
    assert facts.status == "recorded"
    assert [
        (codon.codon_id, codon.status, codon.ended_ms - codon.began_ms) for codon in facts.codons if codon.ended_ms
    ] == [("imported", "failed", 900)]
    assert str(facts.agent_cost) == "unknown"


def test_entries_and_the_events_that_caused_them_know_each_other() -> None:
    story = Story()
    story.begin()
    story.load("build", "narrator")
    story.load("build", "errors")
    shared, other = story.say("build", "shared"), story.say("build", "other")
    story.fire("build", "narrator", [shared, other], "two")
    story.fire("build", "errors", [shared], {"one": 1})
    facts = cited(story)
    narrator, errors = (next(iter(sentinel.fires)) for sentinel in facts.sentinels)
    assert [event.gist.text for event in narrator.events] == ["message: shared", "message: other"]
    assert errors.events == [narrator.events[0]]
    assert narrator.events[0].fires == [narrator, errors]
    assert [event.anchor for event in facts.events] == [1, 2]
    assert (narrator.content.text, errors.structured) == ("two", True)


def test_an_event_that_the_journal_does_not_have_is_counted() -> None:
    story = Story()
    story.begin()
    story.fire("build", "narrator", [make_event("info", message="elsewhere")], "text")
    facts = cited(story)
    assert facts.uncited == 1
    assert next(iter(facts.sentinels[0].fires)).others == 1


def test_everything_that_went_wrong_is_named_worst_first() -> None:
    story, _ = eventful_story()
    facts = cited(story)
    assert facts.status == "failed"
    titles = [problem.title for problem in problems(facts)]
    assert titles == [
        "The run failed",
        "Codon build#1 failed",
        "Fatal error in codon build#2",
        "The watchdog interrupted the agent once",
        "The watchdog nudged the agent once",
        "narrator: 1 fire failed",
        "narrator: 4 fires with 11 events dropped, its queue was full",
        "3 model calls of sentinels without a known price: costs are lower bounds",
        "The cost of agents is not wholly known",
    ]
    assert (str(facts.agent_cost), str(facts.sentinel_cost)) == ("≥ $0.1912", "≥ $0.0073")
    assert (facts.nudges, facts.interrupts, facts.tools.count, facts.tools.failed) == (1, 1, 15, 6)


def test_a_codon_that_was_tried_again_is_a_warning_only() -> None:
    story = Story()
    story.begin()
    for status in ("failed", "completed"):
        story.start_codon("build")
        story.end_codon("build", status)
    story.end()
    assert [(p.severity, p.title) for p in problems(folded(story.events))] == [
        ("warning", "Codon build (attempt 1) failed, and was tried again")
    ]


def test_what_is_beyond_the_limits_is_counted() -> None:
    story = Story()
    story.begin()
    story.load("build", "narrator")
    causes = [story.say("build", f"event {n}") for n in range(12)]
    for n in range(10):
        story.fire("build", "narrator", causes[n : n + 3], "x" * 50)
    for n in range(5):
        story.load("build", f"other-{n}")
    limits = replace(Limits(), sentinels=2, first_fires=2, last_fires=3, events_per_fire=2, events=4, content_chars=20)
    facts = cited(story, limits)
    narrator = facts.sentinels[0]
    assert (narrator.fired, len(narrator.fires), narrator.fires.left_out) == (10, 5, 5)
    first = next(iter(narrator.fires))
    assert (first.event_count, len(first.events), first.others, first.content.left_out) == (3, 2, 1, 30)
    assert len(facts.events) == 4
    assert facts.uncited > 0
    assert facts.unlisted_sentinel_events == 4


def test_a_journal_that_says_nonsense_is_folded_without_failing() -> None:
    story = Story()
    story.begin()
    nonsense: list[Any] = [None, "text", 7, [], {"a": 1}, True, -1, 1e300]
    for type_name in sorted({event.type for event in eventful_story()[0].events} | {"watch.met", "archive.partial"}):
        for value in nonsense:
            keys = {key for event in eventful_story()[0].events if event.type == type_name for key in event.data}
            story.add(type_name, **dict.fromkeys(keys, value))
            story.add(type_name)
    facts = cited(story)
    assert facts.event_count == len(story.events)
    problems(facts)


def test_a_failed_fire_that_was_answered_later_is_no_failure_any_more() -> None:
    story = Story()
    story.begin()
    story.load("build", "narrator")
    cause = story.say("build", "hello")
    number = story.trigger("build", "narrator", [cause])
    story.fail("build", "narrator", "overloaded", triggerNumber=number)
    story.unload("build", "narrator")
    story.end()
    story.load("build", "narrator", source="retry")
    story.fire("build", "narrator", [cause], "said after all")
    facts = cited(story)
    failed, answered = facts.sentinels[0].fires
    assert (failed.outcome, failed.again, answered.outcome) == ("retried", answered, "answered")
    assert (facts.failed_fires, problems(facts)) == (0, [])


def test_a_codon_that_was_ended_by_a_limit_is_named_with_it() -> None:
    story = Story()
    story.begin()
    story.start_codon("build")
    story.end_codon("build", budgetExceeded={"currency": "cost", "limit": 0.2, "used": 0.25})
    story.end()
    (problem,) = problems(folded(story.events))
    assert (problem.severity, problem.title) == ("warning", "Codon build reached a limit")
    assert problem.text == "cost limit of 0.2 reached (0.25 used)"


def test_of_thousands_of_codons_the_first_and_the_last_are_shown_and_all_are_in_the_timeline() -> None:
    story = Story()
    story.begin()
    for n in range(1_000):
        story.at(100 * n).start_codon(f"build#{n}", baseCodonId="build")
        story.at(100 * n + 60).end_codon(f"build#{n}", "failed" if n == 500 else "completed")
    facts = folded(story.events)
    shown = facts.shown_codons
    assert (len(facts.codons), len(shown), shown.left_out) == (1_000, 200, 800)
    (lane,) = timeline(facts).groups[0].lanes
    assert lane.summary == "1000 ×, 1 failed"
    assert len(lane.bars) <= 1_001
    assert [bar.target for bar in lane.bars if bar.look == "codon failed"] == [""]
    targets = {bar.target for bar in lane.bars} | {problem.target for problem in problems(facts)}
    assert targets - {""} <= {f"codon-{codon.anchor}" for codon in shown}


def test_the_facts_of_a_live_run_can_be_asked_for_again_and_again() -> None:
    story, _ = eventful_story()
    fold, half = RunFold(), len(story.events) // 2
    for event in story.events[:half]:
        fold.take(event)
    early = fold.facts(live=True)
    cite(early, lambda ids: (event for event in story.events[:half] if event.id in ids))
    for event in story.events[half:]:
        fold.take(event)
    late, whole = fold.facts(live=False), cited(story)
    cite(late, lambda ids: (event for event in story.events if event.id in ids))
    assert early.status == "running"
    assert html(late) == html(whole)


def test_facts_stand_still_while_their_fold_goes_on() -> None:
    story, _ = eventful_story()
    fold = RunFold()
    half = len(story.events) // 2
    for event in story.events[:half]:
        fold.take(event)
    facts = fold.facts(live=True)
    counted = [share.count for share in facts.types], facts.bins.counts("type tool calls"), facts.fired
    moments = iter(facts.moments)
    fires = iter(facts.sentinels[0].fires)
    next(moments)
    next(fires)
    for event in story.events[half:]:
        fold.take(event)
    list(moments)
    list(fires)
    assert ([share.count for share in facts.types], facts.bins.counts("type tool calls"), facts.fired) == counted
