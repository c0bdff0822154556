"""The live view of a run on a terminal: drawn from the screen's thread, steered by keys."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from rich.console import Console
from rich.control import Control
from rich.screen import Screen as WholeScreen

from hankwatch.app import LiveRun
from hankwatch.cli.logs import handed_to
from hankwatch.cli.screen import Screen
from hankwatch.cli.stops import Stops
from hankwatch.cli.tty import Tty
from hankwatch.cli.view import draw, outcome_lines
from hankwatch.cli.view_model import Frame, View
from hankwatch.core.errors import OrderRefused
from hankwatch.core.tasks import task_group
from hankwatch.runner.orders import Order
from hankwatch.runner.rollback_plan import LAST_SUCCESS

FRAME_S = 0.125
"""Between two drawings at least."""
_IDLE_FRAMES = 8
"""After as many without news it is drawn all the same: times go on, and what others printed goes away."""
_HELD_LINES = 1_000
"""Log lines that are shown when the view is gone."""
_ORDERS = {
    "n": Order.NEXT,
    "s": Order.SKIP,
    "f": Order.FORCE_STOP,
    "l": Order.CHECKPOINTS,
    "r": Order.ROLLBACK,
}
"""Keys as hank authors know them; ``q`` is a stop signal."""


class Live:
    """Shows one run for as long as it is ``shown``; all drawing waits in the screen's thread, none in the run."""

    def __init__(self, live: LiveRun, view: View, *, console: Console, screen: Screen, stops: Stops, tty: Tty) -> None:
        self._live = live
        self._view = view
        self._console = console
        self._screen = screen
        self._stops = stops
        self._tty = tty
        self._drawing = False
        self._log: deque[str] = deque(maxlen=_HELD_LINES)

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """The view is up while the body runs; behind it the terminal is as before, with the outcome of each codon."""
        say_before, self._stops.tell = self._stops.tell, self._view.say
        forget = self._live.stream.subscribe(self._view.take, name="live view")
        self._screen.show(self._enter, even_when_full=True)
        self._tty.take_keys()
        try:
            with handed_to(self._take_log):
                async with task_group() as tasks:
                    tasks.start_soon(self._paint)
                    tasks.start_soon(self._steer)
                    yield
                    tasks.cancel_scope.cancel()
        finally:
            forget()
            self._stops.tell = say_before
            self._tty.give_back_keys()
            self._screen.show(partial(self._leave, self._frame()), even_when_full=True)

    def _frame(self) -> Frame:
        return self._view.frame(self._live.stream.now_ms())

    def _take_log(self, line: str) -> None:
        self._log.append(line)
        self._view.say(line)

    async def _paint(self) -> None:
        seen, quiet_frames = None, 0
        while True:
            now = self._view.version, self._console.size
            quiet_frames = quiet_frames + 1 if now == seen else 0
            # A terminal that does not keep up gets fewer drawings, never late ones.
            if not self._drawing and quiet_frames % _IDLE_FRAMES == 0:
                seen, self._drawing = now, True
                self._screen.show(partial(self._draw, self._frame()), even_when_full=True)
            await self._live.clock.sleep(FRAME_S)

    async def _steer(self) -> None:
        async for key in self._tty.keys():
            if key == "q":
                self._stops.ask()
            elif (order := _ORDERS.get(key)) is not None:
                try:
                    target = LAST_SUCCESS if order is Order.ROLLBACK else None
                    self._view.say(await self._live.orders.carry_out(order, target))
                except OrderRefused as error:
                    self._view.say(f"{key}: {error}")

    def _enter(self) -> None:
        self._console.set_alt_screen(True)
        self._console.show_cursor(False)

    def _draw(self, frame: Frame) -> None:
        try:
            width, height = self._console.size
            with self._console:  # one write
                self._console.control(Control.home())
                whole = WholeScreen(draw(frame, width, height, has_keys=self._tty.has_keys))
                self._console.print(whole, end="", soft_wrap=False)
        finally:
            self._drawing = False

    def _leave(self, frame: Frame) -> None:
        self._console.set_alt_screen(False)
        self._console.show_cursor(True)
        for line in outcome_lines(frame):
            self._console.print(line)
        for logged in self._log:
            self._console.print(logged)
