"""Sentinel configs as authors of the 0.10 contract wrote them, unmodified, against a scripted provider over HTTP."""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.model_server import Answer, ModelServer, model_server
from tests.support.sentinels import Desk, desk, entry_source, scope, source

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.core.clock import SystemClock
from hankwatch.core.redaction import Redactor
from hankwatch.events.activity import AssistantAction
from hankwatch.events.run import CodonCompleted, Info, TokenUsage
from hankwatch.events.shapes import ExitSuccess
from hankwatch.llm.router import ModelRouter
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.source import SentinelSource, read_config_file

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@asynccontextmanager
async def running(
    root: Path, server: ModelServer, made: SentinelSource, codon_id: str = "build"
) -> AsyncIterator[tuple[Desk, Any]]:
    """One sentinel of a codon, with the real template worker and the real way to a provider."""
    address = server.url.removesuffix("/v1")
    env = {"ANTHROPIC_API_KEY": "sk-ant-0123456789abcdef", "ANTHROPIC_API_BASE": address}
    router = ModelRouter(env, redactor=Redactor.from_environment(env), clock=SystemClock())
    try:
        async with (
            Sandbox(clock=SystemClock()) as sandbox,
            desk(root, model=router, sandbox=sandbox) as d,
            d.manager.attach(scope(codon_id), [made]) as attached,
        ):
            assert attached.failures == ()
            yield d, attached
    finally:
        await router.aclose()


def contract(fixtures: Path, name: str) -> SentinelSource:
    made = entry_source({"sentinelConfig": f"sentinels/{name}"}, fixtures / "sentinels")
    assert made.faults == ()
    return made


def anthropic(text: str) -> Answer:
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5",
        "stop_reason": "end_turn",
        "content": [{"type": "text", "text": text}],
        "usage": {"input_tokens": 1_000, "output_tokens": 100},
    }
    return Answer(body=json.dumps(message).encode())


def asked(server: ModelServer, number: int = 0) -> str:
    """The text of a request's last message."""
    content = server.bodies[number]["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def completed(codon_id: str) -> CodonCompleted:
    return CodonCompleted(codon_id=codon_id, success=True, cost=0.25, duration=197_800, exit_status=ExitSuccess())


def usage(cost: float) -> TokenUsage:
    return TokenUsage(
        codon_id="build",
        input_tokens=10,
        output_tokens=5,
        cache_creation_tokens=0,
        cache_read_tokens=0,
        total_cost=cost,
    )


async def test_the_quality_observer_of_the_contracts_own_page_reports_its_codons_completion(
    tmp_path: Path, fixtures: Path, server: ModelServer
) -> None:
    server.script.append(anthropic("# Summary\n\n**Status:** Success"))
    made = contract(fixtures, "quality-observer.json")
    async with running(tmp_path, server, made, "validate-and-repair") as (d, attached):
        d.stream.emit(completed("another"))
        (event,) = d.stream.emit(completed("validate-and-repair"))
        await attached.drain(30)
        (output,) = d.said("output")
        assert output["cost"] == pytest.approx(1_000 * 1e-6 + 100 * 5e-6)
        # Eta takes one newline after a tag.
        shown = json.dumps([event.envelope()], indent=1, ensure_ascii=False)
        assert asked(server) == (
            "The codon `validate-and-repair` completed. Here are the triggering completion events:\n\n"
            f"{shown}\nSummarize only status, failure reasons and budget fields actually present. These completion "
            "events do not provide file contents or file.updated events. State explicitly that artifact existence, "
            "row coverage and correctness cannot be verified from this input. Never treat missing file-update events "
            "as proof of missing files. Observe and report only."
        )
        report = tmp_path / ".hankweave" / "sentinels" / "outputs" / "quality-observer" / "quality-observer.log"
        assert report.read_text() == "\n---\n# Summary\n\n**Status:** Success\n"


async def test_the_cost_analyst_answers_in_json_that_fits_its_zod_schema(
    tmp_path: Path, fixtures: Path, server: ModelServer
) -> None:
    good = {
        "totalInputTokens": 20,
        "totalOutputTokens": 10,
        "totalCost": 0.75,
        "mostExpensiveCall": {"codonId": "build", "cost": 0.5},
    }
    invalid = {**good, "totalCost": "0.75 USD"}
    server.script.extend([anthropic(json.dumps(invalid)), anthropic(f"```json\n{json.dumps(good, indent=2)}\n```")])
    async with running(tmp_path, server, contract(fixtures, "cost-analyst.sentinel.json")) as (d, _):
        d.stream.emit(usage(0.25))
        d.stream.advance(5_000)
        d.stream.emit(usage(0.5))
        d.stream.advance(15_000)
        await d.manager.settle()
        (output,) = d.said("output")
        assert (output["content"], output["tokens"]) == (good, {"input": 2_000, "output": 200})
        assert d.report("cost-analyst").read_text() == json.dumps(good, separators=(",", ":")) + "\n"
    first, repair = server.bodies
    properties = first["output_format"]["schema"]["properties"]
    assert properties["totalCost"]["type"] == "number"
    assert set(properties) == set(good)
    assert '"totalCost": 0.25' in asked(server)
    assert [message["role"] for message in repair["messages"]] == ["user", "assistant", "user"]
    assert "/totalCost: '0.75 USD' is not of type 'number'" in asked(server, 1)


async def test_a_check_with_prompt_and_schema_files_runs(tmp_path: Path, fixtures: Path, server: ModelServer) -> None:
    answer = {"followed": True, "evidence": ["one line"]}
    server.script.append(anthropic(json.dumps(answer)))
    async with running(tmp_path, server, contract(fixtures, "check.json")) as (d, _):
        d.info("done")
        await d.manager.settle()
        assert [data["content"] for data in d.said("output")] == [answer]
    assert asked(server) == "Did the agent follow the one-line rule? Answer with the structured schema."
    assert server.bodies[0]["output_format"]["schema"]["required"] == ["followed", "evidence"]


ETA = """<% const failed = it.events.filter(e => e.data.toolName === 'Bash') -%>
<%= failed.length %> of <%= it.events.length %> in <%= it.codon.name %>:
<% for (const [i, e] of failed.entries()) { -%>
<%= i + 1 %>. <%= e.data.content.toUpperCase() %>;
<% } -%>
<%= JSON.stringify(it.events.map(e => e.type), null, 1) %>"""


async def test_an_eta_prompt_with_loops_and_filters_shows_the_events(tmp_path: Path, server: ModelServer) -> None:
    server.default = anthropic("seen")
    made = source(
        model="anthropic/claude-haiku-4-5",
        trigger={"type": "event", "on": ["assistant.action"]},
        execution={"strategy": "count", "threshold": 3},
        userPromptText=ETA,
    )
    async with running(tmp_path, server, made) as (d, _):
        for tool, said in (("Bash", "ls"), (None, "<%= process.env %>"), ("Bash", "rm {{ x }}")):
            action: Any = "message" if tool is None else "tool_use"
            d.stream.emit(AssistantAction(codon_id="build", action=action, content=said, tool_name=tool))
        await d.manager.settle()
        assert d.said("error") == []
    assert asked(server) == (
        '2 of 3 in Build:\n1. LS;\n2. RM {{ X }};\n[\n "assistant.action",\n "assistant.action",\n "assistant.action"\n]'
    )


async def test_secrets_in_events_and_answers_reach_neither_prompt_history_nor_report(
    tmp_path: Path, server: ModelServer
) -> None:
    key, token = "sk-ant-api03-" + "a1B2" * 12, "ghp_" + "aB3d" * 9
    server.default = anthropic(f"the agent printed {token}")
    made = source(
        model="anthropic/claude-haiku-4-5",
        systemPromptText="You watch.",
        userPromptText="{{ events[0].data.message }}",
        conversational={"trimmingStrategy": {"type": "maxTurns", "maxTurns": 5}},
    )
    async with running(tmp_path, server, made) as (d, _):
        for _ in range(2):
            d.stream.emit(Info(message=f"export KEY={key}"))
            await d.manager.settle()
        assert len(d.said("output")) == 2
    assert "[redacted:" in json.dumps(server.bodies)
    assert not any(secret in json.dumps(server.bodies) for secret in (key, token))
    written = [path.read_text() for path in (tmp_path / ".hankweave").rglob("*") if path.is_file()]
    assert len(written) >= 3
    assert not any(secret in text for text in written for secret in (key, token))


@pytest.mark.parametrize("name", ["complex-condition.json", "stuck-detection.json", "tool-usage-patterns.json"])
def test_a_report_in_the_format_that_was_removed_is_refused_with_what_to_write(fixtures: Path, name: str) -> None:
    found = Diagnostics()
    assert read_config_file(fixtures / "sentinels" / "sentinels" / name, found).config is None
    (fault,) = found.errors
    assert fault.pointer == "/output/format"
    assert {"text", "jsonl"} <= set(re.findall(r"\w+", fault.text()))


def test_a_config_without_a_prompt_has_nothing_to_ask(fixtures: Path) -> None:
    found = Diagnostics()
    assert read_config_file(fixtures / "sentinels" / "sentinels" / "minimal.json", found).config is None
    assert [fault.code for fault in found.errors] == ["missing-prompt"]
