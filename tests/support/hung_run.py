"""The command ``hankwatch`` whose event loop stands still at the first model call. Run by path, with its arguments."""

import os
import sys
import tempfile
from functools import partial
from pathlib import Path

from hankwatch.app import open_run
from hankwatch.cli import run as command
from hankwatch.cli.main import main
from hankwatch.llm.client import ModelReply, ModelRequest
from hankwatch.testing import ScriptedModel


class Hung(ScriptedModel):
    """Waits for a FIFO on the loop's own thread."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        del request
        fifo = Path(tempfile.mkdtemp()) / "fifo"
        os.mkfifo(fifo)
        print("hangs", file=sys.stderr, flush=True)
        raise AssertionError(fifo.read_text())


if __name__ == "__main__":
    command.open_run = partial(open_run, model_client=Hung())  # type: ignore[attr-defined]
    main()
