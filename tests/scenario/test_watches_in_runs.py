"""Watches of an execution and its runs: checked, told of in the journal, woken (design "How it runs" 13, spec watches 6)."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.hanks import codon
from tests.support.runs import Ran, environment, killed_after, stand_in, write_hank

from hankwatch.app import LiveRun, open_run
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import UsageError, WatchInvalid
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions
from hankwatch.runner.lookups import Executions
from hankwatch.runner.summary import latest_outcome
from hankwatch.settings import load_settings
from hankwatch.watches.authority import Principal, Standing, operator
from hankwatch.watches.delivery import Channel
from hankwatch.watches.requests import read_request
from hankwatch.watches.turn import Turn
from hankwatch.watching import Watching, open_watching

GOOD: list[list[Any]] = [
    ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}],
    ["line", {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}],
    ["until_eof"],
]

POLICY = """
[[principals]]
tenant = "local"
actor = "agent:one"
"""

AGENT = Principal("local", "agent", is_agent=True, sessions={"*": Standing.OWNER})


class Here:
    """A hank of one codon in an execution directory, with a store of watches of its own."""

    def __init__(self, folder: Path, *codons: dict[str, Any]) -> None:
        self.agent = stand_in(folder / "agent", *GOOD)
        (folder / "home").mkdir()
        self.environ = environment({**self.agent.environ, "HOME": str(folder / "home")})
        self.hank = write_hank(folder / "hank", *(codons or (codon(),)))
        self.root = folder / "run"

    async def run(self, **options: Any) -> Ran:
        asked = RunOptions(self.hank, execution=self.root, **options)
        async with open_run(asked, environ=self.environ) as live:
            result = await live.carry_out()
        return Ran(self.root, result)

    @asynccontextmanager
    async def watches(self) -> AsyncIterator[Watching]:
        """As the command line opens them with ``--home``."""
        settings = load_settings(environ=self.environ, cwd=self.root.parent).settings
        async with open_watching(settings, self.environ, clock=SystemClock(), home=self.root.resolve()) as watching:
            yield watching

    async def arm(self, **fields: Any) -> str:
        """A watch that wakes session ``one`` once the file ``done`` is there."""
        asked = {
            "condition": "the deploy is done",
            "verifier": {"type": "document", "path": "done"},
            "session": "one",
            "run_prompt": "Run the smoke test.",
            **fields,
        }
        async with self.watches() as watching:
            return (await watching.service.create_watch(operator(), read_request(asked))).watch.id

    async def fire(self, watch_id: str, text: str = "v1.2.3") -> None:
        """Let its condition come true, and somebody check it."""
        (self.root / "done").write_text(text, encoding="utf-8")
        async with self.watches() as watching:
            await watching.service.evaluate_now(operator(), watch_id)

    async def wakes(self) -> list[str]:
        """How the wakes stand."""
        async with self.watches() as watching:
            return [one.status.value for one in watching.outbox.find(channel=Channel.WAKE)]

    def turn(self) -> Turn:
        """What the latest turn's agent was given to know of itself."""
        turn = Turn.of(self.agent.calls()[-1]["env"])
        assert turn is not None
        return turn

    def prompts(self) -> list[str]:
        """What each turn of the agent was told."""
        return [call["stdin"]["message"]["content"][0]["text"] for call in self.agent.calls()]


def of_code(ran: Ran, code: str) -> list[Event]:
    return [event for event in ran.of("info") if event.data.get("code") == code]


async def test_a_fire_is_a_turn_of_the_session_once_its_execution_runs_wakes(tmp_path: Path) -> None:
    here = Here(tmp_path)
    await here.run()
    watch_id = await here.arm()
    await here.fire(watch_id)

    ran = await here.run(wake=True)

    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one", "session:one"]
    argv = here.agent.calls()[-1]["argv"]
    assert argv[argv.index("--resume") + 1] == "s-1"
    (accepted,) = of_code(ran, "wake")
    assert accepted.data["details"]["watchId"] == watch_id
    assert accepted.cursor < ran.of("codon.started")[-1].cursor
    assert await here.wakes() == ["delivered"]


async def test_the_turn_is_told_why_it_is_woken_and_what_was_seen(tmp_path: Path) -> None:
    here = Here(tmp_path)
    await here.run()
    await here.fire(await here.arm(), "v1.2.3")

    await here.run(wake=True)

    prompt = here.prompts()[-1]
    order = ["[Autonomous wake]", "Condition: the deploy is done", "Run the smoke test.", "v1.2.3"]
    assert sorted(order, key=prompt.index) == order


async def test_a_woken_turn_arms_one_follow_up_and_no_deeper_one(tmp_path: Path) -> None:
    here = Here(tmp_path)
    await here.run()
    follow_up = {
        "kind": "monitor",
        "condition": "it is written",
        "session": "one",
        "note": "Read it.",
        "verifier": {"type": "document", "path": "done"},
        "id": "follow-up",
    }
    depths = [here.turn().depth]
    await here.fire(await here.arm())
    await here.run(wake=True)
    depths.append(here.turn().depth)
    async with here.watches() as watching:
        armed = await watching.service.create_watch(AGENT, read_request(follow_up), depth=depths[-1])
    await here.fire(armed.watch.id, "v1.2.4")
    ran = await here.run(wake=True)
    depths.append(here.turn().depth)

    assert depths == [0, 1, 2]
    assert (here.turn().session, here.turn().home) == ("one", str(here.root.resolve()))
    assert [event.data["details"]["depth"] for event in of_code(ran, "wake")] == [1, 2]
    async with here.watches() as watching:
        with pytest.raises(WatchInvalid, match="arms no further one"):
            await watching.service.create_watch(AGENT, read_request({**follow_up, "id": "deeper"}), depth=depths[-1])


async def test_an_agents_safe_watch_is_a_proposal_where_the_setting_says_ask(tmp_path: Path) -> None:
    here = Here(tmp_path)
    await here.run()
    asked = {"condition": "it is done", "session": "one", "verifier": {"type": "document", "path": "done"}}
    statuses = []
    for setting in ("by-trust", "ask"):
        here.environ["HANKWATCH_WATCHES_ACTIVATION"] = setting
        async with here.watches() as watching:
            armed = await watching.service.create_watch(AGENT, read_request({**asked, "id": setting}))
            statuses.append(armed.watch.status.value)

    assert statuses == ["active", "proposed"]


async def test_a_delivery_whose_info_stands_is_not_run_again(tmp_path: Path) -> None:
    """Killed between the acceptance and the store's word of it."""
    here = Here(tmp_path)
    await here.run()
    await here.fire(await here.arm())
    before = tmp_path / "before.db"
    store = tmp_path / "home" / ".local" / "state" / "hankwatch" / "watches.db"
    shutil.copy(store, before)
    await here.run(wake=True)
    shutil.copy(before, store)

    ran = await here.run(wake=True)

    assert len(here.agent.calls()) == 2
    assert len(of_code(ran, "wake")) == 1
    assert await here.wakes() == ["delivered"]


async def test_what_watches_tell_stands_in_the_journal_once(tmp_path: Path) -> None:
    here = Here(tmp_path)
    await here.run()
    store = tmp_path / "home" / ".local" / "state" / "hankwatch" / "watches.db"
    await here.fire(await here.arm())
    shutil.copy(store, tmp_path / "before.db")
    await here.run(wake=True)
    shutil.copy(tmp_path / "before.db", store)

    ran = await here.run(wake=True)

    told = [event.type for event in ran.events if event.type.startswith("watch.")]
    assert told == ["watch.armed", "watch.met"]


async def test_a_wake_of_a_session_that_no_running_codon_has_runs_between_codons(tmp_path: Path) -> None:
    here = Here(tmp_path, codon("one"), codon("two"), codon("three"))
    watch_id = await here.arm()
    idle = Signals()
    asked = RunOptions(here.hank, execution=here.root, autostart=False)
    async with open_run(asked, environ=here.environ) as live, anyio.create_task_group() as tasks:
        live.stream.subscribe(idle.listen, name="test")

        async def press_next() -> None:
            for number in range(4):
                await idle.reached(number + 1)
                if number == 1:  # codon one has ended
                    await here.fire(watch_id)
                live.control.next()

        tasks.start_soon(press_next)
        await live.carry_out()

    codons = [event.data["codonId"] for event in Ran(here.root).of("codon.completed")]
    assert codons.index("one") < codons.index("session:one") < codons.index("three")
    assert [codon_id for codon_id in codons if codon_id != "session:one"] == ["one", "two", "three"]
    assert len(codons) == 4


class Signals:
    """Counts how often a run has become idle."""

    def __init__(self) -> None:
        self.count = 0
        self.changed = anyio.Event()

    def listen(self, event: Event) -> None:
        if event.type == "server.idle":
            self.count += 1
            self.changed.set()
            self.changed = anyio.Event()

    async def reached(self, count: int) -> None:
        while self.count < count:
            await self.changed.wait()


async def test_running_wakes_leaves_a_hank_that_is_not_done_to_be_resumed(tmp_path: Path) -> None:
    here = Here(tmp_path, codon("one"), codon("two", agent="exec:false"))
    await here.run()
    await here.fire(await here.arm())
    woken = await here.run(wake=True)
    end = woken.of("state.transition")[-1].data
    shown = latest_outcome(woken.journal)

    ran = await here.run(resume=True)

    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one", "two", "session:one", "two"]
    assert end["transitionType"] == "RunCompleted", "it did what it was asked for"
    assert shown == "failed", "as the hank's own run did"


async def test_a_wake_of_a_session_that_is_not_there_is_dead_and_says_so(tmp_path: Path) -> None:
    here = Here(tmp_path)
    await here.run()
    await here.fire(await here.arm(session="other"))

    await here.run(wake=True)

    assert await here.wakes() == ["dead"]


async def test_a_run_checks_the_watches_of_its_home_and_names_those_that_live_on(tmp_path: Path) -> None:
    here = Here(tmp_path)
    await here.run()
    first = await here.arm(id="first")
    second = await here.arm(id="second", condition="never", verifier={"type": "document", "path": "never"})
    (here.root / "done").write_text("v1", encoding="utf-8")

    async def end(live: LiveRun) -> None:
        live.stop()

    ran = await run_until(here, lambda event: event.type == "watch.met", end, start_new=True, autostart=False)

    assert ran.result is not None
    assert ran.result.live_watches == (second,)
    (said,) = of_code(ran, "live-watches")
    assert said.data["details"] == {"watchIds": [second]}
    assert "hankwatch watch engine" in said.data["message"]
    assert [event.data["watchId"] for event in ran.of("watch.met")] == [first]


async def test_without_a_watch_a_run_makes_no_store(tmp_path: Path) -> None:
    here = Here(tmp_path)

    ran = await here.run()

    assert list((tmp_path / "home").iterdir()) == []
    assert of_code(ran, "live-watches") == []


async def test_a_store_that_cannot_be_opened_costs_the_watches_and_not_the_run(tmp_path: Path) -> None:
    here = Here(tmp_path)
    store = tmp_path / "home" / ".local" / "state" / "hankwatch" / "watches.db"
    store.parent.mkdir(parents=True)
    store.write_bytes(b"no database" * 100)

    ran = await here.run()

    assert ran.result is not None
    assert ran.result.success
    assert [event.data["code"] for event in ran.of("error")] == ["watches-unavailable"]


WAITS = codon("one", waitForWatches=True)


async def run_until_it_waits(here: Here, then: Callable[[LiveRun], Awaitable[None]], **options: Any) -> Ran:
    """A run; ``then`` is done once its codon waits for its watches."""
    return await run_until(here, lambda event: event.data.get("code") == "waits-for-watches", then, **options)


async def run_until(
    here: Here, holds: Callable[[Event], bool], then: Callable[[LiveRun], Awaitable[None]], **options: Any
) -> Ran:
    """A run; ``then`` is done once ``holds`` of one of its events."""
    waits = anyio.Event()

    def listen(event: Event) -> None:
        if holds(event):
            waits.set()

    asked = RunOptions(here.hank, execution=here.root, **options)
    async with open_run(asked, environ=here.environ) as live, anyio.create_task_group() as tasks:
        live.stream.subscribe(listen, name="test")

        async def act() -> None:
            await waits.wait()
            await then(live)

        tasks.start_soon(act)
        result = await live.carry_out()
    return Ran(here.root, result)


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


async def test_checks_know_what_runs_and_sessions_do(tmp_path: Path) -> None:
    here = Here(tmp_path, WAITS)
    home, looked = str(here.root.resolve()), list[tuple[str | None, str | None]]()
    watch_id = await here.arm()

    async def look(live: LiveRun) -> None:
        found = Executions(tmp_path).find(live.run_id, "local")
        looked.append((Executions(tmp_path).state("one", home, "local"), found.status if found else None))
        live.stop()

    await run_until_it_waits(here, look)
    found = Executions(tmp_path).find(str(here.root), "local")

    assert watch_id
    assert looked == [("waiting", "waiting")]
    assert found is not None
    assert (found.status, found.reason) == ("stopped", "codon failure: one")
    assert Executions(tmp_path).state("one", home, "local") == "ended"
    assert Executions(tmp_path).state("one", home, "other tenant") is None
    assert Executions(tmp_path).find("no-such-run", "local") is None


async def test_a_run_that_waits_for_next_runs_wakes_meanwhile(tmp_path: Path) -> None:
    here = Here(tmp_path)
    watch_id = await here.arm()
    idle = Signals()
    asked = RunOptions(here.hank, execution=here.root, autostart=False)
    async with open_run(asked, environ=here.environ) as live, anyio.create_task_group() as tasks:
        live.stream.subscribe(idle.listen, name="test")

        async def press_next() -> None:
            await idle.reached(1)
            live.control.next()
            await idle.reached(2)
            await here.fire(watch_id)
            await idle.reached(3)  # again, after the wake
            live.control.next()

        tasks.start_soon(press_next)
        await live.carry_out()

    ran = Ran(here.root)
    assert [event.data["codonId"] for event in ran.of("codon.completed")] == ["one", "session:one"]
    assert [event.data["reason"] for event in ran.of("server.idle")][1:] == ["all-codons-completed"] * 2
