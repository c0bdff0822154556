"""The loop watchdog on the real programs, whose scripted model loops until it is nudged; see tests.scenario.test_real_agents."""

from pathlib import Path

import pytest
from tests.support.agent_model_server import AgentModelServer, Step
from tests.support.hanks import codon
from tests.support.real_agents import find, installed
from tests.support.runs import Ran, run_here, write_hank

pytestmark = [pytest.mark.realagent, pytest.mark.slow, pytest.mark.timeout(180)]

NUDGE = "Look at it from another side, says the watchdog."
AGAIN = "The value is still not what I expected it to be here."
MUTE = frozenset({"cline", "copilot"})
"""They resume no session, or name theirs at the end only."""


async def play(name: str, tmp_path: Path, server: AgentModelServer, *flags: str) -> Ran:
    agent, model, env = installed(name, tmp_path, server.url)
    policy = {"nudge_text": NUDGE, "break_loop_text": NUDGE}
    agent["command"] = [find(name), *flags]
    hank = write_hank(tmp_path / "hank", codon(agent=agent, model=model, watchdog=policy))
    return await run_here(hank, tmp_path / "run", environ=env)


async def test_an_agent_that_repeats_a_call_is_told_and_recovers(
    name: str, tmp_path: Path, server: AgentModelServer
) -> None:
    loops = [Step(f"Try {n} of many.", shell="cat nowhere/at/all") for n in range(9)]
    server.script = [*loops, Step("Given up.")]
    server.reactions = {NUDGE: Step("Now I see.")}
    ran = await play(name, tmp_path, server)
    delivered = [event.data.get("delivered") for event in ran.of("watchdog.nudge")]
    assert delivered[0] is (False if name in MUTE else None)
    assert ran.completed()["success"] is True, ran.of("error")
    said = [e.data["content"] for e in ran.of("assistant.action") if e.data["action"] == "message"]
    assert said[-1] == ("Given up." if name in MUTE else "Now I see.")


async def test_an_agent_that_repeats_what_it_says_is_told_and_recovers(
    name: str, tmp_path: Path, server: AgentModelServer
) -> None:
    # No plain chant: gemini finds that by itself, and ends.
    chant = " ".join(f"{AGAIN} Then I look at the file number {n} of the folder." for n in range(6))
    server.script = [*[Step(chant, shell=f"echo {n}; exit 1") for n in range(4)], Step("Given up.")]
    server.reactions = {NUDGE: Step("Now I see.")}
    ran = await play(name, tmp_path, server)
    first = ran.of("watchdog.nudge")[0].data
    assert first["kind"] == "break_loop"
    said = [e.data["content"] for e in ran.of("assistant.action") if e.data["action"] == "message"]
    if name not in MUTE:
        assert ran.completed()["success"] is True, ran.of("error")
        assert said[-1] == "Now I see."


async def test_claude_is_broken_off_while_it_writes_with_partial_messages(
    tmp_path: Path, server: AgentModelServer
) -> None:
    if find("claude") is None:
        pytest.skip("claude is not installed")
    server.script = [Step(f"{AGAIN} " * 12, shell="sleep 30"), Step("Given up.")]
    server.reactions = {NUDGE: Step("Now I see.")}
    ran = await play("claude", tmp_path, server, "--include-partial-messages")
    types = [e.type for e in ran.of("watchdog.nudge", "assistant.action")]
    assert types[0] == "watchdog.nudge", "it comes before the message is whole"
    assert ran.completed()["success"] is True, ran.of("error")
    assert ran.of("assistant.action")[-1].data["content"] == "Now I see."
