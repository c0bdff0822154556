"""What open pages are told of watches, and settings of the store, over real HTTP."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from sqlalchemy import text
from tests.support.serving import Server, a_server, policy

from hankwatch.core.errors import UsageError
from hankwatch.serve import bulletin
from hankwatch.serve.bulletin import MAILBOX
from hankwatch.serve.console import live
from hankwatch.watches import engine
from hankwatch.watches.database import Database
from hankwatch.watches.tables import SCHEMA_VERSION

DIAL = {"type": "check", "name": "dial", "version": "v1", "args": {"name": "a"}}
WATCH = {"condition": "a is on", "verifier": DIAL, "session": "main"}


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulletin, "LOOK_S", 0.02)
    monkeypatch.setattr(live, "LOOK_S", 0.02)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    (tmp_path / "executions").mkdir()
    async with a_server(tmp_path / "executions", policy_file=policy(tmp_path / "policy.toml")) as made:
        yield made


class Open:
    """An open page: what its stream says, one message after the other."""

    def __init__(self, answer: httpx.Response) -> None:
        self._lines = answer.aiter_lines()
        self.last_id = ""

    async def next(self, event: str = "notice") -> Any:
        """The next message of that kind; the others are passed over."""
        kind = ""
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
            if name == "event":
                kind = value
            if name == "data" and kind == event:
                return json.loads(value) if event == "notice" else value
        raise AssertionError("the stream has ended")

    async def begun(self) -> None:
        async for line in self._lines:
            if line.startswith("id: "):
                self.last_id = line.removeprefix("id: ")
                return


@asynccontextmanager
async def opened(
    client: httpx.AsyncClient, last_id: str | None = None, *, address: str = "/console/live"
) -> AsyncIterator[Open]:
    headers = {} if last_id is None else {"Last-Event-ID": last_id}
    async with client.stream("GET", address, headers=headers) as answer:
        assert answer.status_code == 200
        page = Open(answer)
        await page.begun()
        yield page


async def fire(server: Server, client: httpx.AsyncClient, **fields: Any) -> str:
    """Arm a watch that is met at its first check, and check it; its id."""
    server.bench.dials.says["a"] = True
    armed = (await client.post("/api/watches", json={**WATCH, **fields})).json()
    assert (await client.post(f"/api/watches/{armed['id']}/check")).json()["state"] == "met"
    return str(armed["id"])


async def test_a_signal_is_told_once_to_each_open_page(server: Server) -> None:
    async with server.client("alice") as alice, opened(alice) as one, opened(alice) as other:
        first = await fire(server, alice)
        second = await fire(server, alice, id="second", condition="b is on")
        for page in (one, other):
            told = [await page.next(), await page.next()]
            assert [notice["href"] for notice in told] == [f"/watches/{first}", f"/watches/{second}"]
            assert told[0]["title"] == "Met: a is on"
            assert told[0]["look"] == "good"


async def test_only_who_may_read_a_watch_is_told_of_it(server: Server) -> None:
    async with server.client("alice") as alice, server.client("eve") as eve, opened(eve) as page:
        await fire(server, alice)
        hers = await fire(server, eve, id="hers", condition="eve's own")
        assert (await page.next())["href"] == f"/watches/{hers}"


async def test_who_opens_a_page_later_is_told_nothing_old(server: Server) -> None:
    async with server.client("alice") as alice:
        await fire(server, alice)
        async with opened(alice) as page:
            late = await fire(server, alice, id="late")
            assert (await page.next())["href"] == f"/watches/{late}"


async def test_a_page_that_was_cut_off_is_told_what_it_missed_and_nothing_twice(server: Server) -> None:
    async with server.client("alice") as alice:
        async with opened(alice) as page:
            await fire(server, alice)
            await page.next()
        missed = await fire(server, alice, id="missed")
        async with opened(alice, page.last_id) as again:
            assert (await again.next())["href"] == f"/watches/{missed}"
            new = await fire(server, alice, id="new")
            assert (await again.next())["href"] == f"/watches/{new}/"


async def test_a_page_that_gave_its_stream_up_is_told_what_it_missed_meanwhile(server: Server) -> None:
    async with server.client("alice") as alice:
        async with opened(alice) as page:
            await page.next("here")
        missed = await fire(server, alice)
        async with opened(alice, address=f"/console/live?told={page.last_id}") as again:
            assert (await again.next())["href"] == f"/watches/{missed}"
        for wrong in ("-1", "x", "9" * 30):
            assert (await alice.get(f"/console/live?told={wrong}")).status_code == 422


async def test_a_flood_is_told_as_a_few_and_a_number(server: Server) -> None:
    async with server.client("root") as root:
        async with opened(root) as page:
            pass
        for number in range(MAILBOX + 5):
            await fire(server, root, id=f"w{number}")
        async with opened(root, page.last_id) as page:
            told = [await page.next() for _ in range(MAILBOX + 1)]
    assert [notice["href"] for notice in told] == [*(f"/watches/w{n}" for n in range(MAILBOX)), "/watches"]
    assert told[-1]["title"] == "5 more from watches"


async def test_a_page_hears_that_watches_have_changed(server: Server) -> None:
    async with server.client("alice") as alice, opened(alice) as page:
        await alice.post("/api/watches", json=WATCH)
        assert await page.next("changed") == "watches"


async def test_hostile_words_of_a_condition_are_shown_as_signs(server: Server) -> None:
    async with server.client("alice") as alice, opened(alice) as page:
        await fire(server, alice, condition="<img src=x onerror=alert(1)>\x1b[31m\u202e done")
        title = (await page.next())["title"]
    assert "\x1b" not in title
    assert "\u202e" not in title
    assert "<img" in title  # text; the script sets it as text


async def test_a_token_for_runs_alone_is_told_nothing_of_watches(server: Server) -> None:
    async with (
        server.client(token="reader-of-alice") as reader,
        server.client("alice") as alice,
        opened(reader) as page,
        opened(alice) as other,
    ):
        await fire(server, alice)
        await other.next()
        with anyio.move_on_after(0.1) as scope:
            await page.next()
        assert scope.cancelled_caught


async def test_settings_hold_for_the_store_and_say_where_they_come_from(server: Server) -> None:
    async with server.client("root") as root, server.client("alice") as alice:
        before = (await root.get("/api/watch-settings")).json()
        assert before["interval"] == {
            "value": 30.0,
            "configured": 30.0,
            "is_set": False,
            "set_by": None,
            "set_at": None,
        }
        changed = await root.patch("/api/watch-settings", json={"interval": 90, "enabled": False})
        assert changed.status_code == 200
        assert (changed.json()["interval"]["value"], changed.json()["interval"]["set_by"]) == (90, "root")
        assert (await alice.get("/api/watch-settings")).json()["interval"]["set_by"] is None

        armed = (await alice.post("/api/watches", json=WATCH)).json()
        assert armed["interval_s"] == 90
        async with server.client("agent") as agent:
            refused = await agent.post("/api/watches", json={**WATCH, "id": "of-agent"})
            assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")

        back = (await root.patch("/api/watch-settings", json={"interval": None, "enabled": None})).json()
        assert (back["interval"]["value"], back["interval"]["is_set"], back["enabled"]["value"]) == (30, False, True)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"interval": 1}, "interval"),
        ({"interval": "30"}, "interval"),
        ({"enabled": 1}, "enabled"),
        ({"keep_terminal_h": -1}, "keep_terminal_h"),
        ({"retention": 3}, "retention"),
    ],
)
async def test_settings_that_cannot_be_are_refused_with_their_field(
    server: Server, edit: dict[str, Any], said: str
) -> None:
    async with server.client("root") as root:
        answer = await root.patch("/api/watch-settings", json=edit)
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json()["faults"][0].startswith(f"body.{said}:")


async def test_only_operators_change_settings(server: Server) -> None:
    for who in ("alice", "bob", "eve", "agent"):
        async with server.client(who) as client:
            answer = await client.patch("/api/watch-settings", json={"interval": 60})
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), who


async def test_retention_that_was_set_is_what_engines_forget_by(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PURGE_S", 0.02)
    async with server.client("root") as root:
        await fire(server, root)
        await root.patch("/api/watch-settings", json={"keep_terminal_h": 0.000001})
        async with server.bench.running():
            await server.bench.until(lambda: not server.bench.store.find())


def test_a_store_of_the_version_before_is_taken_over(tmp_path: Path) -> None:
    url = str(tmp_path / "watches.db")
    before = Database(url)
    with before.writing() as connection:
        for table in ("hankwatch_signals", "hankwatch_settings"):
            connection.execute(text(f"DROP TABLE {table}"))
        connection.execute(text("UPDATE hankwatch_meta SET value = '1' WHERE name = 'schema'"))
    before.close()
    after = Database(url)
    with after.reading() as connection:
        found = connection.execute(text("SELECT value FROM hankwatch_meta WHERE name = 'schema'")).scalar()
        assert connection.execute(text("SELECT count(*) FROM hankwatch_signals")).scalar() == 0
    assert found == str(SCHEMA_VERSION)
    after.close()


def test_a_store_of_a_later_version_is_refused(tmp_path: Path) -> None:
    url = str(tmp_path / "watches.db")
    later = Database(url)
    with later.writing() as connection:
        connection.execute(text("UPDATE hankwatch_meta SET value = '99' WHERE name = 'schema'"))
    later.close()
    with pytest.raises(UsageError, match="schema 99"):
        Database(url)
