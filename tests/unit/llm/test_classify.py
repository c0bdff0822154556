"""A provider library's exception in our terms: can the call be tried again, and what is said of it."""

import pytest

from hankwatch.core.errors import ModelCallFailed
from hankwatch.llm.litellm import classify


class ProviderError(Exception):
    def __init__(self, status_code: int | None, message: str) -> None:
        super().__init__(message)
        self.status_code = status_code


def _classified(status: int | None, message: str) -> ModelCallFailed:
    return classify("acme/one", ProviderError(status, message), timeout_s=60)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_can_be_tried_again(status: int) -> None:
    assert _classified(status, "try later").retriable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_stays_wrong_is_not_tried_again(status: int) -> None:
    failed = _classified(status, "litellm.APIError: APIError: OpenAIException - no")
    assert not failed.retriable
    assert (failed.status, failed.reason) == (status, f"status {status}: no")


@pytest.mark.parametrize("message", ["You exceeded your current quota", "code: insufficient_quota", "Billing is off"])
def test_an_empty_account_is_not_a_busy_provider(message: str) -> None:
    assert not _classified(429, message).retriable


@pytest.mark.parametrize(
    "message",
    [
        "litellm.InternalServerError: InternalServerError: OpenAIException - Connection error.",
        "litellm.InternalServerError: GeminiException - All connection attempts failed",
    ],
)
def test_a_connection_that_failed_has_no_status(message: str) -> None:
    failed = _classified(500, message)
    assert (failed.reason, failed.retriable, failed.status) == ("the provider cannot be reached", True, None)


def test_a_time_out_names_the_limit_and_its_cost_is_unknown() -> None:
    failed = _classified(408, "litellm.Timeout: APITimeoutError - Request timed out.")
    assert (failed.reason, failed.retriable, failed.cost_usd) == ("no reply within 60 s", True, None)


def test_only_the_first_line_is_quoted() -> None:
    assert _classified(500, "litellm.APIConnectionError: 'content'\nTraceback …").reason == "status 500: 'content'"


def test_the_librarys_own_advice_is_left_out() -> None:
    text = "litellm.InternalServerError: AnthropicException - overloaded. Handle with `litellm.InternalServerError`."
    assert _classified(500, text).reason == "status 500: overloaded."


def test_a_failure_without_status_is_named_by_its_class() -> None:
    failed = classify("acme/one", IndexError("list index out of range"), timeout_s=60)
    assert failed.reason == "unusable reply: IndexError: list index out of range"
    assert not failed.retriable
