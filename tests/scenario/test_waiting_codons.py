"""A codon that waits for its watches: what wakes it, what ends the waiting, what a kill leaves (spec watches 6)."""

from pathlib import Path

import pytest
from tests.support.hanks import codon
from tests.support.runs import Ran, killed_after
from tests.support.watched_runs import WAITS, Here, of_code, run_until_it_waits

from hankwatch.app import LiveRun
from hankwatch.core.errors import UsageError
from hankwatch.watches.authority import Principal, Standing, operator
from hankwatch.watches.requests import read_request

POLICY = """
[[principals]]
tenant = "local"
actor = "agent:one"
"""


async def test_a_codon_waits_for_its_watches_and_goes_on_with_what_they_say(tmp_path: Path) -> None:
    here = Here(tmp_path, WAITS, codon("two"))
    watch_id = await here.arm()

    async def fire(_: LiveRun) -> None:
        await here.fire(watch_id)

    ran = await run_until_it_waits(here, fire)

    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one", "two"]
    assert [call["argv"].count("--resume") for call in here.agent.calls()] == [0, 1, 0]
    assert "Run the smoke test." in here.prompts()[1]
    assert [
        event.data["code"] for event in ran.of("info") if event.data.get("code") in {"waits-for-watches", "wake"}
    ] == [
        "waits-for-watches",
        "wake",
    ]
    assert ran.result is not None
    assert ran.result.record.codons[0].wake_turns == 1
    assert ran.result.record.codons[0].waited_ms > 0
    assert await here.wakes() == ["delivered"]


async def test_any_ending_of_a_watch_is_the_next_turn_of_whoever_waits(tmp_path: Path) -> None:
    """Also one that nobody asked to be told of."""
    here = Here(tmp_path, WAITS)
    watch_id = await here.arm(notify_on=["met"])

    async def cancel(_: LiveRun) -> None:
        async with here.watches() as watching:
            await watching.service.cancel_watch(operator(), watch_id)

    await run_until_it_waits(here, cancel)

    assert "has ended without an outcome" in here.prompts()[1]


async def test_a_codon_without_live_watches_does_not_wait(tmp_path: Path) -> None:
    here = Here(tmp_path, WAITS)
    await here.arm(session="other")

    ran = await here.run()

    assert len(here.agent.calls()) == 1
    assert of_code(ran, "waits-for-watches") == []


async def test_a_run_heeds_the_policy_file_of_the_server(tmp_path: Path) -> None:
    here = Here(tmp_path, WAITS)
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    here.environ["HANKWATCH_SERVE_POLICY_FILE"] = str(tmp_path / "policy.toml")
    asked = {"condition": "done", "session": "one", "verifier": {"type": "document", "path": "done"}}
    async with here.watches() as watching:
        before = Principal("local", "agent:one", is_agent=True, sessions={"one": Standing.MEMBER})
        await watching.service.create_watch(before, read_request(asked))

    ran = await here.run()

    assert [event.data["reason"] for event in ran.of("watch.cancelled")] == ["access_revoked"]
    assert ran.completed()["success"] is True


async def test_a_codon_that_waits_can_be_stopped(tmp_path: Path) -> None:
    here = Here(tmp_path, WAITS)
    await here.arm()

    async def stop(live: LiveRun) -> None:
        live.stop()

    ran = await run_until_it_waits(here, stop)

    assert ran.completed()["success"] is False
    assert ran.result is not None
    assert not ran.result.success


async def test_a_codon_waits_no_longer_than_its_limit(tmp_path: Path) -> None:
    here = Here(tmp_path, codon("one", waitForWatches=True, waitLimitSeconds=0.1))
    await here.arm()

    ran = await here.run()

    assert ran.completed()["success"] is True
    assert len(of_code(ran, "wait-limit")) == 1


async def test_a_wake_that_comes_while_the_agent_works_is_its_next_turn(tmp_path: Path) -> None:
    here = Here(tmp_path, codon("one"), codon("two"))
    await here.run()
    await here.fire(await here.arm(session="two"))

    ran = await here.run(start_new=True)

    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one", "two", "one", "two"]
    assert len(here.agent.calls()) == 5
    assert ran.result is not None
    assert ran.result.record.codons[1].wake_turns == 1


async def test_an_agent_that_cannot_be_resumed_waits_for_no_watches(tmp_path: Path) -> None:
    here = Here(tmp_path, codon("one", agent="recorded:a.jsonl", waitForWatches=True))
    (here.hank / "a.jsonl").write_text("{}\n", encoding="utf-8")

    with pytest.raises(UsageError, match="waitForWatches continues a session"):
        await here.run()


async def test_watches_of_an_attempt_that_was_killed_are_cancelled_before_the_next_one(tmp_path: Path) -> None:
    here = Here(tmp_path)
    ran = await here.run()
    here.root = killed_after(ran, tmp_path / "killed", ran.of("codon.started")[0]).root
    stale, other = await here.arm(id="stale"), await here.arm(id="other", session="elsewhere")

    resumed = await here.run(resume=True)

    assert [event.data["watchId"] for event in resumed.of("watch.cancelled")] == [stale]
    assert resumed.result is not None
    assert resumed.result.success
    assert resumed.result.live_watches == (other,)


async def killed_while_it_waits(here: Here, tmp_path: Path) -> Ran:
    """What such a process leaves; ``here`` is there from then on, its watches too."""

    async def look(live: LiveRun) -> None:
        live.stop()

    ran = await run_until_it_waits(here, look)
    waits = of_code(ran, "waits-for-watches")[-1]
    here.root = killed_after(ran, tmp_path / "killed", waits).root
    return Ran(here.root)


async def test_a_codon_that_was_killed_while_it_waited_goes_on_waiting(tmp_path: Path) -> None:
    rig = [{"type": "command", "command": {"run": "echo x >> rig.txt"}}]
    here = Here(tmp_path, codon("one", waitForWatches=True, rigSetup=rig), codon("two"))
    await here.arm(id="first")
    await killed_while_it_waits(here, tmp_path)
    watch_id = await here.arm(id="second")

    async def fire(_: LiveRun) -> None:
        await here.fire(watch_id)

    ran = await run_until_it_waits(here, fire, resume=True)

    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one", "two"]
    assert [call["argv"].count("--resume") for call in here.agent.calls()] == [0, 1, 0]
    assert "Run the smoke test." in here.prompts()[1]
    assert (here.root / "agentRoot" / "rig.txt").read_text() == "x\n"
    assert ran.of("watch.cancelled") == []
    assert ran.result is not None
    assert ran.result.success
    assert (ran.result.record.codons[0].wake_turns, ran.result.record.codons[0].session_turn) == (1, 2)
    since = {event.data["details"]["goesOn"]["since"] for event in of_code(ran, "waits-for-watches")}
    assert len(since) == 1  # its limit counts from there


async def test_what_fired_while_nobody_ran_is_the_turn_of_the_codon_that_waited(tmp_path: Path) -> None:
    """Not even a run for wakes alone in between takes it, nor gives it up."""
    here = Here(tmp_path, WAITS)
    await here.arm(id="first")
    await killed_while_it_waits(here, tmp_path)
    await here.fire(await here.arm(id="second"))
    await here.run(wake=True)
    assert await here.wakes() == ["pending"]

    ran = await here.run(resume=True)

    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one"]
    assert len(of_code(ran, "wake")) == 1
    assert len(here.agent.calls()) == 2
    assert await here.wakes() == ["delivered"]


async def test_a_codon_killed_a_second_time_before_it_waits_again_is_re_entered_still(tmp_path: Path) -> None:
    here = Here(tmp_path, WAITS)
    await here.arm(id="first")
    await killed_while_it_waits(here, tmp_path)
    ran = await here.run(resume=True)  # nothing is live there, so it just ends
    again = [event for event in ran.of("state.transition") if event.data["transitionType"] == "CodonStarted"][-1]
    here.root = killed_after(ran, tmp_path / "again", again).root

    ran = await here.run(resume=True)

    assert len(here.agent.calls()) == 1
    assert ran.completed()["success"] is True
    assert len(ran.of("codon.completed")) == 1


async def test_a_codon_killed_in_the_turn_it_was_woken_for_begins_anew(tmp_path: Path) -> None:
    here = Here(tmp_path, WAITS)
    watch_id = await here.arm()

    async def fire(_: LiveRun) -> None:
        await here.fire(watch_id)

    ran = await run_until_it_waits(here, fire)
    here.root = killed_after(ran, tmp_path / "killed", of_code(ran, "wake")[0]).root

    await here.run(resume=True)

    assert [call["argv"].count("--resume") for call in here.agent.calls()] == [0, 1, 0]
