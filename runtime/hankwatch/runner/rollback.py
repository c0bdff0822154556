"""Rollback to a checkpoint: files, rigs and archive go back together, or not at all (reference 3.7).

What it removes is kept below the managed folder until the run that goes on from there is in the journal. Until
then ``recover`` takes everything back, from then on it finishes. What no checkpoint holds is kept for good.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio.to_thread

from hankwatch.core.errors import CheckpointFailed, RollbackRefused
from hankwatch.core.text import clean_text
from hankwatch.events.payload import Payload
from hankwatch.events.run import (
    Info,
    RollbackArchiveRestore,
    RollbackCodonCheckpoint,
    RollbackCompleted,
    RollbackProgress,
    RollbackRigCleanup,
    RollbackStarted,
)
from hankwatch.events.shapes import DirectoryError, PathError
from hankwatch.runner.archive import Archive
from hankwatch.runner.checkpoints import Checkpoints
from hankwatch.runner.copying import remove
from hankwatch.runner.globs import Globs
from hankwatch.runner.layout import Layout
from hankwatch.runner.moves import SAFE, STAGE, MovePlan
from hankwatch.runner.rollback_plan import Changes, Choice, Ground, ThreadCodon, plan_changes
from hankwatch.runner.scan import scan

KEPT: Final = "rollback-kept"
"""Below the managed folder, by run: what rollbacks removed and no checkpoint has."""
_FOLDER: Final = "rollback"
_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Rollback:
    """Goes back in one execution; used by the holder of its lock while no codon runs."""

    layout: Layout
    checkpoints: Checkpoints
    archive: Archive
    emit: Callable[[Payload], object]

    async def run(
        self,
        choice: Choice,
        *,
        from_run: str,
        to_run: str,
        globs: Globs,
        continue_run: Callable[[], Awaitable[object]],
        codon_running: bool,
        auto_restart: bool,
    ) -> None:
        """Go back to ``choice``, with its six kinds of events.

        ``globs`` are those of all codons up to the target's. ``continue_run`` ends the run ``from_run`` and starts
        ``to_run`` in the journal with ``choice.starting_conditions``; once it returns the rollback stands. What
        follows ``rollback.completed`` (a snapshot, the next codon) is the caller's.

        Raises:
            RollbackRefused: a codon runs, or an earlier rollback was not settled by ``recover``. Nothing was emitted.
            GitMissing, CheckpointFailed: the workspace could not be brought back; it is as it was before.
            InfrastructureError: the journal failed; ``recover`` settles it in the next process.
        """
        if codon_running:
            raise RollbackRefused("a codon is running", hint="stop it first, or wait until it has ended")
        plan_folder = self.layout.managed / _FOLDER
        if await anyio.to_thread.run_sync(MovePlan.load, self.layout.root, plan_folder) is not None:
            raise RollbackRefused("an earlier rollback has not been settled", hint="start the run again; it does that")
        changes = await self._plan(choice, globs)
        walked = () if choice.direct else choice.undone
        self._started(choice, from_run, [codon.codon_id for codon in walked])
        completed = _completed(choice, from_run, to_run, auto_restart=auto_restart)
        plan = MovePlan(self.layout.root, plan_folder, changes.steps, _note(to_run, completed, changes))
        failed = await self._carry_out(plan, choice, changes)
        self._tell(choice, changes, walked, failed)
        await continue_run()
        await self._clean_up(plan, completed)

    async def _clean_up(self, plan: MovePlan, completed: RollbackCompleted) -> None:
        """Tell the rest; where something is in the way it stands all the same, and ``recover`` cleans up."""
        try:
            kept = await anyio.to_thread.run_sync(_finish, self.archive, plan)
            if kept is not None:
                self.emit(kept)
        except OSError as error:
            self.emit(completed)
            self._tell_left(error)
            return
        self.emit(completed)
        try:
            # Only now: while the plan is there, a process after a kill knows what is left to tell.
            await anyio.to_thread.run_sync(plan.discard)
        except OSError as error:
            self._tell_left(error)

    def _tell_left(self, error: OSError) -> None:
        self.emit(Info(message=f"What the rollback displaced is still in {_FOLDER}/: {error}", code="rollback-left"))

    async def _plan(self, choice: Choice, globs: Globs) -> Changes:
        target = await self.checkpoints.files(choice.target.sha)
        later: set[str] = set()
        known = {blob.oid for blob in target.values()}
        for codon in choice.undone:
            for saved in codon.checkpoints:
                files = await self.checkpoints.files(saved.sha)
                later |= files.keys()
                known |= {blob.oid for blob in files.values()}
        found = await anyio.to_thread.run_sync(scan, self.layout.agent_root, globs)
        ground = Ground(
            root=self.layout.root,
            workspace=self.layout.agent_root.name,
            folder=f"{self.layout.managed.name}/{_FOLDER}",
            target=target,
            later=later,
            known=known,
            present=found.files.keys(),
            archive=self.archive.entries,
        )
        return await anyio.to_thread.run_sync(plan_changes, choice, ground)

    async def _carry_out(self, plan: MovePlan, choice: Choice, changes: Changes) -> dict[str, str]:
        """Stage and move; everything is as it was when this raises."""
        try:
            if changes.placed:
                await self.checkpoints.export(choice.target.sha, changes.placed, plan.folder / STAGE)
            await anyio.to_thread.run_sync(plan.begin)
        except (CheckpointFailed, OSError) as error:
            await anyio.to_thread.run_sync(remove, plan.folder)
            raise _failure(error) from error
        try:
            return await anyio.to_thread.run_sync(plan.carry_out)
        except OSError as error:
            await anyio.to_thread.run_sync(_undo, plan)
            raise _failure(error) from error

    def _started(self, choice: Choice, from_run: str, walked: list[str]) -> None:
        self.emit(
            RollbackStarted(
                from_run=from_run,
                from_codon=choice.newest.codon_id,
                to_codon=choice.target.key.codon_id,
                to_checkpoint=choice.target.sha,
                checkpoint_type=choice.target.type,
                codons_to_process=walked,
            )
        )

    def _tell(self, choice: Choice, changes: Changes, walked: Sequence[ThreadCodon], failed: dict[str, str]) -> None:
        total = len(walked) + 1
        rest = set(changes.rig_folders)
        for step, codon in enumerate(walked, start=1):
            self._progress(step, total, f"Codon {codon.codon_id} is rolled back")
            if codon.last is not None:
                self.emit(
                    RollbackCodonCheckpoint(
                        codon_id=codon.codon_id,
                        base_codon_id=codon.base_codon_id,
                        codon_name=codon.name,
                        checkpoint=codon.last.sha,
                        checkpoint_type=codon.last.type,
                        message=f"The way back leads over the last checkpoint of codon {codon.codon_id}",
                    )
                )
            folders = [path for path in codon.rig_targets if path in rest]
            rest.difference_update(folders)
            if folders:
                self._tell_cleanup(codon, folders, failed)
        target = choice.target
        self._progress(total, total, f"Checkpoint {target.sha[:12]} of codon {target.key.codon_id} is checked out")
        self._tell_archive(choice, changes, failed)
        self.emit(
            RollbackCodonCheckpoint(
                codon_id=target.key.codon_id,
                base_codon_id=choice.kept[-1].base_codon_id,
                codon_name=target.codon_name,
                checkpoint=target.sha,
                checkpoint_type=target.type,
                message=f"The workspace is as it was at checkpoint {target.sha[:12]} of codon {target.key.codon_id}",
            )
        )

    def _progress(self, step: int, total: int, message: str) -> None:
        self.emit(RollbackProgress(current_step=step, total_steps=total, message=message))

    def _tell_cleanup(self, codon: ThreadCodon, folders: list[str], failed: dict[str, str]) -> None:
        ids: dict[str, Any] = {
            "codon_id": codon.codon_id,
            "base_codon_id": codon.base_codon_id,
            "codon_name": codon.name,
            "directories": [clean_text(folder) for folder in folders],
        }
        self.emit(RollbackRigCleanup(**ids, status="started"))
        gone = [folder for folder in folders if folder not in failed]
        left = [DirectoryError(directory=clean_text(f), error=failed[f]) for f in folders if f in failed]
        self.emit(
            RollbackRigCleanup(
                **ids,
                status="completed" if not left else "partial" if gone else "failed",
                successful_cleanups=[clean_text(folder) for folder in gone],
                failed_cleanups=left or None,
            )
        )

    def _tell_archive(self, choice: Choice, changes: Changes, failed: dict[str, str]) -> None:
        back = [entry.path for entry in changes.restored if entry.target not in failed]
        left = [PathError(path=clean_text(e.path), error="something else stands in its place") for e in changes.blocked]
        left += [
            PathError(path=clean_text(e.path), error=failed[e.target]) for e in changes.restored if e.target in failed
        ]
        if back or left:
            self.emit(
                RollbackArchiveRestore(
                    codon_id=choice.target.sha,
                    restored_paths=[clean_text(path) for path in back],
                    failed_paths=left or None,
                    status="completed" if not left else "partial" if back else "failed",
                )
            )


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of a rollback whose process was killed."""

    finished: RollbackCompleted | None
    """It stands: this is its last event, which may not have been emitted. None: it was taken back."""
    kept: Info | None = None
    """What was displaced and is in no checkpoint, and where it is now."""

    def infos(self) -> tuple[Info, ...]:
        """Tell it to people."""
        if self.finished is None:
            return (Info(message="A rollback that was interrupted has been taken back", code="rollback-undone"),)
        told = Info(message="A rollback that was interrupted has been finished", code="rollback-finished")
        return (told,) if self.kept is None else (told, self.kept)


def recover(
    layout: Layout,
    archive: Archive,
    run_exists: Callable[[str], bool],
    tell: Callable[[Recovered], object] = bool,
) -> Recovered | None:
    """Settle a rollback that a killed process left; None without one. Blocks, for a thread.

    To be called under the execution's lock before anything else touches the workspace. ``run_exists`` tells whether
    the journal has a RunStarted of that run. ``tell`` is called, in this thread, before the last trace is removed.

    Raises:
        CheckpointFailed: it can neither be finished nor taken back; nothing is lost, and it may be tried again.
    """
    plan = MovePlan.load(layout.root, layout.managed / _FOLDER)
    if plan is None:
        return None
    try:
        if plan.state == "done" and run_exists(plan.note["toRun"]):
            kept = _finish(archive, plan)
            recovered = Recovered(RollbackCompleted.model_validate(plan.note["completed"]), kept)
            tell(recovered)
            plan.discard()
            return recovered
        plan.undo()
    except OSError as error:
        raise CheckpointFailed("settling an interrupted rollback", str(error)) from error
    recovered = Recovered(None)
    tell(recovered)
    return recovered


def _finish(archive: Archive, plan: MovePlan) -> Info | None:
    """Let the manifest follow and keep what no checkpoint has; the rest goes with the plan."""
    targets = set(plan.note["archived"])
    archive.forget(e for e in archive.entries if e.target in targets and not os.path.lexists(plan.root / e.target))
    home = plan.folder.with_name(KEPT) / plan.note["toRun"]
    kept = []
    for path in plan.note["unknown"]:
        if os.path.lexists(plan.folder / SAFE / path) and not os.path.lexists(home / path):
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (plan.folder / SAFE / path).rename(home / path)
        if os.path.lexists(home / path):
            kept.append(clean_text(path))
    if not kept:
        return None
    message = (
        f"{len(kept)} file(s) that the rollback removed are in no checkpoint; they are in {home.relative_to(plan.root)}"
    )
    return Info(message=message, code="rollback-kept", details={"paths": kept[:_SHOWN]})


def _undo(plan: MovePlan) -> None:
    try:
        plan.undo()
    except OSError as error:
        raise CheckpointFailed("taking back a failed rollback", str(error)) from error


def _failure(error: CheckpointFailed | OSError) -> CheckpointFailed:
    return error if isinstance(error, CheckpointFailed) else CheckpointFailed("rolling back", str(error))


def _note(to_run: str, completed: RollbackCompleted, changes: Changes) -> dict[str, Any]:
    archived = [entry.target for entry in (*changes.restored, *changes.obsolete)]
    return {"toRun": to_run, "completed": completed.dump(), "archived": archived, "unknown": list(changes.unknown)}


def _completed(choice: Choice, from_run: str, to_run: str, *, auto_restart: bool) -> RollbackCompleted:
    target = choice.target
    return RollbackCompleted(
        codon_id=target.key.codon_id,
        base_codon_id=choice.kept[-1].base_codon_id,
        from_run=from_run,
        to_run=to_run,
        checkpoint=target.sha,
        codon_name=target.codon_name,
        checkpoint_type=target.type,
        auto_restart=auto_restart,
    )
