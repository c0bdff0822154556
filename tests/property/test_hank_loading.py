"""Whatever stands in hank.json, loading it gives a hank or faults, and never an exception."""

import copy
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.hanks import codon, hank, load, loop, sentinel

_WHOLE = hank(
    codon(
        "a",
        rigSetup=[{"type": "command", "command": {"run": "true"}}],
        budget={"maxDollars": 1},
        sentinels=[{"sentinelConfig": sentinel()}],
    ),
    loop(codon("b"), budget={"maxDollars": 1}),
    overrides={"budget": {"maxDollars": 1, "allocation": "proportional", "shares": {"a": 0.5}}},
    meta={"name": "n", "version": "1"},
)
_VALUES = st.sampled_from([None, True, 0, -1, 1e18, float("nan"), "", "x", [], {}, [1], {"x": 1}, "../../x", "\0"])


def _places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [way]
    if isinstance(value, dict):
        found += [place for key, inner in value.items() for place in _places(inner, (*way, key))]
    elif isinstance(value, list):
        found += [place for index, inner in enumerate(value) for place in _places(inner, (*way, index))]
    return found


@settings(max_examples=150)
@given(st.lists(st.tuples(st.sampled_from(_places(_WHOLE)[1:]), _VALUES), min_size=1, max_size=3))
def test_a_hank_with_anything_anywhere_loads_or_has_faults(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    made: Any = copy.deepcopy(_WHOLE)
    for way, value in changes:
        node = made
        for step in way[:-1]:
            node = node[step] if _holds(node, step) else None
        if _holds(node, way[-1]):
            node[way[-1]] = copy.deepcopy(value)
    with tempfile.TemporaryDirectory() as folder:
        loaded = load(Path(folder), json.dumps(made))
    assert loaded.config is not None or loaded.diagnostics.errors
    for diagnostic in loaded.diagnostics:
        assert diagnostic.line is not None
        assert "?" not in diagnostic.pointer


def _holds(node: Any, step: Any) -> bool:
    return (
        step in node
        if isinstance(node, dict)
        else isinstance(node, list) and isinstance(step, int) and step < len(node)
    )
