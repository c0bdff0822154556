"""What is kept of much stays small and says how much it is."""

from hypothesis import given
from hypothesis import strategies as st

from hankwatch.pages.bins import SIZE, Bins
from hankwatch.pages.kept import Kept, Tally


@given(st.lists(st.integers()), st.integers(0, 4), st.integers(0, 4))
def test_the_first_and_the_last_are_kept_and_the_others_counted(items: list[int], first: int, last: int) -> None:
    kept: Kept[int] = Kept(first, last)
    for item in items:
        kept.add(item)
    rest = items[first:]
    assert list(kept) == items[:first] + (rest[-last:] if last else [])
    assert kept.count == len(items)
    assert kept.left_out == len(items) - len(kept)


@given(st.lists(st.sampled_from("abcdef")), st.integers(0, 4))
def test_a_tally_counts_all_whatever_its_limit(names: list[str], limit: int) -> None:
    tally = Tally(limit)
    for name in names:
        tally.add(name, failed=name == "a", size_bytes=2)
    assert len(tally) <= limit
    assert (tally.count, tally.failed, tally.size_bytes) == (len(names), names.count("a"), 2 * len(names))
    assert all(share.count == names.count(share.name) for share in tally)
    assert [share.count for share in tally] == sorted((share.count for share in tally), reverse=True)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-50, 10**9)), min_size=1))
def test_bins_lose_no_count_and_put_each_where_it_belongs(marks: list[tuple[str, int]]) -> None:
    bins = Bins(0)
    for lane, at_ms in marks:
        bins.add(lane, at_ms)
    assert bins.used <= SIZE
    for lane in "ab":
        expected = [0] * bins.used
        for name, at_ms in marks:
            expected[max(0, at_ms) // bins.width_ms] += name == lane
        assert bins.counts(lane) == expected
