"""From events to the core of the watchdog, and from its actions to events and the agent (spec watchdog 0)."""

from itertools import count
from typing import Any

import pytest

from hankwatch.events.payload import Payload
from hankwatch.testing import make_event
from hankwatch.watchdog import Watchdog, WatchdogPolicy
from hankwatch.watchdog.listener import MAX_AGENTS

LOOP = "The lock is taken before the queue is read. " * 12
PLAN = "Then the part called {} has to be read from the start."


class Agent:
    """A steering that notes what it is told, and the agent's side of a conversation."""

    def __init__(self, *, takes: bool = True, steered: bool = True, **options: Any) -> None:
        self.takes = takes
        self.done: list[tuple[str, str]] = []
        self.told: list[Payload] = []
        classes = options.pop("tool_classes", None)
        self.watchdog = Watchdog(
            WatchdogPolicy(**options),
            "build",
            emit=self.told.append,
            steering=self if steered else None,
            tool_classes=classes,
        )
        self.number = count(1)
        self.emit("codon.started")

    def nudge(self, kind: str, text: str) -> bool:
        self.done.append((kind, text))
        return self.takes

    def interrupt(self, trigger: str) -> None:
        self.done.append(("interrupt", trigger))

    def emit(self, event_type: str, **data: Any) -> None:
        number = next(self.number)
        self.watchdog.on_event(make_event(event_type, 10_000 * number, **{"codonId": "build", **data}))

    def say(self, text: str, kind: str = "message", **more: Any) -> None:
        self.emit("assistant.action", action=kind, content=text, **more)

    def call(self, name: str = "Read", result: str | None = "x", outcome: str = "ok", **more: Any) -> str:
        call_id = f"call-{next(self.number)}"
        asked = {"path": "a", **more.pop("args", {})}
        use = {"toolName": name, "toolUseId": call_id}
        self.emit("assistant.action", action="tool_use", content="", toolInput=asked, **use, **more)
        if result is not None:
            self.answer(call_id, result, outcome, **more)
        return call_id

    def answer(self, call_id: str, result: str = "x", outcome: str = "ok", **more: Any) -> None:
        is_error = outcome == "error"
        self.emit(
            "tool.result", toolUseId=call_id, toolName="", result=result, isError=is_error, outcome=outcome, **more
        )

    @property
    def nudges(self) -> list[tuple[int, str]]:
        return [(told.dump()["round"], told.dump()["trigger"]) for told in self.told]


def test_a_nudge_is_said_and_told() -> None:
    agent = Agent(nudge_text="Look up.")
    for _ in range(3):
        agent.call()
    assert agent.done == [("escalation", "Look up.")]
    (told,) = agent.told
    assert (told.TYPE, told.dump()) == (
        "watchdog.nudge",
        {
            "codonId": "build",
            "round": 3,
            "trigger": "call_repetition",
            "kind": "escalation",
            "text": "Look up.",
            "nudgesThisTurn": 1,
            "detail": {"count": 3, "tools": ["Read"], "rule": "contiguous"},
        },
    )


def test_a_nudge_that_the_agent_cannot_take_is_told_as_undelivered() -> None:
    agent = Agent(takes=False)
    for _ in range(3):
        agent.call()
    assert [told.dump()["delivered"] for told in agent.told] == [False]


def test_at_the_cap_the_agent_is_interrupted() -> None:
    agent = Agent(max_think_nudges=0)
    agent.say(LOOP, "thinking")
    assert agent.done == [("interrupt", "sentence_strict")]
    assert [told.dump() for told in agent.told] == [
        {
            "codonId": "build",
            "round": 1,
            "trigger": "sentence_strict",
            "detail": {"count": 8, "channel": "thinking"},
        }
    ]


@pytest.mark.parametrize("options", [{"mode": "observe"}, {"steered": False}])
def test_observing_tells_and_does_nothing(options: dict[str, Any]) -> None:
    agent = Agent(max_think_nudges=1, max_rounds_without_success=0, **options)
    for _ in range(3):
        agent.say(LOOP)
    assert [told.TYPE for told in agent.told] == ["watchdog.nudge", "watchdog.interrupt"]
    assert "delivered" not in agent.told[0].dump()
    assert agent.done == []


def test_a_new_attempt_of_the_codon_is_a_new_turn() -> None:
    agent = Agent()
    for _ in range(2):
        agent.call()
        agent.call()
        agent.emit("codon.started")
    assert agent.told == []


@pytest.mark.parametrize("data", [{"codonId": "other"}, {"codonId": None}])
def test_other_codons_are_none_of_its_business(data: dict[str, Any]) -> None:
    agent = Agent()
    for _ in range(9):
        agent.say(LOOP, **data)
    assert agent.told == []


class TestRounds:
    def test_a_round_ends_when_all_its_calls_are_answered(self) -> None:
        agent = Agent()
        for _ in range(3):
            one, other = agent.call(result=None), agent.call("Glob", result=None)
            agent.answer(other)
            agent.answer(one)
        assert agent.nudges == [(3, "call_repetition")]

    def test_a_message_without_calls_is_a_round_of_its_own(self) -> None:
        agent = Agent()
        for number in range(7):
            agent.say(PLAN.format(number), "thinking")
            agent.say(f"Soon I will begin with step {number}.")
        assert agent.nudges == [(6, "no_progress")]

    def test_reasoning_a_message_and_calls_are_one_round(self) -> None:
        agent = Agent(max_consecutive_errors=0)
        for number in range(5):
            agent.say(f"Now for number {number}.")
            agent.say("Why not.", "thinking")
            agent.call(outcome="error", args={"n": number})
        assert agent.nudges == []
        agent.call(outcome="error", args={"n": 5})
        assert agent.nudges == [(6, "no_progress")]

    def test_a_call_that_is_never_answered_ends_with_the_next_thing_said(self) -> None:
        agent = Agent()
        for number in range(7):
            late = agent.call(result=None, args={"n": number})
            agent.say(f"Nothing came of number {number}.")
            agent.answer(late)
        assert agent.nudges == [(6, "no_progress")]


class TestDeltas:
    def feed(self, agent: Agent, text: str) -> None:
        for start in range(0, len(text), 7):
            agent.watchdog.delta("text", text[start : start + 7], 1.0)

    def test_a_stream_is_stopped_before_its_message_is_whole(self) -> None:
        agent = Agent(break_loop_text="Stop.")
        self.feed(agent, LOOP)
        assert agent.done == [("break_loop", "Stop.")]

    def test_a_message_whose_deltas_were_fed_is_not_fed_again(self) -> None:
        agent = Agent()
        for _ in range(5):
            self.feed(agent, "The lock is taken before the queue is read.")
            agent.say("The lock is taken before the queue is read.")
        assert agent.nudges == []

    def test_the_same_is_found_with_and_without_deltas(self) -> None:
        streaming, whole = Agent(), Agent()
        for number in range(8):
            text = f"The lock is taken before the queue is read. Try {number}."
            self.feed(streaming, text)
            streaming.say(text)
            whole.say(text)
        assert streaming.nudges == whole.nudges != []

    def test_a_request_sent_again_undoes_what_was_streamed_of_it(self) -> None:
        agent = Agent()
        for _ in range(5):
            self.feed(agent, LOOP[:300])
            agent.emit("info", code="transport-retry", message="again", codonId=None)
        assert agent.told == []

    def test_without_deltas_a_request_sent_again_undoes_nothing(self) -> None:
        agent = Agent(max_rounds_without_success=0)
        for _ in range(8):
            agent.say("The lock is taken before the queue is read.")
            agent.emit("info", code="transport-retry", message="again", codonId=None)
        assert agent.nudges == [(8, "sentence_strict")]


class TestAskedAnew:
    @pytest.mark.parametrize(("anew", "nudges"), [(True, 2), (False, 1)])
    def test_what_comes_after_a_cancelled_response_is_another_round(self, anew: bool, nudges: int) -> None:
        agent = Agent(refractory_rounds=0, refractory_seconds=0)
        agent.say(LOOP)
        if anew:
            agent.watchdog.asked_anew()
        for _ in range(3):
            agent.call()
        assert len(agent.nudges) == nudges


class TestSubAgents:
    def test_each_agent_counts_for_itself(self) -> None:
        agent = Agent()
        for parent in (None, "task-1", "task-2"):
            for _ in range(2):
                agent.call(parentToolUseId=parent)
        assert agent.told == []

    def test_the_loop_of_a_sub_agent_is_told_and_nobody_is_steered(self) -> None:
        agent = Agent(max_think_nudges=1)
        for _ in range(4):
            agent.say(LOOP, parentToolUseId="task-1")
        assert agent.done == []
        nudge, interrupt = (told.dump() for told in agent.told)
        assert (nudge["delivered"], nudge["detail"]["parentToolUseId"]) == (False, "task-1")
        assert interrupt["detail"]["parentToolUseId"] == "task-1"

    def test_so_many_are_remembered_and_the_main_agent_always(self) -> None:
        agent = Agent()
        agent.call()
        for number in range(3 * MAX_AGENTS):
            agent.call(parentToolUseId=f"task-{number}")
        agent.call()
        agent.call()
        assert agent.nudges == [(3, "call_repetition")]


@pytest.mark.parametrize(("own", "nudges"), [({}, []), ({"Out": "mutate"}, [(3, "call_repetition")])])
def test_tool_classes_come_from_the_program_and_the_policy_before_it(own: Any, nudges: list[Any]) -> None:
    told: list[Payload] = []
    policy = WatchdogPolicy(tool_classes=own, refractory_rounds=50)
    agent = Agent()
    agent.watchdog = Watchdog(policy, "build", emit=told.append, tool_classes={"Out": "poll"})
    for _ in range(11):
        agent.call("Out")
    assert [(one.dump()["round"], one.dump()["trigger"]) for one in told] == nudges


def test_an_answer_without_an_outcome_is_what_its_flag_says() -> None:
    agent = Agent()
    for number in range(5):
        call_id = agent.call(result=None, args={"n": number})
        agent.emit("tool.result", toolUseId=call_id, toolName="Read", result="no", isError=True)
    assert agent.nudges == [(5, "error_streak")]


def test_the_fingerprint_of_the_whole_answer_counts_not_its_beginning() -> None:
    agent = Agent()
    for number in range(9):
        agent.call(result="the same beginning", fingerprint=f"{number:016x}")
    assert agent.told == []
