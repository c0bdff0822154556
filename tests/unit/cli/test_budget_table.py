"""The budget table of ``validate``: what each part may use before anything was spent."""

from pathlib import Path
from typing import Any

from tests.support.hanks import codon, hank, load, loop

from hankwatch.cli.budget_table import COLUMNS, budget_rows
from hankwatch.runner.settings import RunBudget


def rows(tmp_path: Path, whole: dict[str, Any], ceiling: RunBudget | None = None) -> list[tuple[str, ...]]:
    loaded = load(tmp_path / "hank", whole)
    assert loaded.config is not None, list(loaded.diagnostics)
    return list(budget_rows(loaded.config, ceiling or RunBudget()))


def test_only_a_budget_makes_a_hank_limited(tmp_path: Path) -> None:
    limited = [hank(codon("one", budget={"maxDollars": 1})), hank(loop(codon("a"), budget={"maxDollars": 1}))]
    for whole, expected in [(hank(codon("one")), False), *((whole, True) for whole in limited)]:
        config = load(tmp_path / "hank", whole).config
        assert config is not None
        assert config.has_budgets is expected


def test_each_codon_has_its_own_limits_capped_by_the_run(tmp_path: Path) -> None:
    whole = hank(codon("one", budget={"maxDollars": 5, "maxOutputTokens": 2_000, "onExceeded": "fail"}), codon("two"))
    table = rows(tmp_path, whole, RunBudget(max_dollars=3.0, max_time_seconds=60.0))
    assert table == [
        ("whole run", "3", "60", "", "", "shared", "complete"),
        ("one", "3", "60", "2,000", "", "", "complete or fail"),
        ("two", "3", "60", "", "", "", "complete"),
    ]
    assert {len(row) for row in table} == {len(COLUMNS)}


def test_shares_of_a_pool_are_shown_with_what_they_come_to(tmp_path: Path) -> None:
    inner = loop(codon("a"), codon("b"), budget={"maxDollars": 2, "allocation": "proportional", "shares": {"a": 0.75}})
    assert rows(tmp_path, hank(codon("first"), inner)) == [
        ("whole run", "", "", "", "", "", ""),
        ("first", "", "", "", "", "", ""),
        ("loop again", "2", "", "", "", "proportional", "complete"),
        ("  a", "1.5", "", "", "", "75%", "complete"),
        ("  b", "0.5", "", "", "", "25%", "complete"),
    ]
