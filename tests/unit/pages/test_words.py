"""Numbers as people read them."""

import pytest

from hankwatch.pages.words import Cost, duration, plural, size


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_400, "1.4 s"),
        (61_000, "1 min 1 s"),
        (7_440_000, "2 h 4 min"),
        (90_000_000, "1 d 1 h"),
        (86_400_000, "1 d"),
    ],
)
def test_a_duration_has_two_units_at_most(ms: int, words: str) -> None:
    assert duration(ms) == words


def test_a_cost_with_unpriced_parts_is_a_lower_bound_and_never_zero_for_unknown() -> None:
    assert str(Cost(0.5)) == "$0.5000"
    assert str(Cost(0.5) + Cost(0.0, 1)) == "≥ $0.5000"
    assert str(Cost(0.0, 2)) == "unknown"
    assert (Cost(0.0, 2).usd, Cost(0.0).usd) == (None, 0.0)


def test_counts_and_sizes() -> None:
    assert (plural(1, "fire"), plural(1_200, "fire")) == ("1 fire", "1,200 fires")
    assert (size(512), size(43_600), size(5_000_000_000)) == ("512 B", "43.6 kB", "5.0 GB")
