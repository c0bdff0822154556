"""The command ``hankwatch`` whose wall clock is off by the seconds in the file ``$WALL_STEP``. Run by path, with its arguments."""

import os
import sys
from datetime import datetime, timedelta
from pathlib import Path

from hankwatch.cli.main import main
from hankwatch.core.clock import SystemClock

ARGV = [sys.executable, __file__]
_STEP = Path(os.environ.get("WALL_STEP", "/nonexistent"))
_now = SystemClock.now


def now(clock: SystemClock) -> datetime:
    return _now(clock) + timedelta(seconds=float(_STEP.read_text() or 0) if _STEP.exists() else 0)


if __name__ == "__main__":
    SystemClock.now = now  # type: ignore[method-assign,assignment]
    main()
