"""When two calls, and two answers, are the same (spec watchdog 5.4)."""

from typing import Any

import pytest

from hankwatch.watchdog.signals import Call, Result
from hankwatch.watchdog.signatures import answered, asked, call_key, unanswered


def key(args: Any, name: str = "bash") -> bytes:
    return call_key(name, args)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"d": 3, "c": 2}, "a": 1}),
        ({"path": " src", "q": "TODO "}, {"q": "TODO", "path": "src"}),
        ({"cmd": "a\n  b\tc"}, {"cmd": "a b c"}),
        ({"cmd": "x", "description": "first"}, {"cmd": "x", "description": "second", "requestId": "7"}),
        ({"cmd": "x", "trace_id": 1, "Idempotency-Key": 2, "nonce": 3}, {"cmd": "x"}),
        ('{"a": 1, "b": 2}', {"b": 2, "a": 1}),
    ],
)
def test_order_white_space_and_commentary_do_not_count(one: Any, other: Any) -> None:
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"cmd": "a"}, {"cmd": "b"}),
        ({"thought": "a"}, {"thought": "b"}),
        ({"a": {"description": "x"}}, {"a": {"description": "y"}}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": 1}, {"a": "1"}),
        ('{"a": 1', '{"a": 2'),
        ({"a": None}, {"a": False}),
    ],
)
def test_anything_else_does(one: Any, other: Any) -> None:
    assert key(one) != key(other)


def test_the_name_counts() -> None:
    assert key({}, "read") != key({}, "write")


def test_arguments_nested_without_end_are_taken() -> None:
    deep: Any = {}
    for _ in range(3_000):
        deep = {"a": [deep]}
    assert key(deep) == key({"a": [deep]})
    assert key('{"a":' * 100_000) != key('{"a":' * 99_999)


def sign(outcome: Any, text: str = "", **more: Any) -> Any:
    return answered(asked(Call("1", "bash", {"command": "x"}), {}), Result("1", outcome, text, **more))


def test_an_error_counts_without_its_message_one_after_the_other_and_with_it_when_scattered() -> None:
    one, other = sign("error", "lane 1 died"), sign("error", "lane 2 died")
    assert one.contiguous == other.contiguous
    assert one.scattered != other.scattered


def test_an_answer_counts_but_for_its_noise() -> None:
    assert sign("ok", "3 passed in 0.41s") == sign("ok", "3 passed in 0.52s")
    assert sign("ok", "3 passed").contiguous != sign("ok", "4 passed").contiguous
    assert sign("ok", "no").contiguous != sign("denied", "no").contiguous


@pytest.mark.parametrize("image", ["data:image/png;base64,", "\x89PNG\r\n", "GIF89a\0"])
def test_all_images_are_the_same(image: str) -> None:
    assert sign("ok", image + "one") == sign("ok", image + "other")


def test_a_fingerprint_given_by_the_host_is_taken() -> None:
    assert sign("ok", "cut here", fingerprint="f") == sign("ok", "cut there", fingerprint="f")


def test_a_call_without_an_answer_equals_no_other() -> None:
    call = asked(Call("1", "bash", {"command": "x"}), {})
    assert unanswered(call, "1", 1).contiguous != unanswered(call, "1", 2).contiguous
    assert unanswered(call, "1", 1).key != call.key


@pytest.mark.parametrize(
    "args",
    [
        {"command": "sleep 5"},
        {"command": "make; sleep 0.5 && ls"},
        {"cmd": ["bash", "-lc", "sleep 30"]},
        {"command": "while true; do sleep 1; done"},
        {"command": "bash -c 'sleep $N'"},
        {"script": "Start-Sleep -Seconds 5"},
        {"command": "ls\nsleep 5"},
    ],
)
def test_a_shell_command_that_sleeps_is_a_wait(args: dict[str, Any]) -> None:
    assert asked(Call("1", "bash", args), {}).tool_class == "wait"


@pytest.mark.parametrize(
    "args", [{"command": "cat sleep.py"}, {"path": "sleep 5"}, {"command": "pytest -k sleep"}, "sleep 5"]
)
def test_naming_sleep_is_none(args: Any) -> None:
    assert asked(Call("1", "bash", args), {}).tool_class is None


def test_the_policy_knows_better_than_the_host_and_both_than_the_command() -> None:
    call = Call("1", "bash", {"command": "sleep 5"}, "mutate")
    assert asked(call, {}).tool_class == "mutate"
    assert asked(call, {"bash": "poll"}).tool_class == "poll"


def test_a_name_without_end_is_shortened() -> None:
    assert len(asked(Call("1", "x" * 10_000, {}), {}).name) == 80
