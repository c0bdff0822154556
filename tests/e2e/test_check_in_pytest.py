"""pytest collects checks beside its own tests, and is left alone where there are none."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.support.checks import sentinel, write_check
from tests.support.recordings import at, event, write_journal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

SEES_ONLY_THE_PLUGIN = """
import sys

def test_nothing_else_is_loaded():
    ours = {name for name in sys.modules if name.startswith("hankwatch")}
    assert ours == {"hankwatch", "hankwatch.bench", "hankwatch.bench.pytest_plugin"}
"""


def ran(folder: Path, *arguments: str, env: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    """Pytest as a process of its own, strict about warnings."""
    plugins = ["-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:schemathesis"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "-W", "error"]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stderr == ""
    return done


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a test, a check that passes, one that does not, and a check.json of somebody else's."""
    here = tmp_path / "project"
    sentinel(here / "good" / "sentinel.json")
    write_journal(here / "good" / "recording.jsonl", [event(1, "info", at(1))])
    write_check(here / "good" / "check.json", {"fires": {"it": 1}})
    keys = {"recording": "good/recording.jsonl", "sentinel": "good/sentinel.json"}
    write_check(here / "bad.check.json", {"reports": {"it": [{"contains": "x"}]}}, **keys)
    (here / "other").mkdir()
    (here / "other" / "check.json").write_text(json.dumps({"checks": []}))
    (here / "test_own.py").write_text("def test_it():\n    pass\n")
    return here


def test_checks_are_items_that_pass_or_fail_with_the_words_of_the_command(folder: Path, env: dict[str, str]) -> None:
    done = ran(folder, "-rA", env=env)
    assert done.returncode == 1
    assert done.stdout.endswith("1 failed, 2 passed" + done.stdout[done.stdout.rindex(" in ") :])
    for line in (
        "check bad failed",
        '  bad.check.json:6: it: the report should contain "x"',
        "    | 1",
        "PASSED good/check.json::check",
    ):
        assert line in done.stdout.splitlines()
    assert "Traceback" not in done.stdout


def test_one_is_chosen_as_any_test_is(folder: Path, env: dict[str, str]) -> None:
    assert ran(folder, "good/check.json", env=env).returncode == 0
    assert ran(folder, "-k", "bad", env=env).returncode == 1


def test_the_plugin_can_be_left_out_and_loads_nothing_without_a_check(folder: Path, env: dict[str, str]) -> None:
    assert "1 passed" in ran(folder, "-p", "no:hankwatch", env=env).stdout
    (folder / "own").mkdir()
    (folder / "own" / "test_own.py").write_text(SEES_ONLY_THE_PLUGIN)
    assert ran(folder / "own", env=env).returncode == 0
