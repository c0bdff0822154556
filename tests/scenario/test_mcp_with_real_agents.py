"""Real programs start our MCP server themselves, arm a monitor, end their turn, and are woken; see tests.scenario.test_real_agents."""

import json
from pathlib import Path

import anyio
import pytest
from tests.support.agent_model_server import AgentModelServer, Step
from tests.support.hanks import codon
from tests.support.real_agents import SETUPS, installed
from tests.support.runs import Ran, write_hank

from hankwatch.agents.catalogue import PROGRAMS
from hankwatch.agents.program import TakesMcp
from hankwatch.app import open_run
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions

pytestmark = [pytest.mark.realagent, pytest.mark.slow, pytest.mark.timeout(180)]

TAKERS = [name for name in SETUPS if isinstance(PROGRAMS[name]((name,), {}), TakesMcp)]
MONITOR = {
    "condition": "the deploy has a status",
    "verifier": {"type": "document", "path": "status.json", "pointer": "/state"},
    "note": "Read the status and go on.",
}


@pytest.mark.parametrize("name", TAKERS, indirect=True)
async def test_a_real_program_arms_a_monitor_and_is_woken_with_the_result(
    name: str, tmp_path: Path, server: AgentModelServer
) -> None:
    server.script = [
        Step("Arming.", tool="create_monitor", arguments=MONITOR),
        Step("Looking.", shell="echo hi there"),
        Step("I wait."),
        Step("It is deployed."),
    ]
    agent, model, env = installed(name, tmp_path, server.url)
    one = codon(
        agent=agent,
        model=model,
        mcp=True,
        waitForWatches=True,
        checkpointedFiles=["status.json"],
    )
    hank, root = write_hank(tmp_path / "hank", one), tmp_path / "run"
    waits = anyio.Event()

    def listen(event: Event) -> None:
        if event.data.get("code") == "waits-for-watches":
            waits.set()

    async with open_run(RunOptions(hank, execution=root), environ=env) as live, anyio.create_task_group() as tasks:
        live.stream.subscribe(listen, name="test")

        async def deploy() -> None:
            await waits.wait()
            (root / "agentRoot" / "status.json").write_text(json.dumps({"state": "deployed"}), encoding="utf-8")

        tasks.start_soon(deploy)
        await live.carry_out()
        tasks.cancel_scope.cancel()

    ran = Ran(root)
    (armed,) = [event for event in ran.of("tool.result") if event.data["toolName"].endswith("create_monitor")]
    assert armed.data["isError"] is False, armed.data["result"]
    assert [event.type for event in ran.of("watch.armed", "watch.met")] == ["watch.armed", "watch.met"]
    assert ran.completed()["success"] is True, ran.of("error")
    said = [e.data["content"] for e in ran.of("assistant.action") if e.data["action"] == "message"]
    assert said == ["Arming.", "Looking.", "I wait.", "It is deployed."]
    assert "hi there" in ran.of("tool.result")[-1].data["result"], "its other tools are as free as before"
    assert "Read the status and go on." in server.bodies[-1]
    assert "deployed" in server.bodies[-1]
