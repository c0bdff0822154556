"""A command line of its own for each test, and one finished demo run for all that only look."""

from pathlib import Path

import pytest
from tests.support.browser import browser, page
from tests.support.cli import Cli

__all__ = ["browser", "cli", "looker", "page"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Commands in an empty folder with an empty home."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return Cli(tmp_path / "home", tmp_path / "work")


@pytest.fixture(scope="session")
def looker(tmp_path_factory: pytest.TempPathFactory) -> Cli:
    """Commands in a home where one demo run has ended; for tests that change nothing there."""
    root = tmp_path_factory.mktemp("demo")
    (root / "home").mkdir()
    (root / "work").mkdir()
    cli = Cli(root / "home", root / "work")
    cli.demo()
    return cli
