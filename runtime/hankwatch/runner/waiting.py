"""A codon between its turns: what wakes it, and how long it waits for that (spec watches 6, "Yield and resume")."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import anyio

from hankwatch.agents.program import Resumes
from hankwatch.core.clock import Timer
from hankwatch.events.envelope import format_stamp
from hankwatch.events.run import Info
from hankwatch.runner.budget import Limit
from hankwatch.runner.context import RunContext
from hankwatch.runner.control import CodonStop
from hankwatch.runner.jobs import CodonJob
from hankwatch.runner.reentry import GOES_ON, Reentry
from hankwatch.runner.sessions import WAITS
from hankwatch.runner.wakes import Wake
from hankwatch.stream.stream import EventStream

LOOKS_AGAIN_S: Final = 60.0
"""A codon that is re-entered waits so long at least: what came true while nothing looked has yet to be found."""
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
    since_ms: int | None = None
    """Stream instant at which an earlier process began to wait; the next wait goes on from there."""
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
        now_ms, left_s = self.context.stream.now_ms(), self.job.codon.wait_limit_seconds
        began_ms, self.since_ms = self.since_ms or now_ms, None
        if began_ms < now_ms:
            left_s = left_of(left_s, (now_ms - began_ms) / 1000)
        until_s, is_told = clock.monotonic() + left_s, False
        with anyio.CancelScope() as scope:
            self.stop.on_stop(scope.cancel)
            await watches.tell_every_ending(self._names)
            while True:
                live = await watches.live(self._names)
                wake = await watches.next_wake(self._names)  # asked last: what has ended since is in it
                if wake is not None or not live:
                    return wake
                if clock.monotonic() >= until_s:
                    self._tell("has waited long enough for", live, "wait-limit", began_ms)
                    return None
                if not is_told:
                    self._tell("waits for", live, WAITS, began_ms)
                    is_told = True
                await clock.sleep(POLL_S)
        return None

    def _tell(self, what: str, live: tuple[str, ...], code: str, began_ms: int) -> None:
        named = ", ".join(live[:_NAMED])
        stands = replace(self.stands(), since=format_stamp(began_ms))
        details = {"watchIds": list(live[:_NAMED]), GOES_ON: stands.as_json()}
        message = f"Codon {self.job.codon_id} {what} its watches: {named}"
        self.context.stream.emit(Info(message=message, code=code, details=details))


def left_of(limit_s: float, waited_s: float) -> float:
    """How long a codon that is re-entered may still wait."""
    return max(limit_s - waited_s, min(limit_s, LOOKS_AGAIN_S))
