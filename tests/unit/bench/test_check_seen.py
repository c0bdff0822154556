"""What sentinels did, as their events tell it."""

from typing import Any

from hankwatch.bench.check.seen import Seen, observe
from hankwatch.events.envelope import Event
from hankwatch.testing import make_event


def said(kind: str, codon: str = "one", **data: Any) -> Event:
    return make_event(f"sentinel.{kind}", sentinelId="it", codonId=codon, **data)


def loaded(codon: str = "one", source: str = "file", **report: Any) -> Event:
    plan = {
        "logFile": "it.md",
        "lastValueFile": None,
        "format": "text",
        "joinString": "--\n",
        "startBytes": 0,
        **report,
    }
    return said("loaded", codon, source=source, report=plan)


def output(content: Any, codon: str = "one", kind: str = "text", **data: Any) -> Event:
    return said("output", codon, triggerNumber=1, outputType=kind, content=content, cost=None, **data)


def triggered(codon: str = "one") -> Event:
    return said("triggered", codon, triggerNumber=1, cause="match", at="then", eventCount=2, eventIds=["a", "b"])


def test_a_sentinel_of_several_codons_has_one_report_in_the_order_of_the_journal() -> None:
    events = [loaded(), loaded("two"), triggered(), output("a"), triggered("two"), output("b", "two"), output("c")]
    (it,) = observe(events).values()
    assert it.report == b"--\na\n--\nb\n--\nc\n"
    assert it.entries == ["a", "b", "c"]
    assert [(fire.codon, fire.cause, fire.at, fire.event_count) for fire in it.fires] == [
        ("one", "match", "then", 2),
        ("two", "match", "then", 2),
    ]


def test_entries_of_json_lines_are_their_values() -> None:
    lines = loaded(format="jsonl", joinString=None)
    (it,) = observe(
        [lines, triggered(), output("a"), output({"ok": 1}, kind="structured"), output("b", kind="structured")]
    ).values()
    assert not it.is_text
    assert (it.entries[0]["text"], it.entries[0]["eventIds"], it.entries[1:]) == ("a", ["a", "b"], [{"ok": 1}, "b"])


def test_what_a_later_retry_did_is_no_part_of_it() -> None:
    first = [loaded(), triggered(), said("error", errorType="llm-call-failed", message="no")]
    retry = [loaded(source="retry"), triggered(), output("late"), said("unloaded", reason="codon-complete")]
    again = [loaded(), output("more")]
    (it,) = observe([*first, *retry, *again]).values()
    assert (len(it.fires), [error.type for error in it.errors], it.entries) == (1, ["llm-call-failed"], ["more"])


def test_a_sentinel_whose_matching_was_given_up_has_an_error() -> None:
    (it,) = observe([loaded(), said("unloaded", reason="fatal-error", errorType="resource")]).values()
    assert [error.type for error in it.errors] == ["resource"]


def test_one_that_did_nothing_was_there() -> None:
    assert observe([loaded(), make_event("info", message="x")]) == {"it": Seen()}
    assert observe([]) == {}
