"""Python processes that are killed in the middle of their work, at a chosen step or moment."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

_PRELUDE = """
import os, signal, sys
steps_left = int(sys.argv[1])
def counted(name):
    real = getattr(os, name)
    def step(*arguments, **options):
        global steps_left
        steps_left -= 1
        if steps_left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)
    setattr(os, name, step)
for name in ("rename", "replace", "unlink", "mkdir", "rmdir", "fsync"):
    counted(name)
"""


def _environ() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{ROOT / 'runtime'}"}


def killed_at_step(code: str, step: int, *arguments: str) -> bool:
    """Run ``code`` (``sys.argv[2:]`` are ``arguments``) and kill it instead of its change number ``step``, from 0.

    True when it was killed, False when it ended well before; changes are what it does to names of files.
    """
    program = _PRELUDE + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program, str(step), *arguments], env=_environ(), check=False, cwd="/")
    assert done.returncode in {0, -signal.SIGKILL}
    return done.returncode != 0


def killed_after(code: str, seconds: float, *arguments: str) -> None:
    """Run ``code``, wait for its first line, and kill it and its group ``seconds`` later, unless it has ended."""
    program = _PRELUDE + textwrap.dedent(code)
    with subprocess.Popen(
        [sys.executable, "-c", program, "1000000", *arguments],
        env=_environ(),
        stdout=subprocess.PIPE,
        cwd="/",
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(seconds)
        child.kill()
        child.wait()
        assert child.returncode in {0, -signal.SIGKILL}
