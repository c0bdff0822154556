"""When sentences are too many (spec watchdog 5.3)."""

from typing import Any

import pytest

from hankwatch.watchdog.policy import WatchdogPolicy
from hankwatch.watchdog.segments import Segment, Segmenter
from hankwatch.watchdog.sentences import Evidence, Repetition, Sentences

LOCK = "The lock is taken before the queue is read."
QUEUE = "Actually, the queue is read before the lock is taken."


def first(*texts: str, **policy: Any) -> tuple[int, Repetition] | None:
    """The number of the sentence that fires, and what it says."""
    sentences = Sentences(WatchdogPolicy(**policy))
    for number, text in enumerate(texts, start=1):
        found = sentences.take(Segment(text, "sentence"))
        if found:
            return number, found
    return None


def other(number: int) -> str:
    return f"Part {number} of the walk-through covers module number {number} as well."


def test_the_fourth_equal_sentence_fires_once_eight_were_seen() -> None:
    assert first(*[LOCK] * 9) == (8, Repetition("sentence_strict", 8))
    assert first(*map(other, range(7)), *[LOCK] * 4) == (11, Repetition("sentence_strict", 4))
    assert first(*[LOCK] * 9, min_armed_sentences=0) == (4, Repetition("sentence_strict", 4))


def test_equal_content_words_fire_at_the_loose_threshold() -> None:
    alternating = [LOCK, QUEUE] * 5
    assert first(*alternating, repeat_sentence_threshold=0) == (8, Repetition("sentence_loose", 8))
    assert first(*alternating) == (8, Repetition("sentence_strict", 4))
    assert first(*alternating, repeat_sentence_threshold=0, repeat_sentence_threshold_loose=0) is None


def test_only_the_window_counts() -> None:
    far = [text for number in range(8) for text in (LOCK, *(other(63 * number + i) for i in range(63)))]
    assert first(*far) is None
    assert first(*far, repeat_sentence_window=256) is not None


@pytest.mark.parametrize("text", ["All of it is ok now.", "| the | lock | is", "x = [1, 2, 3, 4, 5, 6, 7, 8, 9]"])
def test_short_sentences_and_no_prose_do_not_count(text: str) -> None:
    assert first(
        *[text, other(1)] * 10, min_armed_sentences=0, repeat_sentence_threshold=8, repeat_sentence_threshold_loose=0
    ) == ((16, Repetition("sentence_strict", 8)))


def test_the_shortest_sentence_that_counts_is_set_in_columns() -> None:
    assert first(*["All of it is ok now."] * 9, min_sentence_chars=19) == (8, Repetition("sentence_strict", 8))
    assert first(*["先确认文件里的端口和键。"] * 9, min_sentence_chars=22) == (8, Repetition("sentence_strict", 8))
    assert first(*["先确认文件里的端口和键。"] * 9, min_sentence_chars=23) is None


def test_a_chant_of_short_sentences_fires_after_400_characters() -> None:
    assert first(*["Yes."] * 99) is None
    assert first(*["Yes."] * 101) == (101, Repetition("sentence_strict", 64))


def test_a_long_sentence_between_short_ones_begins_a_chant_anew() -> None:
    assert first(*([*["Yes."] * 40, other(1), *["Yes."] * 40, other(2)] * 3)) is None


@pytest.mark.parametrize(
    ("unit", "fires"), [("yes agree ", True), ("one two three four five six seven ", True), ("1 2 3 ", False)]
)
def test_text_without_an_end_is_a_chant_when_a_unit_with_letters_repeats(unit: str, fires: bool) -> None:
    sentences = Sentences(WatchdogPolicy())
    segments = Segmenter(fences=False).feed(unit * 200)
    assert any(sentences.take(segment) for segment in segments) is fires


def test_a_chant_needs_24_copies_or_four_times_the_strict_threshold() -> None:
    unit = "the same old words said in a loop "
    text = Segment((unit * 12)[:400], "cut")
    for strict, cuts in ((2, 3), (4, 3), (10, 4), (0, None)):
        loose = max(strict, 6)
        sentences = Sentences(WatchdogPolicy(repeat_sentence_threshold=strict, repeat_sentence_threshold_loose=loose))
        found = [sentences.take(text) for _ in range(6)]
        assert next((number for number, one in enumerate(found, 1) if one), None) == cuts


def test_raw_text_fires_only_as_one_repetition_all_through() -> None:
    def take(text: str) -> Repetition | None:
        return Sentences(WatchdogPolicy()).take(Segment(text, "raw"))

    assert take("?!" * 1_000) == Repetition("sentence_strict", 64)
    assert take(("?!" * 500) + ("!!" * 500)) is None
    assert take(" " * 2_000) is None


def test_evidence_can_be_set_back() -> None:
    sentences = Sentences(WatchdogPolicy())
    for _ in range(3):
        sentences.take(Segment(LOCK, "sentence"))
    before = sentences.evidence
    for _ in range(4):
        sentences.take(Segment(LOCK, "sentence"))
    sentences.evidence = before
    assert [sentences.take(Segment(LOCK, "sentence")) is None for _ in range(5)] == [True] * 4 + [False]
    sentences.evidence = Evidence()
    assert sentences.evidence == Evidence()
