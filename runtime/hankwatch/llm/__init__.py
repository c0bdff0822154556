"""Asking models: the port, the router that everyone uses, and the log of calls."""

from hankwatch.llm.calls import CallLog
from hankwatch.llm.client import Message, ModelClient, ModelInfo, ModelReply, ModelRequest, Unavailable
from hankwatch.llm.router import ModelRouter

__all__ = [
    "CallLog",
    "Message",
    "ModelClient",
    "ModelInfo",
    "ModelReply",
    "ModelRequest",
    "ModelRouter",
    "Unavailable",
]
