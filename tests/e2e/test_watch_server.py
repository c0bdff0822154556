"""``hankwatch watch … --server URL``: the same commands, answered by a server; a token from the environment or a file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from tests.support.cli import Cli, Done
from tests.support.serving import Server, a_server, policy

pytestmark = pytest.mark.slow
HOSTILE = "<script>x</script>\x1b[31mred\x1b]0;title\x07\u202e"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """One that wants tokens."""
    (tmp_path / "executions").mkdir()
    file = policy(tmp_path / "policy.toml")
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(a_server(tmp_path / "executions", policy_file=file)) as made,
    ):
        yield made


def asked(cli: Cli, server: Server, *words: object, token: str | None = "secret-of-root") -> Done:
    env = {} if token is None else {"HANKWATCH_TOKEN": token}
    return cli("watch", *words, "--server", server.address, env=env)


@pytest.mark.timeout(60)  # a dozen commands, one after the other
def test_a_watch_lives_its_life_on_a_server(cli: Cli, server: Server, tmp_path: Path) -> None:
    def of(*words: object) -> Any:
        done = asked(cli, server, *words, "--json")
        assert done.code == 0, done
        return done.json

    made = of("create", "--condition", HOSTILE, "--document", "there", "--id", "w")
    assert (made["owner"], made["is_new"], made["verifier"]["path"]) == ("root", True, "there")
    assert of("create", "--condition", HOSTILE, "--document", "there", "--id", "w")["is_new"] is False
    assert of("update", "w", "--interval", "60s")["interval_s"] == 60
    assert of("check", "w")["last_outcome"] in {"pending", "unavailable"}
    shown = of("show", "w")
    assert [one["outcome"] for one in shown["evaluations"]] == [shown["last_outcome"]]
    assert {one["signal"] for one in shown["deliveries"]} <= {"armed", "updated"}
    listed = asked(cli, server, "list")
    assert (listed.code, "w " in listed.out) == (0, True)
    assert not {"\x1b", "\x07", "\u202e"} & set(listed.out + asked(cli, server, "show", "w").out)
    assert of("cancel", "w")["status"] == "ended"
    assert of("clear", "w") == {"id": "w", "cleared": True}
    written = tmp_path / "set.json"
    written.write_text(
        json.dumps({"watches": [{"id": "a", "condition": "x", "verifier": {"type": "time", "after_s": 9}}]})
    )
    assert of("apply", written, "--owner", "ci") == {"armed": ["a"], "kept": [], "cancelled": []}
    assert of("apply", written, "--owner", "ci") == {"armed": [], "kept": ["a"], "cancelled": []}
    assert of("list")["owner"] == "ci"


def test_a_token_is_taken_from_a_file_and_from_no_argument(cli: Cli, server: Server, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret-of-alice\n")
    done = asked(cli, server, "list", "--json", "--token-file", tmp_path / "token", token=None)
    assert (done.code, done.out) == (0, "")
    inside = cli.refused("watch", "list", "--server", server.address.replace("//", "//secret@"), code="usage")
    assert "secret" not in inside.err


def test_what_a_server_refuses_is_told_in_its_words(cli: Cli, server: Server) -> None:
    for words, token, code, exit_code in (
        (("show", "w"), "secret-of-root", "watch-not-found", 2),
        (("create", "--condition", "x", "--check", "nothing"), "secret-of-root", "watch-invalid", 2),
        (("list",), "wrong", "server-refused", 2),
        (("list",), None, "server-refused", 2),
    ):
        done = asked(cli, server, *words, token=token)
        assert (done.code, done.out) == (exit_code, ""), done
        assert f"error[{code}]" in done.err
        assert "secret-of" not in done.err


def test_no_server_is_an_infrastructure_failure(cli: Cli) -> None:
    cli.refused("watch", "list", "--server", "http://127.0.0.1:9", code="server-unreachable", exit_code=3)
