"""Asking models: the port, the router that everyone uses, the log of calls, and answers from it."""

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
