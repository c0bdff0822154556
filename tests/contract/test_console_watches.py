"""The console's pages of watches over real HTTP: what they show to whom."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.support.serving import Server, a_server, demo, policy
from tests.support.watch_bench import finding

DIAL = {"type": "check", "name": "dial", "args": {"name": "a"}}
WATCH = {"condition": "a is on", "verifier": DIAL, "session": "main"}
HOSTILE = "</code><script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Server]:
    demo(tmp_path / "executions")
    async with a_server(tmp_path / "executions", policy_file=policy(tmp_path / "policy.toml")) as made:
        yield made


@pytest.fixture
async def root(site: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with site.client("root") as client:
        yield client


async def shown(client: httpx.AsyncClient, path: str) -> str:
    answer = await client.get(path)
    assert answer.status_code == 200, path
    return answer.text


async def test_watches_stand_in_groups_with_what_they_wait_for_and_saw(site: Server, root: httpx.AsyncClient) -> None:
    site.bench.dials.says["a"] = finding("42")
    await root.post("/api/watches", json={**WATCH, "id": "live"})
    await root.post("/api/watches/live/check")
    await root.post("/api/watches", json={**WATCH, "id": "over", "condition": "b is on"})
    await root.post("/api/watches/over/cancel")
    await root.post("/api/watches", params={"run": "latest"}, json={**WATCH, "id": "at-home"})
    async with site.client("agent") as agent:
        command = {"type": "command", "command": "true"}
        await agent.post("/api/watches", json={**WATCH, "id": "asked", "verifier": command})
    text = await shown(root, "/watches")
    assert text.index("Proposed") < text.index(">asked<") < text.index(">Active ") < text.index("<code>live<")
    assert text.index("<code>live<") < text.index(">Ended ") < text.index(">over<")
    for said in ("command true", "check dial", "pending: 42", "ended: cancelled", "session <code>main</code>"):
        assert said in text, said
    assert 'href="/runs/' in text


async def test_who_checks_them_is_said_and_that_nobody_does(site: Server, root: httpx.AsyncClient) -> None:
    await root.post("/api/watches", json=WATCH)
    text = await shown(root, "/watches")
    assert "Nobody checks these watches" in text
    assert "hankwatch watch engine" in text
    async with site.bench.running():
        await site.bench.until(lambda: bool(site.bench.store.find()[0].check_count))
        assert "Nobody checks" not in await shown(root, "/watches")


async def test_each_group_comes_in_pages_and_all_of_it_is_searched(root: httpx.AsyncClient) -> None:
    for number in range(5):
        await root.post("/api/watches", json={**WATCH, "id": f"w{number}", "condition": f'"{number}" is 100%_Ön'})
    first = await shown(root, "/watches?limit=2")
    assert ('data-key="w1"' in first, 'data-key="w2"' in first) == (True, False)
    assert "/watches?status=active&amp;limit=2&amp;q=&amp;after=w1" in first
    assert 'data-key="w3"' in await shown(root, "/watches?status=active&limit=2&after=w1")
    assert 'data-key="w4"' in await shown(root, '/watches?limit=2&q="4" IS 100%25_')
    assert "No watch says that" in await shown(root, "/watches?q=1%25%25is")


async def test_hostile_words_are_text_on_every_page(site: Server, root: httpx.AsyncClient) -> None:
    site.bench.dials.says["a"] = finding(HOSTILE)
    written = {**WATCH, "id": "evil", "condition": HOSTILE, "run_prompt": HOSTILE, "session": HOSTILE}
    assert (await root.post("/api/watches", json=written)).status_code == 201
    await root.post("/api/watches/evil/check")
    for path in ("/watches", "/watches/evil", f"/watches?q={HOSTILE[:20]}"):
        text = await shown(root, path)
        assert "<script>alert" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "alert(1)" in text


@pytest.mark.parametrize(
    ("who", "may", "may_not"),
    [
        ("root", ("Approve", "Reject", "Cancel", "Clear"), ()),
        ("alice", ("Cancel",), ("Approve", ">Edit<")),
        ("carol", ("Cancel",), ("Approve",)),
    ],
)
async def test_buttons_are_for_who_may(site: Server, who: str, may: tuple[str, ...], may_not: tuple[str, ...]) -> None:
    async with site.client("alice") as alice, site.client(who) as client:
        command = {"type": "command", "command": "true"}
        assert (await alice.post("/api/watches", json={**WATCH, "id": "w", "verifier": command})).status_code == 201
        text = await shown(client, "/watches/w")
        assert [word for word in may if f">{word}</button>" not in text] == []
        assert [word for word in may_not if word in text] == []


@pytest.mark.parametrize(("who", "status"), [("eve", 404), ("bob", 404)])
async def test_who_may_not_know_of_a_watch_finds_none(site: Server, who: str, status: int) -> None:
    async with site.client("alice") as alice, site.client(who) as client:
        await alice.post("/api/watches", json={**WATCH, "id": "w"})
        assert (await client.get("/watches/w")).status_code == status
        assert "a is on" not in await shown(client, "/watches")
        assert "a is on" not in await shown(client, "/watches?q=a")


async def test_a_token_for_runs_alone_sees_no_page_of_watches(site: Server) -> None:
    async with site.client(token="reader-of-root") as reader:
        for path in ("/watches", "/watches/w", "/watches/new", "/watches/settings"):
            assert (await reader.get(path)).status_code == 403, path


async def test_watches_that_are_named_like_pages_have_pages_too(root: httpx.AsyncClient) -> None:
    for name in ("new", "settings"):
        await root.post("/api/watches", json={**WATCH, "id": name})
        assert f'href="/watches/{name}/"' in await shown(root, "/watches")
        assert f"<code>{name}</code>" in await shown(root, f"/watches/{name}/")


async def test_settings_can_be_read_by_all_and_changed_by_operators(site: Server, root: httpx.AsyncClient) -> None:
    await root.patch("/api/watch-settings", json={"interval": 45})
    assert "Set here by root" in await shown(root, "/watches/settings")
    async with site.client("alice") as alice:
        text = await shown(alice, "/watches/settings")
    assert "<strong>45</strong>" in text
    assert "Operators change them" in text
    assert "by root" not in text
    assert 'type="submit">Save' not in text
