"""Ids of a recording, remembered on disk where they are many."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from hankwatch.bench.met import MetIds


@given(st.lists(st.sampled_from(["", "a", "b", "ä", "\ud800", "e1", "e10"])))
def test_an_id_is_new_once(ids: list[str]) -> None:
    met, known = MetIds(), set[str]()
    for one in ids:
        assert met.add(one) == (one not in known)
        known.add(one)


def test_however_many_there_are_they_are_known_again_and_take_no_more_memory() -> None:
    met = MetIds()
    tracemalloc.start()
    try:
        assert all(met.add(f"e{number}") for number in range(60_000))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 8_000_000
    assert not any(met.add(f"e{number}") for number in range(0, 60_000, 7))
    assert met.add("e60000")
    met.close()
