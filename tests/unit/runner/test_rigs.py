"""A codon's rig: what it copies and runs, what it tells, and what it refuses."""

import os
import signal
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread
import pytest
from pydantic import TypeAdapter
from tests.support.children import flowing
from tests.support.runs import until
from tests.support.streams import Bench
from tests.support.workspaces import contents, execution, write

from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import PathRefused
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import Event
from hankwatch.hank.rig import RigOperation
from hankwatch.processes import marked_pids
from hankwatch.runner.control import CodonStop, StopReason
from hankwatch.runner.layout import Layout
from hankwatch.runner.rigs import Rig, copied_places, rig_source, rig_target

OPERATIONS: TypeAdapter[tuple[RigOperation, ...]] = TypeAdapter(tuple[RigOperation, ...])


def copy(source: str, to: str, **more: Any) -> dict[str, Any]:
    return {"type": "copy", "copy": {"from": source, "to": to}, **more}


def command(run: str, where: str = "project", **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": {"run": run, "workingDirectory": where}, **more}


class RigBench(Bench):
    """A rig in an execution directory, with a hank beside it."""

    def __init__(self, tmp_path: Path, *operations: dict[str, Any], **options: Any) -> None:
        super().__init__(None, {})
        self.layout = execution(tmp_path)
        self.hank_dir = tmp_path / "hank"
        self.hank_dir.mkdir()
        self.heard: list[Event] = []
        self.stream.subscribe(self.heard.append, name="heard")
        self.stop = CodonStop(grace_s=1.0)
        self.marker = f"test-{uuid4().hex}/rig"
        self.rig = Rig(
            operations=OPERATIONS.validate_python(operations),
            codon_id="one#0",
            base_codon_id="one",
            codon_name="Codon one",
            hank_dir=self.hank_dir,
            layout=self.layout,
            env={"PATH": os.environ["PATH"], "GREETING": "hello"},
            marker=self.marker,
            log_path=self.layout.agent_log("r-1", "one#0", 1, "rig"),
            stream=self.stream,
            redactor=Redactor({"KEY": "hunter2-hunter2"}),
            stop=self.stop,
            clock=options.pop("clock", self.clock),
            **options,
        )

    def said(self, kind: str) -> list[dict[str, Any]]:
        return [event.data for event in self.heard if event.type == kind]

    def told(self) -> list[str]:
        return [data["message"] for data in self.said("info")]


async def test_a_rig_copies_and_runs_in_order_and_tells_each_step(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, copy("tools", "kit"), command("cat a.txt > ../seen; echo $GREETING", "lastCopied"))
    write(bench.hank_dir, {"tools/a.txt": "A", "tools/deep/b.txt": "B"})
    (bench.hank_dir / "tools/a.txt").chmod(0o755)
    end = await bench.rig.run()
    assert end.failure is None
    assert contents(bench.layout.agent_root) == {"kit/a.txt": "A", "kit/deep/b.txt": "B", "seen": "A"}
    assert os.access(bench.layout.agent_root / "kit/a.txt", os.X_OK)
    assert bench.told() == [
        "Rig setup started for codon 'Codon one': 2 operation(s)",
        "Rig operation 1/2: copy tools → kit",
        "Rig operation 2/2: command cat a.txt > ../seen; echo $GREETING",
        "Rig setup completed for codon 'Codon one' (0ms, 2 succeeded)",
    ]
    (output,) = bench.said("rig.output")
    assert output == {
        "codonId": "one#0",
        "baseCodonId": "one",
        "stream": "stdout",
        "line": "hello",
        "commandIndex": 1,
    }
    completed = end.completed("one#0", "one", created_checkpoint=True).dump()
    assert (completed["rigType"], completed["commandCount"], completed["createdCheckpoint"]) == ("commands", 2, True)


async def test_one_operation_is_a_rig_of_type_command(tmp_path: Path) -> None:
    end = await RigBench(tmp_path, command("true")).rig.run()
    assert end.completed("one", "one", created_checkpoint=False).rig_type == "command"


async def test_last_copied_is_the_folder_of_a_copied_file_and_else_the_workspace(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, command("mkdir sub; pwd > first", "lastCopied"), copy("f", "sub/f"))
    bench.rig.operations = (
        *bench.rig.operations,
        *OPERATIONS.validate_python([command("pwd > ../second", "lastCopied")]),
    )
    write(bench.hank_dir, {"f": ""})
    end = await bench.rig.run()
    root = bench.layout.agent_root
    assert (root / "first").read_text().strip() == str(root)
    assert (root / "second").read_text().strip() == str(root / "sub")
    assert end.last_copied == root / "sub"


async def test_what_stands_at_the_target_is_replaced(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, copy("new", "kit"))
    write(bench.hank_dir, {"new/a": "new"})
    write(bench.layout.agent_root, {"kit/a": "old", "kit/b": "old"})
    await bench.rig.run()
    assert contents(bench.layout.agent_root) == {"kit/a": "new"}


async def test_a_link_at_the_target_is_replaced_and_not_followed(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, copy("new", "kit"))
    write(bench.hank_dir, {"new/a": "new"})
    write(tmp_path, {"mine/precious": "kept"})
    (bench.layout.agent_root / "kit").symlink_to(tmp_path / "mine")
    await bench.rig.run()
    assert contents(bench.layout.agent_root) == {"kit/a": "new"}
    assert contents(tmp_path / "mine") == {"precious": "kept"}


async def test_a_failed_copy_leaves_what_was_at_the_target(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, copy("new", "kit"))
    write(bench.hank_dir, {"new/a": "new"})
    (bench.hank_dir / "new/link").symlink_to("a")
    write(bench.layout.agent_root, {"kit/a": "old"})
    end = await bench.rig.run()
    assert "links are not copied" in end.message
    assert contents(bench.layout.agent_root) == {"kit/a": "old"}
    assert contents(bench.layout.managed / "tmp") == {"rig/": ""}


async def test_a_fifo_in_the_source_is_refused_without_waiting(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, copy("new", "kit"))
    (bench.hank_dir / "new").mkdir()
    os.mkfifo(bench.hank_dir / "new/pipe")
    end = await bench.rig.run()
    assert end.failure is not None
    assert end.failure.failure_type == "other"
    assert "regular file" in end.message


async def test_a_failing_command_ends_the_rig_with_its_code_and_complaint(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, command("echo no luck >&2; exit 7"), command("touch never"))
    end = await bench.rig.run()
    assert (end.message, end.stopped) == ("exit code 7: no luck", False)
    (failed,) = bench.said("rig.setup.failed")
    assert failed == {
        "codonId": "one#0",
        "baseCodonId": "one",
        "failureType": "command_failed",
        "exitCode": 7,
        "commandIndex": 0,
        "ignored": False,
    }
    assert bench.said("rig.output")[0]["line"] == "no luck"
    assert [event.type for event in bench.heard][-2:] == ["rig.output", "rig.setup.failed"]
    assert contents(bench.layout.agent_root) == {}


@pytest.mark.parametrize("ignore_all", [True, False])
async def test_an_ignored_failure_is_told_and_the_rig_goes_on(tmp_path: Path, ignore_all: bool) -> None:
    allowed = command("exit 3", allowFailure=not ignore_all)
    bench = RigBench(tmp_path, allowed, command("touch after"), ignore_failures=ignore_all)
    end = await bench.rig.run()
    assert end.failure is None
    assert bench.said("rig.setup.failed")[0]["ignored"] is True
    (error,) = bench.said("error")
    assert (error["fatal"], error["severity"], error["codon"]) == (False, "operation", "one#0")
    assert bench.told()[-1].endswith("(0ms, 1 succeeded, 1 failed)")
    assert contents(bench.layout.agent_root) == {"after": ""}


async def test_a_signal_is_told_as_the_shell_tells_it(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, command("kill -9 $$"))
    await bench.rig.run()
    assert bench.said("rig.setup.failed")[0]["exitCode"] == 128 + signal.SIGKILL


async def test_a_command_in_a_folder_that_is_gone_fails_as_other(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, copy("d", "d"), command("rm -r ../d", "lastCopied"), command("true", "lastCopied"))
    (bench.hank_dir / "d").mkdir()
    await bench.rig.run()
    (failed,) = bench.said("rig.setup.failed")
    assert (failed["failureType"], failed["commandIndex"]) == ("other", 2)
    assert "exitCode" not in failed


async def test_a_command_beyond_its_limit_is_ended_with_its_tree(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, command("(trap '' TERM; setsid sleep 600) & sleep 600"), limit_s=5.0)
    async with flowing(bench.clock, step_s=0.05):
        end = await bench.rig.run()
    assert bench.said("rig.setup.failed")[0]["failureType"] == "timeout"
    assert "longer than 5 s" in end.message
    assert marked_pids(bench.marker) == []


async def test_a_stop_ends_the_commands_tree_and_the_rig(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, command("setsid sleep 600 & touch begun; sleep 600"), command("touch never"))
    bench.rig.clock = SystemClock()
    async with anyio.create_task_group() as tasks:

        async def stop() -> None:
            await anyio.to_thread.run_sync(until, (bench.layout.agent_root / "begun").exists)
            bench.stop.request(StopReason.FORCE_STOP)

        tasks.start_soon(stop)
        end = await bench.rig.run()
    assert end.stopped
    (failed,) = bench.said("rig.setup.failed")
    assert (failed["failureType"], failed["ignored"]) == ("other", False)
    assert marked_pids(bench.marker) == []
    assert contents(bench.layout.agent_root) == {"begun": ""}


async def test_a_rig_of_a_stopped_codon_does_nothing_though_failures_are_allowed(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, copy("a", "a", allowFailure=True), command("touch never", allowFailure=True))
    write(bench.hank_dir, {"a": ""})
    bench.stop.request(StopReason.SKIP)
    end = await bench.rig.run()
    assert end.stopped
    assert contents(bench.layout.agent_root) == {}


async def test_background_jobs_end_with_their_command(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, command("setsid sleep 600 >/dev/null 2>&1 & echo"))
    assert (await bench.rig.run()).failure is None
    assert marked_pids(bench.marker) == []


async def test_secrets_are_in_no_event_and_no_log_even_where_a_cut_goes_through_them(tmp_path: Path) -> None:
    filler = "x" * 495
    bench = RigBench(tmp_path, command(f"echo {filler}hunter2-hunter2; echo hunter2-hunter2 >&2; exit 1"))
    end = await bench.rig.run()
    everything = [repr(event.data) for event in bench.heard if event.type != "info"]
    log = bench.rig.log_path.read_text()
    assert not any("hunter2" in text for text in (*everything, log, end.message))
    assert max(len(data["line"]) for data in bench.said("rig.output")) == 500


async def test_the_last_line_of_a_burst_wins_and_all_are_logged_and_counted(tmp_path: Path) -> None:
    bench = RigBench(tmp_path, command("printf '1\\n\\n 2 \\n\\033[31m3\\033[0m\\n'"))
    await bench.rig.run()
    assert [data["line"] for data in bench.said("rig.output")] == ["3"]
    assert bench.rig.log_path.read_bytes() == b"1\n\n 2 \n\x1b[31m3\x1b[0m\n"
    assert "2 line(s) of the rig became no event" in bench.told()[-2]


async def test_a_talkative_command_says_one_line_a_second_and_stream(tmp_path: Path) -> None:
    code = "import time\nfor n in range(30):\n print(n, flush=True)\n time.sleep(0.01)"
    bench = RigBench(tmp_path, command(f"{sys.executable} -c '{code}' | tee /dev/stderr"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bench.stream.run, bench.clock)
        async with flowing(bench.clock, step_s=0.01):
            await bench.rig.run()
        tasks.cancel_scope.cancel()
    for stream in ("stdout", "stderr"):
        said = [event for event in bench.heard if event.data.get("stream") == stream]
        stamps = [event.at_ms for event in said[:-1]]  # the last line follows its command's end
        assert all(later - earlier >= 1_000 for earlier, later in pairwise(stamps))
        assert said[-1].data["line"] == "29"


@pytest.mark.parametrize(
    ("to", "why"),
    [
        (".", "workspace itself"),
        ("../agentRoot", "workspace itself"),
        ("..", "workspace itself"),
        ("../..", "leaves the execution directory"),
        ("../../agentRoot/x", "leaves the execution directory"),
        ("/etc/x", "not relative"),
        ("../.hankweave/x", "runtime owns"),
        ("../rigArchive", "runtime owns"),
        ("read_only_data_source", "read-only"),
        ("sub/../read_only_data_source/x", "read-only"),
        ("missing/x", "no parent"),
        ("link/x", "symbolic link"),
        ("a\0b", "not relative"),
    ],
)
def test_a_target_outside_of_what_a_rig_may_write_is_refused(tmp_path: Path, to: str, why: str) -> None:
    layout = execution(tmp_path)
    (layout.agent_root / "link").symlink_to(tmp_path)
    with pytest.raises(PathRefused, match=why):
        rig_target(to, layout)


def test_a_target_beside_the_workspace_is_allowed(tmp_path: Path) -> None:
    layout = execution(tmp_path)
    assert rig_target("../shared-tools/", layout) == layout.root / "shared-tools"
    assert rig_target("./a", layout) == layout.agent_root / "a"


def test_what_a_rig_copies_is_known_without_looking(tmp_path: Path) -> None:
    rig = OPERATIONS.validate_python(
        [copy("a", "kit/"), copy("b", "../shared"), command("x"), copy("c", "./kit"), copy("d", "../../x")]
    )
    assert copied_places(rig, Layout(tmp_path)) == ("agentRoot/kit", "shared")


@pytest.mark.parametrize("ref", [".", "./", "../hank", "missing", "link/x", "/etc"])
def test_a_source_outside_of_the_hank_is_refused(tmp_path: Path, ref: str) -> None:
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(PathRefused):
        rig_source(ref, tmp_path)


def test_layouts_log_of_a_rig_is_named_like_an_agents(tmp_path: Path) -> None:
    assert Layout(tmp_path).agent_log("r", "a#1", 2, "rig").name == "a-1-2-rig.log"
