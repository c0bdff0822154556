"""REST of runs over a real server: every route, what it answers, and what it refuses."""

import json
import shutil
from pathlib import Path

import anyio
import pytest
from tests.support.serving import Server, a_server, execution, journal_of, lines

RUNS = "/api/runs"


async def test_a_run_is_listed_and_told_as_its_report_tells_it(server: Server, root: Path) -> None:
    async with server.client() as client:
        (listed,) = (await client.get(RUNS)).json()
        by_execution = (await client.get(f"{RUNS}/{listed['execution']}")).json()
        by_run = (await client.get(f"{RUNS}/{listed['run']}")).json()
        latest = (await client.get(f"{RUNS}/latest")).json()

    assert by_execution == by_run == latest
    assert listed == {key: by_run[key] for key in listed}
    assert by_run["outcome"] == "completed"
    assert by_run["events"] == len(journal_of(root).read_bytes().splitlines())
    assert [codon["status"] for codon in by_run["codons"]] == ["completed"] * len(by_run["codons"])
    assert sum(by_run["types"].values()) == by_run["events"]


async def test_pages_of_events_are_the_journal(server: Server, root: Path) -> None:
    after, got = 0, []
    async with server.client() as client:
        while True:
            page = (await client.get(f"{RUNS}/latest/events", params={"after": after, "limit": 7})).json()
            got += page["events"]
            assert len(page["events"]) <= 7
            after = page["next"]
            if not page["more"]:
                break

    written = [json.loads(line) for line in journal_of(root).read_bytes().splitlines()]
    assert [{key: event[key] for key in ("id", "timestamp", "type", "data")} for event in got] == written
    assert got[-1]["cursor"] == after == journal_of(root).stat().st_size


async def test_events_of_some_types_come_as_lines_too(server: Server) -> None:
    query = {"type": ["codon.started,codon.completed", "sentinel.loaded"]}
    async with server.client() as client:
        page = (await client.get(f"{RUNS}/latest/events", params=query)).json()
        answer = await client.get(f"{RUNS}/latest/events", params=query, headers={"Accept": "application/x-ndjson"})

    assert {event["type"] for event in page["events"]} == {"codon.started", "codon.completed", "sentinel.loaded"}
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in answer.text.splitlines()] == page["events"]
    assert answer.headers["x-next-cursor"] == str(page["next"])


async def test_what_is_appended_is_behind_the_cursor_that_was_given(server: Server, root: Path) -> None:
    async with server.client() as client:
        page = (await client.get(f"{RUNS}/latest/events", params={"limit": 1000})).json()
        with journal_of(root).open("ab") as file:
            file.write(lines("later"))
        more = (await client.get(f"{RUNS}/latest/events", params={"after": page["next"]})).json()
        run = (await client.get(f"{RUNS}/latest")).json()

    assert [event["data"] for event in more["events"]] == [{"message": "later"}]
    assert run["cursor"] == more["next"]


async def test_a_journal_that_was_replaced_is_read_anew(server: Server, root: Path) -> None:
    async with server.client() as client:
        await client.get(f"{RUNS}/latest")
        journal_of(root).write_bytes(lines("another"))
        run = (await client.get(f"{RUNS}/latest")).json()

    assert (run["events"], run["outcome"]) == (1, "recorded")


async def test_reports_come_from_the_journal_whatever_lies_in_the_folder(server: Server, root: Path) -> None:
    async with server.client() as client:
        shutil.rmtree(root / ".hankweave" / "sentinels" / "outputs")
        listed = (await client.get(f"{RUNS}/latest/reports")).json()
        texts = [(await client.get(f"{RUNS}/latest/reports/{report['name']}")).json() for report in listed]

    assert listed
    assert all(report["entries"] > 0 for report in listed)
    assert [len(text["text"].encode()) for text in texts] == [report["sizeBytes"] for report in listed]


async def test_sentinels_are_told_with_their_fires(server: Server) -> None:
    async with server.client() as client:
        sentinels = (await client.get(f"{RUNS}/latest/sentinels")).json()

    assert sentinels
    for sentinel in sentinels:
        assert sentinel["fired"] == sentinel["answered"] == len(sentinel["fires"])


async def test_what_is_not_served_is_not_found(server: Server) -> None:
    async with server.client() as client:
        for name in ("nothing", "..", "%2e%2e%2f%2e%2e%2fetc", "%00", "a" * 5_000):
            for path in ("", "/events", "/sentinels", "/reports", "/reports/x", "/stream"):
                answer = await client.get(f"{RUNS}/{name}{path}")
                assert answer.status_code == 404, answer.text
                assert answer.headers["content-type"] == "application/problem+json"
                assert str(server.serving.shelf.folder) not in answer.text


async def test_nothing_outside_of_the_folder_is_served(tmp_path: Path) -> None:
    outside = execution(tmp_path, "outside", lines("hidden"))
    (tmp_path / "executions").mkdir()
    async with a_server(tmp_path / "executions") as server, server.client() as client:
        for name in ("outside", "../outside", "..%2Foutside", str(outside).replace("/", "%2F")):
            assert (await client.get(f"{RUNS}/{name}")).status_code == 404


async def test_a_report_is_never_a_file(server: Server, root: Path) -> None:
    (root / "secret.txt").write_text("secret")
    async with server.client() as client:
        for name in ("secret.txt", "../secret.txt", "%2Fetc%2Fpasswd", ".hankweave/events/events.jsonl"):
            assert (await client.get(f"{RUNS}/latest/reports/{name}")).status_code == 404


async def test_a_query_that_cannot_be_meant_says_which_part(server: Server) -> None:
    async with server.client() as client:
        for query in ("after=-1", "after=x", f"after={10**20}", "limit=0", "limit=1001", "format=xml"):
            answer = await client.get(f"{RUNS}/latest/events?{query}")
            assert answer.status_code == 422
            assert query.partition("=")[0] in answer.json()["detail"]


async def test_a_command_for_what_is_not_live_is_refused(server: Server) -> None:
    async with server.client() as client:
        answer = await client.post(f"{RUNS}/latest/commands", json={"command": "skip"})
        unknown = await client.post(f"{RUNS}/latest/commands", json={"command": "explode"})
    assert (answer.status_code, answer.json()["code"]) == (409, "run-not-live")
    assert answer.json()["hint"] == "GET /api/runs shows which are live"
    assert unknown.status_code == 422


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"command": "skip", "extra": 1}, 422),
        ({"command": "skip", "target": "one"}, 422),
        ({"command": "skip", "goOn": True}, 422),
        ({"command": "rollback"}, 422),
        ({"command": "rollback", "target": ""}, 422),
        ({"command": "rollback", "target": "one:start", "goOn": True, "waitS": 1}, 409),
    ],
    ids=str,
)
async def test_what_a_command_takes_stands_in_its_schema(server: Server, asked: dict[str, object], status: int) -> None:
    async with server.client() as client:
        assert (await client.post(f"{RUNS}/latest/commands", json=asked)).status_code == status


async def test_an_execution_without_a_journal_is_empty_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "executions" / "new" / ".hankweave").mkdir(parents=True)
    async with a_server(tmp_path / "executions") as server, server.client() as client:
        (listed,) = (await client.get(RUNS)).json()
        page = (await client.get(f"{RUNS}/new/events")).json()

    assert (listed["execution"], listed["events"]) == ("new", 0)
    assert page == {"events": [], "next": 0, "more": False}


async def test_journals_are_read_before_anybody_asks(root: Path) -> None:
    async with a_server(root.parent) as server:
        (followed,) = server.serving.shelf.executions()
        with anyio.fail_after(10):
            while followed.cursor < journal_of(root).stat().st_size:  # noqa: ASYNC110 - a thread reads, and tells nobody
                await anyio.sleep(0.01)


async def test_one_execution_can_be_served_alone(root: Path) -> None:
    execution(root.parent, "other", lines("other"))
    async with a_server(root) as server, server.client() as client:
        listed = (await client.get(RUNS)).json()

    assert [run["execution"] for run in listed] == [root.name]
