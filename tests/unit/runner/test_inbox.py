"""The folder of commands: each is done at most once and answered; what is no command is set aside and named."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import OrderRefused
from hankwatch.events.envelope import Event
from hankwatch.runner.control import CodonStop, Control, StopReason
from hankwatch.runner.inbox import ASIDE, POLL_S, Command, Inbox, ask, post
from hankwatch.runner.layout import Layout
from hankwatch.runner.ledger import Ledger
from hankwatch.runner.orders import Order, Orders
from hankwatch.runner.state import RunState
from hankwatch.testing import VirtualStream, open_test_stream

RUN = "1-run"


@dataclass
class Case:
    """A live run with codon ``build`` under way."""

    layout: Layout
    stream: VirtualStream
    control: Control
    codon: CodonStop
    inbox: Inbox
    clock: VirtualClock

    def put(self, content: object, name: str = "c1.json") -> Path:
        path = self.layout.commands / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    async def answers(self) -> list[Event]:
        """What the run says after it has looked."""
        await self.inbox.take_all()
        return self.stream.of_type("info", "error")


def command(**fields: Any) -> dict[str, Any]:
    return {"id": "c1", "run": RUN, "command": "skip", **fields}


async def nothing() -> str:
    return "none"


@pytest.fixture
def case(tmp_path: Path) -> Iterator[Case]:
    layout, clock = Layout(tmp_path), VirtualClock()
    layout.journal.parent.mkdir(parents=True)
    layout.commands.mkdir()
    stream = open_test_stream(layout.journal)
    ledger = Ledger(stream, RUN, RunState())
    ledger.move("RunStarted", {"startingConditions": {"type": "fresh"}, "serverPid": 1})
    ledger.move("CodonStarted", {"codonName": "Build", "baseCodonId": "build"}, codon_id="build")
    control, codon = Control(), CodonStop()
    control.enter(codon)
    yield Case(
        layout, stream, control, codon, Inbox(RUN, layout, ledger, Orders(control, clock, 10.0, nothing), clock), clock
    )
    stream.close()


async def test_a_command_is_removed_done_and_answered_under_its_id(case: Case) -> None:
    path = case.put(command(codon="build", attempt=1))
    (answer,) = await case.answers()
    assert (answer.type, answer.data["code"], answer.data["commandId"]) == ("info", "command-done", "c1")
    assert case.codon.reason is StopReason.SKIP
    assert not path.exists()


@pytest.mark.parametrize("meant_for", [{"run": "2-other"}, {"codon": "test"}, {"codon": "build", "attempt": 2}])
async def test_a_command_meant_for_another_run_codon_or_attempt_is_refused(
    case: Case, meant_for: dict[str, Any]
) -> None:
    path = case.put(command(**meant_for))
    (answer,) = await case.answers()
    assert (answer.type, answer.data["code"], answer.data["commandId"]) == ("error", "command-refused", "c1")
    assert case.codon.reason is None
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("c1.json", "{torn"),
        ("c1.json", command(command="rm -rf /")),
        ("c1.json", command(extra=1)),
        ("c1.json", command(id="../../etc")),
        ("c1.json", "[" * 20_000),
        ("c1.json", json.dumps(command()) + " " * 20_000),
        ("c1.exe", command()),
        ("evil\x1b[2J.json", "{}"),
    ],
)
async def test_what_is_no_command_is_set_aside_named_and_never_done(case: Case, name: str, content: object) -> None:
    case.put(content, name)
    (answer,) = await case.answers()
    assert answer.type == "error"
    assert repr(name) in answer.data["message"]
    assert "commandId" not in answer.data
    assert case.codon.reason is None
    assert (case.layout.commands / ASIDE / name).exists()
    assert await case.answers() == [answer]


async def test_links_pipes_and_folders_are_no_commands(case: Case, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(json.dumps(command()))
    (case.layout.commands / "link.json").symlink_to(elsewhere)
    (case.layout.commands / "folder.json").mkdir()
    os.mkfifo(case.layout.commands / "pipe.json")
    answers = await case.answers()
    assert [answer.type for answer in answers] == ["error"] * 3
    assert case.codon.reason is None
    assert json.loads(elsewhere.read_text()) == command()
    assert sorted(path.name for path in (case.layout.commands / ASIDE).iterdir()) == [
        "folder.json",
        "link.json",
        "pipe.json",
    ]


async def test_what_cannot_be_set_aside_is_told_once(case: Case) -> None:
    (case.layout.commands / ASIDE).write_text("in the way")
    case.put("{")
    assert len(await case.answers()) == 1
    assert len(await case.answers()) == 1


async def test_a_file_being_written_is_left_alone(case: Case) -> None:
    path = case.put("{", ".c1.tmp")
    assert await case.answers() == []
    assert path.exists()


async def test_nothing_is_taken_before_the_run_has_begun(case: Case) -> None:
    case.inbox.run_id = "2-not-begun"
    path = case.put(command())
    assert await case.answers() == []
    assert path.exists()


async def test_commands_are_done_in_the_order_of_their_names(case: Case) -> None:
    for name in ("c3", "c1", "c2"):
        case.put(command(id=name, command="checkpoints"), f"{name}.json")
    assert [answer.data["commandId"] for answer in await case.answers()] == ["c1", "c2", "c3"]


async def test_asking_returns_the_answer(case: Case) -> None:
    wanted = Command(id="c9", run=RUN, command=Order.STOP)
    got: list[Event] = []

    async def client() -> None:
        got.append(await ask(case.layout, wanted, within_s=5.0, clock=case.clock))
        tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(case.inbox.run)
        tasks.start_soon(client)
        await case.clock.advance(2 * POLL_S)
    assert (got[0].type, got[0].data["commandId"]) == ("info", "c9")
    assert case.control.stopping


async def test_a_command_that_nobody_takes_is_withdrawn(case: Case) -> None:
    wanted = Command(id="c9", run=RUN, command=Order.STOP)
    async with anyio.create_task_group() as tasks:

        async def client() -> None:
            with pytest.raises(OrderRefused, match="withdrawn"):
                await ask(case.layout, wanted, within_s=5.0, clock=case.clock)

        tasks.start_soon(client)
        await case.clock.advance(6.0)
    assert list(case.layout.commands.iterdir()) == []


def test_a_posted_command_is_a_whole_file_of_its_own(case: Case) -> None:
    path = post(case.layout, Command(id="c9", run=RUN, command=Order.SKIP, codon="build", attempt=1))
    assert json.loads(path.read_text()) == {
        "id": "c9",
        "run": RUN,
        "codon": "build",
        "attempt": 1,
        "command": "skip",
    }
    assert list(case.layout.commands.iterdir()) == [path]
