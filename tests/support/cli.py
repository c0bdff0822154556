"""The command line as a user has it: a real process, a home of its own, its output and exit code."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import warm

COMMAND = (str(Path(sys.executable).parent / "hankwatch"),)


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """Its stdout as one JSON value a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def json(self) -> Any:
        """Its stdout as one JSON value."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Cli:
    """Runs commands in ``cwd`` with ``home`` as HOME."""

    home: Path
    cwd: Path

    def environ(self, **env: str) -> dict[str, str]:
        """Nothing of the tests' own environment but the paths."""
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH") if name in os.environ}
        return kept | {"HOME": str(self.home), "LANG": "C.UTF-8", **env}

    def start(self, *arguments: object, env: dict[str, str] | None = None, **options: Any) -> "subprocess.Popen[str]":
        """A command that is under way."""
        pipe = subprocess.PIPE
        options = {"stdout": pipe, "stderr": pipe, "stdin": subprocess.DEVNULL, **options}
        return subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=self.cwd,
            env=self.environ(**(env or {})),
            text=True,
            encoding="utf-8",
            **options,
        )

    def __call__(self, *arguments: object, env: dict[str, str] | None = None, **options: Any) -> Done:
        """The command, to its end; started warm unless ``env`` or ``options`` need an interpreter of its own."""
        if not options and not any(name.startswith(("PYTHON", "LANG", "LC_")) for name in env or ()):
            argv = [*COMMAND, *map(str, arguments)]
            return Done(*warm.finished(argv, cwd=self.cwd, environ=self.environ(**(env or {})), timeout_s=15))
        with self.start(*arguments, env=env, **options) as process:
            out, err = process.communicate(timeout=15)
        return Done(process.returncode, out, err)

    def refused(self, *arguments: object, code: str, exit_code: int = 2) -> Done:
        """The command, which fails in the documented form: this stable code, nothing on stdout, no traceback."""
        done = self(*arguments)
        assert (done.code, done.out) == (exit_code, ""), done
        assert f"error[{code}]: " in done.err
        assert "Traceback" not in done.err
        return done

    @property
    def executions(self) -> Path:
        """Where its runs are."""
        return self.home / ".hankweave-executions"

    def demo(self) -> Path:
        """Run the demo; its execution directory."""
        done = self("demo", "-q")
        assert done.code == 0, done.err
        return max(self.executions.iterdir(), key=lambda path: path.name)
