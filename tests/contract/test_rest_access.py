"""Who may call: tokens, tenants, scopes, and pages of other sites in somebody's browser."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.serving import Server, a_server, demo, policy

VERSION = {"Ductor-Agent-Protocol-Version": "1"}
WATCH = {"condition": "a is on", "verifier": {"type": "check", "name": "dial", "args": {"name": "a"}}}
PROTECTED = [
    ("GET", "/api/runs"),
    ("GET", "/api/runs/latest"),
    ("GET", "/api/runs/latest/events"),
    ("GET", "/api/runs/latest/sentinels"),
    ("GET", "/api/runs/latest/reports"),
    ("GET", "/api/runs/latest/reports/x"),
    ("GET", "/api/runs/latest/stream"),
    ("POST", "/api/runs/latest/commands"),
    ("POST", "/api/runs/latest/try"),
    ("GET", "/api/watches"),
    ("POST", "/api/watches"),
    ("PUT", "/api/watches"),
    ("GET", "/api/deliveries"),
    ("GET", "/api/watches/w"),
    ("PATCH", "/api/watches/w"),
    ("DELETE", "/api/watches/w"),
    ("POST", "/api/watches/w/check"),
    ("POST", "/api/watches/w/cancel"),
    ("POST", "/api/watches/w/approve"),
    ("POST", "/api/watches/w/reject"),
    ("GET", "/api/watches/w/evaluations"),
    ("GET", "/api/notifications"),
    ("GET", "/api/watch-settings"),
    ("PATCH", "/api/watch-settings"),
    ("GET", "/api/verifiers"),
    ("GET", "/api/sessions"),
    ("POST", "/api/v1/chat/sessions/main/watches/proposals"),
    ("POST", "/api/v1/chat/sessions/main/watches/proposals/w/approve"),
    ("GET", "/api/v1/chat/sessions/main/watches"),
    ("GET", "/api/v1/chat/sessions/main/watches/w"),
    ("POST", "/api/v1/chat/sessions/main/watches/w/cancel"),
    ("GET", "/metrics"),
]
OPEN = {"/healthz", "/readyz", "/api/openapi.json"}


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Server]:
    demo(tmp_path / "executions")
    async with a_server(tmp_path / "executions", policy_file=policy(tmp_path / "policy.toml")) as made:
        yield made


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[Server]:
    demo(tmp_path / "executions")
    async with a_server(tmp_path / "executions") as made:
        yield made


def body_of(method: str, path: str) -> dict[str, Any]:
    bodies = {
        "/api/watches": WATCH,
        "/api/watches/w": {},
        "/api/watch-settings": {},
        "/api/runs/latest/commands": {"command": "next"},
        "/api/runs/latest/try": {"config": {}},
    }
    proposal = "/api/v1/chat/sessions/main/watches/proposals"
    return (
        {"json": {**bodies, proposal: WATCH}[path]}
        if method in {"POST", "PATCH", "PUT"} and path in {*bodies, proposal}
        else {}
    )


async def call(client: httpx.AsyncClient, method: str, path: str, **headers: str) -> httpx.Response:
    return await client.request(method, path, headers={**VERSION, **headers}, **body_of(method, path))


async def test_every_route_is_in_the_table_of_protected_ones(local: Server) -> None:
    async with local.client() as client:
        paths = (await client.get("/api/openapi.json")).json()["paths"]
    shown = {(method.upper(), path) for path, routes in paths.items() for method in routes if path not in OPEN}
    table = {
        (
            method,
            path.replace("/main/", "/{session_id}/")
            .replace("/latest", "/{run_id}")
            .replace("reports/x", "reports/{name}"),
        )
        for method, path in PROTECTED
    }
    table = {
        (m, p.replace("proposals/w", "proposals/{proposal_id}").replace("watches/w", "watches/{watch_id}"))
        for m, p in table
    }
    assert shown == table


async def test_without_a_known_token_nothing_is_told(guarded: Server) -> None:
    async with guarded.client() as nobody, guarded.client(token="wrong") as wrong:
        for method, path in PROTECTED:
            for client in (nobody, wrong):
                answer = await call(client, method, path)
                assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), path
                assert answer.headers["www-authenticate"] == "Bearer"
        for path in OPEN:
            assert (await nobody.get(path)).status_code == 200


async def test_another_tenant_sees_nothing(guarded: Server) -> None:
    async with guarded.client("alice") as alice, guarded.client("eve") as eve:
        armed = (await alice.post("/api/watches", json={**WATCH, "id": "w", "session": "main"})).json()
        assert armed["id"] == "w"
        for path in ("/api/runs", "/api/notifications", "/api/sessions"):
            assert (await eve.get(path)).json() == []
        assert (await eve.get("/api/watches")).json()["watches"] == []
        listed = await eve.get("/api/v1/chat/sessions/main/watches", headers=VERSION)
        assert listed.json() == {"watches": []}
        for method, path in PROTECTED:
            if "latest" in path or "w" in path.split("/"):
                assert (await call(eve, method, path)).status_code == 404, path
        taken = await eve.post("/api/watches", json={**WATCH, "id": "w", "replace": True, "session": "main"})
        assert taken.status_code == 409
        assert (await alice.get("/api/watches/w")).json()["owner"] == "alice"


@pytest.mark.parametrize(
    ("who", "run", "steer", "arm"),
    [
        ("alice", 200, 409, 201),
        ("bob", 200, 403, 403),
        ("carol", 404, 404, 201),
        ("root", 200, 409, 201),
        ("agent", 200, 403, 201),
        ("eve", 404, 404, 201),
    ],
)
async def test_standing_decides(guarded: Server, who: str, run: int, steer: int, arm: int) -> None:
    """Steering ends in 409 for who may, since nothing is live."""
    async with guarded.client(who) as client:
        assert (await client.get("/api/runs/latest")).status_code == run
        assert (await client.post("/api/runs/latest/commands", json={"command": "next"})).status_code == steer
        assert (await client.post("/api/watches", json={**WATCH, "session": "main"})).status_code == arm


async def test_a_token_with_scopes_does_what_they_say_alone(guarded: Server) -> None:
    async with guarded.client(token="reader-of-alice") as client:
        for method, path in PROTECTED:
            answer = await call(client, method, path) if not path.endswith(("stream", "try")) else None
            if answer is not None and (method == "POST" or not path.startswith("/api/runs")):
                assert (answer.status_code, answer.json()["code"]) == (403, "scope-missing"), path
        assert (await client.get("/api/runs/latest")).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
    ],
    ids=str,
)
async def test_pages_of_other_sites_are_refused(local: Server, headers: dict[str, str]) -> None:
    async with local.client() as client:
        for method, path in PROTECTED:
            answer = await call(client, method, path, **headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "cross-site"), path


async def test_its_own_pages_and_links_to_them_are_answered(local: Server) -> None:
    same = {"Origin": local.address, "Sec-Fetch-Site": "same-origin"}
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    async with local.client() as client:
        assert (await client.post("/api/watches", json=WATCH, headers=same)).status_code == 201
        assert (await client.get("/api/runs", headers=link)).status_code == 200
        assert (await client.post("/api/watches/w/check", headers=link)).status_code == 403


async def chunks() -> AsyncIterator[bytes]:
    for _ in range(300):
        yield b" " * 1_000


async def test_a_body_is_json_and_small(local: Server) -> None:
    async with local.client() as client:
        form = await client.post("/api/watches", data={"condition": "x"})
        text = await client.post("/api/watches", content=b'{"a":1}', headers={"Content-Type": "text/plain"})
        large = await client.post("/api/watches", json={"condition": "x" * 300_000})
        chunked = await client.post("/api/watches", content=chunks(), headers={"Content-Type": "application/json"})
        broken = await client.post("/api/watches", content=b"{", headers={"Content-Type": "application/json"})
    assert [answer.status_code for answer in (form, text, large, chunked, broken)] == [415, 415, 413, 413, 422]
    assert {answer.headers["content-type"] for answer in (form, text, large, chunked, broken)} == {
        "application/problem+json"
    }


async def test_a_token_in_an_address_is_refused_and_not_repeated(guarded: Server) -> None:
    async with guarded.client("alice") as client:
        answer = await client.get("/api/runs?access_token=secret-of-alice")
    assert (answer.status_code, answer.json()["code"]) == (400, "secret-in-address")
    assert "secret-of-alice" not in answer.text


async def test_every_answer_is_data_and_nothing_more(local: Server) -> None:
    async with local.client() as client:
        for path in ("/api/runs", "/api/runs/nothing", "/nowhere", "/healthz", "/metrics", "/api/openapi.json"):
            headers = (await client.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["content-security-policy"].startswith("default-src 'none'")
            assert headers["cache-control"] == "no-store"
            assert headers["referrer-policy"] == "no-referrer"
            assert "server" not in headers
            assert "access-control-allow-origin" not in headers


async def test_a_revoked_token_is_nobody_at_once(guarded: Server, tmp_path: Path) -> None:
    async with guarded.client("bob") as bob:
        assert (await bob.get("/api/runs")).status_code == 200
        policy(tmp_path / "policy.toml", alice={"tenant": "acme"})
        assert (await bob.get("/api/runs")).status_code == 401
