"""A18, model side: no secret is sent, logged, or shown by a cassette."""

import json
from pathlib import Path

import pytest
from tests.support.remotes import ScriptedRemote

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import MissingCall, ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.llm import CallLog, CallLogClient, Message, ModelRequest, ModelRouter
from hankwatch.testing import Answer, failure

SECRETS = [
    "sk-ant-api03-" + "Ab1" * 31 + "AA",
    "ghp_" + "aB3" * 12,
    "AKIAIOSFODNN7EXAMPLE",
    "AIza" + "Sy1" * 11 + "Ab",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEow" + "x1" * 60 + "\n-----END RSA PRIVATE KEY-----",
    "hunter2-hunter2",
]
ENV = {"DATABASE_PASSWORD": "hunter2-hunter2"}
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" * 3


class Bench:
    def __init__(self, folder: Path, answer: Answer) -> None:
        self.log = folder / "calls.jsonl"
        self.redactor = Redactor.from_environment(ENV)
        clock = VirtualClock()
        self.remote = ScriptedRemote(answer, clock=clock)
        log = CallLog(self.log, redactor=self.redactor, on_failure=lambda error: pytest.fail(str(error)))
        self.router = ModelRouter({}, redactor=self.redactor, clock=clock, call_log=log, remote=self.remote)

    def logged(self) -> str:
        return self.log.read_text()


def _ask(secret: str) -> ModelRequest:
    return ModelRequest(
        "acme/one",
        (Message("system", f"token {secret}"), Message("user", f"https://api.test/v1?key={secret} {IMAGE}")),
        json_schema={"type": "object", "description": f"never {secret}"},
        schema_description=f"about {secret}",
        labels={"sentinelId": "narrator"},
    )


def _holds(text: str, secret: str) -> bool:
    return secret in text or json.dumps(secret)[1:-1] in text


@pytest.mark.parametrize("secret", SECRETS)
async def test_a_secret_in_a_request_is_neither_sent_nor_logged(secret: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, "ok")
    await bench.router.complete(_ask(secret))
    [sent] = bench.remote.requests
    assert not _holds(repr(sent), secret)
    assert not _holds(bench.logged(), secret)
    assert "[redacted:" in sent.messages[0].content
    assert IMAGE in sent.messages[1].content


@pytest.mark.parametrize("secret", SECRETS)
async def test_a_secret_in_a_reply_or_an_error_is_not_logged(secret: str, tmp_path: Path) -> None:
    replied, failed = Bench(tmp_path / "a", f"found {secret}"), Bench(tmp_path / "b", failure(f"bad key {secret}"))
    await replied.router.complete(_ask("none"))
    with pytest.raises(ModelCallFailed):
        await failed.router.complete(_ask("none"))
    for bench in (replied, failed):
        assert not _holds(bench.logged(), secret)
        assert "[redacted:" in bench.logged()


async def test_equal_secrets_can_be_told_from_different_ones(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "ok")
    for secret in (SECRETS[0], SECRETS[0], SECRETS[0].replace("Ab1", "Cd2")):
        await bench.router.complete(_ask(secret))
    one, same, other = (request.messages[0].content for request in bench.remote.requests)
    assert one == same != other


@pytest.mark.parametrize("secret", SECRETS)
async def test_a_cassette_answers_and_complains_without_the_secret(secret: str, tmp_path: Path) -> None:
    bench = Bench(tmp_path, "ok")
    await bench.router.complete(_ask(secret))
    client = CallLogClient(bench.log, redactor=bench.redactor)
    assert (await client.complete(_ask(secret))).text == "ok"
    with pytest.raises(MissingCall) as missing:
        await client.complete(ModelRequest("acme/one", (Message("user", secret),), labels={"sentinelId": "narrator"}))
    assert not _holds(missing.value.reason, secret)
