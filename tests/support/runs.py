"""Runs of hanks, in this process and as the real command, each held to the laws of every journal."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.hanks import hank
from tests.support.laws import check_laws

from hankwatch.app import open_run
from hankwatch.events.envelope import Event
from hankwatch.llm.client import ModelClient
from hankwatch.options import RunOptions
from hankwatch.processes.tree import marked_pids
from hankwatch.runner.run import RunResult
from hankwatch.stream.reader import JournalReader

STANDIN = Path(__file__).parent / "claude_standin.py"
POLL_S = 0.02
HANKWATCH = [sys.executable, "-c", "from hankwatch.cli.main import main; main()"]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run left in its execution directory."""

    root: Path
    result: RunResult | None = None

    @property
    def events(self) -> list[Event]:
        """The journal; law-abiding."""
        reader = JournalReader(self.journal)
        events = list(reader.read())
        assert reader.bad_lines == 0
        check_laws(events)
        return events

    @property
    def journal(self) -> Path:
        return self.root / ".hankweave" / "events" / "events.jsonl"

    def of(self, *types: str) -> list[Event]:
        return [event for event in self.events if event.type in types]

    def completed(self) -> dict[str, Any]:
        """The payload of the only ``codon.completed``."""
        (event,) = self.of("codon.completed")
        return event.data

    def report(self, sentinel_id: str = "observer") -> str:
        """The text of a sentinel's only report."""
        (path,) = (self.root / ".hankweave" / "sentinels" / "outputs" / sentinel_id).glob("*.md")
        return path.read_text(encoding="utf-8")

    def everything(self) -> bytes:
        """All that was written into the execution directory."""
        return b"".join(path.read_bytes() for path in sorted(self.root.rglob("*")) if path.is_file())

    def raw_log(self) -> bytes:
        """The only turn's raw lines."""
        (path,) = (self.root / ".hankweave" / "runs").glob("*/*.log")
        return path.read_bytes()


def write_hank(folder: Path, *codons: dict[str, Any], files: Mapping[str, Any] | None = None) -> Path:
    """A hank folder; values of ``files`` that are not text are written as JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {"hank.json": hank(*codons), **(files or {})}.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return folder


async def run_here(
    path: Path,
    root: Path,
    *,
    environ: Mapping[str, str] | None = None,
    model: ModelClient | None = None,
    start_new: bool = False,
    resume: bool = False,
    config: Path | None = None,
) -> Ran:
    """Run a hank in this process, to its end."""
    options = RunOptions(path, execution=root, start_new=start_new, resume=resume, config=config)
    async with open_run(options, environ=environment(environ), model_client=model) as live:
        result = await live.carry_out()
        run_id = live.run_id
    assert marked_pids(run_id) == []
    ran = Ran(root, result)
    assert ran.events  # law-abiding
    return ran


def killed_after(ran: Ran, root: Path, event: Event) -> Ran:
    """What a process would have left that was killed once it had written ``event``."""
    shutil.copytree(ran.root, root, symlinks=True)
    cut = Ran(root)
    cut.journal.write_bytes(cut.journal.read_bytes()[: event.cursor])
    # Reports follow the journal: those of sentinels that were unloaded are whole, none knows what was not written.
    whole = sum(e.type == "sentinel.unloaded" for e in cut.events)
    loads = [e.data["report"]["logFile"] for e in ran.of("sentinel.loaded")]
    for path in loads[whole:]:
        (root / path).unlink(missing_ok=True)
    return cut


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """A plain environment without any key of the machine the suite runs on."""
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(extra or {})}


@dataclass(frozen=True, slots=True)
class Standin:
    """The program ``claude`` on a PATH of its own."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    def seen(self) -> dict[str, Any]:
        """How it was called."""
        seen: dict[str, Any] = json.loads((self.folder / "seen.json").read_text())
        return seen

    def calls(self) -> list[dict[str, Any]]:
        """Each call so far, as ``seen``."""
        return self._noted("calls")

    def told(self) -> list[dict[str, Any]]:
        """Each line that it read while it worked."""
        return self._noted("told")

    def _noted(self, what: str) -> list[dict[str, Any]]:
        path = self.folder / f"seen.json.{what}"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def stand_in(folder: Path, *score: Sequence[Any]) -> Standin:
    """Put a ``claude`` that plays ``score`` on the PATH of the environment it returns."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "claude"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{STANDIN}" "$@"\n')
    program.chmod(0o755)
    (folder / "score.json").write_text(json.dumps(score))
    paths = {"CLAUDE_SCORE": str(folder / "score.json"), "CLAUDE_SEEN": str(folder / "seen.json")}
    return Standin(folder, environment({"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", **paths}))


@contextmanager
def command(
    *arguments: str | Path, environ: Mapping[str, str], cwd: Path, argv: Sequence[str] = HANKWATCH
) -> Iterator[subprocess.Popen[bytes]]:
    """The real command as a process of its own, ended with the block."""
    child = subprocess.Popen(
        [*argv, *map(str, arguments)],
        env={**environ},
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def until(what: Callable[[], bool], *, within_s: float = 15.0) -> None:
    """Wait for something that real processes do."""
    deadline = time.monotonic() + within_s
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(POLL_S)


def journaled(root: Path, words: str) -> bool:
    """Whether the journal of a process under way holds these words yet."""
    path = Ran(root).journal
    return path.exists() and words.encode() in path.read_bytes()


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
