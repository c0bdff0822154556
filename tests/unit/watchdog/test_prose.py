"""What sentences are compared by, and which are prose (spec watchdog 5.2)."""

import pytest

from hankwatch.watchdog.prose import content_words, is_prose, strict_key, unmarked, width


def key(text: str) -> str:
    return strict_key(unmarked(text))


@pytest.mark.parametrize(
    "text",
    [
        "- The Cache is stale.",
        "  * the cache is   stale",
        "12. The cache is stale!",
        "3) The cache is stale",
        "## The cache is stale",
        "> > the cache is stale…",
        "- [x] The **cache** is _stale_",
        "The `cache` is ~~stale~~",
        "“The cache is stale.”",
        "The\u200b cache\u00a0is ｓｔａｌｅ\u00ad",
    ],
)
def test_markup_and_case_do_not_count(text: str) -> None:
    assert key(text) == "the cache is stale"


@pytest.mark.parametrize("text", ["Step 7 of the cache", "snake_case of the cache", "-7 degrees"])
def test_digits_and_identifiers_stay(text: str) -> None:
    assert key(text) == text.casefold().lstrip("-")


def test_an_empty_sentence_has_an_empty_key() -> None:
    assert key(" - ** ") == ""


@pytest.mark.parametrize(("text", "columns"), [("abc", 3), ("端口", 4), ("ｱb", 2), ("한글 a", 6)])
def test_cjk_takes_two_columns(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    "text",
    [
        "So the lock is taken too early.",
        "It doesn't fit (yet), but a well-known fix exists.",
        "我需要先确认配置文件里的端口。",
        "이 파일을 먼저 확인해야 합니다",
        "यह फ़ाइल पहले जाँचनी होगी क्योंकि वह गलत है",
        "Error handling in this part is wrong because of the lock",
        "Let me look at the config of the server again",
    ],
)
def test_prose_is_prose(text: str) -> None:
    assert is_prose(unmarked(text), key(text))


@pytest.mark.parametrize(
    "text",
    [
        "Too few words here",
        "WARN pool is exhausted and waits for a free one",
        "2026-01-02 the pool is exhausted and waits",
        "[12:30:01] the pool is exhausted and waits",
        "warning: the variable is not used in this scope",
        "ValueError: the variable is not used in this scope",
        "<div> the pool is exhausted and waits for one",
        "{the pool is exhausted and waits for one",
        "$ echo the pool is exhausted and waits",
        "values = one two three four five six",
        "import os as the thing that we want here",
        "def run(the pool is exhausted and waits)",
        "src/a.py:12: the pool is exhausted and waits",
        "src/a.py src/b.py a.b() c_d e=f the end",
        "│ the pool is exhausted and waits for one │",
        "12 34 56 78 90 12 34 the of in on at",
        "太短了",
    ],
)
def test_code_logs_markup_and_scraps_are_not(text: str) -> None:
    assert not is_prose(unmarked(text), key(text))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Now let me run the tests again to verify the change", "Okay, next I will run the test to verify the changes"),
        ("The lock is taken before the queue is read", "Actually, the queue is read before the lock is taken"),
        ("It verifies a changed config", "verify the changing configs"),
    ],
)
def test_filler_order_and_endings_do_not_count(one: str, other: str) -> None:
    assert content_words(key(one)) == content_words(key(other)) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("For n equal to 7 the form gives 28", "For n equal to 8 the form gives 36"),
        ("Rename user_id in the parser", "Rename user_ids in the parser"),
        ("The test is red on main", "The test is not red on main"),
    ],
)
def test_numbers_identifiers_and_negations_do(one: str, other: str) -> None:
    assert content_words(key(one)) != content_words(key(other))


def test_fewer_than_three_content_words_are_none() -> None:
    assert content_words("let me check the file again") is None


def test_cjk_counts_as_pairs_of_characters() -> None:
    assert content_words("确认端口7") == frozenset({"确认", "认端", "端口", "7"})
