"""A codon between its turns: what wakes it, and how long it waits for that (spec watches 6, "Yield and resume")."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import anyio

from hankwatch.agents.program import Resumes
from hankwatch.core.clock import Timer
from hankwatch.events.run import Info
from hankwatch.runner.budget import Limit
from hankwatch.runner.context import RunContext
from hankwatch.runner.control import CodonStop
from hankwatch.runner.jobs import CodonJob
from hankwatch.runner.reentry import GOES_ON, Reentry
from hankwatch.runner.sessions import WAITS
from hankwatch.runner.wakes import Wake
from hankwatch.stream.stream import EventStream

POLL_S: Final = 0.5
"""How often a codon that waits looks whether it is woken."""
_NAMED: Final = 20


@dataclass(slots=True)
class TimeLimit:
    """Counts what a codon may take of its time budget; waiting for watches does not count."""

    stream: EventStream
    waited_ms: int = 0
    _timer: Timer | None = None
    _up: Callable[[], None] = lambda: None

    def start(self, limit: Limit, up: Callable[[], None]) -> None:
        """Call ``up`` once the limit is reached."""
        self._up = up
        self._set(self.stream.now_ms() + int(limit.limit * 1000))

    def cancel(self) -> None:
        """The codon has ended."""
        if self._timer is not None:
            self._timer.cancel()

    async def outside(self, wait: Callable[[], Any]) -> Any:
        """What ``wait`` comes to; its time counts for nothing."""
        began_ms, timer = self.stream.now_ms(), self._timer
        self.cancel()
        try:
            return await wait()
        finally:
            waited_ms = self.stream.now_ms() - began_ms
            self.waited_ms += waited_ms
            if timer is not None:
                self._set(timer.due_ms + waited_ms)

    def _set(self, due_ms: int) -> None:
        self._timer = self.stream.timers.at(due_ms, lambda _: self._up())


@dataclass(slots=True)
class Waiting:
    """Gives the next turn of one attempt that a watch asks for."""

    job: CodonJob
    context: RunContext
    stop: CodonStop
    time: TimeLimit
    stands: Callable[[], Reentry]
    """Where the attempt is to be gone on from if its process is killed while it waits."""
    turns: int = 0
    """Turns that watches asked for."""
    _names: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self._names = frozenset({self.job.codon_id, self.job.base_codon_id})

    @property
    def metadata(self) -> dict[str, Any]:
        """What the transition that ends the attempt says of it."""
        said = {"wakeTurns": self.turns, "waitedMs": self.time.waited_ms}
        return {name: count for name, count in said.items() if count}

    async def pending(self) -> Wake | None:
        """A wake of the session that came while its agent worked; None when there is none."""
        if self.context.watches is None or self.stop.reason is not None or not self._resumes:
            return None
        return self._counted(await self.context.watches.next_wake(self._names))

    async def awaited(self) -> Wake | None:
        """The next wake; None when nothing is live that could wake it, it was stopped, or has waited long enough."""
        if not self.job.codon.wait_for_watches or self.stop.reason is not None or not self._resumes:
            return None
        wake: Wake | None = await self.time.outside(self._await)
        return self._counted(wake)

    @property
    def _resumes(self) -> bool:
        return isinstance(self.job.program, Resumes)

    def _counted(self, wake: Wake | None) -> Wake | None:
        self.turns += wake is not None
        return wake

    async def _await(self) -> Wake | None:
        watches, clock = self.context.watches, self.context.clock
        if watches is None:
            return None
        until_s, is_told = clock.monotonic() + self.job.codon.wait_limit_seconds, False
        with anyio.CancelScope() as scope:
            self.stop.on_stop(scope.cancel)
            await watches.tell_every_ending(self._names)
            while True:
                live = await watches.live(self._names)
                wake = await watches.next_wake(self._names)  # asked last: what has ended since is in it
                if wake is not None or not live:
                    return wake
                if clock.monotonic() >= until_s:
                    self._tell("has waited long enough for", live, "wait-limit")
                    return None
                if not is_told:
                    self._tell("waits for", live, WAITS)
                    is_told = True
                await clock.sleep(POLL_S)
        return None

    def _tell(self, what: str, live: tuple[str, ...], code: str) -> None:
        named = ", ".join(live[:_NAMED])
        details = {"watchIds": list(live[:_NAMED]), GOES_ON: self.stands().as_json()}
        message = f"Codon {self.job.codon_id} {what} its watches: {named}"
        self.context.stream.emit(Info(message=message, code=code, details=details))
