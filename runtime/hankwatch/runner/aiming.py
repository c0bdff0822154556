"""A command for whatever is live in an execution: meant for its run, and for the codon that runs now."""

from typing import Final

from hankwatch.core.clock import Clock
from hankwatch.core.errors import RunNotLive, UsageError
from hankwatch.runner.execution import Found
from hankwatch.runner.inbox import Command, command_id
from hankwatch.runner.orders import Order
from hankwatch.runner.state import CodonRecord, fold
from hankwatch.stream.lock import holder, lock_path
from hankwatch.stream.reader import JournalReader

_OF_A_CODON: Final = frozenset({Order.SKIP, Order.FORCE_STOP})


def aimed(found: Found, order: Order, target: str | None, clock: Clock, *, go_on: bool = False) -> Command:
    """The command as its run takes it; blocks for the journal.

    Args:
        found: What was named: the run, or an execution for whichever is live there.
        order: What is asked.
        target: What a rollback goes back to; for nothing else.
        clock: Dates its id.
        go_on: After a rollback, start the next codon at once; for nothing else.

    Raises:
        RunNotLive: no run is live there, or another than the one that was named.
        UsageError: a target is missing or too much.
    """
    if (target is None) == (order is Order.ROLLBACK):
        wants = "names what to go back to" if target is None else "takes nothing behind it"
        raise UsageError(f"{order} {wants}", hint="`hankwatch control RUN rollback TARGET`, the others without TARGET")
    if go_on and order is not Order.ROLLBACK:
        raise UsageError(f"{order} is followed by nothing", hint="a rollback alone can go on by itself")
    run_id = _live_run(found)
    # Meant for what runs now: by the time it is read the next codon may have begun.
    codon = _current_codon(found) if order in _OF_A_CODON else None
    return Command(
        id=command_id(clock),
        run=run_id,
        codon=codon.codon_id if codon is not None else None,
        attempt=codon.attempt if codon is not None else None,
        command=order,
        target=target,
        go_on=go_on,
    )


def _live_run(found: Found) -> str:
    """The id of the run that is live there."""
    live = holder(lock_path(found.execution.layout.journal))
    if live is None or not live.run:
        raise RunNotLive(f"no run is live in {found.execution.name}", hint="`hankwatch runs` shows which are")
    if found.run is not None and found.run != live.run:
        raise RunNotLive(f"run {found.run} has ended", hint=f"run {live.run} is live in {found.execution.name}")
    return live.run


def _current_codon(found: Found) -> CodonRecord | None:
    run = fold(JournalReader(found.execution.layout.journal).read(types={"state.transition"})).current
    return run.current if run is not None else None
