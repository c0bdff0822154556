"""A provider library's exception in our terms: what happened, and may it be tried again (spec sentinels 7).

By what the HTTP client met at the end of the exception's chain, because the library's own classes and
statuses say little: litellm reports any error that mentions a rate limit as 429, a refused connection as 500
and an overloaded provider (529) as 500.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import orjson

from hankwatch.core.errors import ModelCallFailed
from hankwatch.core.text import shorten
from hankwatch.llm.exchange import MAX_ERROR_BYTES, ReplyRefused
from hankwatch.llm.retry_after import retry_after_s

_RETRIABLE_BELOW_500: Final = frozenset({408, 409, 425, 429})
_OUT_OF_MONEY: Final = ("insufficient_quota", "exceeded your current quota", "billing")
_UNREACHABLE: Final = frozenset({"ConnectError", "ConnectTimeout"})
_HUNG_UP: Final = frozenset({"ReadError", "RemoteProtocolError", "WriteError"})
"""Names of httpx's exceptions."""
_NOISE: Final = re.compile(
    r"^(?:litellm\.\w+: |\w+Error: |\w+Exception(?: \w+)? - )+|\s*Handle with `litellm\.\w+`\.?$"
)


def classify(
    model: str, error: Exception, *, timeout_s: float, now: datetime, answered: bool = False
) -> ModelCallFailed:
    """The failure of one attempt.

    Args:
        model: Whom was asked.
        error: What the library raised.
        timeout_s: The attempt's limit, for the message.
        now: The wall clock (aware), against which a provider may name a time.
        answered: The provider sent a reply, which the library could not read.
    """
    if isinstance(error, ModelCallFailed):
        return error
    causes = {type(cause).__name__: cause for cause in _chain(error)}
    # The library repeats the provider's whole text, more than once.
    text = str(error)[:MAX_ERROR_BYTES].strip()
    message = shorten(_message(text) or type(error).__name__, 500)
    if isinstance(refused := causes.get("ReplyRefused"), ReplyRefused):
        return _not_taken(model, refused)
    if (status_error := causes.get("HTTPStatusError")) is not None:
        return _refused(model, getattr(status_error, "response", None), text, message, now)
    if causes.keys() & _UNREACHABLE:
        return ModelCallFailed(model, "the provider cannot be reached", retriable=True)
    status = getattr(error, "status_code", None)
    # From here on the provider may have done its work, and charge for it.
    retriable = True
    if causes.keys() & _HUNG_UP:
        reason = "the provider closed the connection without an answer"
    elif status == 408:
        reason = f"no reply within {timeout_s:g} s"
    else:
        reason = f"no usable reply: {type(error).__name__}: {message}"
        # A reply of the wrong shape is as transient as one that is no JSON, whichever class the library has for it.
        retriable = answered or (status is not None and status >= 500)
    return ModelCallFailed(model, reason, retriable=retriable, cost_usd=None)


def _not_taken(model: str, refused: ReplyRefused) -> ModelCallFailed:
    cost_usd = None if refused.charged else 0.0
    return ModelCallFailed(model, refused.reason, retriable=refused.retriable, status=refused.status, cost_usd=cost_usd)


def _refused(model: str, response: Any, text: str, message: str, now: datetime) -> ModelCallFailed:
    status: int = response.status_code
    out_of_money = status == 429 and any(phrase in text.lower() for phrase in _OUT_OF_MONEY)
    return ModelCallFailed(
        model,
        f"status {status}: {message}",
        retriable=(status in _RETRIABLE_BELOW_500 or status >= 500) and not out_of_money,
        status=status,
        retry_after_s=retry_after_s(dict(response.headers), text, now=now),
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__context__


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
