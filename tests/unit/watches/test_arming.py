"""What a request becomes, and everything that is refused before anything is stored (spec watches 2 and 5)."""

import os
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.watches import START, a_watch, at

from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import WatchInvalid
from hankwatch.core.redaction import Redactor
from hankwatch.watches.arming import planned
from hankwatch.watches.authority import Principal, Standing, agent, operator
from hankwatch.watches.bounds import Defaults
from hankwatch.watches.checks import Check, CheckContext, Checks, Cost, Trust
from hankwatch.watches.editing import Editing
from hankwatch.watches.requests import read_edit, read_request
from hankwatch.watches.specs import TimeSpec
from hankwatch.watches.verifiers import Verifiers
from hankwatch.watches.watch import Status, Trigger, Watch

COMMAND: dict[str, Any] = {"type": "command", "command": "true"}
DOCUMENT: dict[str, Any] = {"type": "document", "path": "out/report.json"}
OWNER = Principal("acme", "alice", sessions={"main": Standing.OWNER}, entitlements=frozenset({"agent_watches"}))


async def yes(_: CheckContext, __: Mapping[str, Any]) -> bool:
    return True


VERIFIERS = Verifiers(
    Checks(
        [
            Check("state", yes, cost=Cost.CHEAP, trust=Trust.SAFE),
            Check("price", yes, read_only=True),
            Check("deploy", yes),
        ]
    ),
    SystemClock(),
    {"PATH": os.environ["PATH"]},
    Redactor(),
)


def plan(principal: Principal = operator(), depth: int = 0, **request: Any) -> Watch:  # noqa: B008 - frozen
    written = {"condition": "the deploy is done", "session": "main", "verifier": DOCUMENT} | request
    return planned(read_request(written), principal, VERIFIERS, Defaults(), START, depth=depth)


def faults(principal: Principal = operator(), depth: int = 0, **request: Any) -> str:  # noqa: B008 - frozen
    with pytest.raises(WatchInvalid) as caught:
        plan(principal, depth, **request)
    return "; ".join(caught.value.faults)


def edited(watch: Watch, principal: Principal = operator(), **edit: Any) -> Watch:  # noqa: B008 - frozen
    return Editing(read_edit(edit), principal, VERIFIERS, Defaults(), at(100)).of(watch).watch


def test_with_the_activation_ask_only_what_an_operator_asks_for_is_active_at_once() -> None:
    def status(principal: Principal, **request: Any) -> Status:
        written = {"condition": "it is done", "session": "main", "verifier": DOCUMENT} | request
        return planned(read_request(written), principal, VERIFIERS, Defaults(asks_first=True), START).status

    assert status(operator()) is Status.ACTIVE
    assert status(OWNER) is Status.PROPOSED
    assert status(agent("main")) is Status.PROPOSED
    assert status(agent("main"), kind="monitor", note="Look.") is Status.ACTIVE


def test_an_agent_lets_no_other_session_be_woken_by_an_edit() -> None:
    mine = a_watch(owner="agent:main", verifier=plan().verifier)

    assert edited(mine, agent("main"), run_session="main").run_session == "main"
    with pytest.raises(WatchInvalid, match="not yours to wake"):
        edited(mine, agent("main"), run_session="other")


def test_a_plain_request_is_a_tripwire_for_a_day() -> None:
    watch = plan()

    assert (watch.trigger, watch.repeat, watch.status) == (Trigger.MET, False, Status.ACTIVE)
    assert watch.expires_at == at(86_400)
    assert watch.interval_s == 30
    assert watch.id.startswith("the-deploy-is-done-")


def test_a_change_watch_repeats_unless_told_not_to() -> None:
    assert plan(trigger="change").repeat
    assert not plan(trigger="change", repeat=False).repeat


def test_ids_of_different_owners_never_collide() -> None:
    assert plan(operator("a")).id != plan(operator("b")).id
    assert plan(operator("a")).id == plan(operator("a")).id


def test_every_fault_is_named_at_once() -> None:
    said = faults(agent("main"), verifier=COMMAND, deadline=1e12, interval_s=1, run_prompt="a", note="b")

    for part in ("deadline", "interval_s: at least 15", "only one of run_prompt and note"):
        assert part in said


def test_no_name_holds_what_a_database_cannot_keep() -> None:
    for field in ("condition", "session", "run_session"):
        asked: dict[str, Any] = {field: "a\x00b"}
        assert f"{field}: " in faults(**asked)


@pytest.mark.parametrize(
    "verifier",
    [
        {"type": "document", "path": "a\0b"},
        {"type": "document", "path": " "},
        {"type": "command", "command": ["cat", "a\0b"]},
        {"type": "command", "command": "\n"},
        {"type": "command", "command": "true", "cwd": "\0"},
    ],
)
def test_what_no_system_call_takes_is_refused_when_it_is_asked_for(verifier: dict[str, Any]) -> None:
    with pytest.raises(WatchInvalid, match="NUL"):
        read_request({"condition": "it is there", "verifier": verifier})


def test_an_argument_may_be_blank() -> None:
    asked = {"condition": "it is there", "verifier": {"type": "command", "command": ["printf", " "]}}
    assert read_request(asked).verifier.model_dump()["command"] == ["printf", " "]


def test_unknown_keys_are_refused_with_a_guess() -> None:
    with pytest.raises(WatchInvalid, match=r"did you mean 'condition'"):
        read_request({"conditon": "x", "verifier": COMMAND})


@pytest.mark.parametrize(
    ("deadline", "part"),
    [
        ("2030-06-01T12:00:00", "no offset"),
        ("soon", "no instant"),
        ("2029-01-01T00:00:00Z", "is over"),
        (1_893_456_000_000, "milliseconds"),
        ("1893456000000", "no instant"),
        (-1, "before 1970"),
        ("9999-12-31T23:59:59-14:00", "century"),
        ("0001-01-01T00:00:00+14:00", "is over"),
    ],
)
def test_instants_that_cannot_be_meant_are_refused_with_the_reason(deadline: Any, part: str) -> None:
    assert part in faults(deadline=deadline)
    assert part in faults(never_expires=True, verifier={"type": "time", "at": deadline})


def test_a_deadline_may_be_iso_with_an_offset_or_epoch_seconds() -> None:
    assert plan(deadline="2030-01-01T03:00:00+02:00").expires_at == at(3_600)
    assert plan(deadline=START.timestamp() + 60).expires_at == at(60)
    assert plan(verifier={"type": "time", "at": START.timestamp() + 60}).next_check_at == at(60)


def test_agents_give_relative_times_only() -> None:
    assert "expires_in_s" in faults(agent("main"), deadline="2030-01-01T03:00:00+02:00")
    assert "after_s" in faults(agent("main"), verifier={"type": "time", "at": "2030-01-01T03:00:00Z"})
    timer = plan(agent("main"), verifier={"type": "time", "after_s": 60})
    assert isinstance(timer.verifier, TimeSpec)
    assert timer.verifier.at == timer.next_check_at == at(60)


def test_only_an_operator_says_never_and_longer_than_a_week() -> None:
    assert plan(never_expires=True).expires_at is None
    assert "only an operator" in faults(OWNER, never_expires=True)
    assert "at most 604800" in faults(OWNER, expires_in_s=604_801)


def test_a_verifier_that_is_not_safe_makes_a_proposal_of_anyone_but_an_operator() -> None:
    assert plan(OWNER, verifier=COMMAND).status is Status.PROPOSED
    assert plan(OWNER, verifier=DOCUMENT).status is Status.ACTIVE
    assert plan(OWNER, verifier=DOCUMENT | {"path": "/etc/hosts"}).status is Status.PROPOSED
    assert plan(verifier=COMMAND).status is Status.ACTIVE


def test_an_agent_watch_is_always_a_proposal_with_a_pinned_check_a_window_a_cadence_and_an_action() -> None:
    good: dict[str, Any] = {
        "kind": "agent_watch",
        "verifier": {"type": "evaluator", "name": "state@v1"},
        "expires_in_s": 1_800,
        "interval_s": 300,
        "actions": ["in_app", "wake_session"],
    }

    assert plan(**good).status is Status.PROPOSED
    assert "interval_s: one of 60, 300, 900, 3600" in faults(**good | {"interval_s": 90})
    assert "expires_in_s: one of 1800, 3600" in faults(**good | {"expires_in_s": 1_000})
    assert "expires_in_s: must be given" in faults(**{k: v for k, v in good.items() if k != "expires_in_s"})
    assert "must be exact" in faults(**good | {"verifier": {"type": "evaluator", "name": "state"}})
    assert "actions: at least one" in faults(**{k: v for k, v in good.items() if k != "actions"})
    assert "fires once" in faults(**good | {"repeat": True})
    assert "verifier/type: one of check" in faults(**good | {"verifier": DOCUMENT})


def test_a_monitor_watches_documents_times_and_read_only_tools() -> None:
    for verifier in (DOCUMENT, {"type": "time", "after_s": 5}, {"type": "agent_tool", "name": "price"}):
        assert plan(agent("main"), kind="monitor", verifier=verifier, note="n").status is Status.ACTIVE
    assert "read-only tools" in faults(agent("main"), kind="monitor", verifier={"type": "check", "name": "deploy"})
    assert "at least 300" in faults(
        agent("main"), kind="monitor", verifier={"type": "check", "name": "price"}, interval_s=60
    )


def test_a_woken_turn_arms_one_follow_up_monitor_and_no_deeper() -> None:
    assert plan(agent("main"), 1, kind="monitor").depth == 1
    assert "no further one" in faults(agent("main"), 2, kind="monitor")


def test_a_check_that_is_not_there_is_refused_with_those_that_are() -> None:
    assert "there are deploy@v1, price@v1, state@v1" in faults(verifier={"type": "check", "name": "nope"})


def test_an_agents_command_is_a_proposal() -> None:
    assert plan(agent("main"), verifier=COMMAND).status is Status.PROPOSED


def test_a_tool_of_a_monitor_is_polled_every_five_minutes_at_most_however_cheap_it_is() -> None:
    tool = {"type": "agent_tool", "name": "state"}

    assert plan(agent("main"), kind="monitor", verifier=tool).interval_s == 300
    assert plan(agent("main"), kind="monitor", verifier=DOCUMENT).interval_s == 60


@pytest.mark.parametrize("kind", ["watch", "monitor"])
def test_a_point_in_time_comes_before_the_end(kind: str) -> None:
    tomorrow = plan(agent("main"), kind=kind, verifier={"type": "time", "after_s": 86_400})

    assert tomorrow.expires_at is not None
    assert tomorrow.next_check_at is not None
    assert tomorrow.next_check_at < tomorrow.expires_at
    assert "ends before its instant" in faults(
        agent("main"), kind=kind, verifier={"type": "time", "after_s": 60}, expires_in_s=30
    )


def test_an_edit_cannot_make_what_could_not_be_armed() -> None:
    event = {"type": "event", "trigger": {"type": "event", "on": ["codon.completed"]}}

    with pytest.raises(WatchInvalid, match="no value that could change"):
        edited(plan(verifier=event), trigger="change")
    assert edited(plan(verifier=DOCUMENT, interval_s=5), verifier=COMMAND).interval_s == 15


def test_an_event_has_no_value_that_could_change() -> None:
    event = {"type": "event", "trigger": {"type": "event", "on": ["codon.completed"]}}

    assert "no value that could change" in faults(verifier=event, trigger="change")
    assert plan(verifier=event).next_check_at is None


def test_an_edit_changes_only_what_is_given() -> None:
    before = a_watch(stall_after=3, run_prompt="p", next_check_at=at(110))

    after = edited(before, interval_s=60)

    assert after == a_watch(stall_after=3, run_prompt="p", interval_s=60, next_check_at=at(110))


def test_null_clears_and_a_shorter_interval_counts_from_now() -> None:
    before = a_watch(run_prompt="p", next_check_at=at(3_000), interval_s=3_600)

    after = edited(before, run_prompt=None, interval_s=20)

    assert (after.run_prompt, after.next_check_at) == (None, at(120))


def test_a_deadline_is_moved_or_cleared() -> None:
    assert edited(a_watch(), expires_in_s=50).expires_at == at(150)
    assert edited(a_watch(), clear_deadline=True).expires_at is None
    with pytest.raises(WatchInvalid, match="only one of"):
        edited(a_watch(), clear_deadline=True, expires_in_s=50)


def test_a_re_aim_starts_afresh_under_the_next_generation() -> None:
    before = a_watch(fire_count=2)

    edits: list[dict[str, Any]] = [{"condition": "another"}, {"trigger": "change"}, {"verifier": DOCUMENT}]
    for edit in edits:
        after = edited(before, **edit)
        assert (after.generation, after.memory, after.fire_count) == (2, a_watch().memory, 2)
    assert edited(before, verifier=COMMAND | {"command": ["true"]}).generation == 1  # the same aim


def test_agents_never_change_a_verifier_nor_edit_what_they_could_not_arm() -> None:
    safe = edited(a_watch(verifier=plan().verifier), agent("main"), interval_s=60)
    assert safe.interval_s == 60
    with pytest.raises(WatchInvalid, match="only an operator changes"):
        edited(a_watch(), agent("main"), verifier=DOCUMENT)
    with pytest.raises(WatchInvalid, match="edited by operators only"):
        edited(a_watch(), agent("main"), condition="another")


def test_an_ended_watch_is_history() -> None:
    with pytest.raises(WatchInvalid, match="only active watches are edited"):
        edited(a_watch(status=Status.ENDED), interval_s=60)
