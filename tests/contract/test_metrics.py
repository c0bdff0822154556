"""``/metrics``, ``/healthz``, ``/readyz`` and the OpenAPI document over a real server."""

import json
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.support.serving import Server, a_server, journal_of, lines, policy

WATCH = {"condition": "a is on", "verifier": {"type": "check", "name": "dial", "args": {"name": "a"}}}


async def scraped(client: httpx.AsyncClient) -> dict[tuple[str, ...], float]:
    """Values by name and label values."""
    text = (await client.get("/metrics")).text
    families = text_string_to_metric_families(text)
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


async def test_metrics_count_what_the_journal_says(server: Server, root: Path) -> None:
    events = [json.loads(line) for line in journal_of(root).read_bytes().splitlines()]
    of = [event["type"] for event in events].count
    async with server.client() as client:
        run = (await client.get("/api/runs/latest")).json()
        values = await scraped(client)

    assert values["hankwatch_events_total", "tool.result"] == of("tool.result")
    assert values["hankwatch_sentinel_fires_total",] == of("sentinel.triggered") == run["fired"]
    assert values["hankwatch_sentinel_ends_total", "answered"] == of("sentinel.output")
    assert values["hankwatch_sentinel_call_seconds_count",] == of("sentinel.output")
    assert values["hankwatch_sentinel_queue_depth",] == values["hankwatch_sentinel_dropped_total",] == 0
    assert values["hankwatch_cost_usd_total", "agent"] == pytest.approx(run["agentCost"]["usd"])
    spent = sum(codon["outputTokens"] for codon in run["codons"])
    assert values["hankwatch_tokens_total", "output", "agent"] == spent
    assert values["hankwatch_http_requests_total", "GET", "/api/runs/{run_id}", "200"] == 1


async def test_a_counter_goes_on_where_it_was(server: Server, root: Path) -> None:
    async with server.client() as client:
        before = await scraped(client)
        with journal_of(root).open("ab") as file:
            file.write(lines("a", "b"))
        after = await scraped(client)
        again = await scraped(client)

    name = ("hankwatch_events_total", "info")
    assert after[name] == before.get(name, 0) + 2 == again[name]
    assert again["hankwatch_journal_lag_bytes",] == 0


async def test_watches_are_counted_by_trigger(server: Server) -> None:
    server.bench.dials.says["a"] = True
    async with server.client() as client:
        watch = (await client.post("/api/watches", json=WATCH)).json()
        await client.post(f"/api/watches/{watch['id']}/check")
        values = await scraped(client)

    assert values["hankwatch_watch_fires_total", "met"] == 1
    assert values["hankwatch_watch_checks_total", "satisfied"] == 1
    assert values["hankwatch_watch_lag_seconds",] == 0


async def test_no_id_is_a_label(server: Server, root: Path) -> None:
    async with server.client() as client:
        run = (await client.get("/api/runs/latest")).json()
        await client.get("/nowhere/secret-path")
        with journal_of(root).open("ab") as file:
            file.write(lines("x").replace(b'"info"', b'"made.up-by-somebody"'))
        text = (await client.get("/metrics")).text

    for word in (
        run["run"],
        run["execution"],
        "secret-path",
        "made.up",
        *(codon["codonId"] for codon in run["codons"]),
    ):
        assert word not in text


async def test_health_needs_nothing_and_readiness_says_what_is_missing(tmp_path: Path, root: Path) -> None:
    file = policy(tmp_path / "policy.toml")
    async with a_server(root.parent, policy_file=file) as server, server.client() as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/readyz")).json() == {"status": "ready"}
        file.write_text("broken")
        root.parent.rename(tmp_path / "moved")
        answer = await client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["faults"] == [
        "the folder of executions is not there",
        "the policy file has faults, and what it said before is in force",
    ]
    assert str(tmp_path) not in answer.text


async def test_the_document_describes_bodies_answers_and_errors(server: Server) -> None:
    async with server.client() as client:
        document = (await client.get("/api/openapi.json")).json()

    body = document["paths"]["/api/watches"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"] == {"$ref": "#/components/schemas/WatchRequest"}
    assert body["examples"]
    for kind in document["components"]["schemas"]["WatchRequest"]["oneOf"]:
        assert kind["properties"]["condition"]["description"]
    for path, routes in document["paths"].items():
        for method, route in routes.items():
            assert route["summary"], path
            assert route["description"], path
            assert "application/problem+json" in route["responses"]["default"]["content"], (method, path)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/api/watches/w", "DELETE, GET, PATCH"),
        ("/api/v1/chat/sessions/s/watches/proposals", "POST"),
        ("/api/openapi.json", "GET, HEAD"),
        ("/ws", "GET"),
    ],
)
async def test_a_method_that_is_none_is_answered_with_those_that_are(server: Server, path: str, allowed: str) -> None:
    async with server.client() as client:
        answer = await client.put(path, json={})
    assert (answer.status_code, answer.json()["code"]) == (405, "method-not-allowed")
    assert ", ".join(sorted(answer.headers["allow"].split(", "))) == allowed
