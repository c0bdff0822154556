"""A real browser for tests of the console, where there is one; no page of ours may complain or look elsewhere."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, sync_playwright

CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_WAITS_MS: Final = 5_000
_GONE: Final = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET")
"""What the browser itself says when a test has ended its server under an open page."""
PHONE: Final[dict[str, Any]] = {"viewport": {"width": 390, "height": 800}, "has_touch": True}
"""Options of a page on a phone."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests of a module."""
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of nobody yet, 1280 px wide; see ``a_page``."""
    with a_page(browser) as opened:
        yield opened


@contextmanager
def a_page(browser: Browser, *, excused: tuple[str, ...] = (), **options: Any) -> Iterator[Page]:
    """A page with cookies of its own that may not complain, ask, or load anything from elsewhere.

    Args:
        browser: Where.
        excused: Words of complaints that the test provokes, such as ``404``.
        options: Of the browser's context: ``viewport``, ``java_script_enabled``, ``color_scheme`` and so on.
    """
    complaints: list[str] = []

    def said(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(f"console: {message.text}")

    def asked(dialog: Dialog) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def requested(request: Request) -> None:
        url = urlsplit(request.url)
        if url.scheme not in {"data", "blob"} and url.hostname != "127.0.0.1":
            complaints.append(f"request to elsewhere: {request.url}")

    context = browser.new_context(**options)
    context.set_default_timeout(_WAITS_MS)
    opened = context.new_page()
    opened.on("console", said)
    opened.on("pageerror", lambda error: complaints.append(f"page error: {error}"))
    if "dialog" not in excused:
        opened.on("dialog", asked)
    opened.on("request", requested)
    try:
        yield opened
    finally:
        context.close()
    unexcused = [one for one in complaints if not any(words in one for words in (*excused, *_GONE))]
    assert not unexcused, unexcused


def log_in(page: Page, address: str, who: str) -> None:
    """As a person does: open a page, be asked, give the token."""
    page.goto(address)
    page.get_by_label("Token").fill(f"secret-of-{who}")
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url(lambda address: "/login" not in address)


def sideways_px(page: Page) -> int:
    """How far the page is wider than its window."""
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width
