"""What of the watchdog's words reaches an agent, and what is counted as lost."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from hankwatch.agents.claude import Claude
from hankwatch.agents.cline import Cline
from hankwatch.agents.codex import Codex
from hankwatch.agents.openhands import Openhands
from hankwatch.agents.program import MAX_ARGUMENT_BYTES, AgentProgram, TurnRequest
from hankwatch.runner.control import KILL_GRACE_S, CodonStop, StopReason
from hankwatch.runner.steering import MAX_UNSENT, AgentSteering, Reins, Word

REQUEST = TurnRequest("Do it.", system_prompt="Be brief.")
WORD = Word((b"word\n",), interrupts=False)
BREAK = Word((b"stop\n", b"word\n"), interrupts=True)


def next_turn(nudge: str) -> TurnRequest:
    return replace(REQUEST, prompt=nudge, turn=2)


def steering(
    program: AgentProgram, session: str = "s-1", now_s: Callable[[], float] = lambda: 0.0
) -> tuple[AgentSteering, Reins]:
    made = AgentSteering(program, next_turn, CodonStop(), lambda: session, now_s)
    return made, made.take(program.command(REQUEST))


async def said(reins: Reins) -> list[str]:
    """The types of the lines of the next word."""
    return [json.loads(line)["type"] for line in (await reins.next_word()).lines]


async def test_a_steered_program_is_interrupted_only_to_break_a_loop() -> None:
    steers, reins = steering(Claude())
    assert steers.nudge("escalation", "Look.")
    assert steers.nudge("break_loop", "Stop.")
    assert [await said(reins), await said(reins)] == [["user"], ["control_request", "user"]]
    assert not reins.cut_asked.is_set()


def test_a_program_that_resumes_is_ended_with_the_first_nudge_only() -> None:
    steers, reins = steering(Codex())
    assert [steers.nudge("escalation", "one"), steers.nudge("break_loop", "two")] == [True, False]
    reins.was_cut = True
    assert steers.next_prompt() == "one"
    assert steers.take_lost() == 0


@pytest.mark.parametrize(("program", "session"), [(Cline(), "s-1"), (Codex(), "")])
def test_without_a_session_to_take_up_a_nudge_is_refused(program: AgentProgram, session: str) -> None:
    steers, reins = steering(program, session)
    assert not steers.nudge("escalation", "Look.")
    assert not reins.cut_asked.is_set()


def test_what_a_program_cannot_be_given_is_refused_before_its_turn_is_ended() -> None:
    steers, reins = steering(Openhands())
    assert not steers.nudge("escalation", "x" * (MAX_ARGUMENT_BYTES - 20))
    assert not reins.cut_asked.is_set()
    assert steers.nudge("escalation", "x" * (MAX_ARGUMENT_BYTES - 200))


def test_before_a_turn_and_once_the_codon_is_stopped_a_nudge_is_refused() -> None:
    steers = AgentSteering(Claude(), next_turn, CodonStop(), lambda: "s-1", lambda: 0.0)
    assert not steers.nudge("escalation", "Look.")
    stopped, _ = steering(Claude())
    stopped.stop.request(StopReason.SKIP)
    assert not stopped.nudge("escalation", "Look.")


def test_a_turn_that_ended_by_itself_has_no_next_prompt_and_its_nudge_is_lost() -> None:
    steers, _ = steering(Codex())
    assert steers.nudge("escalation", "Look.")
    assert steers.next_prompt() is None
    assert [steers.take_lost(), steers.take_lost()] == [1, 0]


def test_an_interrupt_stops_the_codon_and_the_first_trigger_stands() -> None:
    steers, _ = steering(Claude())
    steers.interrupt("sentence_strict")
    steers.interrupt("sentence_loose")
    assert (steers.stop.reason, steers.trigger) == (StopReason.WATCHDOG, "sentence_strict")


def test_an_agent_that_does_not_read_is_told_no_more() -> None:
    reins = Reins()
    assert [reins.say(WORD) for _ in range(MAX_UNSENT + 1)] == [*[True] * MAX_UNSENT, False]
    assert reins.lost == MAX_UNSENT


async def test_the_result_of_an_interrupted_step_does_not_end_the_turn() -> None:
    reins = Reins()
    assert reins.say(BREAK)
    await reins.next_word()
    reins.written(taken=True)
    assert [reins.ends_with_result(success=False), reins.ends_with_result(success=False)] == [False, True]
    assert reins.lost == 0
    assert not reins.say(WORD), "the agent has stated its result"


def test_what_was_not_written_when_the_agent_was_through_is_lost_and_interrupts_nothing() -> None:
    reins = Reins()
    assert reins.say(BREAK)
    assert reins.ends_with_result(success=False)
    assert reins.lost == 1


@pytest.mark.parametrize("taken", [True, False])
async def test_a_word_counts_as_lost_until_the_agent_took_it(taken: bool) -> None:
    reins = Reins()
    assert reins.say(WORD)
    await reins.next_word()
    assert reins.lost == 1
    reins.written(taken=taken)
    assert reins.lost == (0 if taken else 1)


async def test_a_success_closes_no_interrupted_step_the_agent_was_through() -> None:
    reins = Reins()
    assert reins.say(BREAK)
    await reins.next_word()
    assert reins.ends_with_result(success=True)
    assert reins.over


class TestStopping:
    def test_a_program_that_resumes_is_stopping_until_its_next_turn(self) -> None:
        steers, _ = steering(Codex())
        assert not steers.is_stopping
        assert steers.nudge("escalation", "Look.")
        assert steers.is_stopping
        steers.take(Codex().command(TurnRequest("Look.")))
        assert not steers.is_stopping

    async def test_a_steered_one_is_until_it_has_closed_the_step_that_was_interrupted(self) -> None:
        steers, reins = steering(Claude())
        assert steers.nudge("escalation", "Look.")
        assert not steers.is_stopping, "it only reads that at its next step"
        assert steers.nudge("break_loop", "Stop.")
        assert steers.is_stopping
        await reins.next_word()
        await reins.next_word()
        assert steers.is_stopping
        assert not reins.ends_with_result(success=False)
        assert not steers.is_stopping

    def test_one_that_never_closes_the_step_has_paid_no_heed(self) -> None:
        now_s = [100.0]
        steers, _ = steering(Claude(), now_s=lambda: now_s[0])
        assert steers.nudge("break_loop", "Stop.")
        now_s[0] += KILL_GRACE_S - 0.1
        assert steers.is_stopping
        assert steers.nudge("escalation", "Look.")
        now_s[0] += 0.1
        assert not steers.is_stopping

    @pytest.mark.parametrize("reason", StopReason)
    def test_whoever_is_stopped_for_good_is(self, reason: StopReason) -> None:
        steers, _ = steering(Claude())
        steers.stop.request(reason)
        assert steers.is_stopping
