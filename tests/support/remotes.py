"""Remote model clients without a network."""

from hankwatch.llm.client import ModelReply, ModelRequest
from hankwatch.testing import ScriptedModel


class ScriptedRemote(ScriptedModel):
    """A scripted model in the router's place for providers; knows what is on the wire."""

    on_the_wire: int = 0
    peak: int = 0
    prepared: int = 0
    closed: bool = False

    async def prepare(self) -> None:
        self.prepared += 1

    async def aclose(self) -> None:
        self.closed = True

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.on_the_wire += 1
        self.peak = max(self.peak, self.on_the_wire)
        try:
            return await super().complete(request)
        finally:
            self.on_the_wire -= 1
