"""The console's pages of one run, in a real browser."""

import re
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from tests.support.browser import PHONE, a_page, log_in, sideways_px
from tests.support.hostile import NASTIES, hostile_story
from tests.support.serving import a_site, execution, journal_of, lines, policy
from tests.support.stories import Story, eventful_story

from hankwatch.stream.lock import OwnerLock, lock_path

NAME = "1796000000000-a"
TABS = ("", "/events", "/sentinels")
_LOOKED_AT = """(is) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => !is });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_somebody_with_a_token_logs_in(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "runs").mkdir()
    with a_site(tmp_path / "runs", policy_file=policy(tmp_path / "policy.toml")) as site, a_page(browser) as page:
        log_in(page, site.address, "root")
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()


def test_one_walks_from_a_run_to_an_event_its_fire_and_the_report(tmp_path: Path, page: Page) -> None:
    story, calls = eventful_story()
    story.write(tmp_path / "runs" / NAME, calls)
    with a_site(tmp_path / "runs") as site:
        page.goto(f"{site.address}/runs/{NAME}")
        expect(page.get_by_role("img", name="Cost over time")).to_be_visible()
        expect(page.locator(".tree-codon")).to_have_count(4)
        page.get_by_role("navigation", name="Run").get_by_role("link", name="Events").click()
        page.wait_for_url("**/events")
        page.keyboard.press("/")
        page.keyboard.type("AT PART 3")
        page.keyboard.press("Enter")
        page.wait_for_url("**text=AT+PART+3*")
        page.get_by_text("Types").click()
        page.get_by_label("assistant.action").check()
        page.get_by_role("button", name="Filter").click()
        row = page.locator(".event-row")
        expect(row).to_have_count(1)
        row.click()
        expect(page.locator("pre")).to_contain_text("I look at part 3 of the tree.")
        page.go_back()
        expect(row).to_have_count(1)
        row.click()
        page.get_by_role("link", name="narrator #1").click()
        page.wait_for_url("**/sentinels?sentinel=narrator#fire-*")
        page.get_by_role("link", name="Report").click()
        expect(page.locator(".report-text")).to_contain_text("The agent reads the tree, part by part.")
        page.get_by_role("link", name="← narrator").click()
        page.get_by_role("link", name="← All sentinels").click()
        expect(page.locator(".sentinel-lane")).to_have_count(2)
        page.get_by_role("navigation", name="Run").get_by_role("link", name="Overview").click()
        page.get_by_role("link", name="error-streak", exact=True).click()
        page.wait_for_url("**/sentinels#sentinel-2")


def test_keys_lead_through_the_pages_of_a_run(tmp_path: Path, page: Page) -> None:
    story, calls = eventful_story()
    story.write(tmp_path / "runs" / NAME, calls)
    with a_site(tmp_path / "runs") as site:
        page.goto(f"{site.address}/runs/{NAME}")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        page.keyboard.press("Escape")
        for key, tab in (("s", "/sentinels"), ("e", "/events")):
            page.keyboard.press("g")
            page.keyboard.press(key)
            page.wait_for_url(f"**/runs/{NAME}{tab}")
        for key in "jjk":
            page.keyboard.press(key)
        expect(page.locator(".event-row").first).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url("**/events/*")


def test_a_text_is_found_in_100_000_events(tmp_path: Path, page: Page) -> None:
    messages = (f"needle {n}" if n in {500, 99_000} else f"message {n}" for n in range(100_000))
    execution(tmp_path / "runs", NAME, lines(*messages))
    with a_site(tmp_path / "runs") as site:
        page.goto(f"{site.address}/runs/{NAME}/events")
        expect(page.locator(".event-row")).to_have_count(100)
        page.keyboard.press("/")
        page.keyboard.type("needle")
        page.keyboard.press("Enter")
        expect(page.locator(".event-row .gist")).to_have_text(["needle 99000", "needle 500"])
        page.locator(".event-row").last.click()
        page.get_by_role("link", name="← In the stream").click()
        expect(page.locator(".event-row .gist")).to_have_text(["needle 500"])
        page.get_by_role("link", name="All events").click()
        page.get_by_role("link", name="↓ Older").click()
        expect(page.locator(".event-row .gist").first).to_have_text("message 99899")
        expect(page.locator(".reading")).to_have_count(0)  # once all of the journal is folded


def test_new_events_appear_by_themselves_where_one_looks_at_the_newest(tmp_path: Path, browser: Browser) -> None:
    execution(tmp_path / "runs", NAME, lines(*(f"message {n}" for n in range(150))))
    journal = journal_of(tmp_path / "runs" / NAME)
    with a_site(tmp_path / "runs") as site, a_page(browser) as newest, a_page(browser) as older:
        newest.goto(f"{site.address}/runs/{NAME}/events")
        older.goto(f"{site.address}/runs/{NAME}/events")
        older.get_by_role("link", name="↓ Older").click()
        expect(older.locator(".event-row")).to_have_count(50)
        for page in (newest, older):
            expect(page.get_by_text("live", exact=True)).to_be_visible()
            page.evaluate("window.sameDocument = true")
        with journal.open("ab") as file:
            file.write(lines("at last", start=900))
        expect(newest.locator(".event-row").first).to_contain_text("at last")
        expect(newest.locator(".event-row.new")).to_have_count(1)
        expect(older.get_by_text("101 newer events")).to_be_visible()
        expect(older.locator(".event-row")).to_have_count(50)
        assert newest.evaluate("window.sameDocument")
        assert older.evaluate("window.sameDocument")


def test_a_page_misses_nothing_while_it_opens_its_stream_or_nobody_looks_at_it(
    tmp_path: Path, browser: Browser
) -> None:
    story = Story()
    story.begin()
    journal = journal_of(story.write(tmp_path / "runs" / NAME))

    def write(message: str, start: int) -> None:
        with journal.open("ab") as file:
            file.write(lines(message, start=start))

    def late(route: Route) -> None:
        write("before the stream", 10)
        route.continue_()

    refused = ("ERR_FAILED",)
    with a_site(tmp_path / "runs") as site, a_page(browser, excused=refused) as page, ExitStack() as stack:
        stack.callback(OwnerLock.acquire(lock_path(journal)).release)
        page.route("**/console/live*", late, times=1)
        page.goto(f"{site.address}/runs/{NAME}/events")
        expect(page.locator(".event-row").first).to_contain_text("before the stream")
        with page.expect_event("requestfailed"):  # the stream is given up
            page.evaluate(_LOOKED_AT, arg=False)
        write("while nobody looked", 20)
        page.evaluate(_LOOKED_AT, arg=True)
        expect(page.locator(".event-row").first).to_contain_text("while nobody looked")
        page.evaluate(_LOOKED_AT, arg=False)
        page.route("**/console/live*", lambda route: route.abort())
        page.evaluate(_LOOKED_AT, arg=True)
        expect(page.get_by_text("not connected since")).to_be_visible()
        expect(page.get_by_text("running when last seen")).to_be_visible()


@pytest.mark.parametrize("text", [NASTIES[1], NASTIES[2], NASTIES[7] + NASTIES[8], "<b>" + "W" * 1_000_000])
def test_hostile_text_of_events_is_only_text(tmp_path: Path, browser: Browser, text: str) -> None:
    story, calls = hostile_story(text[:5_000])
    story.add("info", message=text)
    story.write(tmp_path / "runs" / NAME, calls)
    with a_site(tmp_path / "runs") as site, a_page(browser, **PHONE) as page:
        for tab in TABS:
            page.goto(f"{site.address}/runs/{NAME}{tab}")
            assert_plain(page)
        page.goto(f"{site.address}/runs/{NAME}/events")
        page.locator(".event-row").first.click()
        expect(page.locator(".whole")).to_be_visible()
        assert_plain(page)


def assert_plain(page: Page) -> None:
    """Nothing of an event became an element, an attribute or a direction; the page is no wider than its window."""
    assert page.locator("script").count() == 1
    assert page.locator("img:not(svg), iframe, object, [onload], [onerror], [onmouseover]").count() == 0
    for address in page.locator("[href], [src]").evaluate_all(
        "all => all.map((one) => one.href?.baseVal ?? one.href ?? one.src)"
    ):
        assert re.match(r"http://127\.0\.0\.1:|/(?!/)|data:,|#", str(address)), address
    assert not set(page.content()) & set("\x1b\x07\x9b\u202e\u2066")
    assert sideways_px(page) == 0


def test_the_pages_of_a_run_can_be_read_on_a_phone_and_without_a_script(tmp_path: Path, browser: Browser) -> None:
    story, calls = eventful_story()
    story.write(tmp_path / "runs" / NAME, calls)
    with a_site(tmp_path / "runs") as site, a_page(browser, **PHONE, java_script_enabled=False) as page:
        page.goto(f"{site.address}/runs/{NAME}/events")
        page.get_by_label("Text").fill("overloaded")
        page.get_by_label("Text").press("Enter")
        expect(page.locator(".event-row")).to_have_count(1)
        page.locator(".event-row").click()
        expect(page.locator("pre")).to_contain_text("overloaded (529)")
        page.get_by_role("link", name="narrator", exact=True).click()
        expect(page.locator(".sentinel-lane")).to_have_count(1)
        page.get_by_role("link", name="Report").click()
        expect(page.locator(".report-text")).to_be_visible()
    with a_site(tmp_path / "runs") as site, a_page(browser, **PHONE) as page:
        for path in (*TABS, "/sentinels?sentinel=narrator"):
            page.goto(f"{site.address}/runs/{NAME}{path}")
            assert sideways_px(page) == 0, path
