"""A watch whose record cannot be read is listed as such, and can be got rid of, on SQLite and PostgreSQL (spec watches 8, 7)."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.support.children import flowing
from tests.support.watch_bench import WatchBench
from tests.support.watch_stores import store_url

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import IdTaken, WatchNotFound, WrongState
from hankwatch.watches.authority import Principal, agent, operator
from hankwatch.watches.policies import Caps
from hankwatch.watches.requests import read_edit, read_request
from hankwatch.watches.watch import EndReason, Kind, Status, Watch

OWNER = agent("main")
ONE = {Kind.WATCH: Caps(per_session=1)}
WHO = pytest.mark.parametrize("who", [operator(), OWNER], ids=["operator", "owner"])


@pytest.fixture(params=["sqlite", "postgres"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[WatchBench]:
    with store_url(request.param, tmp_path) as url:
        made = WatchBench(url, VirtualClock(), home=tmp_path, caps=ONE)
        yield made
        made.database.close()


async def broken(bench: WatchBench) -> Watch:
    """A watch of ``OWNER`` that has fired once, whose record somebody has damaged since."""
    bench.dials.says["a"] = True
    watch = await bench.arm(principal=OWNER, id="deploy", repeat=True)
    await bench.service.evaluate_now(OWNER, watch.id)
    with bench.database.writing() as connection:
        connection.execute(text("UPDATE hankwatch_watches SET record = '{\"id\": 1}' WHERE id = 'deploy'"))
    return bench.stands(watch)


async def test_it_is_listed_with_what_is_known_of_it(bench: WatchBench) -> None:
    await broken(bench)

    (watch,) = await bench.service.list_watches(OWNER)

    assert (watch.id, watch.owner, watch.session, watch.status) == ("deploy", "agent:main", "main", Status.ACTIVE)
    assert watch.fault is not None
    assert "record of a watch" in watch.fault


@WHO
async def test_it_is_cancelled_and_gives_up_its_place(bench: WatchBench, who: Principal) -> None:
    await broken(bench)

    ended = await bench.service.cancel_watch(who, "deploy")
    again = await bench.service.cancel_watch(who, "deploy")
    await bench.arm("b", principal=OWNER)

    assert ended == again == bench.stands(ended)
    assert (ended.status, ended.end_reason) == (Status.ENDED, EndReason.CANCELLED)
    assert await bench.deliverer.deliver_waiting()
    assert "watch.cancelled" in bench.journaled.types()
    assert bench.wakes() == []  # what it fired before had not arrived


@WHO
async def test_it_is_cleared(bench: WatchBench, who: Principal) -> None:
    await broken(bench)

    assert await bench.service.clear_watch(who, "deploy")
    assert await bench.service.list_watches(operator()) == []


@pytest.mark.parametrize("first", ["replace", "cancel", "clear"])
async def test_what_takes_its_place_has_deliveries_of_its_own(bench: WatchBench, first: str) -> None:
    old = await broken(bench)
    told = {one.id for one in bench.outbox.find(watch_id=old.id)}
    if first == "replace":
        with pytest.raises(IdTaken, match="say replace"):
            await bench.arm(principal=OWNER, id="deploy")
    else:
        await getattr(bench.service, f"{first}_watch")(OWNER, "deploy")

    again = await bench.arm(principal=OWNER, id="deploy", replace=True)
    checked = await bench.service.evaluate_now(OWNER, "deploy")

    assert (checked.fault, checked.fire_count) == (None, 1)
    assert again.generation > 1
    assert {one.id for one in bench.outbox.find(watch_id=old.id) if one.content.get("generation", 0) > 1}.isdisjoint(
        told
    )


async def test_nothing_else_can_be_done_to_it(bench: WatchBench) -> None:
    await broken(bench)

    with pytest.raises(WrongState, match="cancel, clear or replace"):
        await bench.service.update_watch(operator(), "deploy", read_edit({"interval_s": 60}))
    with pytest.raises(WrongState, match="cancel, clear or replace"):
        await bench.service.evaluate_now(operator(), "deploy")
    with pytest.raises(WrongState, match="cancel, clear or replace"):
        await bench.service.approve(operator(), "deploy")


async def test_nobody_waits_for_it(bench: WatchBench) -> None:
    await broken(bench)
    await bench.service.tell_every_ending("main")

    assert await bench.service.live_in("main") == []


async def test_it_stays_what_others_may_not_know_of(bench: WatchBench) -> None:
    await broken(bench)

    assert await bench.service.list_watches(agent("other")) == []
    with pytest.raises(WatchNotFound):
        await bench.service.cancel_watch(agent("other"), "deploy")


@pytest.mark.parametrize(
    "damage",
    [
        "record = '{'",
        "record = replace(record, '\"interval_s\":5.0', '\"interval_s\":NaN')",
        'record = replace(record, \'"id":"deploy"\', \'"id":"../../etc"\')',
        "record = replace(record, 'agent:main', 'operator')",
        "due_ms = 99999999999999999",
        "due_ms = -99999999999999999",
        "expires_ms = -99999999999999999",
        "status = 'odd'",
        "kind = 'odd'",
    ],
)
async def test_whatever_is_damaged_in_a_row_the_others_are_checked_and_it_can_be_got_rid_of(
    bench: WatchBench, damage: str
) -> None:
    await bench.arm(principal=OWNER, id="deploy")
    with bench.database.writing() as connection:
        assert connection.exec_driver_sql(f"UPDATE hankwatch_watches SET {damage} WHERE id = 'deploy'").rowcount == 1
    good = await bench.arm("b")

    assert isinstance(bench.clock, VirtualClock)
    async with flowing(bench.clock, step_s=0.05), bench.running():
        await bench.checked(good, 1)
        assert {watch.owner for watch in await bench.service.list_watches(operator(), "deploy")} == {"agent:main"}
        assert await bench.service.clear_watch(operator(), "deploy")


async def test_a_damaged_line_about_a_check_hides_no_other(bench: WatchBench) -> None:
    watch = await bench.arm()
    for _ in range(2):
        await bench.service.evaluate_now(operator(), watch.id)
    first, _ = await bench.service.evaluations(operator(), watch.id)
    with bench.database.writing() as connection:
        connection.execute(text(f"UPDATE hankwatch_evaluations SET detail = '[' WHERE number = {first.number}"))

    assert len(await bench.service.evaluations(operator(), watch.id)) == 1


async def test_a_set_that_is_applied_mends_it(bench: WatchBench) -> None:
    verifier = {"type": "check", "name": "dial", "args": {"name": "a"}}
    asked = [read_request({"id": "deploy", "condition": "dial a", "session": "main", "verifier": verifier})]
    await bench.service.apply_watches(OWNER, asked)
    with bench.database.writing() as connection:
        connection.execute(text("UPDATE hankwatch_watches SET record = '' WHERE id = 'deploy'"))

    applied = await bench.service.apply_watches(OWNER, asked)

    assert applied.armed == ("deploy",)
    assert (await bench.service.get(OWNER, "deploy")).fault is None
