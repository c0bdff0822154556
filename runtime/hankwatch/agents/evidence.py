"""What a turn's signals say about how it ended, folded while they arrive."""

from dataclasses import dataclass

from hankwatch.agents.errors import is_context_exceeded
from hankwatch.agents.outcome import Ending
from hankwatch.agents.signals import (
    ContextExceeded,
    Reported,
    Result,
    Signal,
    Spoke,
    Started,
    ToolFinished,
    ToolUsed,
)


@dataclass(slots=True)
class Evidence:
    """Feed it every signal of one turn in order of arrival, then ask for the ``ending``."""

    result: Result | None = None
    """The last result that counts."""
    problem: str = ""
    """The last problem reported; empty when the agent went on after it."""
    had_session: bool = False
    context_exceeded: bool = False
    """The context was full at some time in this turn, whatever came of it."""
    _acted: bool = False

    def note(self, signal: Signal) -> None:
        """Take one signal into account."""
        match signal:
            case Started():
                self.had_session = True
            case Spoke() | ToolUsed() | ToolFinished():
                self.problem = ""
                self._acted = True
            case Reported():
                self.problem = signal.message
                self.context_exceeded |= is_context_exceeded(signal.message)
            case ContextExceeded():
                self.context_exceeded = True
            case Result():
                if not self._is_echo(signal):
                    self.result = signal
                self._acted = False
            case _:
                pass

    def ending(
        self, *, exit_code: int | None, signal: int | None = None, states_result: bool = True, stderr: str = ""
    ) -> Ending:
        """All of it, with how the process ended; see ``Ending`` for the fields."""
        return Ending(
            result=self.result,
            problem=self.problem,
            had_session=self.had_session,
            context_exceeded=self.context_exceeded,
            states_result=states_result,
            exit_code=exit_code,
            signal=signal,
            stderr=stderr,
        )

    def _is_echo(self, result: Result) -> bool:
        # A known defect of one program: a failure stated after a success, with nothing done in between.
        return (
            result.subtype == "error_during_execution"
            and not self._acted
            and self.result is not None
            and self.result.success
        )
