"""An error's text, read for why it failed and whether trying again can help (reference 3.3)."""

import re

from hankwatch.events.shapes import FailureReason, FailureType

_HOUR_MS = 3_600_000
_MAX_MESSAGE_CHARS = 2_000


def _any(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


RULES: tuple[tuple[str, re.Pattern[str], FailureType, bool], ...] = (
    ("worded rate limit", _any(r"rate[ _-]?limit", "too many requests", "throttl"), "rate-limit", True),
    (
        "no money or quota",
        _any("credit", "billing", "insufficient", "quota", "available balance", "out of budget", "usage limit"),
        "api-error",
        False,
    ),
    (
        "AWS credentials",
        _any(
            r"(Expired|Invalid)Token",
            r"UnrecognizedClientException",
            r"AccessDeniedException",
            r"InvalidSignatureException",
            r"security token (included in the request )?is",
            r"not authorized to perform",
            r"could not load credentials",
        ),
        "api-error",
        False,
    ),
    ("timeout", _any("time[ -]?out", "timed out", "deadline exceeded"), "timeout", True),
    (
        "authentication",
        _any(r"\b40[13]\b", "unauthori[sz]ed", "authenticat", "forbidden", "permission[ _]denied", r"api[ _-]?key"),
        "api-error",
        False,
    ),
    (
        "a request that cannot be right",
        _any(r"invalid[ _-]request", "prompt is too long", "validation", r"\b400\b"),
        "api-error",
        False,
    ),
    ("bare 429", _any(r"\b429\b"), "rate-limit", True),
    (
        "network",
        _any(
            "ECONN(RESET|REFUSED|ABORTED)",
            "ENOTFOUND",
            "EAI_AGAIN",
            "EPIPE",
            "socket",
            "network",
            "connection (error|refused|reset|closed|lost|failed)",
            "fetch failed",
            "stream (disconnected|closed)",
        ),
        "api-error",
        True,
    ),
    (
        "server",
        _any(
            r"\b5\d\d\b", "overloaded", "internal server error", "bad gateway", "service unavailable", "server_is_busy"
        ),
        "api-error",
        True,
    ),
)
"""What the text says · how it is recognised · failure type · retriable. The first that matches decides."""

_CONTEXT_EXCEEDED = _any(
    "prompt is too long",
    "context[ _]length[ _]exceeded",
    "maximum context length",
    r"exceeded the .{0,80}output token maximum",
    r"context (window|limit).{0,40}exceed",
    r"exceed.{0,40}context (window|limit)",
    "input token count .{0,40}exceeds the maximum",
)

_UNITS_MS = {"ms": 1, "milli": 1, "s": 1_000, "m": 60_000, "h": _HOUR_MS}
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|s|m|h)[a-z]*(?![a-z])", re.IGNORECASE)
_WORDED = re.compile(rf"(?:retry|again|wait|delay|resets?)\D{{0,24}}?((?:{_PART.pattern}\s*)+)", re.IGNORECASE)
_HEADER = re.compile(r"retry[-_ ]?after(-ms)?[\"':=\s]*(\d+(?:\.\d+)?)", re.IGNORECASE)


def classify(text: str, *, had_session: bool) -> FailureReason:
    """Why a program failed, from what it said.

    Text that no rule knows is retriable only when the program had got as far as a session.
    """
    for _, pattern, failure, retriable in RULES:
        if pattern.search(text):
            return _reason(failure, retriable, text)
    return _reason("unknown", had_session, text)


def is_context_exceeded(text: str) -> bool:
    """Whether the text of an error says that the context was full (reference 3.4, last point)."""
    return text.startswith("API Error: terminated") or _CONTEXT_EXCEEDED.search(text[:_MAX_MESSAGE_CHARS]) is not None


def no_evidence(*, had_session: bool, message: str = "the agent ended without saying why") -> FailureReason:
    """The reason when nobody said why: an API error, retriable iff there was a session. ``message`` is not read."""
    return FailureReason(type="api-error", retriable=had_session, message=message)


def retry_after_ms(text: str) -> int | None:
    """How long the text asks to wait; None when it does not say, or says more than an hour."""
    if worded := _WORDED.search(text):
        parts = _PART.findall(worded[1])
        wait_ms = sum(float(amount) * _UNITS_MS[unit.lower()] for amount, unit in parts)
    elif header := _HEADER.search(text):
        wait_ms = float(header[2]) * (1 if header[1] else 1_000)
    else:
        return None
    return round(wait_ms) if 0 < wait_ms <= _HOUR_MS else None


def _reason(failure: FailureType, retriable: bool, text: str) -> FailureReason:
    return FailureReason(
        type=failure,
        retriable=retriable,
        message=text[:_MAX_MESSAGE_CHARS],
        retry_after_ms=retry_after_ms(text) if retriable else None,
    )
