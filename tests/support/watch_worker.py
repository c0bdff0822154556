"""A process that checks and wakes as fast as it can, for tests that kill it: one engine, one deliverer, one home."""

import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import anyio
from tests.support.watch_bench import WatchBench
from tests.support.watches import a_watch

from hankwatch.core.clock import Clock, SystemClock
from hankwatch.watches.checks import Check, CheckContext, Cost, Finding, Trust
from hankwatch.watches.delivery import Delivery, Woken
from hankwatch.watches.scope import Scope
from hankwatch.watches.specs import CheckSpec
from hankwatch.watches.watch import Outcome, Trigger

WATCHES: Final = 12


class Accepting:
    """Sessions that write down each wake before its turn, and look there first, as a run does in its journal."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def ids(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    async def wake(self, _: str, __: str, delivery: Delivery) -> Woken:
        if delivery.id not in self.ids():
            with self.path.open("ab", buffering=0) as file:
                file.write(f"{delivery.id}\n".encode())
                os.fsync(file.fileno())
        return Woken.ACCEPTED


def bench_of(url: str, home: Path, clock: Clock) -> WatchBench:
    """A process that holds ``home``; its check's value is another one each time."""
    numbers = itertools.count(os.getpid() * 1_000_000)

    async def tick(_: CheckContext, __: Mapping[str, Any]) -> Finding:
        return Finding(Outcome.PENDING, value=next(numbers))

    check = Check("tick", tick, behaviour="tick", cost=Cost.CHEAP, trust=Trust.SAFE)
    held = Scope(frozenset({str(home)}), homeless=False, is_held=True)
    bench = WatchBench(url, clock, scope=held, checks=(check,))
    bench.deliverer.sessions = Accepting(home / "accepted")
    return bench


def arm_all(bench: WatchBench, home: Path) -> None:
    """Watches that fire at each check."""
    digest = bench.evaluator.verifiers.behaviour_digest(CheckSpec(type="check", name="tick"))
    for number in range(WATCHES):
        watch = a_watch(
            id=f"watch-{number}",
            session=f"session-{number}",
            home=str(home),
            trigger=Trigger.CHANGE,
            repeat=True,
            interval_s=0.01,
            expires_s=None,
            verifier=CheckSpec(type="check", name="tick", args={"number": number}),
            behaviour_digest=digest,
            created_at=bench.now(),
            next_check_at=bench.now(),
        )
        bench.store.arm(watch, counts=False, now=bench.now())


def main(url: str, home: str) -> None:
    """Work until killed; a line is printed once wakes have begun to arrive."""

    async def work() -> None:
        bench = bench_of(url, Path(home), SystemClock())
        async with bench.running():
            await bench.until((Path(home) / "accepted").exists)
            print("works", flush=True)
            await anyio.sleep_forever()

    anyio.run(work)
