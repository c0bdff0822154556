"""What short commands cost: CPU of the process and all its children, the best of several (issue: done when 7)."""

import resource
import shutil
from pathlib import Path

import pytest
from tests.support.cli import Cli

pytestmark = pytest.mark.benchmark

ROUNDS = 7


def cpu_ms(cli: Cli, *arguments: object) -> float:
    """User and system time of a command and its children, in milliseconds."""

    def spent() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (usage.ru_utime + usage.ru_stime) * 1000

    best = float("inf")
    for _ in range(ROUNDS + 1):  # the first one writes compiled modules where they are missing
        before = spent()
        with cli.start(*arguments) as process:  # an interpreter of its own: that is what is measured
            process.communicate(timeout=60)
        assert process.returncode == 0
        best = min(best, spent() - before)
    return best


COMMANDS = {
    ("--help",): 150,
    ("validate", "demo"): 400,
    ("try", "demo/sentinels/narrator.json", "stream.jsonl"): 500,
}
"""Limits in milliseconds."""


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_short_commands_are_cheap(tmp_path: Path, fixtures: Path, command: tuple[str, ...]) -> None:
    shutil.copytree(fixtures / "demo", tmp_path / "demo")
    shutil.copy(fixtures / "agent-streams" / "claude-success.jsonl", tmp_path / "stream.jsonl")
    spent_ms = cpu_ms(Cli(tmp_path, tmp_path), *command)
    print(f"\nhankwatch {' '.join(command)}: {spent_ms:.0f} ms of CPU (limit {COMMANDS[command]})")
    assert 10 < spent_ms < COMMANDS[command]
