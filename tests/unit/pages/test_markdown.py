"""Markdown for pull requests: code spans and fences that nothing gets out of, and a length that always fits."""

import pytest
from tests.support.hostile import assert_stays_code, facts_of
from tests.support.stories import Story

from hankwatch.pages.markdown import LIMIT_CHARS, cell, fence, html_code, markdown, span
from hankwatch.pages.visible import Excerpt


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "`plain`"),
        ("a `b` c", "`` a `b` c ``"),
        ("``", "``` `` ```"),
        ("two\nlines\tand\ttabs", "`two lines and tabs`"),
        ("\x1b[31m", "`⟨ESC⟩[31m`"),
        ("", ""),
        ("x" * 300, "`" + "x" * 199 + "…`"),
    ],
)
def test_a_span_is_one_line_of_code(text: str, shown: str) -> None:
    assert span(text) == shown


def test_a_cell_has_no_bar() -> None:
    assert cell("a|b") == "`a¦b`"


def test_a_fence_is_longer_than_any_in_its_text_and_counts_what_it_leaves_out() -> None:
    assert fence(Excerpt("```\ncode\n```"), 100) == "````text\n```\ncode\n```\n````"
    assert fence(Excerpt("abcdef", 4), 3) == "```text\nabc\n… 7 more characters\n```"


def test_text_in_an_html_block_is_escaped() -> None:
    assert html_code("<b>&@x\n") == "<code>&lt;b&gt;&amp;@x</code>"


@pytest.mark.parametrize("hostile", ["`" * 150 + "@someone", "&<" * 100 + "@someone", "|" * 200 + "@someone"])
def test_what_does_not_fit_is_cut_between_lines(hostile: str) -> None:
    story = Story()
    story.begin()
    for n in range(60):
        story.start_codon(f"{n}{hostile}")
        story.end_codon(f"{n}{hostile}", "failed", failureReason={"type": hostile, "message": hostile})
        story.fire("build", f"{n}{hostile}", [story.say("build", hostile)], hostile)
    comment = markdown(facts_of(story, [], hostile))
    assert len(comment) <= LIMIT_CHARS
    assert_stays_code(comment, "@someone")
