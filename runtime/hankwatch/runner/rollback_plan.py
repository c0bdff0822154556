"""Where a rollback goes and what it changes on the way; looks, decides, and touches nothing."""

import hashlib
import os
import stat
import string
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hankwatch.core.errors import RollbackRefused
from hankwatch.core.files import reading
from hankwatch.runner.archive import Entry
from hankwatch.runner.checkpoints import Blob, Saved, Status
from hankwatch.runner.moves import Step, displace, place

LAST_SUCCESS: Final = "last-success"
"""A target by name: the last checkpoint of a completed codon."""
_KINDS: Final[Mapping[str, frozenset[Status]]] = {
    "start": frozenset({"rig-setup"}),
    "end": frozenset({"completed", "error", "skipped"}),
    "rig-setup": frozenset({"rig-setup"}),
    "completed": frozenset({"completed"}),
    "error": frozenset({"error"}),
    "skipped": frozenset({"skipped"}),
}
"""What of a codon can be named (reference 5), with the statuses of checkpoints that are meant."""
_MIN_SHA: Final = 7
_CHUNK_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ThreadCodon:
    """One attempt of a codon on the way to where the execution stands now."""

    run_id: str
    codon_id: str
    """Runtime id."""
    base_codon_id: str
    name: str
    succeeded: bool
    """Its status is ``completed``."""
    checkpoints: tuple[Saved, ...] = ()
    """Oldest first."""
    rig_targets: tuple[str, ...] = ()
    """What its rig copied, relative to the execution directory (``agentRoot/kit``)."""
    loop_id: str | None = None

    @property
    def last(self) -> Saved | None:
        """Its last checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None


@dataclass(frozen=True, slots=True)
class To:
    """What a rollback was asked to go back to; exactly one is set."""

    checkpoint: str | None = None
    """A SHA, or the beginning of one (7 characters at least)."""
    codon: str | None = None
    """A codon's runtime id: its end, else its last checkpoint; or the last of ``kind``."""
    kind: str | None = None
    """``start``, ``end``, ``rig-setup``, ``completed``, ``error`` or ``skipped``."""
    last_success: bool = False
    """The last checkpoint of a completed codon."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Where it goes, and what lies between there and now."""

    target: Saved
    undone: tuple[ThreadCodon, ...]
    """Newest first."""
    kept: tuple[ThreadCodon, ...]
    """Oldest first, the target's own codon included."""
    newest: ThreadCodon
    """Where the execution stands now."""
    direct: bool = False
    """It lies in a timeline that was left: no codon is walked back over, and what rigs made stays."""

    @property
    def keeps_its_codon(self) -> bool:
        """The target's codon counts as done; otherwise it runs again."""
        return self.target.type in {"completed", "skipped"} and self.target.key.status != "exit"

    @property
    def after_codon(self) -> str | None:
        """The codon after which the execution goes on, as a continuation's starting conditions name it."""
        own = self.kept[-1].codon_id
        if self.keeps_its_codon:
            return own
        # Earlier attempts of it are undone with it: a thread is cut after the last record of a codon.
        return next((codon.codon_id for codon in reversed(self.kept) if codon.codon_id != own), None)

    @property
    def starting_conditions(self) -> dict[str, object]:
        """Of the run that goes on from there (reference 3.6)."""
        source = {
            "runId": self.target.key.run_id,
            "afterCodon": self.after_codon,
            "checkpointSha": self.target.sha,
        }
        return {"type": "continuation", "source": source, "reason": "rollback"}

    def undoes(self, entry: Entry) -> bool:
        """Whether what this entry archived was archived by what is undone."""
        again = () if self.keeps_its_codon else self.kept[-1:]
        owners = {(codon.run_id, name) for codon in (*self.undone, *again) for name in (codon.codon_id, codon.loop_id)}
        return (entry.run_id, entry.owner_id) in owners


def choose(thread: Sequence[ThreadCodon], to: To, others: Iterable[Sequence[ThreadCodon]] = ()) -> Choice:
    """The checkpoint that is meant.

    ``thread`` are the attempts up to now, oldest first; ``others`` the threads of timelines that were left: a
    checkpoint that only one of these has is gone to directly, and the whole thread is undone.

    Raises:
        RollbackRefused: there is no such checkpoint, or several.
    """
    if not thread:
        raise RollbackRefused("nothing has run here yet, so there is nothing to roll back")
    if to.checkpoint is not None:
        return _by_sha(thread, to.checkpoint, others)
    if to.codon is not None:
        places = [i for i, codon in enumerate(thread) if codon.codon_id == to.codon and _last_of(codon, to.kind)]
        missing = f"codon {to.codon} has no checkpoint" + (f" of type {to.kind}" if to.kind else "")
    else:
        places = [index for index, codon in enumerate(thread) if codon.succeeded and _completed(codon)]
        missing = "no codon has completed with a checkpoint yet"
    if not places:
        raise RollbackRefused(missing, hint="the checkpoint list names those there are")
    codon = thread[places[-1]]
    target = _last_of(codon, to.kind) if to.codon is not None else _completed(codon)
    assert target is not None
    return _at(thread, places[-1], target)


def read_target(text: str) -> To:
    """What an operator names: ``last-success``, a checkpoint's SHA, a codon, or ``CODON:TYPE``.

    What could be a SHA is one; ``CODON:end`` names a codon whose id looks like that.
    """
    if text == LAST_SUCCESS:
        return To(last_success=True)
    codon, _, kind = text.rpartition(":")
    if codon and kind in _KINDS:
        return To(codon=codon, kind=kind)
    is_sha = len(text) >= _MIN_SHA and set(text) <= set(string.hexdigits)
    return To(checkpoint=text.lower()) if is_sha else To(codon=text)


def _last_of(codon: ThreadCodon, kind: str | None) -> Saved | None:
    if kind is None:  # not what was made at the end of a run that stopped behind it: with that it would run again
        return _last_of(codon, "end") or codon.last
    return next((saved for saved in reversed(codon.checkpoints) if saved.key.status in _KINDS[kind]), None)


def _completed(codon: ThreadCodon) -> Saved | None:
    return next((saved for saved in reversed(codon.checkpoints) if saved.key.status == "completed"), None)


def _by_sha(thread: Sequence[ThreadCodon], sha: str, others: Iterable[Sequence[ThreadCodon]]) -> Choice:
    if len(sha) < _MIN_SHA:
        raise RollbackRefused(f"{sha!r} is too short to name a checkpoint", hint=f"give {_MIN_SHA} characters of it")
    here = _named(thread, sha)
    found = dict(here)
    for other in others:
        found = {**_named(other, sha), **found}
    if len(found) != 1:
        count = "more than one" if found else "no"
        raise RollbackRefused(f"{sha!r} names {count} checkpoint", hint="the checkpoint list names those there are")
    ((codons, index, target),) = found.values()
    if here:
        return _at(thread, index, target)
    return Choice(target, tuple(reversed(thread)), tuple(codons[: index + 1]), thread[-1], direct=True)


def _named(thread: Sequence[ThreadCodon], sha: str) -> dict[str, tuple[Sequence[ThreadCodon], int, Saved]]:
    return {
        saved.sha: (thread, index, saved)
        for index, codon in enumerate(thread)
        for saved in codon.checkpoints
        if saved.sha.startswith(sha)
    }


def _at(thread: Sequence[ThreadCodon], index: int, target: Saved) -> Choice:
    return Choice(target, tuple(reversed(thread[index + 1 :])), tuple(thread[: index + 1]), thread[-1])


@dataclass(frozen=True, slots=True)
class Changes:
    """What a rollback does to the execution directory."""

    steps: tuple[Step, ...]
    placed: tuple[str, ...]
    """Files of the checkpoint that have to be staged, relative to the workspace."""
    rig_folders: tuple[str, ...]
    """What rigs had made and goes, relative to the execution directory."""
    restored: tuple[Entry, ...]
    """Archived files that come back."""
    obsolete: tuple[Entry, ...]
    """Archived files that do not: the checkpoint has its own version, or the undone had made them."""
    blocked: tuple[Entry, ...]
    """Archived files in whose place something else stands; they stay in the archive."""
    unknown: tuple[str, ...]
    """What is displaced and holds something that no checkpoint has, relative to the execution directory; not what
    rigs had made."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What has to be known to plan a rollback."""

    root: Path
    """The execution directory."""
    workspace: str
    """Name of the workspace in it."""
    folder: str
    """The plan's own folder, relative to ``root``."""
    target: Mapping[str, Blob]
    """Files of the checkpoint, relative to the workspace."""
    later: Collection[str]
    """Files of the workspace that stand in checkpoints that are undone."""
    known: Collection[str]
    """Ids of every content that these checkpoints and the target hold."""
    present: Collection[str]
    """Files of the workspace that the target's globs take now."""
    archive: tuple[Entry, ...]


def plan_changes(choice: Choice, ground: Ground) -> Changes:
    """Compare what is there with what should be; blocks, for a thread.

    What goes: files that the target's globs take or that undone checkpoints hold, and that the target lacks; what
    undone rigs copied, unless a kept rig had copied it too. All of it is displaced, nothing removed. What was
    archived since comes back.
    """
    root, target = ground.root, _without_archived(choice, ground)
    rigs = set() if choice.direct else _rig_folders(choice, ground)
    roots = _topmost([*rigs, *_blocking(ground, target)])
    steps = [displace(path, ground.folder, optional=path in rigs) for path in roots]
    differing = {path for path, blob in target.items() if not _is(root, f"{ground.workspace}/{path}", blob)}
    displaced = set(roots)
    for path in sorted(({*ground.later, *ground.present} - target.keys()) | differing):
        whole = f"{ground.workspace}/{path}"
        mode = _stands(root, whole)
        if mode is not None and not stat.S_ISDIR(mode) and not _below(whole, roots):
            steps.append(displace(whole, ground.folder))
            displaced.add(whole)
    wanted = {path for path in target if path in differing or _below(f"{ground.workspace}/{path}", roots)}
    coming = _Coming()
    for entry in (entry for entry in ground.archive if choice.undoes(entry)):
        if _is_blocked(root, entry.source, displaced) or coming.brings(entry.source):
            coming.leave(entry, ground, target)
        else:
            coming.take(entry, ground, target)
    steps += [displace(path, ground.folder) for path in coming.outdated]
    steps += _folders(root, [entry.source for entry in coming.restored], roots)
    steps += [Step("restore", e.target, e.source, optional=e not in coming.needed) for e in coming.restored]
    placed = sorted(wanted - coming.back)
    steps += _folders(root, [f"{ground.workspace}/{path}" for path in placed], roots)
    steps += [place(f"{ground.workspace}/{path}", ground.folder, path) for path in placed]
    lost = [step.source for step in steps if step.kind == "displace" and step.source not in rigs]
    return Changes(
        tuple(steps),
        tuple(placed),
        tuple(path for path in roots if path in rigs),
        tuple(coming.restored),
        tuple(coming.obsolete),
        tuple(coming.blocked),
        tuple(path for path in lost if not _is_known(root / path, ground.known)),
    )


@dataclass(slots=True)
class _Coming:
    """What becomes of archived files; one that is as the checkpoint has it comes back instead of a copy."""

    restored: list[Entry] = field(default_factory=list)
    obsolete: list[Entry] = field(default_factory=list)
    blocked: list[Entry] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)
    """Files in the archive, relative to the execution directory, that must not come back."""
    back: set[str] = field(default_factory=set)
    """Files of the checkpoint that come back, relative to the workspace."""
    needed: set[Entry] = field(default_factory=set)
    """Entries that bring such files."""

    def brings(self, path: str) -> bool:
        """Whether something of ``path``, or all around it, comes back already."""
        return any(_below(path, [e.source]) or _below(e.source, [path]) for e in self.restored)

    def leave(self, entry: Entry, ground: Ground, target: Mapping[str, Blob]) -> None:
        """It cannot come back; a file that a checkpoint has need not."""
        if entry.path in target or entry.path in ground.later:
            self.outdated.append(entry.target)
            self.obsolete.append(entry)
        else:
            self.blocked.append(entry)

    def take(self, entry: Entry, ground: Ground, target: Mapping[str, Blob]) -> None:
        tracked = [path for path in {*target, *ground.later} if _below(path, [entry.path])]
        for path in sorted(tracked):
            there = f"{entry.target}{path[len(entry.path) :]}"
            mode = _stands(ground.root, there)
            if mode is None or stat.S_ISDIR(mode):
                continue
            if path in target and _is(ground.root, there, target[path]):
                self.back.add(path)
                self.needed.add(entry)
            else:
                self.outdated.append(there)
        (self.obsolete if entry.target in self.outdated else self.restored).append(entry)


def _without_archived(choice: Choice, ground: Ground) -> dict[str, Blob]:
    """The checkpoint was made before its codon's files were archived: those stay where they are."""
    kept = [e.path for e in ground.archive if not choice.undoes(e) and e.at_ms >= choice.target.at_ms]
    return {path: blob for path, blob in ground.target.items() if not _below(path, kept)}


def _rig_folders(choice: Choice, ground: Ground) -> set[str]:
    kept = [path for codon in choice.kept for path in codon.rig_targets]
    undone = {path for codon in choice.undone for path in codon.rig_targets}
    return {
        path
        for path in undone
        if _stands(ground.root, path) is not None
        and not _below(path, kept)
        and not any(_below(k, [path]) for k in kept)
    }


def _blocking(ground: Ground, target: Iterable[str]) -> set[str]:
    """What stands where a folder or file of the checkpoint has to be, and is of the other kind."""
    found: set[str] = set()
    for path in target:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            whole = "/".join((ground.workspace, *parts[:depth]))
            mode = _stands(ground.root, whole)
            if mode is None:
                break
            if stat.S_ISDIR(mode) == (depth == len(parts)):
                found.add(whole)
                break
    return found


def _folders(root: Path, wanted: Iterable[str], displaced: Sequence[str]) -> list[Step]:
    """Make the folders above ``wanted`` that are not there, or not any more once ``displaced`` is gone."""
    missing: set[str] = set()
    for path in wanted:
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if not (root / folder).is_dir() or _below(folder, displaced):
                missing.add(folder)
    return [Step("folder", "", folder) for folder in sorted(missing)]


def _topmost(paths: Iterable[str]) -> list[str]:
    top: list[str] = []
    for path in sorted(set(paths), key=lambda one: one.count("/")):
        if not _below(path, top):
            top.append(path)
    return top


def _below(path: str, folders: Iterable[str]) -> bool:
    """Whether ``path`` is one of ``folders`` or lies in one."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _stands(root: Path, path: str) -> int | None:
    """The mode of what stands at ``path``, reached through real folders only; None for nothing."""
    try:
        *above, _ = path.split("/")
        place = root
        for part in above:
            place /= part
            if not stat.S_ISDIR(place.lstat().st_mode):
                return None
        return (root / path).lstat().st_mode
    except OSError:
        return None


def _is_blocked(root: Path, path: str, displaced: Collection[str]) -> bool:
    """Whether something stands at ``path``, or above it something that is no folder, and stays there."""
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        place = "/".join(parts[:depth])
        if place in displaced:
            return False
        mode = _stands(root, place)
        if mode is None:
            return False
        if depth == len(parts) or not stat.S_ISDIR(mode):
            return True
    return False


def _is(root: Path, path: str, blob: Blob) -> bool:
    """Whether the file or link at ``path`` is what the checkpoint holds."""
    mode, whole = _stands(root, path), root / path
    if mode is None:
        return False
    try:
        if blob.mode == "120000":
            return stat.S_ISLNK(mode) and _oid(os.fsencode(whole.readlink())) == blob.oid
        executable = "100755" if mode & stat.S_IXUSR else "100644"
        return stat.S_ISREG(mode) and executable == blob.mode and _file_oid(whole) == blob.oid
    except OSError:
        return False


def _is_known(path: Path, known: Collection[str]) -> bool:
    """Whether everything at ``path`` is in a checkpoint, by its content."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            return all(_is_known(inner, known) for inner in path.iterdir())
        if stat.S_ISLNK(mode):
            return _oid(os.fsencode(path.readlink())) in known
        return not stat.S_ISREG(mode) or _file_oid(path) in known
    except OSError:
        return False


def _oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _file_oid(path: Path) -> str:
    """The name git gives to the file's content."""
    with reading(path) as file:
        digest = hashlib.sha1(b"blob %d\0" % os.fstat(file.fileno()).st_size, usedforsecurity=False)
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
