"""Sessions of several turns without any program: recorded folders and commands of one's own (spec hank 3)."""

import json
from pathlib import Path
from typing import Any

from tests.support.hanks import codon, loop
from tests.support.runs import Ran, run_here, write_hank

INIT = {"type": "system", "subtype": "init", "session_id": "s-1"}
FULL = {"type": "result", "subtype": "error_during_execution", "is_error": True, "result": "Prompt is too long"}
BROKEN = {"type": "result", "subtype": "error_during_execution", "is_error": True, "result": "401 unauthorized"}


def said(text: str) -> list[dict[str, Any]]:
    message = {"id": text, "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 10}}
    result = {"type": "result", "subtype": "success", "is_error": False, "result": text}
    return [INIT, {"type": "assistant", "message": message}, result]


def record(folder: Path, *turns: list[dict[str, Any]]) -> str:
    """The agent that plays these turns."""
    folder.mkdir()
    for number, lines in enumerate(turns, 1):
        (folder / f"{number}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return f"recorded:{folder}"


def heard(ran: Ran) -> list[str]:
    return [event.data["content"] for event in ran.of("assistant.action")]


async def play(tmp_path: Path, *items: dict[str, Any]) -> Ran:
    return await run_here(write_hank(tmp_path / "hank", *items), tmp_path / "run")


async def test_codons_of_one_session_play_one_turn_each(tmp_path: Path) -> None:
    agent = record(tmp_path / "turns", said("one"), said("two"), said("three"))
    follows = {"agent": agent, "continuationMode": "continue-previous"}
    ran = await play(tmp_path, codon("a", agent=agent), codon("b", **follows), codon("c", **follows))
    assert heard(ran) == ["one", "two", "three"]
    assert [event.data["sessionId"] for event in ran.of("codon.started")] == ["s-1"] * 3


async def test_a_session_that_changes_its_id_goes_on_and_extensions_are_turns_of_it(tmp_path: Path) -> None:
    renamed = [{**INIT, "session_id": "s-2"}, *said("two")[1:]]
    agent = record(tmp_path / "turns", said("one"), renamed, said("three"), said("four"))
    follows = {"agent": agent, "continuationMode": "continue-previous"}
    last = codon("c", exhaustWithPrompt="Go on.", maxExtensions=1, **follows)
    ran = await play(tmp_path, codon("a", agent=agent), codon("b", **follows), last)
    assert heard(ran) == ["one", "two", "three", "four"]


async def test_a_loop_goes_on_until_the_recorded_context_is_full(tmp_path: Path) -> None:
    agent = record(tmp_path / "turns", said("one"), said("two"), said("three"), [INIT, FULL])
    until_full = loop(
        codon("b", agent=agent, continuationMode="continue-previous"), terminateOn={"type": "contextExceeded"}
    )
    ran = await play(tmp_path, codon("a", agent=agent), until_full)
    assert heard(ran) == ["one", "two", "three"]
    ends = [event.data.get("terminationReason") for event in ran.of("loop.iteration.completed")]
    assert ends == [None, None, "context_exceeded"]


async def test_a_codon_is_extended_until_the_recorded_context_is_full(tmp_path: Path) -> None:
    agent = record(tmp_path / "turns", said("one"), said("two"), [INIT, FULL])
    ran = await play(tmp_path, codon(agent=agent, exhaustWithPrompt="Go on."))
    assert heard(ran) == ["one", "two"]
    assert ran.completed()["success"] is True
    assert [event.data["extensionNumber"] for event in ran.of("codon.extended")] == [1, 2]


async def test_a_turn_that_is_not_recorded_fails_the_codon_and_what_was_before_it_counts(tmp_path: Path) -> None:
    agent = record(tmp_path / "turns", said("one"), said("two"))
    ran = await play(tmp_path, codon(agent=agent, exhaustWithPrompt="Go on."))
    assert ran.completed()["success"] is False
    assert "turn 3 of the session is not recorded" in ran.completed()["failureReason"]["message"]
    assert [event.data["extensionNumber"] for event in ran.of("codon.extended")] == [1]
    (final,) = [event.data for event in ran.of("token.usage") if event.data.get("isFinal")]
    assert final["inputTokens"] == 20


async def test_a_retry_of_a_continued_codon_is_the_next_turn(tmp_path: Path) -> None:
    agent = record(tmp_path / "turns", said("one"), [INIT, {**BROKEN, "result": "overloaded"}], said("three"))
    retry = {"onFailure": "retry", "retryConfig": {"delayMs": 0}}
    second = codon("b", agent=agent, continuationMode="continue-previous", **retry)
    ran = await play(tmp_path, codon("a", agent=agent), second)
    assert heard(ran) == ["one", "three"]


async def test_a_command_of_ones_own_is_told_its_turn_and_session(tmp_path: Path) -> None:
    script = tmp_path / "agent.sh"
    say = 'echo "$HANKWATCH_TURN ${HANKWATCH_SESSION_ID:-new}" >> turns; cat "$0.$HANKWATCH_TURN"'
    script.write_text(f"{say}\n")
    for number, lines in enumerate((said("one"), said("two"), said("three")), 1):
        script.with_name(f"agent.sh.{number}").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    agent = f"exec:sh {script}"
    first = codon("a", agent=agent)
    second = codon("b", agent=agent, continuationMode="continue-previous", exhaustWithPrompt="On.", maxExtensions=1)
    ran = await play(tmp_path, first, second)
    assert heard(ran) == ["one", "two", "three"]
    assert (ran.root / "agentRoot" / "turns").read_text() == "1 new\n2 s-1\n3 s-1\n"
