"""How the loop watchdog reaches the agent of an attempt (spec watchdog 0 and 6.4): a word while it works, or its end."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal
from uuid import uuid4

import anyio

from hankwatch.agents.program import AgentProgram, Command, Interrupts, Resumes, Steers, TurnRequest
from hankwatch.core.errors import UsageError
from hankwatch.runner.control import CodonStop, StopReason

MAX_UNSENT = 4
"""Words that may wait for an agent to read its input; with more it is taken to read no more."""


@dataclass(frozen=True, slots=True)
class Word:
    """What is written to an agent's input at one time."""

    lines: tuple[bytes, ...]
    interrupts: bool
    """It stops the step under way, which the program closes with a result of its own."""


@dataclass(slots=True)
class Reins:
    """What may be done to one running turn from outside; nothing here waits but ``next_word``."""

    cut_asked: anyio.Event = field(default_factory=anyio.Event)
    """Set to end the turn, so that its session can be resumed."""
    was_cut: bool = False
    """It was ended for that, before the agent had stated a result."""
    over: bool = False
    """The agent has stated its result: nothing reaches it any more."""
    _lost: int = 0
    _is_writing: bool = False
    _waiting: deque[Word] = field(default_factory=deque)
    _more: anyio.Event = field(default_factory=anyio.Event)
    _owed: int = 0
    """Steps that the agent was asked to stop and has not closed yet."""

    def say(self, word: Word) -> bool:
        """Have something written to the agent's input; False when it does not read."""
        if self.over or len(self._waiting) >= MAX_UNSENT:
            return False
        self._waiting.append(word)
        self._more.set()
        return True

    async def next_word(self) -> Word:
        """Wait for the next one to write; ``written`` follows, or the turn ends before it is taken."""
        while not self._waiting:
            self._more = anyio.Event()
            await self._more.wait()
        word = self._waiting.popleft()
        self._owed += word.interrupts
        self._is_writing = True
        return word

    def written(self, *, taken: bool) -> None:
        """The last word was written, or the agent reads no more."""
        self._is_writing = False
        self._lost += not taken

    @property
    def lost(self) -> int:
        """Words that the agent did not take, or that were not written before it stated a result."""
        return self._lost + len(self._waiting) + self._is_writing

    @property
    def is_stopping(self) -> bool:
        """The agent was asked to end its turn or its step, and has not yet."""
        return self.cut_asked.is_set() or bool(self._owed) or any(word.interrupts for word in self._waiting)

    def ends_with_result(self, *, success: bool) -> bool:
        """Note a result of the agent: whether it ends the turn, and not only a step that was interrupted.

        A ``success`` is never the end of an interrupted step: the agent was through before it was told.
        """
        self._lost += len(self._waiting)
        self._waiting.clear()
        self.over = success or not self._owed
        self._owed = max(0, self._owed - 1)
        return self.over


@dataclass(slots=True)
class AgentSteering:
    """The watchdog's ``Steering`` over all turns of one attempt; used on the loop's thread.

    A program that can be steered gets the nudge on its input. Any other whose session can be resumed has its
    turn ended, and the nudge is the next turn's prompt.
    """

    program: AgentProgram
    next_turn: Callable[[str], TurnRequest]
    """The next turn of its session, with a nudge as its prompt."""
    stop: CodonStop
    session_id: Callable[[], str]
    """The session as known by now; empty until it is."""
    now_s: Callable[[], float]
    """Monotonic seconds."""
    trigger: str = ""
    """What made the watchdog interrupt the agent for good; empty while it did not."""
    _reins: Reins | None = None
    _is_open: bool = False
    _prompt: str | None = None
    _heeds_by_s: float = 0.0

    @property
    def is_stopping(self) -> bool:
        """The agent was told to stop: what comes of it now was under way before, and is no answer to a nudge.

        At most for as long as it has to end by itself; one that goes on then has paid no heed.
        """
        if self.stop.reason is not None:
            return True
        reins = self._reins
        if reins is None or not reins.is_stopping:
            return False
        return reins.cut_asked.is_set() or self.now_s() < self._heeds_by_s

    def take(self, command: Command) -> Reins:
        """The reins of the next turn."""
        self._reins, self._is_open = Reins(), command.stdin_open
        return self._reins

    def nudge(self, kind: Literal["escalation", "break_loop"], text: str) -> bool:
        """See ``hankwatch.watchdog.Steering``."""
        reins, program = self._reins, self.program
        if reins is None or reins.over or reins.cut_asked.is_set() or self.stop.reason is not None:
            return False
        if isinstance(program, Steers) and self._is_open:
            stops = isinstance(program, Interrupts) and kind == "break_loop"
            first = (program.interrupt(uuid4().hex),) if isinstance(program, Interrupts) and stops else ()
            if stops:
                self._heeds_by_s = self.now_s() + self.stop.grace_s
            return reins.say(Word((*first, program.steer(text)), stops))
        if not self._can_resume_with(text):
            return False
        self._prompt = text
        reins.cut_asked.set()
        return True

    def _can_resume_with(self, text: str) -> bool:
        """Whether there is a session to take up, and the program can be given ``text``: asked before a turn is ended."""
        session_id = self.session_id()
        if not isinstance(self.program, Resumes) or not session_id:
            return False
        try:
            self.program.resume(self.next_turn(text), session_id)
        except UsageError:
            return False
        return True

    def interrupt(self, trigger: str) -> None:
        """See ``hankwatch.watchdog.Steering``."""
        self.trigger = self.trigger or trigger
        self.stop.request(StopReason.WATCHDOG)

    def next_prompt(self) -> str | None:
        """The nudge that the next turn begins with; None when no turn was ended for one."""
        if self._reins is None or not self._reins.was_cut:
            return None
        prompt, self._prompt = self._prompt, None
        return prompt

    def take_lost(self) -> int:
        """How many nudges of the turn that has ended did not reach the agent after all; counts each once."""
        reins, prompt = self._reins, self._prompt
        lost = (reins.lost if reins is not None else 0) + (prompt is not None)
        self._reins, self._prompt = None, None
        return lost
