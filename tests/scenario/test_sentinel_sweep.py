"""The sweep: an observer on the last codon gets that codon's completion, once, and reports before the run ends."""

import re
from pathlib import Path

import pytest
from tests.support.golden import assert_golden, normalised
from tests.support.laws import transition
from tests.support.model_server import Answer, model_server
from tests.support.runs import Ran, command, environment, run_here

from hankwatch.testing import ScriptedModel


@pytest.fixture
def sweep(fixtures: Path) -> Path:
    return fixtures / "sentinel-sweep"


def check_sweep(ran: Ran) -> None:
    events = ran.events
    last = [event for event in events if event.type == "codon.completed"][-1]
    (triggered,) = (event for event in events if event.type == "sentinel.triggered")
    (output,) = (event for event in events if event.type == "sentinel.output")
    (unloaded,) = (event for event in events if event.type == "sentinel.unloaded")
    assert last.data["codonId"] == "step-two"
    assert triggered.data["eventIds"] == [last.id]
    order = [events.index(event) for event in (last, triggered, output, unloaded)]
    assert order == sorted(order)
    assert [transition(event) or event.type for event in events[order[-1] + 1 :]] == ["info", "RunCompleted"]
    assert output.data["content"] in ran.report("sweep-observer")


async def test_exactly_the_last_completion_reaches_the_observer(sweep: Path, tmp_path: Path) -> None:
    model = ScriptedModel("All swept.")
    ran = await run_here(sweep, tmp_path / "run", model=model)
    check_sweep(ran)
    (request,) = model.requests
    assert request.messages[-1].content.count('"type": "codon.completed"') == 1
    assert "step-one" not in request.messages[-1].content


async def test_the_sweep_journal_is_as_recorded(sweep: Path, tmp_path: Path) -> None:
    ran = await run_here(sweep, tmp_path / "run", model=ScriptedModel("All swept."))
    assert ran.result is not None
    names = {ran.result.record.run_id: "<run>", str(ran.root): "<execution>", str(sweep): "<hank>"}
    assert_golden("sentinel-sweep", normalised(ran.events, names))


async def test_the_builtin_model_reports_the_same_way(sweep: Path, tmp_path: Path) -> None:
    check_sweep(await run_here(sweep, tmp_path / "run"))


@pytest.mark.slow
def test_the_command_sweeps_too(sweep: Path, tmp_path: Path) -> None:
    environ = environment({"HOME": str(tmp_path)})
    with command("run", sweep, "-e", tmp_path / "run", environ=environ, cwd=tmp_path) as child:
        shown, complaints = child.communicate()
    assert child.returncode == 0
    assert complaints == b""
    check_sweep(Ran(tmp_path / "run"))
    assert re.search(rb"sweep-observer +step-two +1 +0 +1", shown)


def copied(sweep: Path, folder: Path, *, model: bytes) -> Path:
    for path in sorted(sweep.rglob("*")):
        if path.is_file():
            copy = folder / path.relative_to(sweep)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes().replace(b"builtin/digest", model))
    return folder


@pytest.mark.slow
@pytest.mark.timeout(60)  # a provider's library is imported first
async def test_a_provider_over_http_is_asked_about_the_event(sweep: Path, tmp_path: Path) -> None:
    folder = copied(sweep, tmp_path / "hank", model=b"openai/gpt-4o-mini")
    with model_server(Answer("Swept over the wire.")) as server:
        environ = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-test-0123456789"}
        ran = await run_here(folder, tmp_path / "run", environ=environ)
        check_sweep(ran)
        (prompt,) = server.prompts()
        (headers,) = server.headers
    (triggered,) = ran.of("sentinel.triggered")
    assert triggered.data["eventIds"][0] in prompt
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Bearer sk-test-0123456789"
    assert "Swept over the wire." in ran.report("sweep-observer")
    (output,) = ran.of("sentinel.output")
    assert output.data["cost"] > 0
    assert b"sk-test-0123456789" not in ran.everything()
