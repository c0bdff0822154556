"""Asking models: the port, the router that everyone uses, the log of calls, and answers from it."""

from typing import TYPE_CHECKING

from hankwatch.core.lazy import lazy_names

if TYPE_CHECKING:
    from hankwatch.llm.calls import CallLog
    from hankwatch.llm.cassette import CallLogClient
    from hankwatch.llm.client import Message, ModelClient, ModelInfo, ModelReply, ModelRequest, Unavailable
    from hankwatch.llm.router import ModelRouter

__all__ = [
    "CallLog",
    "CallLogClient",
    "Message",
    "ModelClient",
    "ModelInfo",
    "ModelReply",
    "ModelRequest",
    "ModelRouter",
    "Unavailable",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "CallLog": "hankwatch.llm.calls",
            "CallLogClient": "hankwatch.llm.cassette",
            "Message": "hankwatch.llm.client",
            "ModelClient": "hankwatch.llm.client",
            "ModelInfo": "hankwatch.llm.client",
            "ModelReply": "hankwatch.llm.client",
            "ModelRequest": "hankwatch.llm.client",
            "ModelRouter": "hankwatch.llm.router",
            "Unavailable": "hankwatch.llm.client",
        },
    )
