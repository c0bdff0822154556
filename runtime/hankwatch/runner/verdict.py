"""What an attempt of a codon comes to: the agent's outcome and any stop, read together (reference 3.3)."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import TypeAdapter

from hankwatch.agents.outcome import Outcome
from hankwatch.events.shapes import BudgetExceeded, ExitError, ExitKilled, ExitStatus, ExitSuccess, FailureReason
from hankwatch.processes.child import Exit
from hankwatch.runner.budget import Exceeded
from hankwatch.runner.control import StopReason

FinalStatus = Literal["completed", "failed", "skipped"]
STOPPED = "stopped by request"
"""Why a codon failed that an operator or a signal ended."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of one attempt."""

    status: FinalStatus
    exit_status: ExitSuccess | ExitError | ExitKilled
    reason: FailureReason | None = None
    """Set exactly when ``status`` is failed."""
    facts: tuple[str, ...] = ()
    """Everything that spoke for or against success."""
    context_exceeded: bool = False
    """The agent's context was full."""
    budget_exceeded: BudgetExceeded | None = None
    """The limit that ended it."""

    def as_json(self) -> dict[str, Any]:
        """As transitions carry it, for whoever resumes."""
        data: dict[str, Any] = {
            "status": self.status,
            "exitStatus": self.exit_status.model_dump(),
            "facts": list(self.facts),
            "contextExceeded": self.context_exceeded,
        }
        if self.reason is not None:
            data["failureReason"] = self.reason.model_dump()
        if self.budget_exceeded is not None:
            data["budgetExceeded"] = self.budget_exceeded.model_dump()
        return data


_EXIT_STATUS: TypeAdapter[ExitSuccess | ExitError | ExitKilled] = TypeAdapter(ExitStatus)


def from_json(data: Mapping[str, Any]) -> Verdict:
    """What ``Verdict.as_json`` told.

    Raises:
        KeyError: it tells none.
        ValueError: it is of another runtime.
    """
    reason, exceeded = data.get("failureReason"), data.get("budgetExceeded")
    return Verdict(
        data["status"],
        _EXIT_STATUS.validate_python(data["exitStatus"]),
        FailureReason.model_validate(reason) if reason is not None else None,
        tuple(data.get("facts", ())),
        bool(data.get("contextExceeded")),
        BudgetExceeded.model_validate(exceeded) if exceeded is not None else None,
    )


def decide(
    outcome: Outcome,
    exit_: Exit,
    stop: StopReason | None,
    *,
    idle_s: float | None = None,
    ends_when_full: bool = False,
    exceeded: Exceeded | None = None,
    trigger: str = "",
) -> Verdict:
    """The verdict of a turn that ran; the first row that holds: a stop, then the agent's own outcome.

    ``ends_when_full``: a full context is the end this codon is meant to have. ``exceeded`` comes with the stop
    ``BUDGET``, ``trigger`` with the stop ``WATCHDOG``.
    """
    ended = _exit_status(exit_)
    if exceeded is not None and stop is StopReason.BUDGET:
        return _of_budget(exceeded, ended, outcome.facts)
    if stop is not None:
        return _of_stop(stop, ended, outcome.facts, idle_s, trigger)
    full = outcome.context_exceeded
    if outcome.status == "success" or (full and ends_when_full):
        return Verdict("completed", ExitSuccess(), None, outcome.facts, full)
    return Verdict("failed", ended, outcome.reason, outcome.facts, full)


def not_begun(stop: StopReason) -> Verdict:
    """The verdict of an attempt that was stopped before its agent was started."""
    return _of_stop(stop, ExitError(code=-1), ("stopped before the agent was started",), None)


def after_waiting(stop: StopReason | None) -> Verdict:
    """The verdict of an attempt that only went on waiting: its agent had ended its turn in a process that was killed."""
    facts = ("the agent had ended its turn before the run was killed",)
    return decide(Outcome("success", None, facts), Exit(code=0), stop)


def nothing_left(exceeded: Exceeded) -> Verdict:
    """The verdict of an attempt whose budget was used up before it began: nothing was done, so nothing completed."""
    verdict = _of_budget(exceeded, ExitError(code=-1), ("nothing was left of the budget",))
    return verdict if verdict.status == "failed" else replace(verdict, status="skipped", exit_status=ExitError(code=-1))


def _of_budget(exceeded: Exceeded, ended: ExitError | ExitKilled, facts: tuple[str, ...]) -> Verdict:
    if exceeded.on_exceeded == "complete":
        return Verdict("completed", ExitSuccess(), None, facts, budget_exceeded=exceeded.what)
    reason = FailureReason(type="unknown", retriable=False, message=exceeded.message)
    return Verdict("failed", ended, reason, facts, budget_exceeded=exceeded.what)


def not_run(reason: FailureReason) -> Verdict:
    """The verdict of an attempt whose agent never ran."""
    return Verdict("failed", ExitError(code=-1), reason)


def _of_stop(
    stop: StopReason, ended: ExitError | ExitKilled, facts: tuple[str, ...], idle_s: float | None, trigger: str = ""
) -> Verdict:
    match stop:
        case StopReason.SKIP:
            return Verdict("skipped", ended, None, facts)
        case StopReason.FORCE_STOP:
            reason = FailureReason(type="unknown", retriable=True, message=STOPPED)
        case StopReason.IDLE:
            reason = FailureReason(type="timeout", retriable=True, message=f"no output for {idle_s:g} s")
        case StopReason.BUDGET:
            reason = FailureReason(type="unknown", retriable=False, message="budget reached")
        case StopReason.WATCHDOG:
            said = f"interrupted by the loop watchdog: {trigger}"
            reason = FailureReason(type="unknown", retriable=True, message=said)
    return Verdict("failed", ended, reason, facts)


def _exit_status(exit_: Exit) -> ExitError | ExitKilled:
    if exit_.signal is not None:
        return ExitKilled(signal=_signal_name(exit_.signal))
    # A failure must not look like success, whatever the process said (contract 0.7.3).
    return ExitError(code=exit_.code or -1)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
