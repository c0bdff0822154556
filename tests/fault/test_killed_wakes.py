"""A run that is killed anywhere while it runs a wake: exactly one is accepted per fire (spec watches 8, invariant 2)."""

import json
import subprocess
from pathlib import Path
from random import Random

import pytest
from tests.support.cli import Cli
from tests.support.hanks import codon
from tests.support.runs import stand_in, write_hank


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_wake_is_accepted_exactly_once_whenever_its_runs_are_killed(seed: int, tmp_path: Path) -> None:
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    cli, root = Cli(tmp_path / "home", tmp_path / "work"), tmp_path / "execution"
    agent = stand_in(
        tmp_path / "agent",
        ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}],
        ["line", {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}],
        ["until_eof"],
    )
    env = {name: value for name, value in agent.environ.items() if name not in {"HOME", "LANG"}}
    assert cli("run", write_hank(cli.cwd / "hank", codon()), "-e", root, "--headless", env=env).code == 0
    fires = ("--condition", "done", "--document", "done", "--id", "deploy", "--session", "one", "--home", root)
    assert cli("watch", "create", *fires, "--interval", "5s").code == 0
    (root / "done").touch()
    assert cli("watch", "check", "deploy").code == 0

    random = Random(seed)
    with cli.start("run", "--wake", "-e", root, "--headless", env=env) as process:
        try:
            process.communicate(timeout=random.uniform(0.5, 2.5))
        except subprocess.TimeoutExpired:
            process.kill()
    assert cli("run", "--wake", "-e", root, "--headless", env=env).code == 0

    events = [json.loads(line) for line in (root / ".hankweave/events/events.jsonl").read_text().splitlines()]
    accepted = [event for event in events if event["data"].get("code") == "wake"]
    told = [event["data"]["deliveryId"] for event in events if event["type"].startswith("watch.")]
    assert len(accepted) == 1
    assert len(agent.calls()) <= 2
    assert len(told) == len(set(told))
