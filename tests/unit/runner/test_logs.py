"""The two logs of a run: redacted, and never the reason why it ends."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hankwatch.core.redaction import Redactor
from hankwatch.processes.lines import Line, Stub
from hankwatch.runner import rawlog, runlog
from hankwatch.runner.rawlog import RawLog
from hankwatch.runner.runlog import run_log

SECRET = "a-secret-0123456789"
REDACTOR = Redactor({"MY_KEY": SECRET})


def line(data: bytes) -> Line:
    return Line(data, True, None)


def test_raw_lines_are_kept_as_they_are_but_for_secrets(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "one.log"
    with RawLog(path, REDACTOR) as log:
        log.keep(line(b"\xff not text"))
        log.keep(line(f'{{"key": "{SECRET}"}}'.encode()))
        log.keep(Line(b"", True, Stub(50_000_000, "0" * 64)))
    first, second, third, rest = path.read_bytes().split(b"\n")
    assert first == b"\xff not text"
    assert SECRET.encode() not in second
    assert b"[redacted:MY_KEY:" in second
    assert b"50000000" in third
    assert rest == b""
    assert log.failure is None


def test_a_raw_log_is_continued_by_the_next_turn(tmp_path: Path) -> None:
    for data in (b"one", b"two"):
        with RawLog(tmp_path / "log", REDACTOR) as log:
            log.keep(line(data))
    assert (tmp_path / "log").read_bytes() == b"one\ntwo\n"


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in (rawlog, runlog):
        monkeypatch.setattr(room, "appending", lambda _: os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb"))


@pytest.mark.usefixtures("full_disk")
def test_a_raw_log_that_cannot_be_written_says_why_and_goes_on(tmp_path: Path) -> None:
    with RawLog(tmp_path / "log", REDACTOR) as log:
        log.keep(line(b"one"))
        log.keep(line(b"two"))
    assert "No space left" in str(log.failure)


def test_a_raw_log_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with RawLog(tmp_path / "file" / "log", REDACTOR) as log:
        log.keep(line(b"one"))
    assert log.failure is not None


def test_what_rooms_log_is_kept_redacted_while_the_run_lasts(tmp_path: Path) -> None:
    path, logger = tmp_path / "runtime.log", logging.getLogger("hankwatch.some.room")
    with run_log(path, REDACTOR):
        logger.info("queue full with %s", SECRET)
        logger.debug("too much to keep")
    logger.warning("after it")
    content = path.read_text()
    assert "INFO hankwatch.some.room: queue full with [redacted:MY_KEY:" in content
    assert content.count("\n") == 1


@pytest.mark.usefixtures("full_disk")
def test_a_run_log_that_cannot_be_written_is_no_second_failure(tmp_path: Path) -> None:
    with run_log(tmp_path / "runtime.log", REDACTOR):
        logging.getLogger("hankwatch").error("the disk is full")


def link_to_another(path: Path) -> None:
    path.with_name("other").touch()
    path.symlink_to(path.with_name("other"))


def name_of_another(path: Path) -> None:
    path.with_name("other").touch()
    path.hardlink_to(path.with_name("other"))


@pytest.mark.parametrize("prepare", [os.mkfifo, os.mkdir, link_to_another, name_of_another])
def test_no_log_waits_for_or_goes_into_what_an_agent_put_in_its_place(
    tmp_path: Path, prepare: Callable[[Path], None]
) -> None:
    prepare(tmp_path / "log")
    with RawLog(tmp_path / "log", REDACTOR) as log:
        log.keep(line(b"one"))
    with run_log(tmp_path / "log", REDACTOR):
        logging.getLogger("hankwatch").error("one")
    assert log.failure is not None
    other = tmp_path / "other"
    assert not other.exists() or other.read_bytes() == b""
