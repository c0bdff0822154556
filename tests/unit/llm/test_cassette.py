"""Answering from a call log: what was recorded, once each, and a clear word about what was not."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.remotes import ScriptedRemote

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import MissingCall, ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.llm import CallLog, CallLogClient, Message, ModelReply, ModelRequest, ModelRouter, Unavailable
from hankwatch.testing import failure

SECRETS = {"ACME_API_KEY": "hunter2-hunter2"}


def ask(prompt: str, *, sentinel: str = "narrator", trigger: int = 1, **fields: Any) -> ModelRequest:
    labels: dict[str, str | int] = {"sentinelId": sentinel, "codonId": "fix", "triggerNumber": trigger}
    fields = {"model": "acme/one", **fields}
    return ModelRequest(messages=(Message("system", "be brief"), Message("user", prompt)), labels=labels, **fields)


async def record(path: Path, answers: Any, *requests: ModelRequest) -> None:
    """Make the calls one after the other, logged at ``path``."""
    clock = VirtualClock()
    redactor = Redactor(SECRETS)
    log = CallLog(path, redactor=redactor, on_failure=lambda error: pytest.fail(str(error)))
    remote = ScriptedRemote(answers, clock=clock)
    router = ModelRouter({}, redactor=redactor, clock=clock, call_log=log, remote=remote)
    for request in requests:
        with suppress(ModelCallFailed):
            await router.complete(request)


def play(path: Path) -> CallLogClient:
    return CallLogClient(path, redactor=Redactor(SECRETS))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "calls.jsonl"


async def test_the_recorded_reply_comes_back_whole(path: Path) -> None:
    await record(path, ModelReply("half a", 12, 3, 0.25, "length"), ask("?"))
    [line] = _lines(path)
    reply = await play(path).complete(ask("?"))
    assert reply == ModelReply("half a", 12, 3, 0.25, "length", call_id=line["callId"])


async def test_attempts_and_a_lower_bound_come_back_too(path: Path) -> None:
    reply = ModelReply("ok", 1, 1, 0.25, call_id="1", attempts=2, cost_complete=False)
    line = _line(ask("?"), attempts=[{}, {}], costUsd=0.25, costComplete=False)
    _write(path, line)
    assert await play(path).complete(ask("?")) == reply


async def test_a_recorded_failure_fails_again(path: Path) -> None:
    await record(path, failure("status 401: who are you?", status=401), ask("?"))
    with pytest.raises(ModelCallFailed) as failed:
        await play(path).complete(ask("?"))
    assert not isinstance(failed.value, MissingCall)
    assert (failed.value.reason, failed.value.status, failed.value.retriable) == (
        "status 401: who are you?",
        401,
        False,
    )


async def test_limits_and_labels_do_not_matter(path: Path) -> None:
    await record(path, "ok", ask("?", max_retries=0, timeout_s=1))
    reply = await play(path).complete(ask("?", sentinel="other", trigger=9, max_retries=5, timeout_s=300))
    assert reply.text == "ok"


async def test_equal_calls_are_answered_in_their_order(path: Path) -> None:
    await record(path, ["first", "second", "third"], *[ask("?")] * 3)
    client = play(path)
    assert [(await client.complete(ask("?"))).text for _ in range(3)] == ["first", "second", "third"]


async def test_of_equal_calls_each_asker_gets_its_own(path: Path) -> None:
    await record(path, ["for a", "for b"], ask("?", sentinel="a"), ask("?", sentinel="b"))
    client = play(path)
    assert (await client.complete(ask("?", sentinel="b"))).text == "for b"
    assert (await client.complete(ask("?", sentinel="a"))).text == "for a"


async def test_many_tasks_may_ask_at_once(path: Path) -> None:
    await record(path, lambda request: request.messages[1].content, *[ask(str(number)) for number in range(50)])
    client = play(path)
    replies: dict[str, str] = {}

    async def call(prompt: str) -> None:
        replies[prompt] = (await client.complete(ask(prompt))).text

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(call, str(number))
    assert replies == {str(number): str(number) for number in range(50)}


async def test_a_secret_in_the_request_is_no_difference(path: Path) -> None:
    await record(path, "ok", ask("the key is hunter2-hunter2"))
    assert (await play(path).complete(ask("the key is hunter2-hunter2"))).text == "ok"


async def test_builtin_models_are_worked_out(path: Path) -> None:
    await record(path, "unused", ask("hello", model="builtin/echo"))
    client = play(path)
    for _ in range(2):
        assert (await client.complete(ask("hello", model="builtin/echo"))).text == "hello"
    assert isinstance(client.check("builtin/none"), Unavailable)


def test_a_model_has_the_facts_of_the_registry_without_any_key(path: Path) -> None:
    path.touch()
    info = play(path).check("anthropic/claude-haiku-4-5")
    assert not isinstance(info, Unavailable)
    assert (info.context_tokens, info.priced, info.supports_schema) == (200_000, True, True)


async def test_an_id_without_a_provider_fails_as_it_did(path: Path) -> None:
    await record(path, "ok", ask("?", model="haiku"))
    line = _line(ask("?", model="haiku"), error={"reason": "No LLM provider available", "retriable": False})
    del line["reply"]
    _write(path, line)
    with pytest.raises(ModelCallFailed, match="No LLM provider available"):
        await play(path).complete(ask("?", model="haiku"))


def test_damaged_lines_are_left_out_and_counted(path: Path) -> None:
    whole = json.dumps(_line(ask("?")))
    both = json.dumps(_line(ask("?"), error={"reason": "x", "retriable": False}))
    lines = [whole[:40], whole, "", "[]", "null", '{"callId": "1"}', both, whole.replace('"user"', '"nobody"'), "\x00"]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([whole, *lines]).encode() + b"\xff\xfe")
    client = play(path)
    assert client.bad_lines == 7


async def test_a_line_of_a_later_version_is_read(path: Path) -> None:
    _write(path, _line(ask("?"), cached={"tokens": [1]}, traceId=None))
    assert (await play(path).complete(ask("?"))).text == "ok"


def test_a_missing_file_is_an_error(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        play(path)


async def test_a_changed_prompt_is_shown_against_the_call_it_was(path: Path) -> None:
    await record(path, "ok", ask("Look.\nCount errors.", trigger=1), ask("Look.\nCount files.", trigger=2))
    with pytest.raises(MissingCall) as missing:
        await play(path).complete(ask("Look.\nCount all files.", trigger=2))
    second = _lines(path)[1]["callId"]
    assert missing.value.reason == (
        f"calls.jsonl has no such call; nearest is {second} of sentinel narrator, codon fix, trigger 2, which differs:\n"
        "--- recorded\n+++ asked\n…\n be brief\n --- user\n Look.\n-Count files.\n+Count all files."
    )
    assert not missing.value.retriable


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"temperature": 0.5}, "+temperature: 0.5"),
        ({"max_output_tokens": 5}, "+maxOutputTokens: 5"),
        ({"model": "acme/two"}, "+model: acme/two"),
        ({"json_schema": {"type": "object"}}, '+  "type": "object"'),
        ({"schema_name": "finding"}, "+schemaName: finding"),
        ({"schema_description": "what was found"}, "+schemaDescription: what was found"),
    ],
)
async def test_a_changed_parameter_is_shown(change: dict[str, Any], line: str, path: Path) -> None:
    await record(path, "ok", ask("?"))
    with pytest.raises(MissingCall) as missing:
        await play(path).complete(ask("?", **change))
    assert line in missing.value.reason.splitlines()


async def test_a_change_of_control_characters_alone_is_named(path: Path) -> None:
    await record(path, "ok", ask("?"))
    with pytest.raises(MissingCall, match="characters that are not shown"):
        await play(path).complete(ask("\x1b[0m?"))


async def test_a_call_too_many_is_named(path: Path) -> None:
    await record(path, ["one", "two"], ask("?"), ask("?"))
    client = play(path)
    for _ in range(2):
        await client.complete(ask("?"))
    with pytest.raises(MissingCall) as missing:
        await client.complete(ask("?", trigger=3))
    assert missing.value.reason == (
        "calls.jsonl has this call 2 times, and it was made once more (by sentinel narrator, codon fix, trigger 3)"
    )


async def test_a_sentinel_that_was_not_recorded_is_told_who_was(path: Path) -> None:
    await record(path, "ok", ask("?"), ask("?!"), ask("?", sentinel="costs"))
    with pytest.raises(MissingCall) as missing:
        await play(path).complete(ask("new", sentinel="new"))
    assert missing.value.reason == (
        "calls.jsonl has no call of sentinel new, codon fix, trigger 1; "
        "it has 2 of sentinel narrator, 1 of sentinel costs"
    )


async def test_a_repaired_answer_is_compared_with_the_repair_not_with_the_first_try(path: Path) -> None:
    await record(path, ["no json", "[]"], ask("first"), ask("first\nrepair it"))
    client = play(path)
    await client.complete(ask("first"))
    with pytest.raises(MissingCall) as missing:
        await client.complete(ask("first\nmend it"))
    assert "-repair it\n+mend it" in missing.value.reason


async def test_what_is_asked_of_a_cassette_does_not_reach_a_terminal_raw(path: Path) -> None:
    await record(path, "ok", ask("?"))
    with pytest.raises(MissingCall) as missing:
        await play(path).complete(ask("\x1b[31mred hunter2-hunter2"))
    assert "\x1b" not in missing.value.reason
    assert "hunter2-hunter2" not in missing.value.reason


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _write(path: Path, line: dict[str, Any]) -> None:
    path.write_text(json.dumps(line) + "\n")


def _line(request: ModelRequest, **changes: Any) -> dict[str, Any]:
    """A line written by hand: no digest, no times."""
    return {
        "callId": "1",
        "model": request.model,
        **request.labels,
        "request": {
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "temperature": 0,
            "maxOutputTokens": 8192,
        },
        "reply": {"text": "ok", "finishReason": "stop"},
        "tokens": {"input": 1, "output": 1},
        "costUsd": None,
        **changes,
    }
