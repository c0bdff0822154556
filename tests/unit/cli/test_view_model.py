"""The live view's model: events in, rows out."""

from typing import Any

import pytest

from hankwatch.cli.view_model import KEPT_EVENTS, STATUS_MS, View
from hankwatch.events.envelope import Event
from hankwatch.testing import make_event

START_MS = 1_800_000_000_000


def transition(kind: str, at_ms: int = 0, /, **data: Any) -> Event:
    data = {"runId": "r", **data}
    return make_event(
        "state.transition", START_MS + at_ms, transitionType=kind, transition={"type": kind, "data": data}, **data
    )


def of_sentinel(kind: str, /, **data: Any) -> Event:
    return make_event(f"sentinel.{kind}", START_MS, sentinelId="narrator", codonId="build", **data)


@pytest.fixture
def view() -> View:
    """A run that has begun, of codons ``build`` and ``test``."""
    view = View("demo", ["build", "test"])
    view.take(transition("RunStarted"))
    return view


def begin(view: View, codon_id: str = "build", at_ms: int = 1_000, **data: Any) -> None:
    view.take(transition("CodonStarted", at_ms, codonId=codon_id, baseCodonId=codon_id.partition("#")[0], **data))


def move(view: View, before: str, after: str, at_ms: int = 1_000, **metadata: Any) -> None:
    data = {"codonId": "build", "from": before, "to": after, "metadata": metadata}
    view.take(transition("CodonTransitioned", at_ms, **data))


def test_codons_whose_turn_has_not_come_are_waiting(view: View) -> None:
    begin(view, "build#0")
    rows = view.frame(START_MS + 4_000).codons
    assert [(row.name, row.state, row.seconds) for row in rows] == [
        ("build#0", "preparing", 3.0),
        ("test", "waiting", None),
    ]


def test_cost_and_tokens_add_up_and_an_unknown_part_makes_the_cost_unknown(view: View) -> None:
    begin(view)
    tokens = {"inputTokens": 1, "outputTokens": 2, "cacheCreationTokens": 3, "cacheReadTokens": 4}
    for delta in (0.25, 0.5):
        view.take(transition("CostsIncremented", codonId="build", costDelta=delta, tokensDelta=tokens))
    frame = view.frame(START_MS)
    assert (frame.codons[0].cost_usd, frame.codons[0].tokens, frame.cost_usd) == (0.75, 20, 0.75)
    view.take(transition("CostsIncremented", codonId="build", costDelta=None, tokensDelta=tokens))
    frame = view.frame(START_MS)
    assert (frame.codons[0].cost_usd, frame.cost_usd) == (None, None)


def test_a_live_codon_shows_what_it_does_and_a_failed_one_why(view: View) -> None:
    begin(view)
    view.take(make_event("assistant.action", START_MS, codonId="build", action="message", content="hello\n\x1b[31mred"))
    assert view.frame(START_MS).codons[0].note == "message: hello red"
    move(view, "preparing", "failed", 3_000, failureReason={"type": "timeout", "message": "too slow"})
    row = view.frame(START_MS + 60_000).codons[0]
    assert (row.state, row.live, row.note, row.seconds) == ("failed", False, "too slow", 2.0)


def test_nudges_of_the_watchdog_are_counted_beside_what_an_attempt_does(view: View) -> None:
    begin(view)
    view.take(make_event("watchdog.nudge", 2_000, codonId="build", trigger="error_streak", text="Look elsewhere."))
    assert view.frame(3_000).codons[0].note == "nudged 1 ×"
    view.take(make_event("assistant.action", 2_500, codonId="build", action="message", content="Now I see."))
    assert view.frame(3_000).codons[0].note == "nudged 1 ×; message: Now I see."
    move(view, "preparing", "failed", failureReason={"message": "interrupted"})
    begin(view)
    first, second = view.frame(3_000).codons[:2]
    assert (first.note, second.note) == ("nudged 1 ×; interrupted", "message: Now I see.")


def test_a_second_attempt_is_a_row_of_its_own(view: View) -> None:
    begin(view)
    move(view, "preparing", "failed")
    begin(view)
    assert [row.name for row in view.frame(START_MS).codons] == ["build", "build (2)", "test"]


def test_a_sentinel_is_followed_from_load_to_unload(view: View) -> None:
    view.take(of_sentinel("loaded"))
    view.take(of_sentinel("triggered", queueSize=3))
    (row,) = view.frame(START_MS).sentinels
    assert (row.state, row.queue, row.fired, row.loaded) == ("asking", 3, 1, True)
    view.take(of_sentinel("output", cost=0.5, content="all well"))
    (row,) = view.frame(START_MS).sentinels
    assert (row.state, row.cost_usd, row.note) == ("watching", 0.5, "all well")
    view.take(of_sentinel("unloaded", reason="codon-complete", finalCost=0.75))
    (row,) = view.frame(START_MS).sentinels
    assert (row.state, row.queue, row.cost_usd, row.loaded) == ("codon-complete", 0, 0.75, False)


@pytest.mark.parametrize(
    ("error", "failed", "state"),
    [
        ("llm-call-failed", 1, "watching"),
        ("template-render-failed", 1, "watching"),
        ("queue-overflow", 0, "asking"),
        ("load-failed", 0, "not loaded"),
    ],
)
def test_only_errors_of_a_trigger_are_failures_of_it(view: View, error: str, failed: int, state: str) -> None:
    view.take(of_sentinel("loaded"))
    view.take(of_sentinel("triggered", queueSize=0))
    view.take(of_sentinel("error", errorType=error, message="why"))
    (row,) = view.frame(START_MS).sentinels
    assert (row.failed, row.state, row.note) == (failed, state, "why")


def test_loaded_sentinels_stand_before_those_of_earlier_codons(view: View) -> None:
    for name in ("first", "second", "third"):
        view.take(make_event("sentinel.loaded", START_MS, sentinelId=name, codonId="build"))
    for name in ("first", "second"):
        view.take(make_event("sentinel.unloaded", START_MS, sentinelId=name, codonId="build", reason="shutdown"))
    assert [row.name for row in view.frame(START_MS).sentinels] == ["third", "second", "first"]


def test_bookkeeping_is_no_line_and_only_the_latest_events_are_kept(view: View) -> None:
    view.take(make_event("state.snapshot", START_MS))
    view.take(transition("CostsIncremented", codonId="build"))
    assert [event.type for event in view.frame(START_MS).events] == ["state.transition"]
    for number in range(2 * KEPT_EVENTS):
        view.take(make_event("info", START_MS, message=str(number)))
    events = view.frame(START_MS).events
    assert (len(events), events[-1].data["message"]) == (KEPT_EVENTS, str(2 * KEPT_EVENTS - 1))


def test_a_run_that_waits_says_what_for_until_it_goes_on(view: View) -> None:
    view.take(make_event("server.idle", START_MS, reason="startup", message="Waiting with codon build"))
    frame = view.frame(START_MS)
    assert (frame.outcome, frame.status) == ("waiting", "Waiting with codon build")
    begin(view)
    frame = view.frame(START_MS)
    assert (frame.outcome, frame.status) == ("running", "")


def test_a_word_to_people_stays_for_a_while(view: View) -> None:
    version = view.version
    view.say("The codon is skipped")
    assert view.version > version
    assert view.frame(START_MS).status == "The codon is skipped"
    assert view.frame(START_MS + STATUS_MS - 1).status == "The codon is skipped"
    assert view.frame(START_MS + STATUS_MS).status == ""


def test_what_an_earlier_run_did_is_not_shown_as_this_runs(view: View) -> None:
    begin(view)
    later = View("demo", ["build"], state=view.state)
    assert [row.state for row in later.frame(START_MS).codons] == ["waiting"]
    assert later.frame(START_MS).outcome == "starting"


def test_the_outcome_is_that_of_the_run(view: View) -> None:
    assert view.frame(START_MS).outcome == "running"
    view.take(transition("RunFailed", 5_000))
    frame = view.frame(START_MS + 5_000)
    assert (frame.outcome, frame.seconds) == ("failed", 5.0)
