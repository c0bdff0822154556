"""A run that died with sentinels loaded: the next one closes them before it goes on."""

import os
from pathlib import Path

import anyio
from tests.support.sentinels import desk, scope, source

from hankwatch.testing import hang


async def crash(root: Path) -> None:
    """One output written, a second call hanging, and then no more events: as after kill -9."""
    answers = ["one", hang()]
    narrator = source(output={"file": "notes.md", "lastValueFile": "last.txt"})
    async with desk(root, answers) as d, d.manager.attach(scope(), [narrator]):
        d.info()
        await d.manager.settle()
        d.info()
        await anyio.wait_all_tasks_blocked()
        d.stream.closed = True


async def test_what_a_crash_left_loaded_is_closed_once(tmp_path: Path) -> None:
    await crash(tmp_path)
    for _ in range(2):
        async with desk(tmp_path) as d:
            d.manager.close_left_loaded()
            closed = d.said("error", "unloaded")
            if not closed:
                return
            error, unloaded = closed
            assert (error["errorType"], error["reason"], error["triggerNumbers"]) == ("abandoned", "crash", [2])
            assert len(error["eventIds"]) == 1
            assert f"`hankwatch try SENTINEL {tmp_path.name} --codon build`" in error["message"]
            assert (unloaded["reason"], unloaded["finalCost"], unloaded["llmCallCount"]) == ("shutdown", 0.001, 1)
    raise AssertionError("it was closed twice")


async def test_reports_are_completed_before_the_run_goes_on(tmp_path: Path) -> None:
    await crash(tmp_path)
    folder = tmp_path / ".hankweave" / "sentinels" / "outputs" / "narrator"
    os.truncate(folder / "notes.md", 4)
    (folder / "last.txt").unlink()
    async with desk(tmp_path) as d:
        d.manager.close_left_loaded()
    assert (folder / "notes.md").read_text() == "\n---\none\n"
    assert (folder / "last.txt").read_text() == "one"


async def test_a_report_that_cannot_be_completed_is_an_error_and_the_rest_goes_on(tmp_path: Path) -> None:
    await crash(tmp_path)
    report = tmp_path / ".hankweave" / "sentinels" / "outputs" / "narrator" / "notes.md"
    report.unlink()
    report.mkdir()
    async with desk(tmp_path) as d:
        d.manager.close_left_loaded()
        assert [data["errorType"] for data in d.said("error")] == ["file-write-failed", "abandoned"]
        assert len(d.said("unloaded")) == 1


async def test_an_orderly_run_leaves_nothing_loaded(tmp_path: Path) -> None:
    async with desk(tmp_path) as d, d.manager.attach(scope(), [source()]):
        d.info()
        await d.manager.settle()
    async with desk(tmp_path) as d:
        d.manager.close_left_loaded()
        assert d.said("error", "unloaded") == []
