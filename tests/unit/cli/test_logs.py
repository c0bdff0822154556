"""Log lines on stderr: as many as asked for, nothing raw."""

import logging

import pytest

from hankwatch.cli.logs import configure

LOGGER = logging.getLogger("hankwatch")


@pytest.mark.parametrize(
    ("verbosity", "shown"), [(-1, ["error"]), (0, ["warning", "error"]), (1, ["info", "warning", "error"])]
)
def test_verbosity_decides_how_much_is_shown(
    capsys: pytest.CaptureFixture[str], verbosity: int, shown: list[str]
) -> None:
    configure(verbosity)
    LOGGER.setLevel(logging.DEBUG)  # as a run does for its log file
    for level in ("debug", "info", "warning", "error"):
        getattr(logging.getLogger("hankwatch.room"), level)(level)
    assert capsys.readouterr().err == "".join(f"{level.upper()}: {level}\n" for level in shown)


def test_logged_text_is_no_terminal_command(capsys: pytest.CaptureFixture[str]) -> None:
    configure(0)
    LOGGER.warning("sentinel \x1b[31m%s", "\x1b]0;owned\x07x")
    assert capsys.readouterr().err == "WARNING: sentinel x\n"
