"""The command ``hankwatch`` whose sentinels' model swallows every cancellation. Run by path, with its arguments."""

from functools import partial

import anyio

from hankwatch.app import open_run
from hankwatch.cli import run as command
from hankwatch.cli.main import main
from hankwatch.llm.client import ModelReply, ModelRequest
from hankwatch.testing import ScriptedModel


class Stubborn(ScriptedModel):
    """A callback that catches and ignores its cancellation, over and over."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        del request
        while True:
            try:
                await anyio.sleep(0.05)
            except anyio.get_cancelled_exc_class():
                continue


if __name__ == "__main__":
    command.open_run = partial(open_run, model_client=Stubborn())  # type: ignore[attr-defined]
    main()
