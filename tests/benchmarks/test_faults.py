"""Finding the faults of a file costs as much as there are faults, not their square."""

import json
from pathlib import Path
from time import perf_counter

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import ConfigModel, validate


class Item(ConfigModel):
    """One of many."""

    name: str


class Many(ConfigModel):
    """A file of them."""

    items: list[Item]


def seconds(path: Path, count: int) -> float:
    path.write_text(json.dumps({"items": [{"nmae": "x"}] * count}))
    began = perf_counter()
    diagnostics = Diagnostics()
    validate(Many, Document.load(path), diagnostics)
    assert len(diagnostics.items) == 2 * count
    return perf_counter() - began


def test_ten_times_the_faults_take_about_ten_times_as_long(tmp_path: Path) -> None:
    seconds(tmp_path / "warm.json", 10)
    ratio = seconds(tmp_path / "many.json", 5_000) / seconds(tmp_path / "some.json", 500)
    print(f"5,000 faults against 500: {ratio:.1f} x")
    assert ratio < 30
