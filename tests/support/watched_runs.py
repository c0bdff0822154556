"""A hank in an execution with a store of watches of its own, and how far its runs have come."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from tests.support.hanks import codon
from tests.support.runs import Ran, environment, stand_in, write_hank

from hankwatch.app import LiveRun, open_run
from hankwatch.core.clock import SystemClock
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions
from hankwatch.settings import load_settings
from hankwatch.watches.authority import operator
from hankwatch.watches.delivery import Channel
from hankwatch.watches.requests import read_request
from hankwatch.watches.turn import Turn
from hankwatch.watching import Watching, open_watching

GOOD: list[list[Any]] = [
    ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}],
    ["line", {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}],
    ["until_eof"],
]

WAITS = codon("one", waitForWatches=True)


class Here:
    """A hank of one codon in an execution directory, with a store of watches of its own."""

    def __init__(self, folder: Path, *codons: dict[str, Any]) -> None:
        self.agent = stand_in(folder / "agent", *GOOD)
        (folder / "home").mkdir()
        self.environ = environment({**self.agent.environ, "HOME": str(folder / "home")})
        self.hank = write_hank(folder / "hank", *(codons or (codon(),)))
        self.root = folder / "run"

    async def run(self, **options: Any) -> Ran:
        asked = RunOptions(self.hank, execution=self.root, **options)
        async with open_run(asked, environ=self.environ) as live:
            result = await live.carry_out()
        return Ran(self.root, result)

    @asynccontextmanager
    async def watches(self) -> AsyncIterator[Watching]:
        """As the command line opens them with ``--home``."""
        settings = load_settings(environ=self.environ, cwd=self.root.parent).settings
        async with open_watching(settings, self.environ, clock=SystemClock(), home=self.root.resolve()) as watching:
            yield watching

    async def arm(self, **fields: Any) -> str:
        """A watch that wakes session ``one`` once the file ``done`` is there."""
        asked = {
            "condition": "the deploy is done",
            "verifier": {"type": "document", "path": "done"},
            "session": "one",
            "run_prompt": "Run the smoke test.",
            **fields,
        }
        async with self.watches() as watching:
            return (await watching.service.create_watch(operator(), read_request(asked))).watch.id

    async def fire(self, watch_id: str, text: str = "v1.2.3") -> None:
        """Let its condition come true, and somebody check it."""
        (self.root / "done").write_text(text, encoding="utf-8")
        async with self.watches() as watching:
            await watching.service.evaluate_now(operator(), watch_id)

    async def wakes(self) -> list[str]:
        """How the wakes stand."""
        async with self.watches() as watching:
            return [one.status.value for one in watching.outbox.find(channel=Channel.WAKE)]

    def turn(self) -> Turn:
        """What the latest turn's agent was given to know of itself."""
        turn = Turn.of(self.agent.calls()[-1]["env"])
        assert turn is not None
        return turn

    def prompts(self) -> list[str]:
        """What each turn of the agent was told."""
        return [call["stdin"]["message"]["content"][0]["text"] for call in self.agent.calls()]


def of_code(ran: Ran, code: str) -> list[Event]:
    return [event for event in ran.of("info") if event.data.get("code") == code]


class Signals:
    """Counts how often a run has become idle."""

    def __init__(self) -> None:
        self.count = 0
        self.changed = anyio.Event()

    def listen(self, event: Event) -> None:
        if event.type == "server.idle":
            self.count += 1
            self.changed.set()
            self.changed = anyio.Event()

    async def reached(self, count: int) -> None:
        while self.count < count:
            await self.changed.wait()


async def run_until_it_waits(here: Here, then: Callable[[LiveRun], Awaitable[None]], **options: Any) -> Ran:
    """A run; ``then`` is done once its codon waits for its watches."""
    return await run_until(here, lambda event: event.data.get("code") == "waits-for-watches", then, **options)


async def run_until(
    here: Here, holds: Callable[[Event], bool], then: Callable[[LiveRun], Awaitable[None]], **options: Any
) -> Ran:
    """A run; ``then`` is done once ``holds`` of one of its events."""
    waits = anyio.Event()

    def listen(event: Event) -> None:
        if holds(event):
            waits.set()

    asked = RunOptions(here.hank, execution=here.root, **options)
    async with open_run(asked, environ=here.environ) as live, anyio.create_task_group() as tasks:
        live.stream.subscribe(listen, name="test")

        async def act() -> None:
            await waits.wait()
            await then(live)

        tasks.start_soon(act)
        result = await live.carry_out()
    return Ran(here.root, result)
