"""No spelling of a ref leads out of its root."""

from contextlib import suppress
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hankwatch.config.refs import resolve_ref
from hankwatch.core.errors import PathRefused

_ROOT = Path("/nowhere/hank")
_PARTS = st.sampled_from(["..", ".", "", "a", "b", "...", "..a", "~", "%2e%2e", "C:", "\\..", "\0", " "])


@given(st.lists(_PARTS, max_size=8).map("/".join), st.sampled_from([".", "a", "a/b"]))
def test_a_ref_is_refused_or_stays_below_its_root(ref: str, below: str) -> None:
    try:
        path = resolve_ref(ref, base=_ROOT / below, root=_ROOT)
    except PathRefused:
        return
    parts = path.relative_to(_ROOT).parts
    assert parts
    assert not {"..", "."} & set(parts)


@given(st.text(max_size=20))
def test_any_text_is_a_ref_or_refused(ref: str) -> None:
    with suppress(PathRefused):
        resolve_ref(ref, base=_ROOT, root=_ROOT)
