"""Every case of a conformance folder, one test each; ``HANKWATCH_CASES`` names another folder than ours."""

import pytest
from pydantic import TypeAdapter
from tests.support.cases import CASES, Case, cases_of, events_of
from tests.support.watchdog import as_expected, watch

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.core.errors import RenderFault, TemplateFault
from hankwatch.events.envelope import format_stamp
from hankwatch.matching.conditions import Condition, compile_conditions
from hankwatch.matching.triggers import EventTrigger, SequenceTrigger, Trigger, TriggerIndex
from hankwatch.sandbox import eta
from hankwatch.sentinels.config import parse_sentinel
from hankwatch.sentinels.strategies import Batch, make_strategy

CONDITIONS: TypeAdapter[list[Condition]] = TypeAdapter(list[Condition])
TRIGGER: TypeAdapter[EventTrigger | SequenceTrigger] = TypeAdapter(Trigger)


def test_the_folder_holds_cases() -> None:
    kinds = ("conditions", "triggers", "strategies", "validation", "templates", "watchdog")
    assert any(cases_of(kind) for kind in kinds), f"no cases in {CASES}"


@pytest.mark.parametrize("case", cases_of("conditions"))
def test_conditions_hold_as_expected(case: Case) -> None:
    conditions = CONDITIONS.validate_python(case["conditions"])
    assert compile_conditions(conditions).hold(case["data"]) is case["expect"]
    if "each" in case:
        assert [compile_conditions([one]).hold(case["data"]) for one in conditions] == case["each"]


@pytest.mark.parametrize("case", cases_of("triggers"))
def test_triggers_match_the_expected_events(case: Case) -> None:
    index = _index(TRIGGER.validate_python(case["trigger"]))
    matches = [match for event in events_of(case) for match in index.route(event)]
    assert [[event.id for event in match.events] for match in matches] == case["expect"]


@pytest.mark.parametrize("case", cases_of("strategies"))
def test_strategies_fire_when_expected(case: Case) -> None:
    diagnostics = Diagnostics()
    config = parse_sentinel(Document.from_value(case["config"]), diagnostics)
    assert config is not None
    assert diagnostics.ok
    index = _index(config.trigger)
    strategy = make_strategy(config.execution)
    batches: list[Batch] = []
    events = events_of(case)
    for event in events:
        batches += strategy.on_due(event.at_ms)
        for match in index.route(event):
            batches += strategy.on_match(match.events, event.at_ms)
    batches += strategy.drain(events[-1].at_ms)
    fired = [{"at": format_stamp(batch.at_ms), "eventIds": [event.id for event in batch.events]} for batch in batches]
    assert fired == case["expect"]


@pytest.mark.parametrize("case", cases_of("validation"))
def test_configs_are_accepted_or_faulted_where_expected(case: Case) -> None:
    diagnostics = Diagnostics()
    parse_sentinel(Document.from_value(case["config"]), diagnostics)
    dotted = [fault.pointer.removeprefix("/").replace("/", ".") for fault in diagnostics.errors]
    if case["valid"]:
        assert diagnostics.errors == []
    else:
        assert any(_covers(expected, found) for expected in case["paths"] for found in dotted), dotted


@pytest.mark.parametrize("case", cases_of("templates"))
def test_templates_render_as_expected(case: Case) -> None:
    if case["ok"]:
        assert eta.render(case["template"], case["context"]) == case["expect"]
    else:
        with pytest.raises((TemplateFault, RenderFault)):
            eta.render(case["template"], case["context"])


@pytest.mark.parametrize("case", cases_of("watchdog"))
def test_the_watchdog_acts_as_expected(case: Case) -> None:
    actions, expect = watch(case), case["expect"]
    assert bool(actions) is expect["fire"], actions
    if expect["fire"]:
        assert expect["earliest_round"] <= actions[0].round <= expect["latest_round"]
        assert actions[0].trigger in expect["triggers"]
    if "actions" in expect:
        assert [as_expected(action) for action in actions] == expect["actions"]


def _index(trigger: EventTrigger | SequenceTrigger) -> TriggerIndex[str]:
    def given_up(key: str, reason: str) -> None:
        pytest.fail(f"{key}: {reason}")

    index: TriggerIndex[str] = TriggerIndex(given_up)
    index.add("s", trigger)
    return index


def _covers(expected: str, found: str) -> bool:
    return not expected or found == expected or found.startswith(f"{expected}.")
