"""``control``: steer a live run from another terminal (spec cli)."""

from pathlib import Path

import anyio

from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import OrderRefused, UsageError
from hankwatch.events.envelope import Event
from hankwatch.options import base_dir
from hankwatch.runner.execution import Found, find_run
from hankwatch.runner.inbox import Command, ask, command_id
from hankwatch.runner.orders import Order
from hankwatch.runner.state import CodonRecord, fold
from hankwatch.stream.lock import holder, lock_path
from hankwatch.stream.reader import JournalReader

ANSWER_S = 10.0
"""How long the run has to answer."""
ROLLBACK_S = 120.0
"""How long it has for a rollback, which moves files."""
_OF_A_CODON = {Order.SKIP, Order.FORCE_STOP}


def control(target: str, name: str, aim: str | None, *, config: Path | None, as_json: bool) -> int:
    """Ask a live run for something and print its answer; 0 when it was done, 1 when it was refused."""
    if name not in set(Order):
        raise UsageError(f"{name!r} is nothing a run can be asked for", hint=f"one of {', '.join(Order)}")
    order = Order(name)
    if (aim is None) == (order is Order.ROLLBACK):
        wants = "names what to go back to" if aim is None else "takes nothing behind it"
        raise UsageError(f"{order} {wants}", hint="`hankwatch control RUN rollback TARGET`, the others without TARGET")
    settings, environ = cli_settings(config)
    found = find_run(target, base_dir(settings, environ))
    run_id, clock = _live_run(found), SystemClock()
    # Meant for what runs now: by the time it is read the next codon may have begun.
    codon = _current_codon(found) if order in _OF_A_CODON else None
    command = Command(
        id=command_id(clock),
        run=run_id,
        codon=codon.codon_id if codon is not None else None,
        attempt=codon.attempt if codon is not None else None,
        command=order,
        target=aim,
    )
    layout = found.execution.layout

    async def wait() -> Event:
        within_s = ROLLBACK_S if order is Order.ROLLBACK else ANSWER_S
        return await ask(layout, command, within_s=within_s, clock=clock)

    answer = anyio.run(wait)
    if as_json:
        output.print_json(answer.envelope())
    elif answer.type == "error":
        raise OrderRefused(str(answer.data.get("message")))
    else:
        output.say(str(answer.data.get("message")))
    return 1 if answer.type == "error" else 0


def _live_run(found: Found) -> str:
    """The id of the run that is live there."""
    live = holder(lock_path(found.execution.layout.journal))
    if live is None or not live.run:
        raise UsageError(f"no run is live in {found.execution.name}", hint="`hankwatch runs` shows which are")
    if found.run is not None and found.run != live.run:
        raise UsageError(f"run {found.run} has ended", hint=f"run {live.run} is live in {found.execution.name}")
    return live.run


def _current_codon(found: Found) -> CodonRecord | None:
    run = fold(JournalReader(found.execution.layout.journal).read(types={"state.transition"})).current
    return run.current if run is not None else None
