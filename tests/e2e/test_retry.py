"""``sentinel retry``: what failed in an ended run is carried out once more, and only that."""

import json
import shutil
from pathlib import Path

import pytest
from tests.support.cli import Cli

pytestmark = pytest.mark.slow


@pytest.fixture
def failed_run(cli: Cli, fixtures: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A sweep whose sentinel asked a model that nobody answers for: its execution and its config."""
    hank = tmp_path / "sweep"
    shutil.copytree(fixtures / "sentinel-sweep", hank)
    config = hank / "sentinels" / "sweep-observer.json"
    set_model(config, "haiku")
    execution = tmp_path / "execution"
    done = cli("run", "-q", hank, "--execution", execution, "--json")
    assert done.code == 0, done.err
    assert done.json["sentinels"][0]["failed"] == 1
    return execution, config


def set_model(config: Path, model: str) -> None:
    value = json.loads(config.read_text())
    config.write_text(json.dumps(value | {"model": model}))


def test_a_mended_sentinel_reports_what_it_missed_exactly_once(cli: Cli, failed_run: tuple[Path, Path]) -> None:
    execution, config = failed_run
    set_model(config, "builtin/digest")
    done = cli("sentinel", "retry", execution, "--json")
    assert done.code == 0, done.err
    assert [(line["sentinelId"], line["triggerNumber"], line["outcome"]) for line in done.lines] == [
        ("sweep-observer", 1, "done")
    ]
    report = execution / ".hankweave" / "sentinels" / "outputs" / "sweep-observer" / "sweep-report.md"
    assert report.read_text().count("codon.completed: 1") == 1
    assert cli("sentinel", "retry", execution, "--json").out == ""
    assert report.read_text().count("codon.completed: 1") == 1


def test_what_fails_again_says_why_and_exits_1(cli: Cli, failed_run: tuple[Path, Path]) -> None:
    execution, _ = failed_run
    done = cli("sentinel", "retry", execution)
    assert done.code == 1
    assert "No LLM provider available" in done.out


def test_a_sentinel_that_is_not_there_is_named(cli: Cli, failed_run: tuple[Path, Path]) -> None:
    execution, _ = failed_run
    cli.refused("sentinel", "retry", execution, "other", code="usage")


def test_a_further_run_of_an_execution_has_its_own_failures(cli: Cli, failed_run: tuple[Path, Path]) -> None:
    execution, config = failed_run
    set_model(config, "builtin/digest")
    assert cli("run", "-q", config.parents[1], "--execution", execution, "--start-new").code == 0
    assert cli("sentinel", "retry", execution).out == "no trigger had failed\n"


def test_a_run_whose_hank_is_gone_says_so(cli: Cli, failed_run: tuple[Path, Path]) -> None:
    execution, config = failed_run
    shutil.rmtree(config.parents[1])
    cli.refused("sentinel", "retry", execution, code="usage")
