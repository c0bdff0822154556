"""A whole report, as HTML and as Markdown; ``HANKWATCH_UPDATE_GOLDEN=1`` writes the expected files anew."""

import os
from pathlib import Path

import pytest
from tests.support.golden import FOLDER
from tests.support.hostile import facts_of
from tests.support.stories import eventful_story

from hankwatch import __version__
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.markdown import markdown
from hankwatch.pages.render import html


@pytest.fixture
def facts() -> RunFacts:
    return facts_of(*eventful_story(), "eventful")


def assert_page(name: str, page: str) -> None:
    path: Path = FOLDER / name
    page = page.replace(__version__, "<version>")
    if os.environ.get("HANKWATCH_UPDATE_GOLDEN"):
        path.write_text(page, encoding="utf-8")
    assert page.splitlines() == path.read_text(encoding="utf-8").splitlines()


def test_the_html_of_an_eventful_run_is_as_expected(facts: RunFacts) -> None:
    assert_page("report.html", html(facts))


def test_the_markdown_of_an_eventful_run_is_as_expected(facts: RunFacts) -> None:
    assert_page("report.md", markdown(facts))
