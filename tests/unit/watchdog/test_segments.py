"""Where sentences end in a stream (spec watchdog 5.1)."""

import pytest

from hankwatch.watchdog.segments import Segmenter


def cut(text: str, *, fences: bool = True) -> list[str]:
    segmenter = Segmenter(fences=fences)
    return [segment.text.strip() for segment in [*segmenter.feed(text), *segmenter.flush(end=True)]]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three? Four… Five", ["One.", "Two!", "Three?", "Four…", "Five"]),
        ('He said "no." Then (yes.) he left.', ['He said "no."', "Then (yes.)", "he left."]),
        ("Really?! Yes... So", ["Really?!", "Yes...", "So"]),
        ("See file.py and v1.2 of it", ["See file.py and v1.2 of it"]),
        ("1. open it\n2. close it", ["1. open it", "2. close it"]),
        ("It is 42. Then 43.", ["It is 42.", "Then 43."]),
        ("Use e.g. this, cf. that, by J. Doe et al. only", ["Use e.g. this, cf. that, by J. Doe et al. only"]),
        ("一。二！三？四；五", ["一。", "二！", "三？", "四；", "五"]),
        ("他说：「好。」然后走了。再见", ["他说：「好。」然后走了。", "再见"]),
        ("真的吗？！是的", ["真的吗？！", "是的"]),
        ("no end\nnor here", ["no end", "nor here"]),
        ("a\r\nb", ["a", "b"]),
    ],
)
def test_a_sentence_ends_where_it_does(text: str, sentences: list[str]) -> None:
    assert cut(text) == sentences


@pytest.mark.parametrize(
    "text",
    [
        "| a cell. | another cell |",
        "a cell | another cell | a third",
        "====",
        "!!! ...",
        "    indented = code. Here",
        "\tindented code",
        "if (x) {",
        "}",
        "x = y;",
        "call(",
        "[1, 2,",
        "value =",
    ],
)
def test_a_structural_line_yields_nothing(text: str) -> None:
    assert cut(f"{text}\nIt goes on.") == ["It goes on."]
    assert cut(text) == []


@pytest.mark.parametrize("item", ["    - an item of a list", "    1. an item of a list", "\t* an item"])
def test_an_indented_list_item_is_no_code(item: str) -> None:
    assert cut(item) == [item.strip()]


@pytest.mark.parametrize(
    "fence",
    [
        "```\nA. B.\n```",
        "```py title=x\nA. B.\n``` ",
        "~~~~ a`b\nA. B.\n~~~\n~~~~",
        "  ````\nA.\n```\nB.\n`````",
        f"```\n``` {'x' * 80}\nA.\n```",
    ],
)
def test_what_a_fence_encloses_is_ignored_in_visible_text(fence: str) -> None:
    assert cut(f"Before.\n{fence}\nAfter.") == ["Before.", "After."]


@pytest.mark.parametrize("line", ["```inline``` code here", "``two ticks", "text ``` later"])
def test_a_line_that_only_looks_like_a_fence_opens_none(line: str) -> None:
    assert cut(f"{line}\nAfter.") == [line, "After."]


def test_thinking_knows_no_fences() -> None:
    assert cut("```py\nIt loops here.\n", fences=False) == ["```py", "It loops here."]


def test_a_fence_ends_with_the_stream_but_not_with_a_call() -> None:
    segmenter = Segmenter(fences=True)
    segmenter.feed("```\ninside\n")
    segmenter.flush(end=False)
    assert not segmenter.feed("Still inside.\n")
    segmenter.flush(end=True)
    assert [segment.text for segment in segmenter.feed("Outside. ")] == ["Outside."]


def test_400_characters_without_an_end_are_cut_at_a_space() -> None:
    words = "word " * 200
    segmenter = Segmenter(fences=True)
    segments = segmenter.feed(words)
    assert {segment.kind for segment in segments} == {"cut"}
    assert all(len(segment.text) <= 400 and segment.text.endswith("word") for segment in segments)
    assert [len(segment.text) for segment in Segmenter(fences=True).feed("x" * 900)] == [400, 400]


def test_a_structural_line_over_2000_characters_is_handed_over_raw() -> None:
    for line in ("?!" * 1_100, "| cell " * 400, "    " + "code(1) " * 300):
        (segment,) = Segmenter(fences=True).feed(line)
        assert (segment.kind, segment.text) == ("raw", line[:2_000])
    assert cut("=" * 1_999 + "\nAfter.") == ["After."]


def test_a_letter_after_a_long_rule_begins_a_sentence() -> None:
    assert cut("=" * 600 + "It goes on.") == ["It goes on."]


def test_an_empty_delta_changes_nothing() -> None:
    segmenter = Segmenter(fences=True)
    assert segmenter.feed("") == ()
    assert segmenter.flush(end=True) == []
