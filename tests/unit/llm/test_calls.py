"""The call log's file, and the digest that names a request."""

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hankwatch.core.redaction import Redactor
from hankwatch.llm.call import Call, digest_of
from hankwatch.llm.calls import CallLog
from hankwatch.llm.client import Message, ModelReply, ModelRequest

REQUEST = ModelRequest("acme/one", (Message("system", "be brief"), Message("user", "?")))
CALL = Call("1", REQUEST, started_ms=0, outcome=ModelReply("ok", 1, 1, 0.5))


def _log(path: Path, failures: list[OSError] | None = None) -> CallLog:
    return CallLog(path, redactor=Redactor(), on_failure=(failures if failures is not None else []).append)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "acme/two"},
        {"messages": (Message("user", "be brief"), Message("user", "?"))},
        {"messages": (Message("user", "?"),)},
        {"temperature": 0.5},
        {"max_output_tokens": 1},
        {"json_schema": {"type": "object"}},
    ],
)
def test_what_decides_the_reply_changes_the_digest(change: dict[str, Any]) -> None:
    assert digest_of(replace(REQUEST, **change)) != digest_of(REQUEST)


@pytest.mark.parametrize(
    "change",
    [
        {"max_retries": 0},
        {"timeout_s": 1.0},
        {"labels": {"sentinelId": "narrator"}},
        {"events": ({"id": "1"},)},
        {"temperature": 0},
    ],
)
def test_what_does_not_leaves_it(change: dict[str, Any]) -> None:
    assert digest_of(replace(REQUEST, **change)) == digest_of(REQUEST)


def test_a_digest_stays_the_same_over_versions() -> None:
    assert digest_of(REQUEST) == "a623e1f17fafea4ab437a34f96de7cb10982fe83d0950993bfbdad6fe6cb9a3f"


def test_lines_follow_each_other(tmp_path: Path) -> None:
    log = _log(tmp_path / "a" / "calls.jsonl")
    for number in "123":
        log.write(replace(CALL, id=number))
    lines = (tmp_path / "a" / "calls.jsonl").read_text().splitlines()
    assert [json.loads(line)["callId"] for line in lines] == ["1", "2", "3"]


def test_a_torn_last_line_is_closed_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    path.write_bytes(b'{"callId":"torn')
    _log(path).write(CALL)
    torn, line = path.read_bytes().splitlines()
    assert torn == b'{"callId":"torn'
    assert json.loads(line)["callId"] == "1"


def test_a_short_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[OSError] = []
    log = _log(tmp_path / "calls.jsonl", failures)
    log.write(CALL)
    whole = (tmp_path / "calls.jsonl").read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:10]))
    log.write(CALL)
    assert (tmp_path / "calls.jsonl").read_bytes() == whole
    assert "10 of" in str(failures[0])


def test_neither_a_link_nor_a_pipe_is_written_to(tmp_path: Path) -> None:
    failures: list[OSError] = []
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    (tmp_path / "link").symlink_to(victim)
    (tmp_path / "name").hardlink_to(victim)
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "name", "pipe"):
        _log(tmp_path / name, failures).write(CALL)
    assert len(failures) == 3
    assert victim.read_text() == "mine\n"


@pytest.mark.parametrize("swapped", [".hankweave", ".hankweave/sentinels"])
def test_no_folder_on_the_way_may_be_a_link(tmp_path: Path, swapped: str) -> None:
    failures: list[OSError] = []
    elsewhere, execution = tmp_path / "elsewhere", tmp_path / "execution"
    (elsewhere / "sentinels").mkdir(parents=True)
    path = execution / ".hankweave" / "sentinels" / "calls.jsonl"
    path.parent.mkdir(parents=True)
    log = CallLog(path, redactor=Redactor(), on_failure=failures.append, root=execution)
    log.write(CALL)
    (execution / swapped).rename(execution / "moved")
    (execution / swapped).symlink_to(elsewhere)
    log.write(CALL)
    assert [file for file in elsewhere.rglob("*") if file.is_file()] == []
    assert [failure.errno for failure in failures] == [errno.ENOTDIR]


def test_a_folder_that_was_taken_away_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "calls.jsonl"
    log = _log(path)
    log.write(CALL)
    shutil.rmtree(tmp_path / "a")
    log.write(CALL)
    assert len(path.read_text().splitlines()) == 1


def test_what_json_lacks_is_made_to_fit(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    _log(path).write(replace(CALL, request=replace(REQUEST, json_schema={"maximum": float("inf")})))
    assert json.loads(path.read_text())["request"]["jsonSchema"] == {"maximum": None}
