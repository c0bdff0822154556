"""Which exit code and which words a failure gets (spec cli)."""

import errno

import pytest

from hankwatch.cli.failure import explain
from hankwatch.cli.output import ReaderGone
from hankwatch.config.diagnostics import Diagnostic
from hankwatch.core.errors import ConfigError, InfrastructureError, JournalLocked, UsageError


@pytest.mark.parametrize(
    ("error", "code", "exit_code"),
    [
        (UsageError("no"), "usage", 2),
        (ConfigError([Diagnostic("f.json", "/a", "wrong-type", "no", line=3, column=1)]), "wrong-type", 2),
        (InfrastructureError("broken"), "infrastructure", 3),
        (OSError(errno.ENAMETOOLONG, "File name too long", "x"), "system", 2),
        (OSError(errno.ENOSPC, "No space left on device"), "system", 3),
        (ZeroDivisionError("x"), "internal", 3),
        (ExceptionGroup("tasks", [ExceptionGroup("more", [InfrastructureError("broken")])]), "infrastructure", 3),
        (
            ExceptionGroup("tasks", [ValueError("x"), UsageError("no"), InfrastructureError("worse")]),
            "infrastructure",
            3,
        ),
    ],
)
def test_a_failure_has_its_stable_code_and_exit_code(
    capsys: pytest.CaptureFixture[str], error: Exception, code: str, exit_code: int
) -> None:
    assert explain(error) == exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert f"error[{code}]: " in said.err


@pytest.mark.parametrize(
    "error", [UsageError("no"), InfrastructureError("broken"), OSError(errno.EIO, "x"), ValueError("x")]
)
def test_every_failure_says_what_to_do(capsys: pytest.CaptureFixture[str], error: Exception) -> None:
    explain(error)
    assert "\nhint: " in capsys.readouterr().err


def test_the_holder_of_a_lock_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    from pathlib import Path

    assert explain(JournalLocked(Path("x"), "process 7")) == 3
    assert "held by process 7" in capsys.readouterr().err


def test_a_reader_that_left_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain(ExceptionGroup("tasks", [ReaderGone()])) == 0
    assert capsys.readouterr() == ("", "")


def test_hostile_text_in_a_message_is_shown_without_its_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    explain(UsageError("no [red]run[/] matches '\x1b[2J:smile:'"))
    assert "no [red]run[/] matches ':smile:'" in capsys.readouterr().err
