"""A run of another process that goes on until the test lets it end."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.cli import Cli
from tests.support.hanks import codon, hank, sentinel


@dataclass
class LiveRun:
    """The process, where it runs, and the pipe its agent reads from."""

    process: "subprocess.Popen[str]"
    root: Path
    _agent: int

    @property
    def journal(self) -> Path:
        return self.root / ".hankweave" / "events" / "events.jsonl"

    def say(self, *records: Mapping[str, object]) -> None:
        """Lines of its agent."""
        os.write(self._agent, "".join(json.dumps(record) + "\n" for record in records).encode())

    def let_end(self) -> None:
        """Its agent ends well."""
        self.say({"type": "result", "subtype": "success", "is_error": False, "result": "done", "session_id": "s"})
        os.close(self._agent)
        self._agent = -1


INIT = {"type": "system", "subtype": "init", "session_id": "s", "model": "m"}


@contextmanager
def live_run(cli: Cli, *arguments: object, **options: Any) -> Iterator[LiveRun]:
    """A run whose agent has said its first line; killed at the end if it still lives."""
    pipe, root = cli.cwd / "agent.pipe", cli.cwd / "execution"
    os.mkfifo(pipe)
    attached = [{"sentinelConfig": sentinel("observer", model="builtin/echo")}]
    whole = hank(codon("build", agent=f"exec:cat {pipe}", sentinels=attached))
    (cli.cwd / "hank.json").write_text(json.dumps(whole))
    options = {"stdout": subprocess.DEVNULL, **options}
    with cli.start("run", "--execution", root, *arguments, **options) as process:
        agent = os.open(pipe, os.O_WRONLY)  # waits for the agent to open its end
        run = LiveRun(process, root, agent)
        try:
            run.say(INIT)
            yield run
        finally:
            if run._agent >= 0:
                os.close(run._agent)
            if process.poll() is None:
                process.kill()
