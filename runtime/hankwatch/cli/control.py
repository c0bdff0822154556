"""``control``: steer a live run from another terminal (spec cli)."""

from pathlib import Path

import anyio

from hankwatch.cli import output
from hankwatch.cli.settings import cli_settings
from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import OrderRefused, UsageError
from hankwatch.events.envelope import Event
from hankwatch.options import base_dir
from hankwatch.runner.aiming import aimed
from hankwatch.runner.execution import find_run
from hankwatch.runner.inbox import ask
from hankwatch.runner.orders import Order

ANSWER_S = 10.0
"""How long the run has to answer."""
ROLLBACK_S = 120.0
"""How long it has for a rollback, which moves files."""


def control(target: str, name: str, aim: str | None, *, config: Path | None, as_json: bool) -> int:
    """Ask a live run for something and print its answer; 0 when it was done, 1 when it was refused."""
    if name not in set(Order):
        raise UsageError(f"{name!r} is nothing a run can be asked for", hint=f"one of {', '.join(Order)}")
    order = Order(name)
    settings, environ = cli_settings(config)
    found = find_run(target, base_dir(settings, environ))
    clock = SystemClock()
    command = aimed(found, order, aim, clock)
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
