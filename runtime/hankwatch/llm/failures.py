"""A provider library's exception in our terms: what happened, and may it be tried again (spec sentinels 7).

By the HTTP response at the end of the exception's chain, because the library's own classes and statuses say
little: litellm reports any error that mentions a rate limit as 429, a refused connection as 500 and an
overloaded provider (529) as 500.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson

from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.text import shorten
from hankwatch.llm.retry_after import retry_after_s

_RETRIABLE_BELOW_500: Final = frozenset({408, 409, 425, 429})
_OUT_OF_MONEY: Final = ("insufficient_quota", "exceeded your current quota", "billing")
_UNREACHABLE: Final = ("Connection error.", "All connection attempts failed", "Server disconnected")
_NOISE: Final = re.compile(r"^(?:litellm\.\w+: |\w+Error: |\w+Exception - )+|\s*Handle with `litellm\.\w+`\.?$")


@dataclass(frozen=True, slots=True)
class _Response:
    """What came over the wire, if anything did."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def classify(model: str, error: Exception, *, timeout_s: float, now: datetime) -> ModelCallFailed:
    """The failure of one attempt.

    Args:
        model: Whom was asked.
        error: What the library raised.
        timeout_s: The attempt's limit, for the message.
        now: The wall clock (aware), against which a provider may name a time.
    """
    if isinstance(error, ModelCallFailed):
        return error
    response = _response(error)
    status = response.status or getattr(error, "status_code", None)
    text = str(error).strip()
    if response.status is None and status == 408:
        # The provider may have answered, and charged, after we hung up.
        return ModelCallFailed(model, f"no reply within {timeout_s:g} s", retriable=True, cost_usd=None)
    if any(phrase in text for phrase in _UNREACHABLE):
        return ModelCallFailed(model, "the provider cannot be reached", retriable=True)
    message = shorten(_message(text) or type(error).__name__, 500)
    if status is None:
        reason = f"unusable reply: {type(error).__name__}: {message}"
        return ModelCallFailed(model, reason, retriable=False, cost_usd=None)
    out_of_money = status == 429 and any(phrase in text.lower() for phrase in _OUT_OF_MONEY)
    return ModelCallFailed(
        model,
        f"status {status}: {message}",
        retriable=(status in _RETRIABLE_BELOW_500 or status >= 500) and not out_of_money,
        status=status,
        retry_after_s=retry_after_s(response.headers, text, now=now),
    )


def _response(error: BaseException) -> _Response:
    seen: BaseException | None = error
    while seen is not None:
        if type(seen).__name__ == "HTTPStatusError":
            answer: Any = getattr(seen, "response", None)
            return _Response(answer.status_code, dict(answer.headers))
        seen = seen.__context__
    return _Response()


def _message(text: str) -> str:
    """What the provider said, without what the library wrote around it: one line."""
    text = _NOISE.sub("", text)
    start, end = text.find("{"), text.rfind("}")
    if start == 0 and end > 0:
        try:
            body = orjson.loads(text[: end + 1])
            return str(body["error"]["message"]).partition("\n")[0]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            pass
    return text.partition("\n")[0]
