"""``hankwatch control RUN rollback TARGET`` on a run of another process that waits: every kind of target."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.cli import Cli, Done
from tests.support.runs import Ran, until
from tests.support.waiting_runs import two_codons, workspace

AFTER_ONE = {"a.txt": "1\n", "b.log": "1\n"}
AFTER_TWO = {"a.txt": "1\n2\n", "late.txt": "2\n", "kit/tool": "tool"}


@dataclass
class Waiting:
    """A run that waits between codons, and whoever steers it from outside."""

    cli: Cli
    ran: Ran
    process: "subprocess.Popen[str]"
    _idles: int = 0
    _posted: int = 0

    def waits(self) -> None:
        """Return once it waits anew."""
        until(lambda: self._count() > self._idles)
        self._idles = self._count()

    def order(self, *words: str) -> Done:
        """Ask for something, which is done."""
        done = self.cli("control", self.ran.root, *words, "--json")
        assert done.code == 0, done
        return done

    def next(self) -> None:
        """Let it go on."""
        self._post(command="next")

    def _post(self, **order: object) -> None:
        """A command file: what the command writes, without its start-up."""
        managed = self.ran.root / ".hankweave"
        run_id = json.loads((managed / "runtime.lock").read_text())["run"]
        self._posted += 1
        written = managed / f"order-{self._posted}"
        written.write_text(json.dumps({"id": written.name, "run": run_id, **order}))
        (managed / "commands").mkdir(exist_ok=True)
        written.rename(managed / "commands" / f"{written.name}.json")

    def go_on(self) -> None:
        """Let it go on until it waits again."""
        self.next()
        self.waits()

    def go_back(self, target: str) -> str:
        """What a rollback to ``target`` was answered with, once the run waits again."""
        answer = str(self.order("rollback", target).json["data"]["message"])
        self.waits()
        return answer

    def go_back_and_on(self, target: str) -> None:
        """A rollback that starts the next codon at once, until the run waits again."""
        self._post(command="rollback", target=target, goOn=True)
        self.waits()

    def _count(self) -> int:
        return self.ran.journal.read_bytes().count(b'"type":"server.idle"') if self.ran.journal.exists() else 0


@contextmanager
def waiting(cli: Cli, hank: Path) -> Iterator[Waiting]:
    root = cli.cwd / "run"
    with cli.start("run", hank, "-e", root, "--no-autostart", stdout=subprocess.DEVNULL) as process:
        try:
            run = Waiting(cli, Ran(root), process)
            run.waits()
            yield run
        finally:
            if process.poll() is None:
                process.kill()


@pytest.mark.slow
@pytest.mark.timeout(60)  # a dozen commands, one after the other
def test_a_waiting_run_is_taken_back_by_every_kind_of_target(cli: Cli) -> None:
    with waiting(cli, two_codons(cli.cwd)) as run:
        root = run.ran.root
        run.go_on()
        run.go_on()
        run.order("checkpoints")
        listed = run.ran.of("checkpoint.list")[-1].data["checkpoints"]
        (sha,) = (row["sha"] for row in listed if (row["codonId"], row["status"]) == ("one", "completed"))

        assert workspace(root) == AFTER_TWO
        assert run.go_back(sha) == f"Rolled back to checkpoint {sha[:12]} (completed) of codon one"
        assert workspace(root) == AFTER_ONE
        run.go_on()
        assert workspace(root) == AFTER_TWO

        (root / "agentRoot" / "a.txt").write_text("spoiled\n")
        assert "(completed) of codon two" in run.go_back("last-success")
        assert workspace(root) == AFTER_TWO

        assert "(rig-setup) of codon two" in run.go_back("two:start")
        assert workspace(root) == {**AFTER_TWO, "b.log": "1\n"}
        run.go_on()
        assert workspace(root) == {**AFTER_TWO, "a.txt": "1\n2\n2\n"}, "its rig is set up anew, over what was there"

        assert "(completed) of codon one" in run.go_back("one:end")
        assert workspace(root) == AFTER_ONE
        refused = cli("control", root, "rollback", "two", "--json")
        assert (refused.code, refused.json["data"]["code"]) == (1, "command-refused")
        assert workspace(root) == AFTER_ONE

        run.go_back_and_on("one:start")
        assert run.ran.of("rollback.completed")[-1].data["autoRestart"] is True
        run.go_on()
        run.next()
        assert run.process.wait(timeout=15) == 0
    assert workspace(root) == AFTER_TWO
    assert [e.data["codonId"] for e in run.ran.of("codon.completed")] == ["one", "two", "two", "two", "one", "two"]
