"""Who types a ``watch`` command, and from where: a user of this machine, or an agent in its turn (spec watches 5)."""

import os
from dataclasses import dataclass
from pathlib import Path

from hankwatch.core.errors import Forbidden, UsageError
from hankwatch.options import base_dir
from hankwatch.runner.execution import find_run
from hankwatch.settings import Settings
from hankwatch.watches.authority import Authorizer, Principal, operator
from hankwatch.watches.requests import WatchRequest
from hankwatch.watches.specs import CommandSpec, DocumentSpec, EventSpec
from hankwatch.watches.turn import Turn


@dataclass(frozen=True, slots=True)
class Asker:
    """Speaks for the agent in whose turn the command runs, else for the operator."""

    turn: Turn | None
    home: str | None
    """The execution that was named for new watches."""

    def root(self, settings: Settings) -> Path | None:
        """The execution directory that new watches belong to.

        Raises:
            UsageError: an agent named another one than its own.
        """
        if self.home is not None:
            named = find_run(self.home, base_dir(settings, os.environ)).execution.layout.root.resolve()
            if self.turn is not None and str(named) != self.turn.home:
                raise UsageError("an agent's watches belong to its own execution", hint="leave --home out")
            return named
        return None if self.turn is None or self.turn.home is None else Path(self.turn.home)

    def principal(self, authorizer: Authorizer) -> Principal:
        """In whose name everything is asked."""
        return operator() if self.turn is None else authorizer.agent_of(self.turn)

    def require_operator(self, what: str) -> None:
        """Refuse what is no business of an agent.

        Raises:
            Forbidden: an agent asks.
        """
        if self.turn is not None:
            raise Forbidden(what, "*", "an agent's turn speaks for that agent only")

    @property
    def depth(self) -> int:
        """Of the watches that are armed."""
        return 0 if self.turn is None else self.turn.depth

    def placed(self, request: WatchRequest, root: Path | None) -> WatchRequest:
        """Where no home is named, relative paths are those of whoever types; an agent arms in its session.

        Args:
            request: As it was written.
            root: The execution that the watch will belong to.

        Raises:
            UsageError: it needs an execution, and there is none.
        """
        if self.turn is not None and request.session is None:
            request = request.model_copy(update={"session": self.turn.session})
        if root is None:
            _require_homeless(request)
        if self.home is not None:
            return request
        spec = request.verifier
        if isinstance(spec, DocumentSpec):
            spec = spec.model_copy(update={"path": _from_here(spec.path, root)})
        elif isinstance(spec, CommandSpec):
            cwd = _from_here(spec.cwd or "", root)
            spec = CommandSpec.model_validate({**spec.model_dump(exclude_unset=True), "cwd": cwd})
        return request.model_copy(update={"verifier": spec})


def _require_homeless(request: WatchRequest) -> None:
    hint = "name the execution with --home"
    if isinstance(request.verifier, EventSpec):
        raise UsageError("an event is one of an execution", hint=hint)
    wakes = request.actions is None or not {"wake", "wake_session"}.isdisjoint(request.actions)
    if wakes and (request.session or request.run_session):
        raise UsageError("the session that is to be woken is one of an execution", hint=hint)


def _from_here(path: str, root: Path | None) -> str:
    """A path as the watch has it: relative to its execution when it is inside."""
    there = Path(os.path.normpath(Path.cwd() / path))
    return str(there.relative_to(root)) if root is not None and there.is_relative_to(root) else str(there)
