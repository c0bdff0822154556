"""A real server on loopback over a folder of executions, and clients of it."""

import atexit
import hashlib
import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
from anyio.from_thread import start_blocking_portal
from tests.support.cli import Cli
from tests.support.watch_bench import WatchBench

from hankwatch.core.clock import SystemClock
from hankwatch.serve.auth import open_door
from hankwatch.serve.context import Serving
from hankwatch.serve.policy import PolicyAuthorizer
from hankwatch.serve.server import address_of, listen, serving_on
from hankwatch.serve.shelf import Shelf

TOKENS: dict[str, dict[str, Any]] = {
    "alice": {"tenant": "acme", "sessions": {"*": "owner"}, "entitlements": ["agent_watches"]},
    "bob": {"tenant": "acme", "sessions": {"*": "member"}},
    "carol": {"tenant": "acme", "sessions": {"main": "owner"}},
    "eve": {"tenant": "evil", "sessions": {"*": "owner"}, "entitlements": ["agent_watches"]},
    "root": {"tenant": "acme", "roles": ["operator"]},
    "agent": {"tenant": "acme", "roles": ["agent"], "sessions": {"*": "owner"}, "entitlements": ["agent_watches"]},
}
"""Who has a token in ``policy``; the token is ``secret-of-NAME``, and ``reader-of-NAME`` for runs:read alone."""


@cache
def _demo() -> Path:
    """The execution directory of one run of the demo, made once a process."""
    home = Path(tempfile.mkdtemp(prefix="hankwatch-demo-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    return Cli(home, home).demo()


def demo(folder: Path) -> Path:
    """A copy of the demo's execution directory in ``folder``; its root."""
    ran = _demo()
    return Path(shutil.copytree(ran, folder / ran.name, symlinks=True))


def execution(folder: Path, name: str, journal: bytes) -> Path:
    """An execution directory with that journal; its root."""
    root = folder / name
    events = root / ".hankweave" / "events"
    events.mkdir(parents=True)
    (events / "events.jsonl").write_bytes(journal)
    return root


def journal_of(root: Path) -> Path:
    return root / ".hankweave" / "events" / "events.jsonl"


def lines(*messages: str, start: int = 0) -> bytes:
    """Journal lines of ``info`` events."""
    return b"".join(
        json.dumps(
            {
                "id": f"0199d3c4-5b6a-7c8d-9e0f-{start + number:012x}",
                "timestamp": "2026-11-30T17:00:32.123Z",
                "type": "info",
                "data": {"message": message},
            },
            separators=(",", ":"),
        ).encode()
        + b"\n"
        for number, message in enumerate(messages)
    )


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def policy(path: Path, **principals: dict[str, Any]) -> Path:
    """A policy file of ``TOKENS``, or of others."""
    written = ['tenant = "acme"']
    for actor, given in (principals or TOKENS).items():
        written += ["[[principals]]", f'actor = "{actor}"']
        written += [f"{key} = {_toml(value)}" for key, value in given.items()]
        scoped = f'{{ sha256 = "{digest(f"reader-of-{actor}")}", scopes = ["runs:read"] }}'
        written.append(f'tokens = [{{ sha256 = "{digest(f"secret-of-{actor}")}" }}, {scoped}]')
    path.write_text("\n".join(written) + "\n")
    return path


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f'"{key}" = {_toml(item)}' for key, item in value.items()) + " }"
    return json.dumps(value)


@dataclass
class Server:
    """A server that answers, and what stands behind it."""

    address: str
    serving: Serving
    bench: WatchBench

    def client(self, who: str | None = None, *, token: str | None = None) -> httpx.AsyncClient:
        """Somebody's client."""
        token = token or (None if who is None else f"secret-of-{who}")
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=self.address, headers=headers, timeout=10)


@asynccontextmanager
async def a_server(folder: Path, *, policy_file: Path | None = None) -> AsyncIterator[Server]:
    """Serves the executions below ``folder``; its watches are in a store of their own."""
    clock = SystemClock()
    door = open_door("127.0.0.1", None if policy_file is None else str(policy_file))
    authorizer = None if door.policy is None else PolicyAuthorizer(door.policy)
    bench = WatchBench(str(folder.parent / "serving-watches.db"), clock, authorizer=authorizer)
    serving = Serving(door, Shelf(folder), clock, bench.service)
    listening = listen("127.0.0.1", 0)
    try:
        async with serving_on(listening, serving):
            yield Server(address_of(listening), serving, bench)
    finally:
        bench.database.close()


@contextmanager
def a_site(folder: Path, *, policy_file: Path | None = None) -> Iterator[Server]:
    """``a_server`` in a thread of its own, for tests with a browser: those are plain functions."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(a_server(folder, policy_file=policy_file)) as server,
    ):
        yield server
