"""What holds for every command: errors, exit codes, options, plain output (spec cli)."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from tests.support.cli import COMMAND, Cli

COMMANDS = (
    ("demo",),
    ("run",),
    ("runs",),
    ("validate",),
    ("try",),
    ("tail",),
    ("journal",),
    ("journal", "stats"),
    ("journal", "import"),
    ("sentinel",),
    ("sentinel", "rebuild"),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(cli: Cli, command: tuple[str, ...]) -> None:
    done = cli(*command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: hankwatch {' '.join(command)}")


@pytest.mark.parametrize("arguments", [(), ("journal",), ("sentinel",)], ids=str)
def test_a_group_without_a_command_gives_its_help(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments)
    assert done.code == 0
    assert "Commands:" in done.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("nope",),
        ("validate", "--nope"),
        ("try",),
        ("tail", "--since", "x"),
        ("tail", "--since", "-1"),
        ("run", "a", "b", "c"),
    ],
    ids=str,
)
def test_wrong_usage_exits_2_with_code_and_hint(cli: Cli, arguments: tuple[str, ...]) -> None:
    done = cli.refused(*arguments, code="usage")
    assert "hint: `hankwatch" in done.err
    assert "--help` shows what it takes" in done.err


def test_a_traceback_is_shown_only_when_asked_for(cli: Cli) -> None:
    assert "Traceback" not in cli("tail").err
    for arguments in (("--debug", "tail"), ("tail", "--debug")):
        done = cli(*arguments)
        assert done.code == 2
        assert "Traceback" in done.err
        assert "error[run-not-found]" in done.err


def test_quiet_is_understood_before_and_behind_the_command(cli: Cli) -> None:
    before, behind = cli("-q", "demo"), cli("demo", "-q")
    assert before.code == behind.code == 0
    for done in (before, behind):
        assert "assistant.action" not in done.out
        assert "narrator" in done.out


def test_verbose_shows_every_event_whole(looker: Cli) -> None:
    short, long = looker("tail"), looker("tail", "-v")
    assert max(map(len, short.out.splitlines())) < 250 < max(map(len, long.out.splitlines()))


@pytest.mark.parametrize("env", [{}, {"NO_COLOR": "1"}, {"TERM": "xterm-256color", "COLORTERM": "truecolor"}], ids=str)
def test_piped_output_is_plain(looker: Cli, env: dict[str, str]) -> None:
    for arguments in (("tail",), ("nope",)):
        done = looker(*arguments, env=env)
        assert "\x1b" not in done.out + done.err


def test_a_terminal_gets_colour_unless_told_otherwise(looker: Cli) -> None:
    assert "\x1b[" in _on_terminal(looker, {"TERM": "xterm"})
    assert "\x1b[3" not in _on_terminal(looker, {"TERM": "xterm", "NO_COLOR": "1"})


def _on_terminal(cli: Cli, env: dict[str, str]) -> str:
    ours, theirs = os.openpty()
    with cli.start("runs", env=env, stdout=theirs, stderr=subprocess.DEVNULL):
        os.close(theirs)
        output = b""
        try:
            while chunk := os.read(ours, 65536):
                output += chunk
        except OSError:  # how a terminal says that the other side has closed it
            pass
        os.close(ours)
    return output.decode()


@pytest.mark.parametrize("arguments", [("tail",), ("tail", "--json"), ("runs",), ("journal", "stats")], ids=str)
def test_a_reader_that_leaves_is_no_error(looker: Cli, arguments: tuple[str, ...]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with looker.start(*arguments, stdout=theirs) as process:
        os.close(theirs)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_a_run_goes_on_when_nobody_reads_any_more(cli: Cli) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    with cli.start("demo", stdout=theirs) as process:
        os.close(theirs)
        assert process.stderr is not None
        assert process.stderr.read() == ""
    assert process.returncode == 0
    assert cli("runs", "--json").json["outcome"] == "completed"


def test_a_terminal_that_knows_no_letter_beyond_ascii_is_no_error(looker: Cli) -> None:
    done = looker("try", _narrator(looker), env={"PYTHONIOENCODING": "ascii"})
    assert done.code == 0
    assert "would have fired 7 \\xd7" in done.out


def test_file_names_of_any_bytes_are_no_error(cli: Cli) -> None:
    odd = os.fsdecode(b"caf\xe9[red]:smile:.json")
    (cli.cwd / odd).write_text("{")
    done = cli("validate", odd)
    assert done.code == 1
    assert "[red]:smile:.json:1:2: error[json-syntax]" in done.out


def test_faults_of_settings_stop_a_command_where_they_stand(cli: Cli) -> None:
    (cli.cwd / "hankwatch.toml").write_text("[run]\nbugdet = 1\n")
    done = cli("runs", "--config", "hankwatch.toml")
    assert done.code == 2
    assert "hankwatch.toml:2:1: error[" in done.err
    assert "budget" in done.err


@pytest.mark.parametrize("arguments", [("run", "demo", "--execution", ""), ("runs", "--config="), ("try", "")])
def test_an_empty_argument_is_a_mistake(cli: Cli, arguments: tuple[str, ...]) -> None:
    cli.refused(*arguments, code="usage")
    assert not (cli.cwd / ".hankweave").exists()


def test_a_closed_stdout_is_no_error(cli: Cli) -> None:
    script = f"exec {shlex.quote(COMMAND[0])} runs >&-"
    done = subprocess.run(
        ["sh", "-c", script], env=cli.environ(), cwd=cli.cwd, capture_output=True, timeout=15, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def _narrator(cli: Cli) -> Path:
    path = cli.cwd / "narrator.json"
    path.write_text(
        '{"id":"n","name":"N","model":"builtin/digest","userPromptText":"x","execution":{"strategy":"debounce","milliseconds":60},'
        '"trigger":{"type":"event","on":["assistant.action"]}}'
    )
    return path
