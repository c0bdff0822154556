"""The laws that every journal is held to notice when they are broken."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.support.laws import check_laws, moved_to, transition
from tests.support.runs import run_here

from hankwatch.events.envelope import Event
from hankwatch.testing import ScriptedModel

Events = list[Event]


def index_of(events: Events, event_type: str) -> int:
    return next(index for index, event in enumerate(events) if event.type == event_type)


def without(event_type: str) -> Callable[[Events], Events]:
    return lambda events: [event for event in events if event.type != event_type]


def moved(event_type: str, by: int) -> Callable[[Events], Events]:
    """The first event of a type, so many places later; stamps stay where they are."""

    def change(events: Events) -> Events:
        index = index_of(events, event_type)
        order = [*events[:index], *events[index + 1 :]]
        order.insert(index + by, events[index])
        return [replace(event, timestamp=old.timestamp) for event, old in zip(order, events, strict=True)]

    return change


def repeated(event_type: str) -> Callable[[Events], Events]:
    def change(events: Events) -> Events:
        index = index_of(events, event_type)
        return [*events[: index + 1], replace(events[index], id="another"), *events[index + 1 :]]

    return change


def with_other_usage(events: Events) -> Events:
    index = index_of(events, "token.usage")
    data = {**events[index].data, "inputTokens": 1_000_000}
    return [*events[:index], replace(events[index], data=data), *events[index + 1 :]]


def backwards_in_time(events: Events) -> Events:
    return [*events[:-1], replace(events[-1], timestamp="1999-01-01T00:00:00.000Z")]


def unloaded_in_the_next_codon(events: Events) -> Events:
    unloaded = next(event for event in events if event.type == "sentinel.unloaded")
    started = next(
        event for event in events if transition(event) == "CodonStarted" and event.data["codonId"] == "step-two"
    )
    late = replace(started, id="late", data={**started.data, "codonId": "three"})
    return [*(event for event in events if event is not unloaded), late, unloaded]


BROKEN: dict[str, Callable[[Events], Events]] = {
    "an attempt without its completion": without("codon.completed"),
    "an attempt completed twice": repeated("codon.completed"),
    "something between the final transition and the completion": moved("codon.completed", 1),
    "an agent's event before codon.started": moved("codon.started", 3),
    "an agent's event after codon.completed": moved("tool.result", 60),
    "increments that do not add up": with_other_usage,
    "a stamp that goes back": backwards_in_time,
    "an id that comes twice": lambda events: [*events, events[-1]],
    "a sentinel that is never unloaded": without("sentinel.unloaded"),
    "a sentinel that speaks after its unload": moved("sentinel.output", 3),
    "an output that nobody announced": without("sentinel.triggered"),
    "a sentinel that was never loaded": without("sentinel.loaded"),
    "a state that was skipped": lambda events: [event for event in events if moved_to(event) != "initializing"],
    "a sentinel that sees the next codon": unloaded_in_the_next_codon,
}


@pytest.fixture(scope="module")
def swept(fixtures: Path, tmp_path_factory: pytest.TempPathFactory) -> Events:
    root = tmp_path_factory.mktemp("laws") / "run"
    run = partial(run_here, fixtures / "sentinel-sweep", root, model=ScriptedModel("All swept."))
    return anyio.run(run).events


def test_a_real_journal_breaks_none(swept: Events) -> None:
    check_laws(swept)


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_law_is_noticed(swept: Events, case: str) -> None:
    with pytest.raises(AssertionError):
        check_laws(BROKEN[case](swept))
