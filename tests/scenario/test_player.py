"""A recorded stream played by a real child process, and the stand-in for a real program made of it."""

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.agent_streams import FOLDER, play, stream_lines
from tests.support.children import read_all, start

from hankwatch.agents import player
from hankwatch.agents.claude import Claude
from hankwatch.agents.program import Command, Dialect, TurnRequest
from hankwatch.agents.recorded import RecordedAgent
from hankwatch.processes.child import Exit

REQUEST = TurnRequest("Say hello.")


async def run(command: Command) -> tuple[list[bytes], Exit, str]:
    async with start(list(command.argv), stdin=True) as child:
        for line in command.stdin_lines:
            await child.send(line)
        return await read_all(child), await child.wait(), child.stderr_tail()


def events(lines: Sequence[bytes], dialect: Dialect) -> list[tuple[str, object]]:
    return [(kind, dict(data, executionTimeMs=0)) for kind, data in play(list(lines), dialect).events]


@pytest.mark.parametrize("name", ["claude-unicode", "codex-large", "gemini-success", "opencode-loop", "pi-killed"])
async def test_a_recording_plays_as_it_was(name: str) -> None:
    [path] = FOLDER.glob(f"{name}.jsonl*")
    agent = RecordedAgent(path, max_gap_ms=0)
    lines, end, stderr = await run(agent.command(REQUEST))
    assert lines == stream_lines(name)[:-1]
    assert (end, stderr) == (Exit(code=0), "")
    assert events(lines, agent.dialect()) == events(stream_lines(name), agent.dialect())


async def test_stderr_and_exit_code_are_played_too(tmp_path: Path) -> None:
    noise = tmp_path / "stderr.txt"
    noise.write_bytes(b"warning: old version\n" * 250_000)
    agent = RecordedAgent(FOLDER / "claude-api-error-fatal.jsonl", 0, stderr=noise, exit_code=1)
    lines, end, stderr = await run(agent.command(REQUEST))
    assert len(lines) == len(stream_lines("claude-api-error-fatal")) - 1
    assert end == Exit(code=1)
    assert stderr.endswith("warning: old version\n")


async def test_a_stand_in_for_claude_takes_the_real_command_line(tmp_path: Path) -> None:
    stand_in = tmp_path / "claude"
    recording = FOLDER / "claude-stdin-steer.jsonl"
    stand_in.write_text(f"#!/bin/sh\nexec {sys.executable} {player.__file__} {recording} --max-gap-ms 20\n")
    stand_in.chmod(0o755)
    claude = Claude((str(stand_in),))
    lines, end, _ = await run(claude.command(REQUEST))
    assert end == Exit(code=0)
    assert events(lines, claude.dialect()) == events(stream_lines("claude-stdin-steer"), claude.dialect())


def gaps(stamps: Sequence[str | int | None], cap_ms: float = 250.0) -> list[float]:
    lines = [b"{}" if stamp is None else f'{{"timestamp":{stamp!r}}}'.replace("'", '"').encode() for stamp in stamps]
    return list(player.gaps_ms(lines, cap_ms))


def test_gaps_come_from_the_stamps_and_are_capped() -> None:
    assert gaps(["2026-11-30T15:00:00.000Z", "2026-11-30T15:00:00.100Z", "2026-11-30T15:09:00Z"]) == [0, 100, 250]
    assert gaps([1796051934642, 1796051934722]) == [0, 80]


def test_a_line_without_stamp_or_out_of_order_hardly_waits() -> None:
    assert gaps([None, 2_000, 1_000, None]) == [5, 0, 0, 5]
    assert gaps([None, None], cap_ms=0) == [0, 0]


def test_bytes_are_played_exactly_also_without_a_last_newline(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = b'\xef\xbb\xbf{"a":1}\r\nnot json \xff\n\n{"torn'
    plain, packed = tmp_path / "a.jsonl", tmp_path / "a.jsonl.gz"
    plain.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    for path in (plain, packed):
        assert player.main([str(path), "--speed", "max", "--exit", "3"]) == 3
        assert capfdbinary.readouterr().out == data
