"""Models that need no key, no network and no luck: the same request always gives the same reply.

``builtin/digest`` writes a factual summary of the request's events, ``builtin/echo`` gives the user
prompt back. They cost nothing; their token counts are estimates (``estimate_tokens``).
"""

from collections.abc import Callable, Mapping
from typing import Final

from hankwatch.llm.client import ModelInfo, ModelReply, ModelRequest, Unavailable, require
from hankwatch.llm.digest import digest


class BuiltinModels:
    """Answers ``builtin/digest`` and ``builtin/echo`` on the spot."""

    def check(self, model: str) -> ModelInfo | Unavailable:
        if model in _MODELS:
            return ModelInfo(model, provider="builtin")
        names = " and ".join(sorted(_MODELS))
        return Unavailable(model, "unknown-model", f"no builtin model {model!r}", f"there are {names}")

    async def complete(self, request: ModelRequest) -> ModelReply:
        require(self.check(request.model))
        text = _MODELS[request.model](request)
        return ModelReply(
            text,
            input_tokens=sum(estimate_tokens(message.content) for message in request.messages),
            output_tokens=estimate_tokens(text),
            cost_usd=0.0,
        )


def estimate_tokens(text: str) -> int:
    """A rough count where no tokenizer has the say: one token for every four characters begun."""
    return -(-len(text) // 4)


def _echo(request: ModelRequest) -> str:
    return "\n\n".join(message.content for message in request.messages if message.role == "user")


_MODELS: Final[Mapping[str, Callable[[ModelRequest], str]]] = {
    "builtin/digest": lambda request: digest(request.events),
    "builtin/echo": _echo,
}
