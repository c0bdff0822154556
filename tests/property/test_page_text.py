"""Whatever was recorded is text on a page: it makes no element, no attribute, no link, and leaves no code span."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hostile import NASTIES, assert_stays_code, facts_of, hostile_story

from hankwatch.pages.markdown import LIMIT_CHARS, markdown
from hankwatch.pages.render import html

MARK = "recorded-text"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")

texts = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(["<", ">", "&", '"', "'", "`", "|", "\\", "@a", "#1", "\n", "a", "](", "![", "\x1b[", "-", "/"])
    ).map("".join),
).map(lambda text: MARK + text)


class Elements(HTMLParser):
    """Every element with its attributes, as a browser's tokeniser sees them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(attrs)))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")


def elements(page: str) -> list[tuple[str, tuple[tuple[str, str | None], ...]]]:
    parser = Elements()
    parser.feed(page)
    parser.close()
    return parser.found


def check_html(text: str) -> None:
    page = html(facts_of(*hostile_story(text), text))
    assert UNSEEN.search(page) is None
    found = elements(page)
    # The same page with harmless text of as many lines has the same elements.
    harmless = "\n".join(MARK + "x" * len(line) for line in text.replace("\r\n", "\n").split("\n"))
    expected = elements(html(facts_of(*hostile_story(harmless), harmless)))
    assert {tag for tag, _ in found} <= {tag for tag, _ in expected} | {"span"}
    assert [tag for tag, _ in found if tag not in {"span", "p"}] == [
        tag for tag, _ in expected if tag not in {"span", "p"}
    ]
    for _, attributes in found:
        for name, value in attributes:
            assert not name.startswith("on")
            assert MARK not in (value or "")
            assert name not in {"src", "srcset", "action", "formaction", "style"}
            if name == "href":
                assert re.fullmatch(r"#[a-z]+(-\d+)?|data:,", value or "")


def check_markdown(text: str) -> None:
    comment = markdown(facts_of(*hostile_story(text), text))
    assert len(comment) <= LIMIT_CHARS
    assert UNSEEN.search(comment) is None
    assert_stays_code(comment, MARK)


@pytest.mark.parametrize("nasty", NASTIES)
def test_text_that_tries_hard_stays_text(nasty: str) -> None:
    check_html(MARK + nasty)
    check_markdown(MARK + nasty)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(texts)
def test_no_recorded_text_becomes_an_element_or_an_attribute(text: str) -> None:
    check_html(text)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(texts)
def test_no_recorded_text_becomes_markup_of_a_pull_request(text: str) -> None:
    check_markdown(text)
