"""The console's watches, in a real browser: stories from arming to the toast."""

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect
from tests.e2e.test_serve import serving
from tests.support.browser import PHONE, a_page, log_in, sideways_px
from tests.support.cli import Cli
from tests.support.serving import Server, a_site, demo, policy

pytestmark = pytest.mark.slow
DIAL = {"type": "check", "name": "dial", "args": {"name": "a"}}
HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e done"


def arm(site: Server, who: str = "root", **fields: object) -> str:
    """By REST, as somebody else does; the id."""
    written = {"condition": "a is on", "verifier": DIAL, "session": "main", **fields}
    headers = {"Authorization": f"Bearer secret-of-{who}"}
    answer = httpx.post(f"{site.address}/api/watches", json=written, headers=headers)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_an_agents_proposal_is_approved_by_a_click_and_its_fire_is_told_without_loading_again(
    cli: Cli, tmp_path: Path, browser: Browser
) -> None:
    file = tmp_path / "deployed.json"
    guarded = serving(cli, "--policy", policy(tmp_path / "policy.toml"))
    with guarded as (address, _), a_page(browser, excused=("401",)) as page:
        page.goto(f"{address}/watches")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("not known")
        page.get_by_label("Token").fill("secret-of-root")
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{address}/watches")
        expect(page.get_by_text("No watch yet")).to_be_visible()

        proposed = httpx.post(
            f"{address}/api/watches",
            json={
                "condition": "the deploy is done",
                "verifier": {"type": "document", "path": str(file)},
                "interval_s": 5,
                "session": "main",
            },
            headers={"Authorization": "Bearer secret-of-agent"},
        )
        assert proposed.json()["status"] == "proposed", proposed.text
        page.get_by_role("link", name="the deploy is done").click()
        page.get_by_role("button", name="Approve").click()
        expect(page.locator("#watch-head")).to_contain_text("active")
        page.evaluate("window.notLoadedAgain = true")
        file.write_text("{}")
        toast = page.locator(".toast")
        expect(toast).to_contain_text("Met: the deploy is done", timeout=12_000)
        expect(toast).to_have_count(1)
        expect(page.locator("#watch-head")).to_contain_text("ended: satisfied")
        assert page.evaluate("window.notLoadedAgain")
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")


def test_a_watch_is_armed_in_the_form_edited_and_cancelled(tmp_path: Path, browser: Browser) -> None:
    demo(tmp_path / "runs")
    with a_site(tmp_path / "runs") as site, a_page(browser, excused=("422", "dialog")) as page:
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(f"{site.address}/watches")
        page.keyboard.press("g")
        page.keyboard.press("w")
        page.get_by_role("link", name="New watch").click()
        page.get_by_label("Path", exact=True).fill("report.md")
        page.get_by_label("Checked every").fill("soon")
        page.get_by_role("button", name="Arm").click()
        expect(page.locator("#condition-fault")).to_contain_text("condition")
        expect(page.locator("#interval_s-fault")).to_contain_text("interval_s")
        assert page.get_by_label("Path", exact=True).input_value() == "report.md"
        assert page.evaluate("document.activeElement.id") == "condition"

        page.get_by_label("Condition", exact=True).fill("the report is written")
        page.get_by_label("Checked every").fill("5m")
        page.get_by_label("Belongs to").select_option(index=1)
        page.get_by_role("button", name="Arm").click()
        page.wait_for_url("**/watches/the-report-is-written-*")
        expect(page.locator("#watch-head")).to_contain_text("every 5 min, document report.md")
        page.get_by_role("button", name="Check now").click()
        expect(page.locator("#watch-checks tbody tr")).to_have_count(1)

        page.get_by_label("Checked every").fill("10m")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#watch-head")).to_contain_text("every 10 min")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#watch-head")).to_contain_text("ended: cancelled")


def test_settings_are_changed_and_hold_for_the_next_watch(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "runs").mkdir()
    with a_site(tmp_path / "runs") as site, a_page(browser, excused=("422",)) as page:
        page.goto(f"{site.address}/watches/settings")
        page.get_by_label("Seconds between two checks").fill("1")
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#interval-fault")).to_contain_text("5")
        page.get_by_label("Seconds between two checks").fill("90")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text("Set here by operator")).to_be_visible()
        assert httpx.post(f"{site.address}/api/watches", json={"condition": "a", "verifier": DIAL}).json()[
            "interval_s"
        ] == pytest.approx(90)
        page.get_by_role("button", name="Reset to configured").click()
        expect(page.get_by_text("Set here by operator")).to_have_count(0)


def test_hostile_words_do_nothing_on_a_phone_and_without_the_script(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "runs").mkdir()
    file = policy(tmp_path / "policy.toml")
    with a_site(tmp_path / "runs", policy_file=file) as site:
        watch = arm(site, condition=HOSTILE, run_prompt=HOSTILE)
        with a_page(browser, **PHONE) as phone:
            log_in(phone, site.address, "root")
            for path in ("/watches", f"/watches/{watch}", "/watches/new", "/watches/settings"):
                phone.goto(site.address + path)
                assert sideways_px(phone) == 0, path
        with a_page(browser, java_script_enabled=False) as plain:
            log_in(plain, site.address, "root")
            plain.goto(f"{site.address}/watches?q=done")
            expect(plain.get_by_text("onerror=alert(1)>⟨ESC⟩")).to_be_visible()
            plain.goto(f"{site.address}/watches/{watch}")
            expect(plain.get_by_role("heading", name="Checks")).to_be_visible()
            assert plain.get_by_role("button", name="Cancel").count() == 0
        with a_page(browser, excused=("404",)) as other:
            log_in(other, site.address, "eve")
            other.goto(f"{site.address}/watches")
            expect(other.get_by_text("No watch yet")).to_be_visible()
            other.goto(f"{site.address}/watches/{watch}")
            expect(other.get_by_role("heading", name="Not found")).to_be_visible()
