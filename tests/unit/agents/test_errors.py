"""The text of a failure tells its type and whether trying again helps (reference 3.3)."""

import pytest

from hankwatch.agents.errors import classify, retry_after_ms


@pytest.mark.parametrize(
    ("text", "failure", "retriable"),
    [
        ("rate_limit_error: slow down", "rate-limit", True),
        ("429 Too Many Requests", "rate-limit", True),
        ("Your credit balance is too low", "api-error", False),
        ("429 You exceeded your current quota", "api-error", False),
        ("Claude AI usage limit reached", "api-error", False),
        ("ExpiredTokenException: the security token included in the request is expired", "api-error", False),
        ("Request timed out", "timeout", True),
        ("API timeout after 401 s", "timeout", True),
        ("unexpected status 401 Unauthorized: invalid x-api-key", "api-error", False),
        ("invalid x-api-key", "api-error", False),
        ("OAuth authentication failed", "api-error", False),
        ("prompt is too long: 250000 tokens > 200000 maximum", "api-error", False),
        ("400 bad things", "api-error", False),
        ("status 429", "rate-limit", True),
        ("read ECONNRESET", "api-error", True),
        ("fetch failed", "api-error", True),
        ("529 overloaded_error", "api-error", True),
        ("502 Bad Gateway", "api-error", True),
    ],
)
def test_the_first_rule_that_matches_decides(text: str, failure: str, retriable: bool) -> None:
    reason = classify(text, had_session=False)
    assert (reason.type, reason.retriable) == (failure, retriable)


@pytest.mark.parametrize("had_session", [True, False])
def test_unknown_text_is_retriable_only_after_a_session(had_session: bool) -> None:
    reason = classify("something odd", had_session=had_session)
    assert (reason.type, reason.retriable) == ("unknown", had_session)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("retry after 30 seconds", 30_000),
        ("Retry-After: 30", 30_000),
        ("Please try again in 1m30s.", 90_000),
        ("please retry in 12.5s", 12_500),
        ('"retryDelay": "34s"', 34_000),
        ("try again in 500ms", 500),
        ("wait 2 minutes", 120_000),
        ("retry in 1h", 3_600_000),
        ("retry-after-ms: 250", 250),
        ("exceeded retry limit, last status: 429 Too Many Requests", None),
        ("try again in 2 hours", None),
        ("try again later", None),
        ("nothing", None),
    ],
)
def test_the_asked_wait_is_read_from_many_spellings(text: str, ms: int | None) -> None:
    assert retry_after_ms(text) == ms


def test_a_permanent_failure_asks_for_no_wait() -> None:
    assert classify("quota exceeded, retry in 30s", had_session=True).retry_after_ms is None
    assert classify("rate limit, retry in 30s", had_session=True).retry_after_ms == 30_000
