"""What sessions and runs of this machine are doing, as checks (spec watches 4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import anyio.to_thread

from hankwatch.watches.checks import Check, CheckContext, Cost, Finding, Trust
from hankwatch.watches.watch import ErrorKind, Outcome

SESSION_STATES: Final = ("idle", "working", "waiting", "ended")
"""Idle: between its turns, its run goes on. Waiting: for its watches. Ended: no run is live there."""
RUN_STATUSES: Final = ("running", "waiting", "completed", "failed", "stopped", "crashed")
FINAL_STATUSES: Final = frozenset({"completed", "failed", "stopped", "crashed"})
"""A run that goes on from one of these is another run."""


@dataclass(frozen=True, slots=True)
class RunFound:
    """What a run is doing."""

    run_id: str
    status: str
    """Of ``RUN_STATUSES``."""
    reason: str = ""
    """Why it ended, in its own words."""


class Runs(Protocol):
    """Where runs are looked up; blocks for files."""

    def find(self, run: str, tenant: str) -> RunFound | None:
        """A run by its id, or the latest of an execution; None when the tenant has no such run."""
        ...


class SessionStates(Protocol):
    """Where sessions are looked up; blocks for files."""

    def state(self, session: str, home: str | None, tenant: str) -> str | None:
        """Of ``SESSION_STATES``; None when the tenant has no such session there."""
        ...


def run_status(runs: Runs) -> Check:
    """``workflow.run.status@v1``: one run of the same tenant reaches one of some statuses."""

    async def look(context: CheckContext, args: Mapping[str, Any]) -> Finding:
        found = await anyio.to_thread.run_sync(runs.find, args["run"], context.invoker.tenant, abandon_on_cancel=True)
        if found is None:
            return Finding(Outcome.UNAVAILABLE, "no-run", f"there is no run {args['run']}", error=ErrorKind.NOT_FOUND)
        said = f"run {found.run_id} is {found.status}"
        value = {"run": found.run_id, "status": found.status}
        if found.status in args["statuses"]:
            return Finding(Outcome.SATISFIED, found.status, said, value, found.reason)
        if found.status in FINAL_STATUSES:
            return Finding(Outcome.TERMINAL_UNSATISFIED, found.status, said, value, found.reason)
        return Finding(Outcome.PENDING, found.status, said, value)

    return Check(
        "workflow.run.status",
        look,
        description="A run reaches one of the requested statuses; ended with another one, it never will.",
        parameters=_parameters("statuses", RUN_STATUSES, run={"type": "string", "minLength": 1}),
        behaviour="workflow.run.status/1",
        cost=Cost.CHEAP,
        trust=Trust.SAFE,
        read_only=True,
    )


def session_state(sessions: SessionStates) -> Check:
    """``agent.session.state@v1``: the session that owns the watch reaches one of some states."""

    async def look(context: CheckContext, args: Mapping[str, Any]) -> Finding:
        invoker = context.invoker
        if invoker.session is None:
            return Finding(Outcome.UNAVAILABLE, "no-session", "the watch has no session", error=ErrorKind.BAD_OUTPUT)
        state = await anyio.to_thread.run_sync(
            sessions.state, invoker.session, invoker.home, invoker.tenant, abandon_on_cancel=True
        )
        if state is None:
            text = f"there is no session {invoker.session}"
            return Finding(Outcome.UNAVAILABLE, "no-session", text, error=ErrorKind.NOT_FOUND)
        is_reached = state in args["states"]
        text = f"session {invoker.session} is {state}"
        return Finding(Outcome.SATISFIED if is_reached else Outcome.PENDING, state, text, {"state": state})

    return Check(
        "agent.session.state",
        look,
        description="The session that the watch belongs to reaches one of the requested states.",
        parameters=_parameters("states", SESSION_STATES),
        behaviour="agent.session.state/1",
        cost=Cost.CHEAP,
        trust=Trust.SAFE,
        read_only=True,
    )


def _parameters(name: str, words: tuple[str, ...], **others: dict[str, Any]) -> dict[str, Any]:
    several = {"type": "array", "items": {"enum": list(words)}, "minItems": 1, "uniqueItems": True}
    properties = {name: several, **others}
    return {
        "type": "object",
        "properties": properties,
        "required": sorted(properties),
        "additionalProperties": False,
    }
