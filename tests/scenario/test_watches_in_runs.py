"""Watches of an execution and its runs: checked, told of in the journal, woken (design "How it runs" 13, spec watches 6)."""

import shutil
from pathlib import Path

import anyio
import pytest
from tests.support.hanks import codon
from tests.support.runs import Ran
from tests.support.watched_runs import WAITS, Here, Signals, of_code, run_until, run_until_it_waits

from hankwatch.app import LiveRun, open_run
from hankwatch.core.errors import WatchInvalid
from hankwatch.options import RunOptions
from hankwatch.runner.lookups import Executions
from hankwatch.runner.summary import latest_outcome
from hankwatch.watches.authority import Principal, Standing
from hankwatch.watches.requests import read_request

AGENT = Principal("local", "agent", is_agent=True, sessions={"*": Standing.OWNER})


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
