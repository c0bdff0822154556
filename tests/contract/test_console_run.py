"""The console's pages of one run, as a browser without a script gets them."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.hostile import NASTIES, hostile_story
from tests.support.serving import Server, a_server, execution, journal_of, lines, policy
from tests.support.stories import RUN, Story, eventful_story

from hankwatch.stream.lock import OwnerLock, lock_path

NAME = "1796000000000-a"
PAGES = ("", "/events", "/sentinels")


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Server]:
    """Two executions: an eventful run, and 250 messages of no run of ours."""
    story, calls = eventful_story()
    story.write(tmp_path / "runs" / NAME, calls)
    execution(tmp_path / "runs", "1795000000000-b", lines(*(f"message {n}" for n in range(250))))
    async with a_server(tmp_path / "runs") as server:
        yield server


async def get(site: Server, path: str, status: int = 200) -> str:
    async with site.client() as client:
        answer = await client.get(path, follow_redirects=True)
    assert answer.status_code == status, answer.text[:300]
    assert answer.headers["content-type"].startswith("text/html")
    return answer.text


def rows(page: str) -> list[int]:
    """The cursors of the rows, as they stand."""
    return [int(cursor) for cursor in re.findall(r'id="event-(\d+)"', page)]


def link(page: str, words: str) -> str:
    """Where the link with those words leads."""
    found = re.search(rf'<a href="([^"]*)"[^>]*>{re.escape(words)}</a>', page)
    assert found is not None, words
    return found[1].replace("&amp;", "&")


def first_event(page: str) -> str:
    found = re.search(r'class="event-row[^>]*href="([^"]*)"', page)
    assert found is not None
    return found[1].replace("&amp;", "&")


async def test_the_newest_events_come_first_and_older_ones_are_one_link_away(site: Server) -> None:
    page = await get(site, "/runs/1795000000000-b/events")
    seen, windows = rows(page), 1
    while "↓ Older" in page:
        page = await get(site, link(page, "↓ Older"))
        seen += rows(page)
        windows += 1
    assert windows == 3
    assert len(seen) == 250
    assert seen == sorted(set(seen), reverse=True)
    while "↑ Newer" in page:
        assert "newer event" in page
        page = await get(site, link(page, "↑ Newer"))
    assert rows(page) == seen[:100]


async def test_an_older_window_stays_as_it_is_and_counts_what_came_since(site: Server, tmp_path: Path) -> None:
    older = link(await get(site, "/runs/1795000000000-b/events"), "↓ Older")
    before = await get(site, older)
    assert "100 newer events" in before
    with journal_of(tmp_path / "runs" / "1795000000000-b").open("ab") as journal:
        journal.write(lines("later", "and later", start=900))
    after = await get(site, older)
    assert rows(after) == rows(before)
    assert "102 newer events" in after
    assert "and later" in await get(site, "/runs/1795000000000-b/events")


CHOICES = {
    "type=watchdog.nudge": 1,
    "type=watchdog.nudge&type=watchdog.interrupt": 2,
    "type=watchdog.nudge,watchdog.interrupt": 2,
    "type=tool": 0,
    "text=NO+SPACE+left": 1,
    "text=space+nowhere": 0,
    "codon=plan&type=assistant.action": 6,
    "codon=plan&text=part+3": 1,
    "text=%22isFinal%22%3Atrue": 1,
    "type=&codon=&text=+": 100,
}


async def test_events_are_chosen_by_type_codon_and_text(site: Server) -> None:
    for query, count in CHOICES.items():
        assert len(rows(await get(site, f"/runs/{NAME}/events?{query}"))) == count, query


async def test_text_is_found_however_the_journal_spells_it(tmp_path: Path) -> None:
    spelled = lines('ÄRGER: "off"', "a\\b")
    escaped = json.dumps({**json.loads(lines("ärger", start=7)), "timestamp": "2026-11-30T17:00:33.123Z"}).encode()
    execution(tmp_path / "runs", NAME, spelled + escaped + b"\n")
    async with a_server(tmp_path / "runs") as site:
        assert len(rows(await get(site, f"/runs/{NAME}/events?text=%C3%A4rger"))) == 2
        assert len(rows(await get(site, f"/runs/{NAME}/events?text=%22off%22"))) == 1
        assert len(rows(await get(site, f"/runs/{NAME}/events?text=a%5Cb"))) == 1


async def test_an_event_has_a_page_with_all_it_says_and_what_it_led_to(site: Server) -> None:
    listed = await get(site, f"/runs/{NAME}/events?text=at+part+2&type=assistant.action")
    page = await get(site, first_event(listed))
    assert "I look at part 2 of the tree." in page
    assert "narrator #1</a>" in page
    assert rows(await get(site, link(page, "← In the stream")))[0] == rows(listed)[0]
    whole = link(page, "The whole event as JSON")
    async with site.client() as client:
        [event] = (await client.get(whole)).json()["events"]
    assert event["cursor"] == rows(listed)[0]
    assert event["id"] in page


async def test_one_goes_from_event_to_event(site: Server) -> None:
    page = await get(site, first_event(await get(site, "/runs/1795000000000-b/events")))
    for _ in range(3):
        page = await get(site, link(page, "↓ Older"))
    assert "message 246" in page
    assert "message 247" in await get(site, link(page, "↑ Newer"))


async def test_an_event_longer_than_a_page_says_what_is_cut(tmp_path: Path) -> None:
    execution(tmp_path / "runs", NAME, lines("x" * 1_000_000))
    async with a_server(tmp_path / "runs") as site:
        listed = await get(site, f"/runs/{NAME}/events")
        page = await get(site, first_event(listed))
    assert len(listed) < 20_000
    assert len(page) < 230_000
    assert "more characters" in page


async def test_what_is_no_cursor_of_the_run_is_a_page_that_says_so(site: Server) -> None:
    for cursor in (0, 5, 10**9):
        assert f"no event of this run ends at {cursor}" in await get(site, f"/runs/{NAME}/events/{cursor}", 404)


@pytest.mark.parametrize("path", ["/?limit=many", "/?limit=0", f"/runs/{NAME}/events?until=x", "/runs/latest/events/x"])
async def test_an_address_that_cannot_be_read_is_a_page_that_says_so(site: Server, path: str) -> None:
    page = await get(site, path, 422)
    assert "Input should be" in page
    assert 'href="/"' in page


async def test_what_is_no_page_is_said_on_a_page_to_browsers_alone(site: Server) -> None:
    async with site.client() as client:
        browsing = await client.get("/no<b>where", headers={"Accept": "text/html,*/*"})
        program = await client.get("/nowhere")
        of_rest = await client.get("/api/nowhere", headers={"Accept": "text/html"})
    assert (browsing.status_code, browsing.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "there is no page /no&lt;b&gt;where" in browsing.text
    assert [answer.headers["content-type"] for answer in (program, of_rest)] == ["application/problem+json"] * 2


async def test_of_a_run_without_events_nothing_is_drawn(tmp_path: Path) -> None:
    execution(tmp_path / "runs", NAME, b"")
    async with a_server(tmp_path / "runs") as site:
        page = await get(site, f"/runs/{NAME}")
        runs = await get(site, "/")
    assert "no event yet" in page
    assert "no event yet" in runs
    assert "timeline-title" not in page
    assert "Nothing needs attention" not in page
    assert runs.count(NAME) == 2  # its address and its name: once, not again as its id


async def test_many_codons_stand_in_a_list_that_scrolls(tmp_path: Path) -> None:
    story = Story()
    story.begin()
    for number in range(21):
        story.start_codon(f"codon-{number}")
        story.end_codon(f"codon-{number}", cost=None)
    story.write(tmp_path / "runs" / NAME)
    async with a_server(tmp_path / "runs") as site:
        page = await get(site, f"/runs/{NAME}")
    assert re.search(r'class="tree root long" id="codon-tree" tabindex="0" aria-label', page)
    assert "· cost unknown ·" in page


async def test_a_run_that_has_written_nothing_yet_has_its_pages(tmp_path: Path) -> None:
    (tmp_path / "runs" / NAME / ".hankweave").mkdir(parents=True)
    async with a_server(tmp_path / "runs") as site:
        for page in (*PAGES, "/events?after=5", "/events?until=99999", "/events?text=x"):
            assert "<h1>" in await get(site, f"/runs/{NAME}{page}")
        await get(site, f"/runs/{NAME}/events/7", 404)


async def test_sentinels_stand_side_by_side_with_the_events_that_caused_their_fires(site: Server) -> None:
    page = await get(site, f"/runs/{NAME}/sentinels")
    assert page.count('class="sentinel-lane"') == 2
    assert "The agent reads the tree, part by part." in page
    assert "I look at part 0 of the tree." in page
    assert "and 3 more events" in page
    assert "overloaded (529)" in page
    assert "4 dropped" in page
    alone = await get(site, f"/runs/{NAME}/sentinels?sentinel=narrator")
    assert alone.count('class="sentinel-lane"') == 1
    assert "I look at part 5 of the tree." in alone
    assert "No sentinel of this run has that name." in await get(site, f"/runs/{NAME}/sentinels?sentinel=nobody")


async def test_a_fire_is_open_until_it_is_answered(tmp_path: Path) -> None:
    story = Story()
    story.begin()
    story.start_codon("build")
    story.load("build", "narrator")
    story.trigger("build", "narrator", [story.say("build", "hello")])
    story.write(tmp_path / "runs" / NAME)
    async with a_server(tmp_path / "runs") as site:
        page = await get(site, f"/runs/{NAME}/sentinels")
    assert "1 open" in page
    assert "never answered" in page


async def test_a_live_run_marks_the_codon_at_work_and_what_waits_for_an_answer(tmp_path: Path) -> None:
    story = Story()
    story.begin()
    story.start_codon("plan")
    story.end_codon("plan", "failed")
    story.start_codon("plan")
    story.load("plan", "narrator")
    story.at(3_000).trigger("plan", "narrator", [story.say("plan", "hello")])
    root = story.write(tmp_path / "runs" / NAME)
    lock = OwnerLock.acquire(lock_path(journal_of(root)))
    try:
        async with a_server(tmp_path / "runs") as site:
            page = await get(site, f"/runs/{NAME}")
            assert page.count('aria-current="step"') == 1
            assert "Attempt 2" in page
            assert '● running</span> <span class="light">3.0 s so far' in " ".join(page.split())
            assert f'href="/runs/{NAME}/sentinels#sentinel-1"' in page
            assert "waiting for its answer" in await get(site, f"/runs/{NAME}/sentinels")
    finally:
        lock.release()
    async with a_server(tmp_path / "runs") as site:
        assert "was running" in await get(site, f"/runs/{NAME}")


async def test_a_report_is_shown_as_the_journal_has_it(site: Server) -> None:
    report = link(await get(site, f"/runs/{NAME}/sentinels?sentinel=narrator"), "Report")
    page = await get(site, report)
    assert "The agent reads the tree, part by part." in page
    assert "1 entry" in page
    await get(site, f"/runs/{NAME}/reports/none.md", 404)


async def test_of_several_runs_a_page_shows_the_one_that_it_names(tmp_path: Path) -> None:
    first, second = Story(), Story("946684900000-second")
    first.begin()
    first.say("build", "of the first")
    second.begin()
    second.say("build", "of the second")
    first.events += second.events
    first.write(tmp_path / "runs" / NAME)
    async with a_server(tmp_path / "runs") as site:
        latest = await get(site, f"/runs/{NAME}/events")
        assert ("of the first" in latest, "of the second" in latest) == (False, True)
        assert "of the second" in await get(site, "/runs/latest/events")
        earlier = await get(site, f"/runs/{RUN}/events")
        assert ("of the first" in earlier, "of the second" in earlier) == (True, False)
        await get(site, f"/runs/{RUN}/events/{rows(latest)[0]}", 404)


@pytest.mark.parametrize("text", [NASTIES[1], NASTIES[3], NASTIES[7], NASTIES[8]])
async def test_text_of_events_stays_text(tmp_path: Path, text: str) -> None:
    story, calls = hostile_story(text)
    story.write(tmp_path / "runs" / NAME, calls)
    async with a_server(tmp_path / "runs") as site:
        pages = [await get(site, f"/runs/{NAME}{page}") for page in PAGES]
        pages.append(await get(site, f"/runs/{NAME}/events?text=%3Cscript%3E&codon=%22%3E&type=%27"))
        pages += [await get(site, f"/runs/{NAME}/events/{cursor}") for cursor in rows(pages[1])[:12]]
    for page in pages:
        assert page.count("<script") == 1
        assert not re.search(r"<(img|svg onload|iframe)|\son\w+=\"|style=\"|javascript:alert\(1\)\"", page)
        assert not set(page) & set("\x1b\x07\x9b\u202e\u2066")


async def test_only_who_may_see_runs_sees_a_page_of_one(tmp_path: Path) -> None:
    story, calls = eventful_story()
    story.write(tmp_path / "runs" / NAME, calls)
    cursor = sum(len(line) for line in journal_of(tmp_path / "runs" / NAME).read_bytes().splitlines(keepends=True)[:1])
    paths = [*PAGES, f"/events/{cursor}", "/reports/.hankweave/sentinels/outputs/narrator/narrator.md"]
    async with a_server(tmp_path / "runs", policy_file=policy(tmp_path / "policy.toml")) as site:
        for path in paths:
            statuses = {}
            for who, token in (
                ("root", None),
                ("bob", None),
                ("eve", None),
                ("carol", None),
                ("reader", "reader-of-bob"),
            ):
                async with site.client(who, token=token) as client:
                    statuses[who] = (await client.get(f"/runs/{NAME}{path}")).status_code
            assert statuses == {"root": 200, "bob": 200, "eve": 404, "carol": 404, "reader": 200}, path
            async with site.client() as client:
                nobody = await client.get(f"/runs/{NAME}{path}")
            assert (nobody.status_code, nobody.headers["location"].partition("?")[0]) == (303, "/login")
