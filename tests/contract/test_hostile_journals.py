"""Whatever a journal says, the server answers in JSON and goes on."""

import json
from pathlib import Path

import pytest
from tests.support.serving import a_server, execution, lines

STAMP = b'"timestamp":"2026-11-30T17:00:32.123Z"'
HOSTILE = [
    rb'{"id":"1",%b,"type":"info","data":{"message":"\ud800 lone"}}',
    b'{"id":"2",%b,"type":"info","data":{"message":"' + b"\xff\xfe" + b'"}}',
    b'{"id":"3",%b,"type":"token.usage","data":{"codonId":"c","inputTokens":123456789012345678901234567890}}',
    b'{"id":"4",%b,"type":"token.usage","data":{"totalCost":NaN,"isFinal":true,"inputTokens":-1}}',
    b'{"id":"5",%b,"type":"state.transition","data":{"transitionType":"RunStarted","runId":{"a":1}}}',
    b'{"id":"6",%b,"type":"state.transition","data":{"transitionType":["x"],"runId":null}}',
    b'{"id":"7",%b,"type":"sentinel.loaded","data":{"sentinelId":[],"report":7,"reportToWebsocket":"yes"}}',
    b'{"id":"8",%b,"type":"sentinel.output","data":{"content":{"a":[1]},"cost":"x","triggerNumber":{}}}',
    b'{"id":"9",%b,"type":"sentinel.loaded","data":{"sentinelId":"s","codonId":"c","report":{}}}',
    b'{"id":"10",%b,"type":"sentinel.output","data":{"sentinelId":"s","codonId":"c","content":"x"}}',
    b'{"id":"11",%b,"type":"<script>alert(1)</script>","data":{"codonId":"<img src=x>"}}',
    b'{"id":"12",%b,"type":"codon.completed","data":{"codonId":"\\u001b[31m","sessionId":5}}',
    b'{"id":"13",%b,"type":"sentinel.loaded","data":{"sentinelId":"t","codonId":"c","report":{"logFile":5,"format":"x"}}}',
    b'{"id":"14",%b,"type":"sentinel.output","data":{"sentinelId":"t","codonId":"c","content":"x"}}',
    b'{"id":"15",%b,"type":"error","data":{"message":{"a":1},"fatal":"no"}}',
    b'{"id":"16",%b,"type":"budget.summary","data":{"codons":7}}',
    b'{"id":"17",%b,"type":"watchdog.nudge","data":{"round":"x","detail":[1]}}',
    b"not json at all",
    b"[" * 5_000,
    b"",
]
PATHS = ["", "/events", "/sentinels", "/reports", "/events?format=ndjson"]


@pytest.mark.parametrize("alone", [*range(len(HOSTILE)), None])
async def test_every_route_answers_whatever_the_journal_says(tmp_path: Path, alone: int | None) -> None:
    chosen = HOSTILE if alone is None else [HOSTILE[alone]]
    journal = (
        lines("before") + b"".join(line.replace(b"%b", STAMP) + b"\n" for line in chosen) + lines("after", start=9)
    )
    execution(tmp_path / "executions", "1764522000000-a", journal)
    async with a_server(tmp_path / "executions") as server, server.client() as client:
        for path in ("/api/runs", "/api/sessions", "/metrics", *(f"/api/runs/latest{path}" for path in PATHS)):
            answer = await client.get(path)
            assert answer.status_code == 200, (path, answer.text)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "html" not in answer.headers["content-type"]
        said = [
            event["data"].get("message") for event in (await client.get("/api/runs/latest/events")).json()["events"]
        ]
        async with client.stream("GET", "/api/runs/latest/stream?after=0") as stream:
            streamed: list[str] = []
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    streamed.append(json.loads(line.removeprefix("data: "))["data"].get("message"))
                if streamed[-1:] == ["after"]:
                    break
    assert said == streamed
    assert (said[0], said[-1]) == ("before", "after")
