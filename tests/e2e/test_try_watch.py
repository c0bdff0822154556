"""``try --watch``: again on every save, whatever is saved (spec cli)."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Cli
from tests.support.recordings import at, event, write_journal
from tests.support.terminal import Terminal, on_terminal

WAITING = "Ctrl-C ends."
pytestmark = pytest.mark.slow


def save(path: Path, threshold: int = 2, **config: Any) -> None:
    """As many editors do: a new file, renamed over the old one."""
    whole = {
        "id": "watcher",
        "name": "Watcher",
        "model": "builtin/echo",
        "userPromptFile": "prompt.md",
        "trigger": {"type": "event", "on": ["info"]},
        "execution": {"strategy": "count", "threshold": threshold},
        **config,
    }
    partial = path.with_name("partial")
    partial.write_text(json.dumps(whole))
    partial.rename(path)


@pytest.fixture
def sentinel(cli: Cli) -> Path:
    (cli.cwd / "prompt.md").write_text("{{ it.events }}")
    write_journal(cli.cwd / "events.jsonl", [event(number, "info", at(number)) for number in range(1, 5)])
    save(cli.cwd / "sentinel.json")
    return cli.cwd / "sentinel.json"


def saved(terminal: Terminal, what: str) -> None:
    """Read on until the screen after the next save has these words and waits again."""
    terminal.until(what)
    terminal.until(WAITING)
    terminal.forget()


def test_each_save_shows_what_it_changed_and_faults_are_waited_out(cli: Cli, sentinel: Path) -> None:
    with on_terminal(cli, "try", "sentinel.json", "events.jsonl", "--watch") as terminal:
        saved(terminal, "would have fired 2 ×")
        save(sentinel, threshold=4)
        saved(terminal, "Against the save before: +1 −2")
        (cli.cwd / "prompt.md").write_text("{{ it.codon }}")
        saved(terminal, "The fires are those of the save before.")
        sentinel.write_text("{")
        saved(terminal, "error[")
        save(sentinel, threshold=2)
        saved(terminal, "Against the save before: +2 −1")
        os.kill(terminal.process.pid, signal.SIGINT)
        assert terminal.ended() == 130
        assert terminal.restored


def test_a_prompt_that_is_not_there_yet_is_waited_for(cli: Cli, sentinel: Path) -> None:
    (cli.cwd / "prompt.md").unlink()
    with on_terminal(cli, "try", "sentinel.json", "events.jsonl", "--watch") as terminal:
        saved(terminal, "error[file-unreadable]")
        (cli.cwd / "prompt.md").write_text("{{ it.events }}")
        saved(terminal, "would have fired 2 ×")


def test_a_recording_that_cannot_be_read_is_not_waited_for(cli: Cli, sentinel: Path) -> None:
    cli.refused("try", sentinel, "nowhere.jsonl", "--watch", code="run-not-found")
