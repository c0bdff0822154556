"""Remote model clients without a network."""

from dataclasses import replace

from hankwatch.llm.client import ModelInfo, ModelReply, ModelRequest, Unavailable
from hankwatch.testing import ScriptedModel


class ScriptedRemote(ScriptedModel):
    """A scripted model in the router's place for providers (an id's prefix); knows what is on the wire."""

    on_the_wire: int = 0
    peak: int = 0
    prepared: int = 0
    closed: bool = False

    def check(self, model: str) -> ModelInfo | Unavailable:
        found = super().check(model)
        return found if isinstance(found, Unavailable) else replace(found, provider=model.partition("/")[0])

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
