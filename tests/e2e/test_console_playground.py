"""The console's playground in a real browser: edit a config, see at once what would fire on this run."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect
from tests.support.browser import PHONE, a_page, sideways_px
from tests.support.serving import Server, a_site, demo, journal_of

TALLY = "/runs/latest/playground?sentinel=tool-tally"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("playground") / "executions"
    demo(folder)
    with a_site(folder) as made:
        yield made


def replace(page: Page, before: str, after: str) -> None:
    """As somebody who selects a part of the text and types over it."""
    field = page.get_by_label("Config")
    field.evaluate(
        "(field, part) => { const at = field.value.indexOf(part); field.focus();"
        " field.setSelectionRange(at, at + part.length); }",
        before,
    )
    page.keyboard.insert_text(after)


def said(page: Page) -> Locator:
    """What would fire, in words."""
    return page.locator(".play-said")


def test_an_edit_is_answered_at_once(page: Page, site: Server) -> None:
    page.goto(site.address + TALLY)
    result = page.locator("#play-result")
    expect(said(page)).to_have_text("Would have fired 2 ×, at no cost")
    page.evaluate("window.isSamePage = true")

    replace(page, '"threshold": 3', '"threshold": 2')
    expect(said(page)).to_have_text("Would have fired 3 ×, at no cost")
    expect(page.get_by_text(", edited")).to_be_visible()

    failed = '"conditions": [{"path": "isError", "operator": "equals", "value": true}]'
    replace(page, '"on": ["tool.result"]', f'"on": ["tool.result"], {failed}')
    expect(said(page)).to_have_text("Would have fired 2 ×, at no cost")

    page.get_by_label("near misses").check()
    expect(result).to_contain_text("3 failed isError equals true: found false × 3")
    page.get_by_label("prompts").check()
    result.get_by_text("Prompt", exact=True).first.click()
    expect(result.locator("details[open] pre")).to_contain_text("2 tool results:")

    page.get_by_role("button", name="Begin again").click()
    expect(page.get_by_text(", edited")).to_be_hidden()
    assert page.evaluate("window.isSamePage")


def test_a_fault_is_shown_beside_its_line_with_what_would_be_right(page: Page, site: Server) -> None:
    page.goto(site.address + TALLY)
    marks = page.locator("[data-play-lines] span.error")
    faults = page.get_by_role("list", name="Faults and lints").get_by_role("listitem")
    replace(page, '"builtin/digest",', '"builtin/digest"')
    expect(faults).to_contain_text(["line 9"])
    expect(marks).to_have_text("9")

    replace(page, '"model": "builtin/digest"', '"modle": "builtin/digest",')
    fault = faults.filter(has_text="'modle'")
    expect(fault).to_contain_text("line 8")
    expect(fault).to_contain_text("did you mean 'model'?")
    fault.get_by_role("button", name="Go to it").click()
    expect(page.get_by_label("Config")).to_be_focused()

    replace(page, '"modle"', '"model"')
    expect(said(page)).to_have_text("Would have fired 2 ×, at no cost")
    expect(marks).to_have_count(0)


def test_it_is_worked_with_the_keyboard_alone(page: Page, site: Server) -> None:
    page.goto(f"{site.address}/runs/latest")
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.wait_for_url("**/playground")

    field = page.get_by_label("Config")
    field.focus()
    before = field.input_value()
    page.keyboard.press("Tab")
    expect(field).to_be_focused()
    assert len(field.input_value()) == len(before) + 2
    page.keyboard.press("Escape")
    expect(field).not_to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Begin again")).to_be_focused()

    page.get_by_label("Begin with").select_option("stock:narrator")
    page.wait_for_url("**/playground?sentinel=stock*")
    expect(page.get_by_label("Config")).to_have_value(re.compile('"id": "narrator"'))


def test_the_answer_follows_a_run_that_goes_on(page: Page, tmp_path: Path) -> None:
    journal = journal_of(demo(tmp_path / "executions"))
    lines = journal.read_text().splitlines(keepends=True)
    results = [line for line in lines if '"type":"tool.result"' in line]
    journal.write_text("".join(line for line in lines if "RunCompleted" not in line))
    with a_site(tmp_path / "executions") as site:
        page.goto(site.address + TALLY)
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        replace(page, '"threshold": 3', '"threshold": 2')
        expect(said(page)).to_have_text("Would have fired 3 ×, at no cost")
        with journal.open("a") as file:
            file.writelines(line.replace('"id":"0', '"id":"1', 1) for line in results[:4])
        expect(said(page)).to_have_text("Would have fired 5 ×, at no cost")
        expect(page).to_have_title(re.compile("demo"))
        expect(page.get_by_label("Config")).to_be_focused()
        page.goto("about:blank")


def test_only_the_latest_answer_counts(page: Page, site: Server) -> None:
    page.goto(site.address + TALLY)
    held: list[Route] = []
    page.route("**/playground", lambda route: held.append(route) if not held else route.continue_())
    with page.expect_request("**/playground"):
        replace(page, '"threshold": 3', '"threshold": 1')
    with page.expect_response("**/playground"):
        replace(page, '"threshold": 1', '"threshold": 6')
    expect(page.locator("#play-result")).to_contain_text("Would have fired 1 ×")
    held[0].abort()


def test_it_is_read_on_a_phone_and_without_a_script(browser: Browser, site: Server) -> None:
    address = f"{site.address}{TALLY}&where=true"
    with a_page(browser, **PHONE) as phone:
        phone.goto(address)
        expect(phone.get_by_text("Would have fired 2 ×, at no cost")).to_be_visible()
        assert sideways_px(phone) <= 0
    with a_page(browser, java_script_enabled=False) as plain:
        plain.goto(address)
        expect(plain.get_by_text("Would have fired 2 ×, at no cost")).to_be_visible()
        expect(plain.get_by_text("Near misses").last).to_be_visible()
        plain.get_by_label("Begin with").select_option("error-streak")
        plain.get_by_role("button", name="Show").click()
        expect(plain.get_by_text("Would have fired 1 ×, at no cost")).to_be_visible()
