"""Nobody sees anything of another tenant's: every route of the application, whatever room it belongs to, has its line here."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import BaseRoute
from tests.support.serving import Server, a_server, demo, journal_of, lines, policy
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from hankwatch.serve.app import make_app

PROPOSAL = {
    "condition": "a is on",
    "verifier": {"type": "check", "name": "dial", "version": "v1", "args": {"name": "a"}},
    "expires_in_s": 3600,
    "actions": ["in_app"],
}
WATCH = {"condition": "a is on", "verifier": {"type": "check", "name": "dial", "args": {"name": "a"}}}
HERE = {"run_id": "latest", "session_id": "main", "watch_id": "theirs", "proposal_id": "theirs", "cursor": "1"}
"""What the first tenant has, by path parameter."""
NOWHERE = {**dict.fromkeys(HERE, "nowhere"), "cursor": "1"}
SECRET = "secret-of-acme"
"""In whatever the first tenant's runs and watches say."""
RUN, WATCHES, CHAT = "/api/runs/{run_id}", "/api/watches", "/api/v1/chat/sessions/{session_id}/watches"
SAME = {200, 204, 303, 307}
"""It is the same for everybody, or the asker's own."""
STRANGERS: dict[tuple[str, str], set[int]] = {
    ("GET", "/api/openapi.json"): SAME,
    ("POST", "/mcp"): SAME,
    ("GET", "/api/runs"): SAME,
    ("GET", RUN): {404},
    ("GET", f"{RUN}/events"): {404},
    ("GET", f"{RUN}/sentinels"): {404},
    ("GET", f"{RUN}/reports"): {404},
    ("GET", f"{RUN}/reports/{{name:path}}"): {404},
    ("GET", f"{RUN}/stream"): {404},
    ("POST", f"{RUN}/commands"): {404},
    ("POST", f"{RUN}/try"): {404},
    ("GET", "/ws"): {400},
    ("WEBSOCKET", "/ws"): {404},
    ("GET", "/api/watch-settings"): SAME,
    ("PATCH", "/api/watch-settings"): {403},
    ("GET", WATCHES): SAME,
    ("POST", WATCHES): {201},
    ("PUT", WATCHES): {200},
    ("GET", "/api/deliveries"): SAME,
    ("GET", f"{WATCHES}/{{watch_id}}"): {404},
    ("PATCH", f"{WATCHES}/{{watch_id}}"): {404},
    ("DELETE", f"{WATCHES}/{{watch_id}}"): {404},
    ("POST", f"{WATCHES}/{{watch_id}}/check"): {404},
    ("POST", f"{WATCHES}/{{watch_id}}/cancel"): {404},
    ("POST", f"{WATCHES}/{{watch_id}}/approve"): {404},
    ("POST", f"{WATCHES}/{{watch_id}}/reject"): {404},
    ("GET", f"{WATCHES}/{{watch_id}}/evaluations"): {404},
    ("GET", "/api/notifications"): SAME,
    ("GET", "/api/verifiers"): SAME,
    ("GET", "/api/sessions"): SAME,
    ("POST", f"{CHAT}/proposals"): {201},
    ("POST", f"{CHAT}/proposals/{{proposal_id}}/approve"): {404},
    ("GET", CHAT): SAME,
    ("GET", f"{CHAT}/{{watch_id}}"): {404},
    ("POST", f"{CHAT}/{{watch_id}}/cancel"): {404},
    ("GET", "/metrics"): {403},
    ("GET", "/healthz"): SAME,
    ("GET", "/readyz"): SAME,
    ("GET", "/assets/{name}"): {422},
    ("GET", "/login"): SAME,
    ("POST", "/login"): {200, 303, 400, 401, 422},
    ("POST", "/logout"): SAME,
    ("GET", "/"): SAME,
    ("GET", "/runs/{run_id}"): {404},
    ("GET", "/runs/{run_id}/events"): {404},
    ("GET", "/runs/{run_id}/events/{cursor}"): {404},
    ("GET", "/runs/{run_id}/sentinels"): {404},
    ("GET", "/runs/{run_id}/reports/{name:path}"): {404},
    ("GET", "/runs/{run_id}/playground"): {404},
    ("POST", "/runs/{run_id}/playground"): {404},
    ("GET", "/console/live"): SAME,
    ("GET", "/watches"): SAME,
    ("GET", "/watches/settings"): SAME,
    ("GET", "/watches/new"): SAME,
    ("GET", "/watches/{watch_id}"): {404},
    ("GET", "/watches/{watch_id}/"): {404},
}
"""What somebody of another tenant, who owns all sessions there, is answered."""
ENDLESS = {"/console/live"}
"""Streams of what the asker may see; the first bytes are looked at."""
BODIES: dict[tuple[str, str], Any] = {
    ("POST", WATCHES): WATCH,
    ("PUT", WATCHES): {"watches": []},
    ("PATCH", f"{WATCHES}/{{watch_id}}"): {"condition": "b is on"},
    ("POST", f"{CHAT}/proposals"): PROPOSAL,
    ("POST", f"{RUN}/commands"): {"command": "next"},
    ("POST", f"{RUN}/try"): {"config": "{}"},
    ("POST", "/runs/{run_id}/playground"): {"config": "{}"},
    ("PATCH", "/api/watch-settings"): {"interval": 60},
}
FORMS: dict[tuple[str, str], dict[str, str]] = {
    ("POST", "/login"): {"token": "secret-of-eve"},
    ("POST", "/logout"): {},
}


def routes_of(routes: Iterable[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Method and path of every route, those of included routers too."""
    for route in routes:
        if (included := getattr(route, "original_router", None)) is not None:
            yield from routes_of(included.routes)
        else:
            for method in set(getattr(route, "methods", None) or {"WEBSOCKET"}) - {"HEAD"}:
                yield method, str(getattr(route, "path", "?"))


def address(path: str, names: dict[str, str]) -> str:
    for name, value in {**names, "name:path": "reports/x.md", "name": "nothing.css"}.items():
        path = path.replace(f"{{{name}}}", value)
    return path


async def asked(client: httpx.AsyncClient, key: tuple[str, str], names: dict[str, str]) -> tuple[int, str]:
    """Status, and all that was answered, the request's own words left out."""
    method, path = key
    headers = {
        "Ductor-Agent-Protocol-Version": "1",
        "Accept": "application/json, text/event-stream, text/html",
        "Origin": f"{client.base_url}".rstrip("/"),
    }
    where = address(path, names)
    given: dict[str, Any] = {"json": BODIES[key]} if key in BODIES else {"data": FORMS[key]} if key in FORMS else {}
    async with client.stream(method, where, headers=headers, **given) as answer:
        if path in ENDLESS:
            return answer.status_code, (await anext(answer.aiter_bytes())).decode()
        heads = {name: value for name, value in answer.headers.items() if name not in {"date", "content-length"}}
        told = f"{heads}{(await answer.aread()).decode()}"
    for name in {*HERE.values(), *NOWHERE.values()} - {"1"}:
        told = told.replace(name, "")
    return answer.status_code, told


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = demo(tmp_path / "executions")
    with journal_of(root).open("ab") as file:
        file.write(lines(SECRET))
    return root


async def test_every_route_says_what_another_tenant_is_answered(root: Path) -> None:
    async with a_server(root.parent) as server:
        there = set(routes_of(make_app(server.serving)._app.routes))  # type: ignore[attr-defined]  # a FastAPI's
    assert there == STRANGERS.keys()


async def test_another_tenant_sees_nothing_by_any_route(root: Path, tmp_path: Path) -> None:
    async with a_server(root.parent, policy_file=policy(tmp_path / "policy.toml")) as server:
        async with server.client("alice") as alice:
            written = {**WATCH, "id": "theirs", "session": "main", "condition": SECRET, "repeat": True}
            assert (await alice.post(WATCHES, json=written)).status_code == 201
            assert (await alice.post(f"{WATCHES}/theirs/check")).status_code == 200
            run = (await alice.get("/api/runs/latest")).json()
        words = {SECRET, run["run"], run["execution"], "alice"}
        async with server.client("eve") as eve:
            for key, statuses in STRANGERS.items():
                if key[0] == "WEBSOCKET" or key[1] == "/mcp":
                    continue
                status, told = await asked(eve, key, HERE)
                assert status in statuses, (key, status, told)
                assert not [word for word in words if word in told], (key, told)
                if status == 404:
                    assert (status, told) == await asked(eve, key, NOWHERE), key
        async with server.client("alice") as alice:
            assert (await alice.get(f"{WATCHES}/theirs")).json()["condition"] == SECRET


async def test_another_tenant_gets_no_socket(root: Path, tmp_path: Path) -> None:
    async with a_server(root.parent, policy_file=policy(tmp_path / "policy.toml")) as server:
        for run in ("latest", "nothing"):
            where = f"{server.address.replace('http', 'ws')}/ws?run={run}"
            with pytest.raises(InvalidStatus) as refused:
                await connect(where, additional_headers={"Authorization": "Bearer secret-of-eve"}, proxy=None)
            assert refused.value.response.status_code in STRANGERS["WEBSOCKET", "/ws"]


async def test_another_tenant_sees_nothing_by_any_tool(root: Path, tmp_path: Path) -> None:
    async with a_server(root.parent, policy_file=policy(tmp_path / "policy.toml")) as server:
        async with server.client("alice") as alice:
            written = {**WATCH, "id": "theirs", "session": "main", "condition": SECRET}
            assert (await alice.post(WATCHES, json=written)).status_code == 201
            run = (await alice.get("/api/runs/latest")).json()
        async with server.client("eve") as eve:
            tools = (await tool(eve, "tools/list", {}))["result"]["tools"]
            assert len(tools) > 5
            for one in tools:
                known = {
                    "run": "latest",
                    "run_id": "latest",
                    "id": "theirs",
                    "watch_id": "theirs",
                    "monitor_id": "theirs",
                }
                given = {name: known[name] for name in one["inputSchema"].get("properties", {}) if name in known}
                told = json.dumps(await tool(eve, "tools/call", {"name": one["name"], "arguments": given}))
                assert not [word for word in (SECRET, run["run"], run["execution"], "alice") if word in told], told


async def tool(client: httpx.AsyncClient, method: str, params: dict[str, Any]) -> Any:
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
    asks = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return (await client.post("/mcp", json=asks, headers=headers)).json()


async def test_metrics_of_another_tenant_are_not_told_and_no_label_is_an_id(root: Path, tmp_path: Path) -> None:
    async with a_server(root.parent, policy_file=policy(tmp_path / "policy.toml")) as server:
        await metrics_hold_no_id(server)
        async with server.client("eve") as eve:
            assert (await eve.get("/metrics")).status_code == 403


async def metrics_hold_no_id(server: Server) -> None:
    async with server.client("alice") as alice:
        await alice.post(WATCHES, json={**WATCH, "id": "theirs", "session": "main"})
        run = (await alice.get("/api/runs/latest")).json()
        text = (await alice.get("/metrics")).text
        names = {run["run"], run["execution"], "theirs", "main", "alice", "acme"}
        names |= {codon["codonId"] for codon in run["codons"]}
        names |= {one["sentinelId"] for one in (await alice.get("/api/runs/latest/sentinels")).json()}
    assert not [name for name in names if f'"{name}"' in text]
