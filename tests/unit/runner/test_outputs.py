"""What a codon made, copied out: under which names, after which commands, and what is said when it fails."""

import json
import os
import shutil
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from pydantic import TypeAdapter
from tests.support.children import flowing
from tests.support.streams import Bench
from tests.support.workspaces import contents, execution, write

from hankwatch.core.redaction import Redactor
from hankwatch.hank.rig import OutputGroup
from hankwatch.processes import marked_pids
from hankwatch.runner.control import CodonStop, StopReason
from hankwatch.runner.outputs import Outputs, copy_out

GROUPS: TypeAdapter[tuple[OutputGroup, ...]] = TypeAdapter(tuple[OutputGroup, ...])


def group(*copy: str, before: list[Any] | None = None) -> dict[str, Any]:
    return {"copy": list(copy), "beforeCopy": before or []}


class OutputBench(Bench):
    """Outputs of an execution directory."""

    def __init__(self, tmp_path: Path, *groups: dict[str, Any], files: dict[str, str | bytes] | None = None) -> None:
        super().__init__(None)
        self.layout = execution(tmp_path, files)
        self.target = tmp_path / "deep" / "output"
        self.heard: list[tuple[str, dict[str, Any]]] = []
        self.stream.subscribe(lambda event: self.heard.append((event.type, event.data)), name="heard")
        self.stop = CodonStop(grace_s=1.0)
        self.marker = f"test-{uuid4().hex}/outputs"
        self.outputs = Outputs(
            groups=GROUPS.validate_json(json.dumps(groups)),
            output_dir=self.target,
            codon_id="one#0",
            base_codon_id="one",
            layout=self.layout,
            env={"PATH": os.environ["PATH"], "NAME": "made"},
            marker=self.marker,
            log_path=self.layout.agent_log("r-1", "one#0", 1, "outputs"),
            stream=self.stream,
            redactor=Redactor({"KEY": "hunter2-hunter2"}),
            stop=self.stop,
            clock=self.clock,
        )


async def test_what_the_globs_take_is_copied_after_the_commands_ran(tmp_path: Path) -> None:
    before = ["echo built > dist/$NAME", {"type": "command", "command": {"run": "exit 3"}, "allowFailure": True}]
    bench = OutputBench(
        tmp_path,
        group("dist/**", "top.md", before=before),
        group("missing"),
        files={"dist/a/b": "B", ".gitignore": "dist/", "top.md": "T", "other": "O"},
    )
    (bench.layout.agent_root / "dist/a/b").chmod(0o750)
    end = await bench.outputs.run()
    assert contents(bench.target) == {"dist/a/b": "B", "dist/made": "built\n", "top.md": "T"}
    assert (bench.target / "dist/a/b").stat().st_mode & 0o777 == 0o750
    assert [one.target for one in end.copied] == ["dist/a/b", "dist/made", "top.md"]
    assert end.failures == ()
    assert bench.heard == []


async def test_a_name_that_is_taken_by_other_content_gets_a_number_and_is_told(tmp_path: Path) -> None:
    bench = OutputBench(tmp_path, group("*"), files={"a.md": "new", "b.md": "same", ".env": "new"})
    write(bench.target, {"a.md": "old", "a-1.md": "older", "b.md": "same", ".env": "old"})
    end = await bench.outputs.run()
    assert contents(bench.target) == {
        "a.md": "old",
        "a-1.md": "older",
        "a-2.md": "new",
        "b.md": "same",
        ".env": "old",
        ".env-1": "new",
    }
    assert end.failures == ()
    ((kind, data),) = bench.heard
    assert (kind, data["code"]) == ("info", "output-renamed")
    assert data["details"] == [
        {"original": ".env", "resolved": ".env-1"},
        {"original": "a.md", "resolved": "a-2.md"},
    ]


async def test_copying_again_after_a_crash_changes_nothing(tmp_path: Path) -> None:
    bench = OutputBench(tmp_path, group("a.md", "a.md"), group("*.md"), files={"a.md": "new"})
    write(bench.target, {"a.md": "old"})
    first = await bench.outputs.run()
    bench.outputs._copied = []
    second = await bench.outputs.run()
    assert first == second
    assert contents(bench.target) == {"a.md": "old", "a-1.md": "new"}


async def test_a_failing_command_ends_it_and_is_named(tmp_path: Path) -> None:
    bench = OutputBench(
        tmp_path, group("a", before=["echo hunter2-hunter2 >&2; exit 7", "touch never"]), group("a"), files={"a": "1"}
    )
    end = await bench.outputs.run()
    assert not bench.target.exists()
    assert end.failures[0].endswith("exit code 7: [redacted:KEY:84ca4458]")
    ((kind, data),) = bench.heard
    assert (kind, data["severity"], data["fatal"], data["codon"]) == ("error", "operation", True, "one#0")
    assert "exit code 7" in data["message"]
    assert "hunter2" not in bench.outputs.log_path.read_text()


async def test_a_file_that_cannot_be_copied_is_named_and_the_rest_is_copied(tmp_path: Path) -> None:
    bench = OutputBench(tmp_path, group("**"), files={"a/x": "1", "b": "2"})
    write(bench.target, {"a": "a file stands where the folder should be"})
    end = await bench.outputs.run()
    assert [failure.partition(":")[0] for failure in end.failures] == ["a/x"]
    assert contents(bench.target)["b"] == "2"
    assert bench.heard[-1][0] == "error"


async def test_links_are_left_out_and_named(tmp_path: Path) -> None:
    bench = OutputBench(tmp_path, group("**"), files={"a": "1"})
    write(tmp_path, {"mine/secret": "kept"})
    (bench.layout.agent_root / "link").symlink_to(tmp_path / "mine/secret")
    (bench.layout.agent_root / "folder").symlink_to(tmp_path / "mine")
    end = await bench.outputs.run()
    assert contents(bench.target) == {"a": "1"}
    assert end.failures == ()
    assert bench.heard[0][1]["code"] == "output-skipped"
    assert "folder, link" in bench.heard[0][1]["message"]


async def test_a_stop_ends_the_command_copies_nothing_and_says_so(tmp_path: Path) -> None:
    bench = OutputBench(tmp_path, group("a", before=["sleep 600"]), files={"a": "1"})
    bench.timers.at(bench.stream.now_ms(), lambda _at: bench.stop.request(StopReason.FORCE_STOP))
    bench.stream.emit()
    end = await bench.outputs.run()
    assert end.stopped
    assert [(kind, data["code"], data["fatal"]) for kind, data in bench.heard] == [("error", "output-stopped", False)]
    assert not bench.target.exists()


async def test_a_command_beyond_its_limit_fails(tmp_path: Path) -> None:
    bench = OutputBench(tmp_path, group("a", before=["sleep 600"]), files={"a": "1"})
    bench.outputs.limit_s = 1.0
    async with flowing(bench.clock, step_s=0.05):
        end = await bench.outputs.run()
    assert "longer than 1 s" in end.failures[0]
    assert marked_pids(bench.marker) == []


def test_a_file_system_without_links_is_written_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write(tmp_path, {"w/a": "1", "w/b": "2", "out/a": "old", "out/b": "2"})
    assert copy_out(tmp_path / "w", "a", tmp_path / "out") == "a-1"
    assert copy_out(tmp_path / "w", "b", tmp_path / "out") == "b"
    assert contents(tmp_path / "out") == {"a": "old", "a-1": "1", "b": "2"}


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(_reading: Any, writing: Any, _size: int) -> None:
        writing.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", fill)
    write(tmp_path, {"w/a": "1"})
    outcome = copy_out(tmp_path / "w", "a", tmp_path / "out")
    assert "No space left" in getattr(outcome, "error", "")
    assert contents(tmp_path / "out") == {}
