"""Real git as a child that sees nothing of the user's: no config, no hooks, no prompts, a fixed identity."""

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from hankwatch.core.clock import Clock
from hankwatch.core.errors import CheckpointFailed, GitMissing, NoWorkingDirectory, ProcessNotStarted
from hankwatch.core.limits import within
from hankwatch.core.tasks import task_group
from hankwatch.core.text import strip_controls
from hankwatch.processes.child import Child, spawn

GIT_LIMIT_S: Final = 900.0
"""Longest that one git command may take; hashing a workspace of many gigabytes takes minutes."""

_IDENTITY: Final = ("hankwatch", "hankwatch@localhost")
_SETTINGS: Final = (
    "safe.directory=*",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.autocrlf=false",
    "core.attributesFile=/dev/null",
    "core.quotePath=true",
    # Only ".git" itself is kept out of trees; names that would be odd elsewhere are files here.
    "core.protectHFS=false",
    "core.protectNTFS=false",
    "core.looseCompression=1",
    "commit.gpgSign=false",
    "i18n.commitEncoding=utf-8",
    "gc.auto=0",
    "log.showSignature=false",
)
_TAIL_CHARS: Final = 500


@dataclass(frozen=True, slots=True)
class Git:
    """One shadow repository: its git directory apart from the work tree."""

    git_dir: Path
    work_tree: Path
    environ: Mapping[str, str]
    """Only ``PATH`` is taken from it."""
    marker: str
    """Of the git processes; no other child that is alive at the time may bear it."""
    clock: Clock

    async def run(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> list[bytes]:
        """Run one command to its end; the lines it printed.

        Raises:
            GitMissing: there is no git.
            CheckpointFailed: it failed, or took longer than ``GIT_LIMIT_S``.
        """
        what = f"git {next((one for one in arguments if not one.startswith('-')), '')}"
        try:
            return await within(self.clock, GIT_LIMIT_S, partial(self._run, what, arguments, stdin, env or {}))
        except TimeoutError:
            raise CheckpointFailed(what, f"took longer than {GIT_LIMIT_S:g} s") from None
        except NoWorkingDirectory as error:
            raise CheckpointFailed(what, error.reason) from error
        except ProcessNotStarted as error:
            raise GitMissing(error.reason) from error

    async def _run(self, what: str, arguments: tuple[str, ...], stdin: bytes, env: Mapping[str, str]) -> list[bytes]:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        async with spawn(
            ["git", *settings, *arguments],
            cwd=self._place(env),
            env={**self._environment(), **env},
            marker=self.marker,
            clock=self.clock,
            stdin=True,
        ) as child:
            async with task_group() as tasks:
                tasks.start_soon(_feed, child, stdin)
                lines = [line.data async for line in child.lines()]
                exit_ = await child.wait()
                tasks.cancel_scope.cancel()
            if exit_.code != 0:
                complaint = strip_controls(child.stderr_tail()).strip()[-_TAIL_CHARS:]
                raise CheckpointFailed(what, complaint or f"it ended with {exit_}")
        return lines

    def _place(self, env: Mapping[str, str]) -> Path:
        """The work tree: git compares files with its index from where it stands, in some commands without going there."""
        tree = Path(env.get("GIT_WORK_TREE", self.work_tree))
        return tree if tree.is_dir() else self.git_dir.parent

    def _environment(self) -> dict[str, str]:
        name, address = _IDENTITY
        return {
            "PATH": self.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_DIR": str(self.git_dir),
            "GIT_WORK_TREE": str(self.work_tree),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": address,
            "GIT_COMMITTER_NAME": name,
            "GIT_COMMITTER_EMAIL": address,
        }


async def _feed(child: Child, data: bytes) -> None:
    await child.send(data)
    child.close_stdin()


def unquoted(name: bytes) -> bytes:
    """A path as git prints it, as it is: C quoting undone where there is any."""
    if name.startswith(b'"') and name.endswith(b'"') and len(name) > 1:
        decoded, _ = codecs.escape_decode(name[1:-1])
        assert isinstance(decoded, bytes)
        return decoded
    return name
