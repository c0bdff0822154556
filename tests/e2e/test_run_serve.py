"""``run --serve``: a run that is seen and steered over HTTP while it lasts, by its own process."""

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.support.cli import Cli
from tests.support.live import LiveRun, live_run

from hankwatch.cli import serve as server
from hankwatch.cli.commands import app
from hankwatch.cli.commands.running import AS_SET, _with_port
from hankwatch.core.errors import UsageError
from hankwatch.stream.lock import holder

pytestmark = pytest.mark.slow


@contextmanager
def served_run(cli: Cli) -> Iterator[tuple[LiveRun, str]]:
    """A live run, and where it is served."""
    with live_run(cli, "--json", "--serve", stdout=subprocess.PIPE) as run:
        assert run.process.stdout is not None
        yield run, json.loads(run.process.stdout.readline())["address"]


def test_a_run_is_served_until_it_ends_and_its_last_event_is_sent(cli: Cli) -> None:
    with served_run(cli) as (run, address):
        held = holder(run.root / ".hankweave" / "runtime.lock")
        assert held is not None
        assert f"http://127.0.0.1:{held.port}" == address
        (listed,) = httpx.get(f"{address}/api/runs").json()
        assert (listed["run"], listed["outcome"]) == (held.run, "running")
        written = {"condition": "a moment has passed", "verifier": {"type": "time", "after_s": 0.1}}
        watch = httpx.post(f"{address}/api/watches", json=written).json()
        with httpx.stream("GET", f"{address}/api/runs/latest/stream", params={"after": 0}, timeout=15) as stream:
            lines = stream.iter_lines()
            seen = list[str]()
            while "watch.met" not in seen:  # checked by the run itself
                seen += types(next(lines))
            run.let_end()
            seen += [name for line in lines for name in types(line)]
        out, said = run.process.communicate(timeout=10)
        assert (run.process.returncode, json.loads(out)["success"]) == (0, True)
        assert seen[-1] == "state.transition"
        assert f"Serving it at {address} until it ends" in said
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{address}/api/runs")
    assert watch["home"] == str(run.root)
    last = json.loads(run.journal.read_text().splitlines()[-1])
    assert last["data"]["transitionType"] == "RunCompleted"


def types(line: str) -> list[str]:
    """The type of the event that a line of a stream holds."""
    return [json.loads(line[6:])["type"]] if line.startswith('data: {"cursor"') else []


def test_a_stopped_run_ends_in_time_whoever_still_listens(cli: Cli) -> None:
    with served_run(cli) as (run, address), httpx.stream("GET", f"{address}/api/runs/latest/stream") as stream:
        waits = socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])))
        waits.sendall(b"POST /api/watches HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n")  # and no more
        run.process.send_signal(signal.SIGTERM)
        _, said = run.process.communicate(timeout=10)
        assert '"shutdown"' in "".join(stream.iter_lines())
        waits.close()
    assert run.process.returncode == 130
    assert "Ended by force" not in said


def test_an_address_that_cannot_be_had_is_told_before_anything_is_made(cli: Cli, fixtures: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cli.refused("run", fixtures / "demo", "--serve", port, code="address-taken", exit_code=3)
    assert not cli.executions.exists()


def test_without_the_extra_nothing_begins(monkeypatch: pytest.MonkeyPatch, fixtures: Path) -> None:
    monkeypatch.setattr(server, "find_spec", lambda _: None)
    with pytest.raises(UsageError) as refused:
        app(args=["run", str(fixtures / "demo"), "--serve"], standalone_mode=False)
    assert refused.value.hint == "pip install 'hankwatch[serve]'"


@pytest.mark.parametrize(
    ("written", "understood"),
    [
        ("x --serve", f"x --serve={AS_SET}"),
        ("--serve hank.json", f"--serve={AS_SET} hank.json"),
        ("--serve --json", f"--serve={AS_SET} --json"),
        ("--serve 8765 hank.json", "--serve 8765 hank.json"),
        ("--serve=8765", "--serve=8765"),
        ("-- --serve", "-- --serve"),
    ],
)
def test_a_port_behind_serve_may_be_left_out(written: str, understood: str) -> None:
    assert _with_port(written.split()) == understood.split()
