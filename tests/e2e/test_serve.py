"""``serve`` as a user has it: a real process, real HTTP, a run of another process beside it."""

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.cli import Cli
from tests.support.live import live_run
from tests.support.protocol_client import ProtocolClient
from tests.support.runs import until
from tests.support.serving import execution, journal_of, lines, policy

pytestmark = pytest.mark.slow


@contextmanager
def serving(cli: Cli, *arguments: object) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """The address, and the process, which is ended at the end if it still lives."""
    with cli.start("serve", "--json", *arguments) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["address"], process
        finally:
            if process.poll() is None:
                process.terminate()
                process.communicate(timeout=15)


def rss_kib(pid: int) -> int:
    """What a process has in memory."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1])


def test_it_says_where_it_is_and_ends_in_order(cli: Cli) -> None:
    execution(cli.executions, "1764522000000-a", lines("hello"))
    with serving(cli) as (address, process):
        (run,) = httpx.get(f"{address}/api/runs").json()
        assert run["execution"] == "1764522000000-a"
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=12)
    assert process.returncode == 130
    assert f"at {address}; Ctrl-C ends it" in said
    assert "Traceback" not in said


def test_it_opens_a_browser_when_asked(cli: Cli) -> None:
    cli.executions.mkdir()
    browser, opened = cli.cwd / "browser", cli.cwd / "opened"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    with cli.start("serve", "--json", "--open", env={"BROWSER": str(browser)}) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        until(opened.exists)
        process.terminate()
        process.communicate(timeout=15)
    assert opened.read_text() == address


def test_a_port_that_is_taken_is_an_infrastructure_failure(cli: Cli) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = cli.refused("serve", "--port", port, code="address-taken", exit_code=3)
    assert f"127.0.0.1:{port}" in said.err


def test_others_than_this_machine_need_a_policy(cli: Cli, tmp_path: Path) -> None:
    cli.refused("serve", "--bind", "0.0.0.0", code="usage")
    cli.refused("serve", "--bind", "0.0.0.0", "--policy", tmp_path / "none.toml", code="file-unreadable")
    cli.refused("serve", tmp_path / "nowhere", code="usage")
    with serving(cli, "--bind", "0.0.0.0", "--policy", policy(tmp_path / "policy.toml")) as (address, _):
        assert httpx.get(f"{address}/api/runs").status_code == 401
        bearer = {"Authorization": "Bearer secret-of-root"}
        assert httpx.get(f"{address}/api/runs", headers=bearer).json() == []


def test_a_live_run_is_steered_and_followed(cli: Cli) -> None:
    with live_run(cli) as run, serving(cli, run.root) as (address, _):
        detail = httpx.get(f"{address}/api/runs/latest").json()
        assert detail["outcome"] == "running"
        with httpx.stream("GET", f"{address}/api/runs/latest/stream", params={"type": "codon.completed"}) as stream:
            refused = httpx.post(f"{address}/api/runs/latest/commands", json={"command": "next", "waitS": 5})
            assert (refused.status_code, refused.json()["code"]) == (409, "order-refused")
            asked = httpx.post(f"{address}/api/runs/latest/commands", json={"command": "skip", "waitS": 5})
            assert (asked.json()["state"], asked.json()["codon"]) == ("done", "build")
            data = next(line for line in stream.iter_lines() if line.startswith("data: "))
        assert json.loads(data.removeprefix("data: "))["type"] == "codon.completed"
        run.process.wait(timeout=10)


def test_a_client_of_the_old_protocol_outlives_its_server_and_steers_a_live_run(cli: Cli) -> None:
    def text(said: str) -> dict[str, object]:
        return {"type": "assistant", "message": {"content": [{"type": "text", "text": said}]}, "session_id": "s"}

    with live_run(cli) as run:
        with serving(cli, run.root) as (address, _):
            client, port = ProtocolClient(address), address.rpartition(":")[2]
            with client.connected():
                run.say(text("while it serves"))
                assert client.until("assistant.action")["data"]["content"] == "while it serves"
        run.say(text("while nobody serves"))
        with serving(cli, run.root, "--port", port), client.connected():
            run.say(text("again"))
            client.until("assistant.action")
            answer = client.command("codon.skip")
            assert (answer["type"], answer["data"]["commandId"]) == ("info", "codon.skip-1")
            assert client.until("codon.completed")["data"]["codonId"] == "build"
        run.process.wait(timeout=10)
    written = [json.loads(line) for line in run.journal.read_bytes().splitlines()]
    upto = 1 + [event["type"] for event in written].index("codon.completed")
    quiet = {"sentinel.triggered"}  # which nobody asked to be told
    assert {event["id"] for event in written[:upto] if event["type"] not in quiet} <= client.events.keys()
    said = [one["data"]["content"] for one in client.events.values() if one["type"] == "assistant.action"]
    assert said == ["while it serves", "while nobody serves", "again"]


def test_watches_are_checked_while_it_serves(cli: Cli) -> None:
    cli.executions.mkdir()
    written = {"condition": "a moment has passed", "verifier": {"type": "time", "after_s": 0.2}}
    with serving(cli) as (address, _):
        watch: dict[str, Any] = httpx.post(f"{address}/api/watches", json=written).json()
        while watch["state"] != "met":
            watch = httpx.get(f"{address}/api/watches/{watch['id']}").json()
        (told,) = httpx.get(f"{address}/api/notifications").json()
        assert httpx.get(f"{address}/api/watches").json()["last_loop_at"] is not None
    assert (told["watch_id"], told["signal"]) == (watch["id"], "met")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("events", [24_000, pytest.param(200_000, marks=pytest.mark.soak)])
def test_a_client_that_reads_nothing_costs_no_memory(events: int, cli: Cli) -> None:
    """Cases A24: a background tab made the server keep every event."""
    root = execution(cli.executions, "1764522000000-a", lines("first"))
    body = lines(*(f"{number} " + "x" * 200 for number in range(4_000)))
    with serving(cli) as (address, process):
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            slow.sendall(f"GET /api/runs/latest/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
            with httpx.stream("GET", f"{address}/api/runs/latest/stream", timeout=30) as fast:
                chunks = fast.iter_raw()
                with journal_of(root).open("ab", buffering=0) as file:
                    file.write(body)
                    seen = until_seen(chunks, 4_000)
                    before = rss_kib(process.pid)
                    for _ in range(events // 4_000 - 1):
                        file.write(body)
                        seen = until_seen(chunks, 4_000, seen)
                after = rss_kib(process.pid)
    assert after <= before * 1.2, f"{before} KiB before, {after} KiB after"


def until_seen(chunks: Iterator[bytes], count: int, seen: int = 0) -> int:
    """Read so many more messages, each of which has two closing braces; how many braces came beyond them."""
    while seen < 2 * count:
        seen += next(chunks).count(b"}")
    return seen - 2 * count


def test_help_says_what_it_takes(cli: Cli) -> None:
    said = cli("serve", "--help").out
    assert all(word in said for word in ("--bind", "--port", "--policy", "[DIR]"))
