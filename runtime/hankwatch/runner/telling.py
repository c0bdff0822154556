"""What is said of a codon in `info` and `error` events, beside the events of its own steps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hankwatch.events.run import ErrorEvent, Info
from hankwatch.runner.budget import Exceeded
from hankwatch.runner.verdict import Verdict
from hankwatch.stream.stream import EventStream

STDERR_SHOWN_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Telling:
    """Speaks of one codon."""

    stream: EventStream
    codon_id: str
    base_codon_id: str
    ends_the_run: bool
    """A failure before the agent ran ends the run."""

    def info(self, message: str, *, code: str | None = None, details: dict[str, Any] | None = None) -> None:
        """Something worth knowing."""
        self.stream.emit(Info(message=message, code=code, details=details))

    def error(self, message: str, code: str, *, fatal: bool = False, context: dict[str, Any] | None = None) -> None:
        """Something that went wrong; ``fatal``: the agent never ran, so the run ends where that ends it."""
        fatal = fatal and self.ends_the_run
        self.stream.emit(
            ErrorEvent(
                message=message,
                codon=self.codon_id,
                base_codon_id=self.base_codon_id,
                fatal=fatal,
                severity="fatal" if fatal else "codon",
                code=code,
                context=context,
            )
        )

    def budget_exceeded(self, exceeded: Exceeded) -> None:
        """A limit was reached."""
        details = exceeded.what.model_dump()
        self.info(f"Codon {self.codon_id}: {exceeded.message}", code="budget-exceeded", details=details)

    def nudges_lost(self, count: int) -> None:
        """The watchdog spoke, and nobody was there to hear it."""
        said = f"Codon {self.codon_id}: the turn ended before {count} of the watchdog's nudges reached the agent"
        self.info(said, code="nudge-lost", details={"count": count})

    def nudge_turn(self, session_id: str, turn: int) -> None:
        """A turn was ended for a nudge, and the session goes on with it."""
        said = f"Codon {self.codon_id}: its turn was ended, session {session_id} goes on with the watchdog's nudge"
        self.info(said, code="nudge-turn", details={"turn": turn})

    def left_out(self, counts: Mapping[str, int], log: str) -> None:
        """How much of an agent's output became no event; nothing when all of it did."""
        left_out = {name: count for name, count in counts.items() if count}
        if left_out:
            listed = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in left_out.items())
            message = f"Of the agent's output this became no event of its own: {listed}; see {log}"
            self.info(message, code="left-out", details=left_out)

    def failure(self, verdict: Verdict, stderr: str, said_already: str | None) -> None:
        """Why the agent failed, where it did and has not said so itself: one failure is one error."""
        if verdict.status != "failed":
            return
        reason, stderr = verdict.reason.message if verdict.reason else None, stderr.strip()
        if reason is not None and reason == said_already and not stderr:
            return
        context: dict[str, Any] = {"facts": list(verdict.facts)}
        if stderr:
            context["stderr"] = stderr[-STDERR_SHOWN_CHARS:]
        self.error(f"Codon {self.codon_id} failed: {reason}", "codon-failed", context=context)
