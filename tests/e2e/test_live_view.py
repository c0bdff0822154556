"""The live view on a real terminal: drawn, steered by keys, and gone without a trace however the run ends."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Cli
from tests.support.hanks import codon, hank
from tests.support.runs import until
from tests.support.terminal import ENTERED, Terminal, on_terminal

SAYS = '{"type":"system","subtype":"init","session_id":"s"}\n'
ENDS = '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}\n'
KEYS = "n next"


def write_hank(cli: Cli, *, hangs: bool = True, keeps: bool = False) -> None:
    """Codons ``one`` and ``two``; ``one`` goes on for ever when it ``hangs``.

    When it ``keeps`` files each adds a line to count.txt, and there are checkpoints.
    """
    (cli.cwd / "says").write_text(SAYS)
    (cli.cwd / "all").write_text(SAYS + ENDS)
    (cli.cwd / "agent.sh").write_text(f"cat {cli.cwd}/says; exec sleep 1000\n")
    first = f"exec:sh {cli.cwd}/agent.sh" if hangs else f"exec:cat {cli.cwd}/all"
    counts = {"type": "command", "command": {"run": "echo more >> count.txt"}}
    kept: dict[str, Any] = {"checkpointedFiles": ["*.txt"], "rigSetup": [counts]} if keeps else {}
    whole = hank(codon("one", agent=first, **kept), codon("two", agent=f"exec:cat {cli.cwd}/all", **kept))
    (cli.cwd / "hank.json").write_text(json.dumps(whole))


def began(terminal: Terminal) -> Terminal:
    """Once codon ``one`` runs."""
    terminal.until("codon.started")
    terminal.until(KEYS)
    assert terminal.takes_keys
    return terminal


def completed(root: Path) -> list[bool]:
    journal = root / ".hankweave" / "events" / "events.jsonl"
    events = map(json.loads, journal.read_text().splitlines())
    return [event["data"]["success"] for event in events if event["type"] == "codon.completed"]


def test_a_run_shows_its_view_and_leaves_the_outcome(cli: Cli) -> None:
    write_hank(cli, hangs=False)
    with on_terminal(cli, "run", "-e", "x") as terminal:
        assert terminal.ended() == 0
    assert ENTERED in terminal.output
    assert terminal.restored
    behind = terminal.output.rpartition(b"\x1b[?1049l")[2].decode()
    assert "one: " in behind
    assert "two: " in behind
    assert "succeeded" in behind


def test_s_skips_the_codon_and_the_run_goes_on(cli: Cli) -> None:
    write_hank(cli)
    with on_terminal(cli, "run", "-e", "x") as terminal:
        began(terminal).press("s")
        assert terminal.ended() == 0
    assert terminal.restored
    assert completed(cli.cwd / "x") == [False, True]


def test_f_fails_the_codon(cli: Cli) -> None:
    write_hank(cli)
    with on_terminal(cli, "run", "-e", "x") as terminal:
        began(terminal).press("f")
        assert terminal.ended() == 1
    assert terminal.restored
    assert completed(cli.cwd / "x") == [False]


def test_q_stops_the_run_as_a_signal_does(cli: Cli) -> None:
    write_hank(cli)
    with on_terminal(cli, "run", "-e", "x") as terminal:
        began(terminal).press("q")
        assert terminal.ended() == 130
    assert terminal.restored
    assert completed(cli.cwd / "x") == [False]


def test_n_lets_a_waiting_run_go_on(cli: Cli) -> None:
    write_hank(cli, hangs=False)
    with on_terminal(cli, "run", "-e", "x", "--no-autostart") as terminal:
        for waits_with in ("codon one", "codon two", "All codons completed"):
            terminal.until(waits_with)
            terminal.press("n")
        assert terminal.ended() == 0
    assert completed(cli.cwd / "x") == [True, True]


def test_l_lists_checkpoints_and_r_takes_a_waiting_run_back_to_the_last_success(cli: Cli) -> None:
    write_hank(cli, hangs=False, keeps=True)
    count = cli.cwd / "x" / "agentRoot" / "count.txt"
    with on_terminal(cli, "run", "-e", "x", "--no-autostart", columns=200) as terminal:
        terminal.until("Waiting with codon one")
        terminal.press("n")
        terminal.until("Waiting with codon two")
        terminal.press("l")
        terminal.until("2 checkpoint(s); the last: one:rig-setup ")
        count.write_text("spoiled\n")
        terminal.press("r")
        terminal.until("Rolled back to checkpoint ")
        assert "(completed) of codon one" in terminal.text
        assert count.read_text() == "more\n"
        terminal.press("n")
        terminal.until("All codons completed")
        assert count.read_text() == "more\nmore\n"
        terminal.press("n")
        assert terminal.ended() == 0
    assert terminal.restored
    assert completed(cli.cwd / "x") == [True, True]


def test_a_key_that_cannot_be_served_says_why_and_other_input_is_no_key(cli: Cli) -> None:
    write_hank(cli)
    with on_terminal(cli, "run", "-e", "x") as terminal:
        began(terminal).press("n")
        terminal.until("the run waits for nothing")
        terminal.press("l")
        terminal.until("0 checkpoint(s)")
        terminal.press("r")
        terminal.until("r: ")
        for no_key in ("\x1b[A", "squash all of it", ""):
            terminal.press(no_key)
            terminal.until(KEYS)  # drawn again
        terminal.press("n")
        terminal.until("n: ")
        assert terminal.process.poll() is None
    assert completed(cli.cwd / "x") == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_stop_signal_gives_the_terminal_back(cli: Cli, number: signal.Signals) -> None:
    write_hank(cli)
    with on_terminal(cli, "run", "-e", "x") as terminal:
        began(terminal).process.send_signal(number)
        assert terminal.ended() == 130
    assert terminal.restored


def test_quitting_twice_ends_at_once_and_gives_the_terminal_back(cli: Cli) -> None:
    write_hank(cli)
    with on_terminal(cli, "run", "-e", "x") as terminal:
        began(terminal).press("qq")
        assert terminal.ended(within_s=5.0) == 130
    assert terminal.restored


def test_a_run_that_breaks_gives_the_terminal_back(cli: Cli) -> None:
    write_hank(cli)
    with on_terminal(cli, "run", "-e", "x") as terminal:
        began(terminal)
        journal = cli.cwd / "x" / ".hankweave" / "events" / "events.jsonl"
        journal.unlink()
        journal.symlink_to("/dev/full")
        terminal.press("s")
        terminal.ended()
    assert terminal.restored


def test_a_resized_terminal_is_filled_anew(cli: Cli) -> None:
    write_hank(cli)
    with on_terminal(cli, "run", "-e", "x") as terminal:
        began(terminal)
        terminal.until("f force stop")
        terminal.resize(40, 20)
        terminal.press("n")
        terminal.until("f fail")


@pytest.mark.parametrize(
    ("arguments", "env"), [(("--headless",), {}), ((), {"TERM": "dumb"}), (("-v",), {}), (("--json",), {})]
)
def test_who_wants_lines_gets_lines(cli: Cli, arguments: tuple[str, ...], env: dict[str, str]) -> None:
    write_hank(cli, hangs=False)
    with on_terminal(cli, "run", "-e", "x", *arguments, env=env) as terminal:
        assert terminal.ended() == 0
    assert ENTERED not in terminal.output
    assert b"codon.started" in terminal.output
    assert terminal.restored


def test_no_color_draws_without_colours(cli: Cli) -> None:
    write_hank(cli, hangs=False)
    with on_terminal(cli, "run", "-e", "x", env={"NO_COLOR": "1"}) as terminal:
        assert terminal.ended() == 0
    assert ENTERED in terminal.output
    assert b"\x1b[3" not in terminal.output.replace(b"\x1b[3m", b"")


def test_a_terminal_that_nobody_reads_holds_up_no_run(cli: Cli) -> None:
    write_hank(cli, hangs=False)
    (cli.cwd / "all").write_text(
        SAYS
        + "".join(
            json.dumps(
                {"type": "assistant", "message": {"id": str(n), "content": [{"type": "text", "text": "x" * 80}]}}
            )
            + "\n"
            for n in range(3_000)
        )
        + ENDS
    )
    with on_terminal(cli, "run", "-e", "x", columns=200, lines=60) as terminal:
        journal = cli.cwd / "x" / ".hankweave" / "events" / "events.jsonl"
        until(lambda: journal.exists() and b"RunCompleted" in journal.read_bytes())
        assert terminal.ended() == 0
    assert terminal.restored
