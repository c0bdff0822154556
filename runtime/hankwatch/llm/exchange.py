"""What the HTTP below the provider library (``wire``) and its caller tell each other; imports no HTTP library."""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

MAX_ERROR_BYTES: Final = 16 * 1024
"""What is read of an error's text; the rest would only be searched in vain."""


class ReplyRefused(Exception):
    """An answer that is not taken; where it came from and what is wrong with it is in ``reason``."""

    def __init__(self, reason: str, *, status: int, retriable: bool, charged: bool) -> None:
        self.reason = reason
        self.status = status
        self.retriable = retriable
        self.charged = charged
        """The provider may have done its work, and charge for it."""
        super().__init__(reason)


@dataclass(slots=True)
class Exchange:
    """What a call met on the wire."""

    answered: bool = False
    """A JSON object with status 2xx came."""
    believable: bool = True
    """None of its token counts was absurd (``usage``)."""
    canned: bytes | None = None
    """Answers in place of the provider: nothing is sent."""


exchange: Final[ContextVar[Exchange | None]] = ContextVar("exchange", default=None)
"""Of the call under way in this context."""
