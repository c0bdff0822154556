"""REST of watches over a real server, both families of paths."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.serving import Server, a_server, execution, journal_of, lines, policy

from hankwatch.serve.chat import HEADER
from hankwatch.watches.checks import Check, CheckContext, Cost, Trust

DIAL = {"type": "check", "name": "dial", "version": "v1", "args": {"name": "a"}}
WATCH = {"condition": "a is on", "verifier": DIAL, "session": "main"}
PROPOSAL = {
    "condition": "a is on",
    "verifier": DIAL,
    "interval_s": 60,
    "expires_in_s": 1800,
    "actions": ["in_app", "wake_session"],
}
SESSION = "/api/v1/chat/sessions/main/watches"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    (tmp_path / "executions").mkdir()
    async with a_server(tmp_path / "executions", policy_file=policy(tmp_path / "policy.toml")) as made:
        yield made


@pytest.fixture
async def alice(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with server.client("alice") as client:
        yield client


def turn_on(server: Server) -> None:
    server.bench.dials.says["a"] = True


async def test_a_watch_from_arming_to_being_forgotten(server: Server, alice: httpx.AsyncClient) -> None:
    armed = await alice.post("/api/watches", json=WATCH)
    again = await alice.post("/api/watches", json=WATCH)
    watch: dict[str, Any] = armed.json()
    path = f"/api/watches/{watch['id']}"
    assert (armed.status_code, again.status_code) == (201, 200)
    assert again.json()["id"] == watch["id"]
    assert (watch["state"], watch["tenant"], watch["owner"]) == ("active", "acme", "alice")
    assert (await alice.get(path)).json() == watch

    edited = await alice.patch(path, json={"interval_s": 60, "note": None} | {"run_prompt": "Look."})
    assert edited.status_code == 422  # a note is no part of an edit
    edited = await alice.patch(path, json={"interval_s": 60, "run_prompt": "Look."})
    assert (edited.json()["interval_s"], edited.json()["run_prompt"]) == (60, "Look.")

    assert (await alice.post(f"{path}/check")).json()["last_outcome"] == "pending"
    turn_on(server)
    met = (await alice.post(f"{path}/check")).json()
    assert (met["state"], met["fire_count"]) == ("met", 1)

    checks = (await alice.get(f"{path}/evaluations")).json()
    assert [check["outcome"] for check in checks] == ["satisfied", "pending"]
    assert (await alice.post(f"{path}/cancel")).json()["state"] == "met"

    assert (await alice.delete(path)).status_code == 204
    assert (await alice.get(path)).status_code == (await alice.delete(path)).status_code == 404


async def test_a_fire_is_a_notification_of_its_owner_alone(server: Server, alice: httpx.AsyncClient) -> None:
    armed = (await alice.post("/api/watches", json=WATCH)).json()
    turn_on(server)
    await alice.post(f"/api/watches/{armed['id']}/check")
    (told,) = (await alice.get("/api/notifications")).json()
    assert (told["watch_id"], told["signal"], told["content"]["condition"]) == (armed["id"], "met", "a is on")
    async with server.client("carol") as carol:
        assert (await carol.get("/api/notifications")).json() == []


async def test_lists_come_in_pages_and_by_session_and_status(alice: httpx.AsyncClient) -> None:
    for number in range(5):
        written = {**WATCH, "id": f"w{number}", "session": "main" if number % 2 else "side"}
        await alice.post("/api/watches", json=written)
    await alice.post("/api/watches/w0/cancel")

    async def ids(**query: Any) -> list[str]:
        return [watch["id"] for watch in (await alice.get("/api/watches", params=query)).json()["watches"]]

    assert await ids() == ["w0", "w1", "w2", "w3", "w4"]
    assert await ids(session="main") == ["w1", "w3"]
    assert await ids(status=["active", "proposed"], session="side") == ["w2", "w4"]
    page = (await alice.get("/api/watches", params={"limit": 2})).json()
    assert page["next"] == "w1"
    assert await ids(after="w1", limit=2) == ["w2", "w3"]
    assert (await alice.get("/api/watches", params={"after": "w3"})).json()["next"] is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"condition": " "}, "condition"),
        ({"verifier": {"type": "crystal-ball"}}, "verifier"),
        ({"deadline": "2030-01-01T00:00:00"}, "offset"),
        ({"deadline": 1_900_000_000_000}, "millisecond"),
        ({"interval_s": "30"}, "interval_s"),
        ({"conditions": "x"}, "conditions"),
    ],
)
async def test_what_cannot_be_armed_says_all_that_is_wrong(
    alice: httpx.AsyncClient, change: dict[str, Any], said: str
) -> None:
    answer = await alice.post("/api/watches", json={**WATCH, **change})
    assert (answer.status_code, answer.json()["code"]) == (422, "watch-invalid"), answer.text
    assert any(said in fault for fault in answer.json()["faults"]), answer.text


async def test_a_command_of_who_is_no_operator_is_only_proposed(server: Server, alice: httpx.AsyncClient) -> None:
    command = {**WATCH, "verifier": {"type": "command", "command": ["true"]}}
    proposed = (await alice.post("/api/watches", json=command)).json()
    assert proposed["state"] == "proposed"
    assert (await alice.post(f"/api/watches/{proposed['id']}/approve")).status_code == 403
    async with server.client("root") as root:
        approved = await root.post(f"/api/watches/{proposed['id']}/approve")
    assert approved.json()["state"] == "met"


async def test_a_proposal_is_approved_and_answered_in_the_same_breath(server: Server, alice: httpx.AsyncClient) -> None:
    alice.headers[HEADER] = "1"
    proposed = await alice.post(f"{SESSION}/proposals", json=PROPOSAL)
    watch = proposed.json()
    assert (proposed.status_code, watch["state"], watch["kind"], watch["session"]) == (
        201,
        "proposed",
        "agent_watch",
        "main",
    )
    assert watch["check_count"] == 0

    turn_on(server)
    approved = (await alice.post(f"{SESSION}/proposals/{watch['id']}/approve")).json()
    assert (approved["state"], approved["check_count"]) == ("satisfied", 1)
    assert approved["last_evidence"] in {None, ""}
    (listed,) = (await alice.get(SESSION)).json()["watches"]
    assert listed == approved == (await alice.get(f"{SESSION}/{watch['id']}")).json()


async def test_a_proposal_can_be_cancelled_and_not_be_approved_then(alice: httpx.AsyncClient) -> None:
    alice.headers[HEADER] = "1"
    watch = (await alice.post(f"{SESSION}/proposals", json=PROPOSAL)).json()
    cancelled = await alice.post(f"{SESSION}/{watch['id']}/cancel")
    again = await alice.post(f"{SESSION}/{watch['id']}/cancel")
    assert cancelled.json()["state"] == again.json()["state"] == "canceled"
    refused = await alice.post(f"{SESSION}/proposals/{watch['id']}/approve")
    edited = await alice.patch(f"/api/watches/{watch['id']}", json={"interval_s": 300})
    assert {(answer.status_code, answer.json()["code"]) for answer in (refused, edited)} == {(409, "wrong-state")}


async def test_a_session_has_its_own_watches_only(alice: httpx.AsyncClient) -> None:
    alice.headers[HEADER] = "1"
    watch = (await alice.post(f"{SESSION}/proposals", json=PROPOSAL)).json()
    other = SESSION.replace("main", "other")
    assert (await alice.get(other)).json() == {"watches": []}
    for method, path in [("GET", ""), ("POST", "/cancel")]:
        assert (await alice.request(method, f"{other}/{watch['id']}{path}")).status_code == 404
    assert (await alice.post(f"{other}/proposals/{watch['id']}/approve")).status_code == 404


@pytest.mark.parametrize("version", [None, "", "0", "2", "1.0", "one"])
async def test_the_session_family_speaks_one_version(alice: httpx.AsyncClient, version: str | None) -> None:
    headers = {} if version is None else {HEADER: version}
    for method, path in [("GET", ""), ("POST", "/proposals"), ("GET", "/w"), ("POST", "/w/cancel")]:
        answer = await alice.request(method, f"{SESSION}{path}", headers=headers, json={} if method == "POST" else None)
        assert (answer.status_code, answer.json()["code"]) == (400, "protocol-version")
        assert HEADER in answer.json()["detail"]


async def test_the_path_says_session_and_kind(alice: httpx.AsyncClient) -> None:
    alice.headers[HEADER] = "1"
    for extra in ({"session": "other"}, {"kind": "watch"}):
        answer = await alice.post(f"{SESSION}/proposals", json={**PROPOSAL, **extra})
        assert (answer.status_code, next(iter(extra)) in answer.json()["detail"]) == (422, True)


async def test_caps_say_which_and_what_holds_them(server: Server, alice: httpx.AsyncClient) -> None:
    alice.headers[HEADER] = "1"
    for name in "abcd":
        body = {**PROPOSAL, "condition": name, "verifier": {**DIAL, "args": {"name": name}}}
        watch = (await alice.post(f"{SESSION}/proposals", json=body)).json()
        answer = await alice.post(f"{SESSION}/proposals/{watch['id']}/approve")
    assert (answer.status_code, answer.json()["code"]) == (409, "cap-reached")
    assert "at most 3 active watches of kind agent_watch" in answer.json()["detail"]


async def test_verifiers_are_told_with_how_they_are_written(server: Server, alice: httpx.AsyncClient) -> None:
    async def never(_: CheckContext, __: Any) -> bool:
        return False

    server.serving.watches.verifiers.checks.add(Check("own", never, cost=Cost.CHEAP, trust=Trust.SAFE))
    verifiers = (await alice.get("/api/verifiers")).json()
    assert [one["type"] for one in verifiers if one["name"] is None] == [
        "event",
        "time",
        "document",
        "command",
        "check",
    ]
    assert {(one["name"], one["version"]) for one in verifiers if one["name"]} == {("dial", "v1"), ("own", "v1")}


async def test_a_watch_can_belong_to_a_run_that_the_caller_sees(
    server: Server, alice: httpx.AsyncClient, tmp_path: Path
) -> None:
    root = execution(tmp_path / "executions", "1764522000000-a", lines("before"))
    written = {"condition": "it says so", "verifier": {"type": "event", "trigger": {"type": "event", "on": ["info"]}}}
    armed = await alice.post("/api/watches?run=latest", json={**written, "session": "main"})
    assert (armed.status_code, armed.json()["home"]) == (201, str(root))
    stored = server.bench.store.get(armed.json()["id"])
    assert stored is not None
    assert stored.cursor == journal_of(root).stat().st_size
    with journal_of(root).open("ab") as file:
        file.write(lines("meanwhile"))
    await alice.patch(f"/api/watches/{stored.id}", json={"condition": "it says so now"})
    aimed = server.bench.store.get(stored.id)
    assert aimed is not None
    assert (aimed.generation, aimed.cursor) == (2, journal_of(root).stat().st_size)
    async with server.client("carol") as carol:
        assert (await carol.post("/api/watches?run=latest", json={**written, "session": "main"})).status_code == 404


async def test_sessions_are_those_of_watches_too(alice: httpx.AsyncClient) -> None:
    await alice.post("/api/watches", json=WATCH)
    (session,) = (await alice.get("/api/sessions")).json()
    assert (session["name"], session["activeWatches"], session["state"]) == ("main", 1, "unknown")


async def test_a_set_with_an_id_twice_changes_nothing(alice: httpx.AsyncClient) -> None:
    one = {"id": "deploy", **WATCH}
    refused = await alice.put("/api/watches", json={"watches": [one, one]})
    assert (refused.status_code, refused.json()["code"]) == (409, "id-taken")
    assert (await alice.get("/api/watches")).json()["watches"] == []


async def test_an_edit_that_this_watch_cannot_take_is_a_conflict(alice: httpx.AsyncClient) -> None:
    await alice.post("/api/watches", json={"id": "deploy", **WATCH})
    refused = await alice.patch("/api/watches/deploy", json={"interval_s": 0.5})
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong-state")
    assert "at least" in refused.json()["detail"]
