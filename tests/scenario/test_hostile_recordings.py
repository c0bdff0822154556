"""A recording can hold anything; playing it harms nobody (style: event content is data)."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.support.cli import Cli
from tests.support.recordings import START, event, fires, watcher, write_journal
from tests.support.replays import journal, replayed
from tests.support.sentinels import source

ESCAPES = (
    "\x1b]0;owned\x07\x1b[2J\x9b31mred\u202e\x00 {{ 7*7 }} <% throw 1 %> <script>alert(1)</script> $(id) ../../etc"
)
DEEP = 5_000
DIGITS = "9" * 5_000
HUGE = "x" * 10_000_000


def raw(number: int, type_name: str, data: str) -> str:
    return f'{{"id":"r{number}","timestamp":"{START}","type":"{type_name}","data":{data}}}\n'


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Every kind of it in one journal."""
    path = write_journal(tmp_path / "hostile.jsonl", [event(1, message=ESCAPES)])
    tool = {"codonId": ESCAPES, "toolUseId": "t", "toolName": ESCAPES, "truncated": False, "originalLength": 1}
    lines = [
        raw(2, "tool.result", json.dumps(tool | {"result": HUGE, "executionTimeMs": 1, "isError": True})),
        raw(3, "info", f'{{"message":"digits","details":{{"n":{DIGITS}}}}}'),
        raw(4, "info", '{"message":"deep","details":{"d":' + "[" * DEEP + "]" * DEEP + "}}"),
        raw(5, "error", json.dumps({"message": ESCAPES, "fatal": False, "severity": "operation"})),
        raw(6, ESCAPES.replace("\x1b", "").replace("\x00", "").replace("\x07", "").replace("\x9b", ""), '{"x":1}'),
        "\x00\x01\x02 not json at all \x1b[31m\n",
        '"a string"\n',
        "[" * 100_000 + "\n",
    ]
    with path.open("a", encoding="utf-8", errors="surrogatepass") as file:
        file.writelines(lines)
        file.write('{"id":"r7","timestamp":"2026-01-01T00:00:01Z","type":"info","data":{"message":"\\ud800 lone"}}\n')
    return path


async def test_a_replay_of_it_ends_with_a_journal_that_every_reader_takes(hostile: Path, tmp_path: Path) -> None:
    every = source(trigger={"type": "event", "on": ["*"]}, userPromptText="{{ it.events }} {{ it.codon.name }}")
    result = await replayed(hostile, tmp_path / "out", {"*": [every]})
    events = journal(result.out.root)
    assert (result.bad_lines, result.error_count) == (3, 0)
    assert result.fires["narrator"] == 6
    assert {"r2", "r3", "r4", "r5", "r7"} < {event.id for event in events}
    lines = result.out.journal.read_bytes().splitlines()
    assert [json.loads(line)["id"] for line in lines] == [event.id for event in events]
    assert not any(byte in result.out.journal.read_bytes() for byte in b"\x1b\x00\x07")


def test_try_of_it_fires_on_each_event_that_can_be_read(hostile: Path) -> None:
    assert len(fires(watcher(), hostile)) == 6


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["try", "watcher.json"], ["replay"], ["replay", "--json"]])
def test_commands_print_nothing_of_it_raw(hostile: Path, tmp_path: Path, arguments: list[Any]) -> None:
    config = {
        "id": "watcher",
        "name": "W",
        "model": "builtin/echo",
        "userPromptText": "{{ it.events[0].data.message }}",
        "trigger": {"type": "event", "on": ["info", "error"]},
        "execution": {"strategy": "immediate"},
    }
    (tmp_path / "watcher.json").write_text(json.dumps(config))
    (tmp_path / "home").mkdir()
    name, *rest = arguments
    render = ["--render"] if name == "try" else []
    done = Cli(tmp_path / "home", tmp_path)(name, *rest, hostile, *render)
    assert done.code == 0, done.err
    for text in (done.out, done.err):
        assert not any(character in text for character in "\x1b\x00\x07\x9b")
