"""Whatever a prompt holds, looking into it ends with an answer."""

from hypothesis import given
from hypothesis import strategies as st

from hankwatch.hank.interpolation import shows_events
from hankwatch.hank.mentions import covers, written_by
from hankwatch.sentinels.prompts import Engine, Template

SAID = (
    "{{ }} {% %} {# #} <% <%= %> -%> it . events it.events [ ] ( ) ' \" for e in endfor set = endset macro if else | "
    "=> ` // /* */ \n const { }"
)
PIECES = st.sampled_from(SAID.split(" "))
TEMPLATES = st.lists(PIECES | st.text(max_size=3), max_size=30).map(" ".join)


@given(st.sampled_from(["jinja", "eta"]), TEMPLATES)
def test_any_text_shows_the_events_or_does_not(engine: Engine, source: str) -> None:
    assert shows_events(Template(engine, source)) in {True, False}


@given(TEMPLATES)
def test_a_prompt_that_never_says_events_shows_none(source: str) -> None:
    nowhere = source.replace("events", "").replace("it", "")
    for engine in ("jinja", "eta"):
        shown = shows_events(Template(engine, nowhere))
        assert not shown or (engine == "jinja" and ("{{" in nowhere or "{%" in nowhere))  # does not parse


@given(st.text(alphabet="ab/*?[]{},.", min_size=1, max_size=12), st.text(alphabet="ab/.", min_size=1, max_size=8))
def test_any_glob_takes_a_path_or_leaves_it(glob: str, path: str) -> None:
    assert covers(glob, path) in {True, False}


@given(st.lists(st.sampled_from(["write", "read", "not", "a/b.md", "and", ".", "must be updated"]), max_size=12))
def test_what_a_prompt_is_quoted_with_is_in_it(words: list[str]) -> None:
    prompt = " ".join(words)
    said = written_by(prompt, "a/b.md")
    assert said is None or said.lstrip("…") in prompt
