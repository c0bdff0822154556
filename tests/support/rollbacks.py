"""An execution with a history to roll back over, for tests in this process and in ones that are killed."""

from dataclasses import dataclass, field
from pathlib import Path

from tests.support.checkpoints import EVERYTHING, open_checkpoints
from tests.support.workspaces import Emitted, contents

from hankwatch.runner.archive import Archive, Owner, codon_folder
from hankwatch.runner.checkpoints import Checkpoints, Key, Status
from hankwatch.runner.copying import remove
from hankwatch.runner.globs import Globs
from hankwatch.runner.layout import Layout
from hankwatch.runner.rollback import Rollback
from hankwatch.runner.rollback_plan import Choice, ThreadCodon

FROM, TO = "r-1", "r-2"


@dataclass(slots=True)
class History:
    """Codons of one run that have ended; ``after`` has what stood where when each had."""

    layout: Layout
    checkpoints: Checkpoints
    globs: Globs = EVERYTHING
    thread: list[ThreadCodon] = field(default_factory=list)
    after: dict[str, dict[str, str]] = field(default_factory=dict)
    ended_ms: dict[str, int] = field(default_factory=dict)
    at_ms: int = 1_800_000_000_000
    emitted: Emitted = field(default_factory=Emitted)

    @classmethod
    async def begin(cls, layout: Layout, globs: Globs = EVERYTHING) -> "History":
        checkpoints = await open_checkpoints(layout)
        await checkpoints.begin(FROM)
        return cls(layout, checkpoints, globs)

    async def end(
        self,
        codon_id: str,
        *statuses: Status,
        change: dict[str, str | None] | None = None,
        archive: tuple[str, ...] = (),
        rig: tuple[str, ...] = (),
    ) -> None:
        """A codon changes files (None: removed), is checkpointed with these statuses, and archives."""
        self.edit(change or {})
        saved = []
        for status in statuses or ("completed",):
            self.at_ms += 1_000
            key = Key(FROM, codon_id, 1, status)
            saved.append(await self.checkpoints.save(key, f"Codon {codon_id}", self.globs, self.at_ms))
        self.at_ms += 1_000
        if archive:
            Archive(self.layout).archive(Owner(FROM, codon_id, codon_folder(codon_id)), archive, self.at_ms)
        succeeded = saved[-1].key.status == "completed"
        self.thread.append(
            ThreadCodon(FROM, codon_id, codon_id, f"Codon {codon_id}", succeeded, tuple(saved), rig_targets=rig)
        )
        self.after[codon_id] = self.stands()
        self.ended_ms[codon_id] = self.at_ms

    def edit(self, change: dict[str, str | None]) -> None:
        """Write and remove files of the workspace; a value ``-> target`` makes a link."""
        for name, text in change.items():
            path = self.layout.agent_root / name
            remove(path)
            if text is None:
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if text.startswith("-> "):
                path.symlink_to(text.removeprefix("-> "))
            else:
                path.write_text(text)

    def stands(self) -> dict[str, str]:
        """Every file of the workspace and the archive; empty folders do not count."""
        found = contents(self.layout.root)
        return {path: text for path, text in found.items() if path[-1] != "/" and not path.startswith(".hankweave/")}

    def everything(self) -> dict[str, str]:
        """The same, with what a rollback under way has put aside."""
        return {**contents(self.layout.managed / "rollback"), **self.stands()}

    def rollback(self) -> Rollback:
        """A rollback whose events are in ``emitted``."""
        return Rollback(self.layout, self.checkpoints, Archive(self.layout), self.emitted)

    async def go(self, choice: Choice) -> None:
        """Go back; ``journal`` beside the execution says when the next run began."""
        await self.rollback().run(
            choice,
            from_run=FROM,
            to_run=TO,
            globs=self.globs,
            continue_run=self.continue_run,
            codon_running=False,
            auto_restart=True,
        )

    @property
    def journal(self) -> Path:
        return self.layout.root.parent / "journal"

    async def continue_run(self) -> None:
        self.journal.write_text(TO)

    def run_exists(self, run_id: str) -> bool:
        return self.journal.exists() and self.journal.read_text() == run_id


async def three_codons(layout: Layout) -> History:
    """Rigs, archives, new, changed and removed files, links, and files that are in no checkpoint."""
    history = await History.begin(layout, Globs(["tracked/**", "*.md"]))
    await history.end(
        "one",
        "rig-setup",
        "completed",
        change={
            "a.md": "a1",
            "gone.md": "g1",
            "tracked/file": "f1",
            "tracked/kind": "a file",
            "tracked/link": "-> ../a.md",
            "tracked/old.log": "o1",
            "kit/one": "rig of one",
            "big.bin": "in no checkpoint",
        },
        archive=("**/*.log",),
        rig=("agentRoot/kit",),
    )
    await history.end(
        "two",
        "rig-setup",
        "completed",
        change={
            "a.md": "a2",
            "gone.md": None,
            "tracked/file": None,
            "tracked/file/now": "a folder",
            "tracked/kind": "-> nowhere",
            "tracked/made": "m2",
            "tracked/old.log": "o2",
            "deps/x": "rig of two",
            "notes.txt": "in no checkpoint",
        },
        archive=("big.bin", "tracked/made", "tracked/old.log"),
        rig=("agentRoot/deps", "agentRoot/kit"),
    )
    await history.end("three", "error", change={"a.md": "a3", "late.md": "l3"}, rig=("agentRoot/missing",))
    return history
