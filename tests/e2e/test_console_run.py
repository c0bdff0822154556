"""The console's pages of one run, in a real browser."""

from pathlib import Path

from playwright.sync_api import Browser
from tests.support.browser import a_page, log_in
from tests.support.serving import a_site, policy


def test_somebody_with_a_token_logs_in(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "runs").mkdir()
    with a_site(tmp_path / "runs", policy_file=policy(tmp_path / "policy.toml")) as site, a_page(browser) as page:
        log_in(page, site.address, "root")
        assert page.get_by_role("heading", name="Runs").is_visible()
        page.get_by_role("button", name="Log out").click()
        assert page.get_by_label("Token").is_visible()
