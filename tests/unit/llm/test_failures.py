"""A provider library's exception in our terms: can the call be tried again, and what is said of it."""

from datetime import UTC, datetime

import httpx
import pytest

from hankwatch.core.errors import ModelCallFailed
from hankwatch.llm.failures import classify

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


class ProviderError(Exception):
    def __init__(self, status_code: int | None, message: str) -> None:
        super().__init__(message)
        self.status_code = status_code


def _answered(status: int, message: str, *, called: int = 429, **headers: str) -> ModelCallFailed:
    """As the library raises it: by its own reckoning status ``called``, the real response down the chain."""
    request = httpx.Request("POST", "http://acme")
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    wire = httpx.HTTPStatusError("no", request=request, response=httpx.Response(status, headers=names, request=request))
    error = ProviderError(called, message)
    error.__context__ = ProviderError(called, message)
    error.__context__.__context__ = wire
    return classify("acme/one", error, timeout_s=60, now=NOW)


def _raised(status: int | None, message: str, cause: Exception | None = None) -> ModelCallFailed:
    """As the library raises it when no response came, or none that it could read."""
    error = ProviderError(status, message)
    error.__context__ = cause
    return classify("acme/one", error, timeout_s=60, now=NOW)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_can_be_tried_again(status: int) -> None:
    assert _answered(status, "try later").retriable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_stays_wrong_is_not_tried_again(status: int) -> None:
    failed = _answered(status, "litellm.APIError: APIError: OpenAIException - no")
    assert not failed.retriable
    assert (failed.status, failed.reason) == (status, f"status {status}: no")


@pytest.mark.parametrize("message", ["You exceeded your current quota", "code: insufficient_quota", "Billing is off"])
def test_an_empty_account_is_not_a_busy_provider(message: str) -> None:
    assert not _answered(429, message).retriable


@pytest.mark.parametrize("cause", [httpx.ConnectError("refused"), httpx.ConnectTimeout("too slow")])
def test_a_connection_that_failed_has_no_status_and_cost_nothing(cause: Exception) -> None:
    failed = _raised(
        500, "litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.", cause
    )
    assert (failed.reason, failed.retriable, failed.status) == ("the provider cannot be reached", True, None)
    assert failed.cost_usd == 0


@pytest.mark.parametrize("cause", [httpx.RemoteProtocolError("Server disconnected"), httpx.ReadError("reset")])
def test_a_provider_that_hangs_up_may_have_charged(cause: Exception) -> None:
    failed = _raised(
        500, "litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.", cause
    )
    assert failed.reason == "the provider closed the connection without an answer"
    assert (failed.retriable, failed.status, failed.cost_usd) == (True, None, None)


def test_a_time_out_names_the_limit_and_its_cost_is_unknown() -> None:
    failed = _raised(408, "litellm.Timeout: APITimeoutError - Request timed out.")
    assert (failed.reason, failed.retriable, failed.cost_usd) == ("no reply within 60 s", True, None)


def test_only_the_first_line_is_quoted() -> None:
    failed = _raised(500, "litellm.APIConnectionError: 'content'\nTraceback …")
    assert (failed.reason, failed.retriable) == ("no usable reply: ProviderError: 'content'", True)


def test_the_librarys_own_advice_is_left_out() -> None:
    text = "litellm.InternalServerError: AnthropicException - overloaded. Handle with `litellm.InternalServerError`."
    assert _answered(500, text).reason == "status 500: overloaded."


def test_a_failure_without_status_is_named_by_its_class() -> None:
    failed = classify("acme/one", IndexError("list index out of range"), timeout_s=60, now=NOW)
    assert failed.reason == "no usable reply: IndexError: list index out of range"
    assert not failed.retriable


@pytest.mark.parametrize(("status", "retriable"), [(400, False), (401, False), (403, False), (422, False), (529, True)])
def test_the_status_on_the_wire_has_the_say(status: int, *, retriable: bool) -> None:
    failed = _answered(status, "litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit exceeded")
    assert (failed.status, failed.retriable, failed.reason) == (
        status,
        retriable,
        f"status {status}: Rate limit exceeded",
    )


def test_a_provider_that_timed_out_is_not_our_own_limit() -> None:
    failed = _answered(408, "litellm.Timeout: APITimeoutError - upstream is slow", called=408)
    assert (failed.status, failed.cost_usd) == (408, 0.0)


def test_the_time_a_provider_asks_for_is_kept() -> None:
    assert _answered(429, "slow down", retry_after="7").retry_after_s == 7
    assert _answered(429, "Please try again in 634ms.").retry_after_s == pytest.approx(0.634)
    assert _answered(429, "slow down").retry_after_s is None


@pytest.mark.parametrize(
    "text",
    [
        'litellm.RateLimitError: AnthropicException - {"type": "error", "error": {"message": "Overloaded"}}',
        'AnthropicException - {"error": {"message": "Overloaded"}}. Handle with `litellm.InternalServerError`.',
        'litellm.RateLimitError: GeminiException - {\n "error": {\n  "message": "Overloaded"\n }\n}',
    ],
)
def test_the_message_is_taken_out_of_its_json(text: str) -> None:
    assert _answered(429, text).reason == "status 429: Overloaded"


@pytest.mark.parametrize("text", ['{"error": "plain"}', '{"detail": 1}', "{not json}", '{"error": {"message":'])
def test_json_of_another_shape_is_quoted_as_it_is(text: str) -> None:
    assert _answered(500, text).reason == f"status 500: {text}"


def test_a_reply_that_could_not_be_read_may_have_cost_something() -> None:
    assert classify("acme/one", KeyError("content"), timeout_s=60, now=NOW).cost_usd is None
