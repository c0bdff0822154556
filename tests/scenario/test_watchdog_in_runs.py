"""The loop watchdog in runs: an agent that loops is told so, goes on with what it was told, or is given up (spec watchdog 0)."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.claude_standin import REQUIRED
from tests.support.hanks import codon, hank, loop
from tests.support.runs import STANDIN, Ran, Standin, killed_after, run_here, stand_in, write_hank
from tests.support.waiting_runs import NEXT, Orders, operated

from hankwatch.agent import WatchdogPolicy, set_default_watchdog
from hankwatch.runner.orders import Order
from hankwatch.watchdog.policy import BREAK_LOOP_TEXT, NUDGE_TEXT

INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
DONE = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "total_cost_usd": 0.25}
BY_ITSELF: list[Any] = [["line", DONE], ["until_eof"]]
CHANT = "The value is still not what I expected it to be here. " * 12


def said(text: str, message_id: str = "m-{n}") -> list[Any]:
    return ["line", {"type": "assistant", "message": {"id": message_id, "content": [{"type": "text", "text": text}]}}]


def failing(call_id: str = "c-{n}") -> list[Any]:
    """A round whose only call fails as it always does."""
    use = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": "make"}}
    result = {"type": "tool_result", "tool_use_id": call_id, "content": "make: no such target", "is_error": True}
    return [
        ["line", {"type": "assistant", "message": {"id": f"m-{call_id}", "content": [use]}}],
        ["line", {"type": "user", "message": {"role": "user", "content": [result]}}],
    ]


STUCK = ["until_told", *failing()]
CHANTING = ["until_told", said(CHANT)]
RECOVERS = [INIT, STUCK, said("Now I see."), *BY_ITSELF]


async def play(tmp_path: Path, *calls: list[Any], watchdog: Any = None, **fields: Any) -> tuple[Ran, Standin]:
    """Under claude, which is steered."""
    agent = stand_in(tmp_path / "agent", ["calls", *calls])
    path = write_hank(tmp_path / "hank", codon(watchdog=watchdog or {}, **fields))
    return await run_here(path, tmp_path / "run", environ=agent.environ), agent


async def play_resumed(tmp_path: Path, *calls: list[Any], watchdog: Any = None, **fields: Any) -> tuple[Ran, Standin]:
    """Under a program that takes nothing while it works, but goes on in its sessions."""
    agent = stand_in(tmp_path / "agent", ["calls", *calls])
    env = {name: agent.environ[name] for name in ("CLAUDE_SCORE", "CLAUDE_SEEN")}
    spec = {"name": "exec", "command": [sys.executable, "-S", str(STANDIN), *REQUIRED], "env": env}
    watched = {"nudge_text": '"Look elsewhere."', "break_loop_text": '"Stop it."', **(watchdog or {})}
    path = write_hank(tmp_path / "hank", codon(watchdog=watched, agent=spec, promptText='"Do it."', **fields))
    return await run_here(path, tmp_path / "run", environ=agent.environ), agent


def nudges(ran: Ran) -> list[tuple[str, str, bool | None]]:
    return [(e.data["kind"], e.data["trigger"], e.data.get("delivered")) for e in ran.of("watchdog.nudge")]


def infos(ran: Ran, code: str) -> list[str]:
    return [event.data["message"] for event in ran.of("info") if event.data.get("code") == code]


def words(agent: Standin) -> list[str]:
    return [line["message"]["content"][0]["text"] for line in agent.told() if line["type"] == "user"]


async def test_a_steered_agent_is_told_and_recovers(tmp_path: Path) -> None:
    ran, agent = await play(tmp_path, RECOVERS)
    assert nudges(ran) == [("escalation", "call_repetition", None)]
    assert words(agent) == [NUDGE_TEXT]
    assert len(agent.calls()) == 1
    assert ran.completed()["success"] is True
    assert ran.of("watchdog.interrupt", "error") == []


async def test_a_steered_agent_that_repeats_itself_is_interrupted_and_then_told(tmp_path: Path) -> None:
    ran, agent = await play(tmp_path, [INIT, CHANTING, said("Here is the answer."), *BY_ITSELF])
    assert nudges(ran) == [("break_loop", "sentence_strict", None)]
    assert [line["type"] for line in agent.told()] == ["control_request", "user"]
    assert words(agent) == [BREAK_LOOP_TEXT]
    assert ran.completed()["success"] is True
    assert ran.of("error") == [], "a step that was interrupted is no failure"


async def test_an_agent_that_is_resumed_is_told_by_the_next_turn_and_recovers(tmp_path: Path) -> None:
    ran, agent = await play_resumed(tmp_path, [INIT, STUCK], [INIT, said("Now I see.", "m"), *BY_ITSELF])
    assert nudges(ran) == [("escalation", "call_repetition", None)]
    assert [call["stdin"] for call in agent.calls()] == ["Do it.", "Look elsewhere."]
    assert [call["env"].get("HANKWATCH_SESSION_ID") for call in agent.calls()] == [None, "s-1"]
    assert [call["env"]["HANKWATCH_TURN"] for call in agent.calls()] == ["1", "2"]
    assert len(infos(ran, "nudge-turn")) == 1
    assert ran.completed()["success"] is True
    assert len(ran.of("codon.started")) == 1
    assert ran.of("error") == [], "the turn that was ended for it is no failure"


async def test_what_a_resumed_agent_repeats_breaks_off_its_turn(tmp_path: Path) -> None:
    ran, agent = await play_resumed(tmp_path, [INIT, CHANTING], [INIT, said("The answer.", "m"), *BY_ITSELF])
    assert nudges(ran) == [("break_loop", "sentence_strict", None)]
    assert [call["stdin"] for call in agent.calls()] == ["Do it.", "Stop it."]
    assert ran.completed()["success"] is True


@pytest.mark.parametrize("how", [play, play_resumed])
async def test_a_message_that_repeats_itself_is_broken_off_while_it_is_written(tmp_path: Path, how: Any) -> None:
    delta = {
        "type": "content_block_delta",
        "delta": {"type": "text_delta", "text": "It is still not what I expected. "},
    }
    writing = [INIT, ["until_told", ["line", {"type": "stream_event", "event": delta}]]]
    answer = [said("The answer.", "m"), *BY_ITSELF]
    ran, _ = await how(tmp_path, *([[*writing, *answer]] if how is play else [writing, [INIT, *answer]]))
    assert nudges(ran) == [("break_loop", "sentence_strict", None)]
    assert [event.data["content"] for event in ran.of("assistant.action")] == ["The answer."]
    assert ran.completed()["success"] is True


@pytest.mark.parametrize("how", [play, play_resumed])
async def test_an_agent_that_never_recovers_is_interrupted_at_the_cap(tmp_path: Path, how: Any) -> None:
    chants = [INIT, *[CHANTING] * 4, ["hang"]] if how is play else [INIT, CHANTING]
    ran, _ = await how(tmp_path, chants, watchdog={"max_think_nudges": 2})
    assert [kind for kind, *_ in nudges(ran)] == ["break_loop"] * 2
    (interrupt,) = ran.of("watchdog.interrupt")
    assert interrupt.data["trigger"] == "sentence_strict"
    completed = ran.completed()
    assert completed["success"] is False
    reason = completed["failureReason"]
    assert reason["type"] == "unknown"
    assert reason["message"] == "interrupted by the loop watchdog: sentence_strict"
    assert ran.result is not None
    assert ran.result.success is False


async def test_after_an_interrupt_the_codon_is_tried_again_where_it_says_so(tmp_path: Path) -> None:
    retry = {"onFailure": "retry", "retryConfig": {"maxAttempts": 2, "delayMs": 1}}
    ran, agent = await play(tmp_path, [INIT, CHANTING], [INIT, *BY_ITSELF], watchdog={"max_think_nudges": 0}, **retry)
    assert [event.data["success"] for event in ran.of("codon.completed")] == [False, True]
    assert len(ran.of("watchdog.interrupt")) == 1
    assert len(agent.calls()) == 2


async def test_without_interrupt_on_cap_nothing_is_done_at_the_cap(tmp_path: Path) -> None:
    policy = {"max_think_nudges": 0, "interrupt_on_cap": False}
    ran, agent = await play(tmp_path, [INIT, *[said(CHANT, f"m{n}") for n in range(4)], *BY_ITSELF], watchdog=policy)
    assert ran.of("watchdog.nudge", "watchdog.interrupt") == []
    assert agent.told() == []
    assert ran.completed()["success"] is True


async def test_a_watchdog_that_observes_tells_and_does_nothing(tmp_path: Path) -> None:
    rounds = [line for n in range(4) for line in failing(f"c{n}")]
    chants = [said(CHANT, f"m{n}") for n in range(4)]
    ran, agent = await play(tmp_path, [INIT, *rounds, *chants, *BY_ITSELF], watchdog={"mode": "observe"})
    assert ("escalation", "call_repetition", None) in nudges(ran)
    assert len(ran.of("watchdog.interrupt")) == 1
    assert {event.data["observed"] for event in ran.of("watchdog.nudge", "watchdog.interrupt")} == {True}
    assert agent.told() == []
    assert ran.completed()["success"] is True


@pytest.mark.parametrize(("file", "agent"), [("one.jsonl", "recorded:one.jsonl"), ("r/1.jsonl", "recorded:r")])
async def test_a_nudge_that_the_agent_cannot_take_is_told_as_such(tmp_path: Path, file: str, agent: str) -> None:
    """It takes up no session, or has no further turn in it: the one that runs is not ended for nothing."""
    rounds = [line for n in range(4) for line in failing(f"c{n}")]
    recording = "".join(json.dumps(step[1]) + "\n" for step in [INIT, *rounds, BY_ITSELF[0]])
    (tmp_path / "hank" / "r").mkdir(parents=True)
    path = write_hank(tmp_path / "hank", codon(watchdog={}, agent=agent), files={file: recording})
    ran = await run_here(path, tmp_path / "run")
    assert nudges(ran) == [("escalation", "call_repetition", False)]
    assert ran.completed()["success"] is True


async def test_a_nudge_for_an_agent_that_has_ended_by_itself_starts_no_turn(tmp_path: Path) -> None:
    """The last message and the result arrive together: nobody is there any more to be told."""
    last = json.dumps(said(CHANT, "m")[1]) + "\n" + json.dumps(DONE) + "\n"
    ran, agent = await play_resumed(tmp_path, [INIT, ["raw", last], ["exit", 0]])
    assert nudges(ran) == [("break_loop", "sentence_strict", None)]
    assert len(agent.calls()) == 1
    assert len(infos(ran, "nudge-lost")) == 1
    assert ran.completed()["success"] is True


@pytest.mark.parametrize("how", [play, play_resumed])
async def test_what_an_agent_says_before_it_can_know_of_a_nudge_brings_no_cap_nearer(tmp_path: Path, how: Any) -> None:
    """It wrote all of it at once: it gets its nudge all the same."""
    chants = ["raw", "".join(json.dumps(said(CHANT, f"m{number}")[1]) + "\n" for number in range(6))]
    looping = [INIT, chants, ["until_told", said(CHANT)]]
    answer = [said("The answer.", "m"), *BY_ITSELF]
    ran, agent = await how(tmp_path, *([[*looping, *answer]] if how is play else [looping, [INIT, *answer]]))
    assert nudges(ran) == [("break_loop", "sentence_strict", None)]
    assert ran.of("watchdog.interrupt") == []
    assert ran.completed()["success"] is True
    assert [call["stdin"] for call in agent.calls()[1:]] == ([] if how is play else ["Stop it."])


async def test_an_agent_that_was_through_before_it_was_interrupted_has_done_its_work(tmp_path: Path) -> None:
    """It is asked to stop a step, and what it says of its end is a success all the same."""
    nobody_listens = ["until_word", ["line", DONE], ["exit", 0]]
    ran, _ = await play(tmp_path, [INIT, said(CHANT), nobody_listens])
    assert nudges(ran) == [("break_loop", "sentence_strict", None)]
    assert ran.completed()["success"] is True


@pytest.mark.parametrize("result", [DONE, {**DONE, "subtype": "error_during_execution", "errors": ["terminated"]}])
async def test_what_an_agent_says_of_its_end_when_it_is_ended_for_a_nudge_counts_for_nothing(
    tmp_path: Path, result: dict[str, Any]
) -> None:
    looping = [INIT, ["on_term", result], STUCK]
    ran, agent = await play_resumed(tmp_path, looping, [INIT, said("Now I see.", "m"), *BY_ITSELF])
    assert [call["stdin"] for call in agent.calls()] == ["Do it.", "Look elsewhere."]
    assert ran.completed()["success"] is True
    assert ran.of("error") == []


async def test_the_tokens_of_a_turn_that_was_ended_are_counted_and_its_cost_is_unknown(tmp_path: Path) -> None:
    usage = {"usage": {"input_tokens": 10, "output_tokens": 5}}
    first = [
        "line",
        {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "Hm."}], **usage}},
    ]
    ran, _ = await play_resumed(tmp_path, [INIT, first, STUCK], [INIT, ["line", {**DONE, **usage}], ["until_eof"]])
    (final,) = [event.data for event in ran.of("token.usage") if event.data.get("isFinal")]
    assert (final["inputTokens"], final["outputTokens"], final["totalCost"]) == (20, 10, None)
    assert ran.completed()["cost"] is None


async def test_limits_hold_over_the_turns_that_nudges_begin(tmp_path: Path) -> None:
    ran, agent = await play_resumed(
        tmp_path, [INIT, STUCK], [INIT, ["hang"]], budget={"maxTimeSeconds": 1.5, "onExceeded": "fail"}
    )
    assert len(agent.calls()) == 2
    assert ran.completed()["budgetExceeded"]["currency"] == "duration"
    assert ran.completed()["success"] is False


async def test_silence_after_a_nudge_is_as_long_as_any(tmp_path: Path) -> None:
    ran, _ = await play(tmp_path, [INIT, STUCK, ["hang"]], shimIdleTimeout=1)
    assert ran.completed()["failureReason"]["type"] == "timeout"


async def test_a_run_killed_with_a_nudge_pending_begins_the_codon_anew(tmp_path: Path) -> None:
    ran, agent = await play(tmp_path, RECOVERS)
    (nudge,) = ran.of("watchdog.nudge")
    cut = killed_after(ran, tmp_path / "cut", nudge)
    again = await run_here(tmp_path / "hank", cut.root, environ=agent.environ, resume=True)
    assert len(agent.calls()) == 2
    assert again.completed()["success"] is True
    assert len(nudges(again)) == 2, "the new attempt is watched afresh"


async def test_the_next_codon_counts_the_turns_that_nudges_began(tmp_path: Path) -> None:
    stuck = [INIT[1], *(line[1] for n in range(4) for line in failing(f"c{n}"))]
    turns = [stuck, [INIT[1], DONE], [INIT[1], DONE]]
    files = {f"r/{number}.jsonl": "".join(json.dumps(r) + "\n" for r in turn) for number, turn in enumerate(turns, 1)}
    (tmp_path / "hank" / "r").mkdir(parents=True)
    two = codon("two", agent="recorded:r", continuationMode="continue-previous")
    path = write_hank(tmp_path / "hank", codon(watchdog={}, agent="recorded:r"), two, files=files)
    ran = await run_here(path, tmp_path / "run")
    assert [event.data["success"] for event in ran.of("codon.completed")] == [True, True]


@pytest.mark.parametrize("policy", [None, WatchdogPolicy()])
async def test_the_default_of_the_program_is_adopted_where_it_is_asked_for(
    tmp_path: Path, policy: WatchdogPolicy | None
) -> None:
    rounds = [line for n in range(4) for line in failing(f"c{n}")]
    agent = stand_in(tmp_path / "agent", INIT, *rounds, *BY_ITSELF)
    path = write_hank(tmp_path / "hank", files={"hank.json": hank(codon(), watchdog="default")})
    set_default_watchdog(policy)
    try:
        ran = await run_here(path, tmp_path / "run", environ=agent.environ)
    finally:
        set_default_watchdog(None)
    assert len(nudges(ran)) == (0 if policy is None else 1)


async def test_a_codon_s_own_watchdog_goes_before_that_of_the_hank(tmp_path: Path) -> None:
    rounds = [line for n in range(4) for line in failing(f"c{n}")]
    agent = stand_in(tmp_path / "agent", INIT, *rounds, *BY_ITSELF)
    one = codon(watchdog={"repeat_call_threshold": 0})
    path = write_hank(tmp_path / "hank", files={"hank.json": hank(one, codon("two"), watchdog={"mode": "observe"})})
    ran = await run_here(path, tmp_path / "run", environ=agent.environ)
    assert [event.data["codonId"] for event in ran.of("watchdog.nudge")] == ["two"]


async def test_in_a_loop_each_iteration_is_watched_by_itself(tmp_path: Path) -> None:
    rounds = [line for n in range(4) for line in failing(f"c{n}")]
    agent = stand_in(tmp_path / "agent", INIT, *rounds, *BY_ITSELF)
    again = loop(codon(watchdog={"mode": "observe"}))
    path = write_hank(tmp_path / "hank", files={"hank.json": hank(again)})
    ran = await run_here(path, tmp_path / "run", environ=agent.environ)
    assert [(e.data["codonId"], e.data["round"]) for e in ran.of("watchdog.nudge")] == [("one#0", 3), ("one#1", 3)]


async def test_codons_of_one_session_are_each_watched_afresh(tmp_path: Path) -> None:
    two_rounds = [line for n in range(2) for line in failing(f"c{n}")]
    more = [line for n in range(2, 4) for line in failing(f"c{n}")]
    agent = stand_in(tmp_path / "agent", ["calls", [INIT, *two_rounds, *BY_ITSELF], [INIT, *more, *BY_ITSELF]])
    goes_on = codon("two", continuationMode="continue-previous")
    path = write_hank(tmp_path / "hank", files={"hank.json": hank(codon(), goes_on, watchdog={})})
    ran = await run_here(path, tmp_path / "run", environ=agent.environ)
    assert [event.data["success"] for event in ran.of("codon.completed")] == [True, True]
    assert nudges(ran) == []


async def test_a_codon_that_is_taken_back_is_watched_afresh(tmp_path: Path) -> None:
    stuck = [INIT[1], *(line[1] for n in range(4) for line in failing(f"c{n}")), DONE]
    lines = tmp_path / "agent.jsonl"
    lines.write_text("".join(json.dumps(record) + "\n" for record in stuck))
    write = {"type": "command", "command": {"run": "echo 1 > a.txt"}}
    kept = {"agent": f"exec:cat {lines}", "checkpointedFiles": ["*"], "rigSetup": [write]}
    path = write_hank(tmp_path / "hank", codon(**kept), codon("two", watchdog={"mode": "observe"}, **kept))
    orders: Orders = [NEXT, NEXT, (Order.ROLLBACK, "one"), NEXT, NEXT]
    ran, answers = await operated(path, tmp_path / "run", orders)
    assert answers[2].startswith("Rolled back")
    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one", "two", "two"]
    assert [event.data["round"] for event in ran.of("watchdog.nudge")] == [3, 3]
