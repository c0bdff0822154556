"""The shipped demo: a recorded agent under four sentinels, one per strategy, without key or network."""

from collections.abc import Sequence
from pathlib import Path

from tests.support.golden import assert_golden, normalised
from tests.support.laws import transition
from tests.support.runs import run_here

from hankwatch.events.envelope import Event


def without_sentinels(events: Sequence[Event]) -> list[Event]:
    return [e for e in events if not e.type.startswith("sentinel.") and transition(e) != "SentinelStatesUpdated"]


async def test_the_demo_journal_is_as_recorded(fixtures: Path, tmp_path: Path) -> None:
    ran = await run_here(fixtures / "demo", tmp_path / "run")
    assert ran.result is not None
    assert ran.result.success
    names = {ran.result.record.run_id: "<run>", str(ran.root): "<execution>", str(fixtures): "<fixtures>"}
    events = ran.events
    # What is batched by real time differs from run to run; what the agent did, does not.
    lines = normalised(without_sentinels(events), names)
    for line in lines:
        for codon in line["data"].get("completedCodons", ()):
            del codon["sentinels"]
    assert_golden("demo", lines)

    number = {event.id: index for index, event in enumerate(without_sentinels(events))}
    by_matches = {
        sentinel_id: [[number[id_] for id_ in e.data["eventIds"]] for e in events if fired(e, sentinel_id)]
        for sentinel_id in ("error-streak", "tool-tally")
    }
    assert_golden("demo-triggers", [by_matches])

    for sentinel in ran.result.sentinels:
        assert sentinel.fired > 0
        assert (sentinel.failed, sentinel.dropped_events, sentinel.abandoned_triggers) == (0, 0, 0)
        assert sentinel.unload_reason == "codon-complete"
        assert (ran.root / sentinel.report).read_text(encoding="utf-8").strip()


def fired(event: Event, sentinel_id: str) -> bool:
    return event.type == "sentinel.triggered" and event.data["sentinelId"] == sentinel_id
