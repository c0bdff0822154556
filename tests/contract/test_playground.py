"""Trying sentinel configs over HTTP: what ``try`` and ``validate`` say, for whoever may read runs, within limits."""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from tests.support.cli import Cli
from tests.support.serving import Server, a_server, demo, execution, journal_of, lines, policy

from hankwatch.config.resources import resource
from hankwatch.serve.gate import MAX_BODY_BYTES
from hankwatch.serve.trial import KEPT_FIRES
from hankwatch.serve.trial_room import AT_ONCE, MAX_WAITING

OWN = ("narrator", "error-streak", "tool-tally", "cost-window")
TRY = "/api/runs/latest/try"
PAGE = "/runs/latest/playground"


@pytest.fixture
async def client(server: Server) -> AsyncIterator[httpx.AsyncClient]:
    async with server.client() as made:
        yield made


def written(name: str) -> str:
    """The demo's own config."""
    return resource("fixtures", "demo", "sentinels", f"{name}.json").read_text()


def config(**changed: Any) -> dict[str, Any]:
    """A config that fires on each tool result."""
    plain = {
        "id": "results",
        "name": "Results",
        "trigger": {"type": "event", "on": ["tool.result"]},
        "execution": {"strategy": "immediate"},
        "model": "builtin/digest",
        "userPromptText": "{{ events | length }} events",
    }
    return plain | changed


def on(*conditions: dict[str, Any]) -> dict[str, Any]:
    """A trigger with those conditions."""
    return {"trigger": {"type": "event", "on": ["tool.result"], "conditions": list(conditions)}}


async def tried(client: httpx.AsyncClient, given: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    answer = await client.post(TRY, json={"config": given, **more})
    assert answer.status_code == 200, answer.text
    said: dict[str, Any] = answer.json()
    return said


def codes(said: dict[str, Any]) -> list[str]:
    return [one["code"] for one in said["diagnostics"]]


async def test_a_trial_says_what_try_says(client: httpx.AsyncClient, root: Path, tmp_path: Path) -> None:
    cli = Cli(tmp_path, tmp_path)
    for name in ("error-streak", "cost-window"):
        file = resource("fixtures", "demo", "sentinels", f"{name}.json")
        printed = cli("try", file, root, "--json", "--where", "--render").lines
        said = await tried(client, written(name), origin=name, where=True, render=True)

        assert said["triggers"] == printed[:-2]
        assert {"where": said["where"]} == printed[-2]
        assert {"summary": said["summary"]} == printed[-1]
        assert said["ok"]
        assert said["complete"]
        assert said["sharePlayed"] == 1


@pytest.mark.parametrize("name", OWN)
async def test_what_a_run_has_fired_would_fire_again(client: httpx.AsyncClient, root: Path, name: str) -> None:
    events = [json.loads(line) for line in journal_of(root).read_bytes().splitlines()]
    fired = [
        one["data"]["eventIds"]
        for one in events
        if one["type"] == "sentinel.triggered" and one["data"]["sentinelId"] == name
    ]

    said = await tried(client, written(name), origin=name, codon="fix-the-app")

    assert [trigger["eventIds"] for trigger in said["triggers"]] == fired


async def test_faults_of_a_text_are_told_with_their_lines(client: httpx.AsyncClient) -> None:
    text = json.dumps(config(model="builtin/digest", userPromptText="{{ events"), indent=1).replace('"on"', '"onn"')
    said = await tried(client, text)
    (unknown,) = [one for one in said["diagnostics"] if one["code"] == "unknown-key"]
    assert not said["ok"]
    assert said["summary"] is None
    assert text.splitlines()[unknown["line"] - 1].lstrip().startswith('"onn"')
    assert "on" in unknown["hint"]

    broken = await tried(client, '{\n  "id": "x",\n  "name": \n}')
    assert broken["diagnostics"][0]["line"] in {3, 4}
    assert broken["diagnostics"][0]["file"] == "sentinel.json"


async def test_templates_are_checked_and_the_fires_told_all_the_same(client: httpx.AsyncClient) -> None:
    said = await tried(client, json.dumps(config(userPromptText="{{ events"), indent=1), render=True)
    assert codes(said) == ["template-invalid"]
    assert said["diagnostics"][0]["line"] == 14
    assert not said["ok"]
    assert said["summary"]["triggers"] == 6
    assert all("renderError" in trigger for trigger in said["triggers"])


async def test_lints_are_told_as_validate_tells_them(client: httpx.AsyncClient) -> None:
    said = await tried(client, config(model="anthropic/claude-haiku-4-5", userPromptText="Say something."))
    assert "warning" in {one["severity"] for one in said["diagnostics"]}
    assert said["ok"]
    assert said["summary"]["estimatedCostUsd"] > 0


@pytest.mark.parametrize(
    "ref",
    ["../hank.json", "/etc/passwd", "narrator.md", "./narrator.md", "cost-window.json", "../prompts/fix-the-app.md"],
)
async def test_no_file_is_read_that_the_config_does_not_begin_with(client: httpx.AsyncClient, ref: str) -> None:
    changed = config(userPromptFile=ref, structuredOutput={"output": "object", "schemaFile": ref})
    del changed["userPromptText"]
    for origin in (None, "error-streak"):
        said = await tried(client, changed, origin=origin, render=True)
        assert "path-refused" in codes(said)
        assert "file-unreadable" not in codes(said), "whether it exists is nobody's business"
        assert said["triggers"] == []


async def test_the_files_of_the_config_it_begins_with_are_read(client: httpx.AsyncClient) -> None:
    said = await tried(client, written("narrator"), origin="narrator", render=True)
    assert said["triggers"][0]["system"].startswith("You narrate")
    assert said["triggers"][0]["user"].startswith('Codon "Fix the app"')

    stock = await tried(client, written_stock("narrator"), origin="stock:narrator", render=True)
    assert stock["ok"]

    unknown = await client.post(TRY, json={"config": config(), "origin": "../../etc/passwd"})
    assert unknown.status_code == 404
    assert unknown.json()["hint"].startswith("its sentinels: narrator, error-streak, tool-tally, cost-window, stock:")


def written_stock(name: str) -> str:
    return resource("sentinels", name, "sentinel.json").read_text()


async def test_a_prompt_file_that_is_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    hank = tmp_path / "hank"
    hank.mkdir()
    (tmp_path / "secret.md").write_text("the secret")
    (hank / "prompt.md").symlink_to(tmp_path / "secret.md")
    sentinel = config(userPromptFile="prompt.md")
    del sentinel["userPromptText"]
    codon = {"id": "a", "name": "A", "model": "m", "continuationMode": "fresh", "promptText": "p"}
    hank_json = {
        "meta": {"name": "h", "version": "1"},
        "hank": [codon | {"sentinels": [{"sentinelConfig": sentinel}]}],
    }
    (hank / "hank.json").write_text(json.dumps(hank_json))
    meta = root / ".hankweave" / "execution-meta.json"
    meta.write_text(json.dumps({"hankPath": str(hank / "hank.json")}))

    async with a_server(root.parent) as server, server.client() as client:
        said = await tried(client, sentinel, origin="results", render=True)
    assert codes(said) == ["file-unreadable"]
    assert "the secret" not in json.dumps(said)
    assert str(tmp_path) not in json.dumps(said)


def changes(root: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in root.rglob("*")}


async def test_nothing_is_written(client: httpx.AsyncClient, root: Path) -> None:
    before = changes(root)
    await tried(client, config(output={"file": "out/x.md"}), render=True)
    assert changes(root) == before


async def test_patterns_that_take_too_long_are_given_up(client: httpx.AsyncClient, root: Path) -> None:
    event = json.loads(lines("x"))
    with journal_of(root).open("ab") as journal:
        for number in range(20):
            event["id"] = f"0299d3c4-5b6a-7c8d-9e0f-{number:012x}"
            event["data"] = {"message": "a" * 5_000 + "!"}
            journal.write(json.dumps(event).encode() + b"\n")
    slow = {"path": "message", "operator": "matches", "value": "^(?=a)(a+)+$"}
    said = await tried(client, config(trigger={"type": "event", "on": ["info"], "conditions": [slow]}))
    assert "ran out of time" in said["givenUp"]


@pytest.mark.parametrize(
    "hostile",
    [
        config(**on(*({"path": "a", "operator": "equals", "value": n} for n in range(1_000)))),
        config(trigger={"type": "event", "on": ["typo.type"] * 5_000}),
        config(**on(*({"path": "isError", "operator": "matches", "value": f"(?=a){n}b{{900}}"} for n in range(9)))),
        {"a": [[[[]]]] * 3_000},
    ],
)
async def test_a_config_that_would_take_long_to_read_is_not_read(
    client: httpx.AsyncClient, hostile: dict[str, Any]
) -> None:
    said = await tried(client, hostile)
    assert codes(said) == ["too-long"]
    assert said["summary"] is None


async def test_what_is_no_config_is_told_as_faults(client: httpx.AsyncClient) -> None:
    for hostile in ("", "[]", "null", "1e999", "[" * 5_000, '{"\\ud800": 1}', "{" + '"a":' * 500, "\x00"):
        said = await tried(client, hostile)
        assert said["diagnostics"], hostile
        assert not said["ok"]


async def test_values_that_json_writers_differ_on_are_answered(client: httpx.AsyncClient) -> None:
    for value in (2**70, 1e308, "\\ud800"):
        text = json.dumps(config(**on({"path": "isError", "operator": "equals", "value": value})))
        said = await tried(client, text.replace("\\\\", "\\"), where=True)
        assert said["diagnostics"] or said["where"]["considered"] == 6
        assert (await client.post(PAGE, json={"config": text, "where": True})).status_code == 200


@pytest.mark.parametrize(
    "template", ["{% for i in range(9999999999) %}x{% endfor %}", "{{ ''.__class__.__mro__ }}", "<% for(;;){} %>"]
)
async def test_hostile_templates_end_by_their_own_limits(client: httpx.AsyncClient, template: str) -> None:
    said = await tried(
        client, config(userPromptText=template, execution={"strategy": "count", "threshold": 1_000}), render=True
    )
    assert "renderError" in said["triggers"][0] or "template-time" in codes(said)
    assert (await tried(client, config()))["ok"], "the next one has a sandbox again"


async def test_a_long_run_is_played_as_far_as_the_time_goes(server: Server, root: Path) -> None:
    execution(
        root.parent, "1999999999999-aaaa-000000", b"".join(lines(*["m"] * 5_000, start=n * 5_000) for n in range(2))
    )
    info = config(trigger={"type": "event", "on": ["info"]})
    async with server.client() as client:
        part = await tried(client, info, withinS=0.1)
        whole = await tried(client, info, withinS=10)
    assert not part["complete"]
    assert 0 < part["sharePlayed"] < 1
    assert 0 < part["summary"]["triggers"] < 10_000
    assert not any(trigger["cause"] == "drain" for trigger in part["triggers"])
    assert whole["complete"]
    assert whole["summary"]["triggers"] == 10_000
    assert len(whole["triggers"]) == KEPT_FIRES
    assert whole["triggersLeftOut"] == 10_000 - KEPT_FIRES


async def test_a_request_that_is_given_up_leaves_its_place(server: Server, root: Path) -> None:
    execution(root.parent, "1999999999999-aaaa-000000", lines(*["m"] * 60_000))
    info = config(trigger={"type": "event", "on": ["info"]})
    async with server.client() as client, anyio.create_task_group() as tasks:

        async def ask() -> None:
            await client.post(TRY, json={"config": info, "withinS": 10})

        for _ in range(AT_ONCE + 2):
            tasks.start_soon(ask)
        with anyio.fail_after(10):
            while not server.serving.trials.waiting:
                await anyio.lowlevel.checkpoint()
        tasks.cancel_scope.cancel()
    async with server.client() as client:
        with anyio.fail_after(10):
            assert (await tried(client, config()))["ok"]
    assert server.serving.trials.waiting == 0


async def test_more_than_may_wait_are_refused(server: Server) -> None:
    server.serving.trials.waiting = MAX_WAITING
    async with server.client() as client:
        answer = await client.post(TRY, json={"config": config()})
    assert answer.status_code == 503
    assert answer.json()["code"] == "too-many-trials"


async def test_requests_have_limits(client: httpx.AsyncClient) -> None:
    for body in (
        {},
        {"config": 1},
        {"config": {}, "withinS": 11},
        {"config": {}, "x": 1},
    ):
        answer = await client.post(TRY, json=body)
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"
    assert (await client.post(TRY, json={"config": "x" * MAX_BODY_BYTES})).status_code == 413
    missing = await client.post(TRY, json={"config": config(), "codon": "nowhere"})
    assert missing.status_code == 404
    assert missing.json()["detail"] == "this run has no codon 'nowhere'"
    assert missing.json()["hint"] == "its codons: fix-the-app"


async def test_a_run_without_a_journal_has_nothing_that_fires(server: Server, root: Path) -> None:
    (root.parent / "1999999999999-aaaa-000000" / ".hankweave").mkdir(parents=True)
    async with server.client() as client:
        said = await tried(client, config())
        page = await client.get(PAGE)
    assert said["summary"]["events"] == 0
    assert page.status_code == 200


async def test_only_who_may_read_runs_may_try(tmp_path: Path) -> None:
    demo(tmp_path / "executions")
    body = {"config": config()}
    async with a_server(tmp_path / "executions", policy_file=policy(tmp_path / "policy.toml")) as guarded:
        for who, token, status in (("alice", None, 200), ("eve", None, 404), (None, "reader-of-alice", 200)):
            async with guarded.client(who, token=token) as client:
                assert (await client.post(TRY, json=body)).status_code == status
                assert (await client.get(PAGE)).status_code == status
                assert (await client.post(PAGE, json=body)).status_code == status
        async with guarded.client() as client:
            assert (await client.post(TRY, json=body)).status_code == 401
            assert (await client.get(PAGE)).status_code == 303


async def test_the_page_shows_a_config_and_its_fires_without_a_script(client: httpx.AsyncClient) -> None:
    page = (await client.get(PAGE, params={"sentinel": "tool-tally", "where": "true", "render": "true"})).text
    assert "Would have fired 2 ×, at no cost" in page
    assert "Counts tool results, three at a time." in page
    assert "Near misses" in page
    assert "3 tool results:" in page
    for name in (*OWN, "stock:narrator", "stock:sweep"):
        assert f'<option value="{name}"' in page
    assert (await client.get(PAGE, params={"sentinel": "nobody"})).status_code == 404

    stock = (await client.get(PAGE, params={"sentinel": "stock:cost-watcher"})).text
    assert "cost-watcher" in stock


async def test_the_page_says_that_the_hank_is_not_what_the_run_began_with(server: Server, root: Path) -> None:
    meta = root / ".hankweave" / "execution-meta.json"
    told = json.loads(meta.read_text())
    seen: list[bool] = []
    for now in ({}, {"hankHash": "0" * 64}, {"hankPath": str(root / "gone.json")}, {"hankPath": 7}):
        copied = root.parent / f"179600000000{len(seen)}-copy"
        shutil.copytree(root, copied, symlinks=True)
        (copied / ".hankweave" / meta.name).write_text(json.dumps(told | now))
        async with server.client() as client:
            answer = await client.get(f"/runs/{copied.name}/playground")
        assert answer.status_code == 200, answer.text[:300]
        seen.append("has changed since this run began" in answer.text)
    assert seen == [False, True, False, False]


async def test_the_page_links_each_event_by_its_cursor(client: httpx.AsyncClient) -> None:
    said = await tried(client, config())
    page = (await client.post(PAGE, json={"config": config()})).text
    events = (await client.get("/api/runs/latest/events", params={"limit": 1_000})).json()["events"]
    cursors = {event["id"]: event["cursor"] for event in events}
    for trigger in said["triggers"]:
        for event_id in trigger["eventIds"]:
            assert f'/events/{cursors[event_id]}"' in page


async def test_what_a_config_or_an_event_says_is_only_text(client: httpx.AsyncClient) -> None:
    hostile = "<script>alert(1)</script>\u202e\x1b[31m"
    page = await client.post(
        PAGE,
        json={"config": config(name=hostile, nme=hostile, userPromptText=hostile), "render": True, "where": True},
    )
    assert "<script>alert" not in page.text
    assert "\u202e" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
