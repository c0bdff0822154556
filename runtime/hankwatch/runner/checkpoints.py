"""Checkpoints of the workspace: commits in a shadow git repository beside it (reference 3.7)."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final, Literal, Self

import anyio.to_thread
import orjson

from hankwatch.core.clock import Clock
from hankwatch.core.errors import CheckpointFailed, GitMissing, PathRefused
from hankwatch.core.files import replace_file
from hankwatch.core.text import clean_text, shorten, strip_controls
from hankwatch.events.envelope import format_stamp
from hankwatch.events.run import Checkpoint, CheckpointList
from hankwatch.events.shapes import CheckpointType, PathError
from hankwatch.runner.git import Git, unquoted
from hankwatch.runner.globs import Globs
from hankwatch.runner.inside import open_inside
from hankwatch.runner.layout import Layout
from hankwatch.runner.scan import Scan, look

Status = Literal["rig-setup", "completed", "error", "skipped", "exit"]
"""What a checkpoint was made for."""

_TYPES: Final[dict[Status, CheckpointType]] = {
    "rig-setup": "rig-setup",
    "completed": "completed",
    "error": "error",
    "skipped": "skipped",
    "exit": "skipped",  # as in 0.10; ``status`` tells them apart
}
# Whatever the workspace's own .gitattributes say, contents go in and come out byte for byte.
_ATTRIBUTES: Final = "* -text -filter -ident -eol -working-tree-encoding -merge -diff\n"
_NAME_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class Key:
    """What a checkpoint is of; there is at most one per key."""

    run_id: str
    codon_id: str
    """Runtime id."""
    attempt: int
    status: Status


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint that exists."""

    key: Key
    sha: str
    codon_name: str
    at_ms: int
    """Stream instant at which it was made."""
    is_new: bool = False
    """This call made it; False when an earlier one had, whose transition was lost."""
    unreadable: tuple[PathError, ...] = ()
    """What could not be read, so that it is in the checkpoint as it was in the one before, or not at all."""

    @property
    def type(self) -> CheckpointType:
        """As events name it."""
        return _TYPES[self.key.status]

    def listed(self) -> Checkpoint:
        """Its row of ``checkpoint.list``."""
        return Checkpoint(
            codon_id=self.key.codon_id,
            codon_name=self.codon_name,
            checkpoint_type=self.type,
            sha=self.sha,
            status=self.key.status,
            timestamp=format_stamp(self.at_ms),
        )


@dataclass(frozen=True, slots=True)
class Blob:
    """One file or link of a checkpoint."""

    mode: str
    """``100644``, ``100755`` or ``120000`` (a link)."""
    oid: str


@dataclass(slots=True)
class Checkpoints:
    """The shadow repository of one execution; used by the holder of its lock, one call at a time.

    Every method raises ``GitMissing`` or ``CheckpointFailed`` when git is not there or fails; the workspace has
    not changed then.
    """

    git: Git
    _saved: dict[str, list[Saved]] = field(default_factory=dict)

    @classmethod
    async def open(cls, layout: Layout, *, environ: dict[str, str], marker: str, clock: Clock) -> Self:
        """The repository of an execution, made when there is none or a killed process had only begun it."""
        git_dir = layout.managed / "checkpoints" / ".hankweavecheckpoints"
        git = Git(git_dir, layout.agent_root, environ, marker, clock)
        try:
            git_dir.parent.mkdir(parents=True, exist_ok=True)
            _unlock(git_dir)
            await git.run("init", "-q", "--template=", "--object-format=sha1")
            (git_dir / "info").mkdir(exist_ok=True)
            replace_file(git_dir / "info" / "attributes", _ATTRIBUTES.encode())
        except OSError as error:
            raise CheckpointFailed("making the checkpoint repository", str(error)) from error
        return cls(git)

    async def begin(self, run_id: str, *, from_sha: str | None = None) -> None:
        """Let the checkpoints of a run follow ``from_sha`` (a continuation), or nothing; idempotent."""
        branch = _branch(run_id)
        _unlock(self.git.git_dir)
        await self.git.run("symbolic-ref", "HEAD", branch)
        if from_sha is not None and await self._head(run_id) is None:
            await self.git.run("update-ref", branch, from_sha, "0" * 40)

    async def save(self, key: Key, codon_name: str, globs: Globs, at_ms: int) -> Saved:
        """Commit what ``globs`` take and gitignore leaves, even if nothing changed.

        ``globs`` are those of all codons up to this one: what they do not take is not in the checkpoint. The
        second call with a key returns what the first made. What cannot be read is named, not fatal.
        """
        key = replace(key, codon_id=clean_text(key.codon_id))
        for saved in await self.of_run(key.run_id):
            if saved.key == key:
                return saved
        unreadable = await self._take_up(key.run_id, globs)
        name = shorten(" ".join(strip_controls(clean_text(codon_name)).split()), _NAME_CHARS)
        sha = await self._commit(key.run_id, _message(key, name, at_ms), at_ms)
        saved = Saved(key, sha, name, at_ms)
        self._saved[key.run_id].append(saved)
        return replace(saved, is_new=True, unreadable=tuple(unreadable))

    async def initial(self, run_id: str, globs: Globs, at_ms: int) -> str:
        """Commit the workspace as a fresh run finds it; the sha. It is of no codon, so ``of_run`` leaves it out."""
        await self._take_up(run_id, globs)
        return await self._commit(run_id, f"initial [run:{run_id}]\n".encode(), at_ms)

    async def of_run(self, run_id: str) -> tuple[Saved, ...]:
        """The checkpoints of one run, oldest first; none for a run without."""
        if run_id not in self._saved:
            lines: list[bytes] = []
            if await self._head(run_id) is not None:
                lines = await self.git.run("log", "--first-parent", "--reverse", "--format=%H %b", _branch(run_id))
            read = [saved for line in lines if (saved := _read(line)) is not None]
            self._saved[run_id] = [saved for saved in read if saved.key.run_id == run_id]
        return tuple(self._saved[run_id])

    async def listing(self, run_id: str) -> CheckpointList:
        """The answer to a client that asks for the checkpoints of a run."""
        rows = [saved.listed() for saved in await self.of_run(run_id)]
        return CheckpointList(run_id=run_id, checkpoints=rows, current_branch=_branch(run_id).rpartition("/")[2])

    async def files(self, sha: str) -> dict[str, Blob]:
        """What a checkpoint holds, by path."""
        files: dict[str, Blob] = {}
        for line in await self.git.run("ls-tree", "-r", "--full-tree", sha):
            facts, _, name = line.partition(b"\t")
            mode, _, oid = facts.decode().split(" ")
            files[os.fsdecode(unquoted(name))] = Blob(mode, oid)
        return files

    async def export(self, sha: str, paths: Iterable[str], folder: Path) -> None:
        """Write these files of a checkpoint below ``folder``, which is made; the workspace is not touched."""
        index = self.git.git_dir / "export.index"
        env = {"GIT_INDEX_FILE": str(index)}
        await self.git.run("read-tree", sha, env=env)
        names = b"".join(os.fsencode(path) + b"\0" for path in paths)
        await anyio.to_thread.run_sync(partial(folder.mkdir, parents=True, exist_ok=True))
        # The folder stands for the work tree, so git needs no prefix and sees nothing of the workspace.
        env["GIT_WORK_TREE"] = str(folder)
        await self.git.run("checkout-index", "-f", "-z", "--stdin", stdin=names, env=env)
        index.unlink(missing_ok=True)

    async def _head(self, run_id: str) -> str | None:
        lines = await self.git.run("for-each-ref", "--format=%(objectname)", _branch(run_id))
        return lines[0].decode() if lines else None

    async def _take_up(self, run_id: str, globs: Globs) -> list[PathError]:
        """Bring the index to the workspace; what could not be read."""
        _unlock(self.git.git_dir)
        found = await look(self.git.work_tree, globs)
        try:
            return await self._stage(found)
        except GitMissing:
            raise
        except CheckpointFailed:
            # A file went or changed its kind under git, or a crash of the machine damaged the index: once anew.
            (self.git.git_dir / "index").unlink(missing_ok=True)
            if (head := await self._head(run_id)) is not None:
                await self.git.run("read-tree", head)
            found = await look(self.git.work_tree, globs)
            return await self._stage(found)

    async def _stage(self, found: Scan) -> list[PathError]:
        """Bring the index to what was found; what could not be read."""
        unreadable = list(found.unreadable)
        readable, closed = await anyio.to_thread.run_sync(partial(_sort_out, self.git.work_tree, found))
        unreadable += closed
        staged = [unquoted(line.partition(b"\t")[2]) for line in await self.git.run("ls-files", "--stage")]
        gone = [name for name in staged if (path := os.fsdecode(name)) not in found.files and found.covers(path)]
        removals = b"".join(b"0 " + b"0" * 40 + b"\t" + name + b"\0" for name in gone)
        await self.git.run("update-index", "-z", "--index-info", stdin=removals)
        names = b"".join(os.fsencode(path) + b"\0" for path in readable)
        await self.git.run("update-index", "--add", "--remove", "--replace", "-z", "--stdin", stdin=names)
        return unreadable

    async def _commit(self, run_id: str, message: bytes, at_ms: int) -> str:
        (tree,) = await self.git.run("write-tree")
        head = await self._head(run_id)
        parent = ("-p", head) if head else ()
        date = {"GIT_AUTHOR_DATE": f"@{at_ms // 1000} +0000", "GIT_COMMITTER_DATE": f"@{at_ms // 1000} +0000"}
        (sha,) = await self.git.run("commit-tree", tree.decode(), *parent, stdin=message, env=date)
        await self.git.run("update-ref", _branch(run_id), sha.decode(), head or "0" * 40)
        return sha.decode()


def _unlock(git_dir: Path) -> None:
    """Remove what a killed git left locked: nobody else may be at work here."""
    for lock in (*git_dir.glob("*.lock"), *(git_dir / "refs").rglob("*.lock")):
        lock.unlink(missing_ok=True)


def _branch(run_id: str) -> str:
    return f"refs/heads/run-{run_id}"


def _message(key: Key, name: str, at_ms: int) -> bytes:
    """The contract's subject for people, and a body by which the commit is recognised."""
    facts = {
        "status": key.status,
        "codonId": key.codon_id,
        "runId": key.run_id,
        "attempt": key.attempt,
        "codonName": name,
        "atMs": at_ms,
    }
    subject = f"{key.status}:{key.codon_id} [run:{key.run_id}] {name}".strip()
    return subject.encode() + b"\n\n" + orjson.dumps(facts) + b"\n"


def _read(line: bytes) -> Saved | None:
    """A line of ``git log``; None for what is no checkpoint of ours."""
    sha, _, body = line.partition(b" ")
    try:
        facts = orjson.loads(body)
        key = Key(facts["runId"], facts["codonId"], facts["attempt"], facts["status"])
        return Saved(key, sha.decode(), facts["codonName"], facts["atMs"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


def _sort_out(root: Path, found: Scan) -> tuple[list[str], list[PathError]]:
    """The files that can be opened, and those that cannot; links are committed as links."""
    readable, closed = [], []
    for path, entry in found.files.items():
        try:
            if not entry.is_link:
                with open_inside(root, path):
                    pass
            readable.append(path)
        except FileNotFoundError:
            continue
        except (OSError, PathRefused) as error:
            closed.append(PathError(path=clean_text(path), error=str(error)))
    return readable, closed
