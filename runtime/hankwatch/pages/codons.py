"""What each codon attempt came to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hankwatch.agents.signals import Tokens
from hankwatch.events.envelope import Event
from hankwatch.events.stamps import parse_stamp
from hankwatch.pages.fires import cost_of, count_of
from hankwatch.pages.words import Cost
from hankwatch.runner.state import CodonRecord


@dataclass(frozen=True, slots=True)
class CodonFacts:
    """One attempt of one codon."""

    anchor: int
    codon_id: str
    base_id: str
    """The id as authored; the same outside of loops."""
    name: str
    attempt: int
    status: str
    began_ms: int
    ended_ms: int | None
    cost: Cost
    """Of its agent."""
    tokens: Tokens
    agent: str = ""
    model: str = ""
    session_id: str = ""
    extensions: int = 0
    reason: str = ""
    """Why it failed, or which limit it reached."""
    ignored: bool = False
    """The run went on although it failed."""
    checkpoint: str = ""
    """Of the workspace as it left it."""
    earlier: bool = False
    """Done by an earlier run that this one goes on from."""
    loop_id: str = ""
    """Empty outside of loops."""
    iteration: int = 0

    @property
    def failed(self) -> bool:
        """It ended otherwise than asked for."""
        return self.status == "failed"


def of_record(record: CodonRecord, anchor: int, model: str, *, earlier: bool, ignored: bool) -> CodonFacts:
    """The attempt as the run's state has it."""
    return CodonFacts(
        anchor,
        record.codon_id,
        record.base_codon_id or record.codon_id,
        str(record.name or ""),
        record.attempt,
        record.status,
        parse_stamp(record.started_at) or 0,
        parse_stamp(record.ended_at) if record.ended_at else None,
        Cost(record.known_cost_usd, int(record.cost_usd is None)),
        record.tokens,
        str(record.agent or ""),
        model,
        str(record.session_id or ""),
        record.extensions,
        _reason(record.verdict) if record.final and isinstance(record.verdict, Mapping) else "",
        ignored,
        record.checkpoint_sha,
        earlier,
        str((record.loop or {}).get("loopId") or ""),
        count_of((record.loop or {}).get("iteration")),
    )


def _reason(data: Mapping[str, Any]) -> str:
    reason, exceeded = data.get("failureReason"), data.get("budgetExceeded")
    parts = []
    if isinstance(reason, Mapping):
        kind, message = str(reason.get("type") or ""), str(reason.get("message") or "")
        parts.append(": ".join(part for part in (kind, message) if part and part != "unknown") or "unknown")
    if isinstance(exceeded, Mapping):
        currency, used, limit = (exceeded.get(key) for key in ("currency", "used", "limit"))
        parts.append(f"{currency} limit of {limit} reached ({used} used)")
    return "; ".join(parts)


@dataclass(slots=True)
class ToldCodons:
    """Codons of a recording without run states, from what its events say of them."""

    limit: int
    _open: CodonFacts | None = None
    _done: list[CodonFacts] = field(default_factory=list)

    def take(self, event: Event) -> None:
        """A ``codon.started`` or ``codon.completed``."""
        data = event.data
        codon_id = str(data.get("codonId"))
        if self._open is None or self._open.codon_id != codon_id:
            self._close()
            began_ms = parse_stamp(data.get("startTime")) or event.at_ms - count_of(data.get("duration"))
            base, name = str(data.get("baseCodonId") or codon_id), str(data.get("codonName") or "")
            self._open = CodonFacts(
                len(self._done) + 1, codon_id, base, name, 1, "running", began_ms, None, Cost(0.0, 1), Tokens()
            )
        if event.type == "codon.completed":
            self._open = replace(
                self._open,
                status="completed" if data.get("success") else "failed",
                ended_ms=event.at_ms,
                cost=cost_of(data.get("cost")),
                reason=_reason(data),
            )
            self._close()

    def facts(self) -> Iterable[CodonFacts]:
        """All so far, oldest first."""
        return [*self._done, *([self._open] if self._open else [])]

    def _close(self) -> None:
        if self._open is not None and len(self._done) < self.limit:
            self._done.append(self._open)
        self._open = None
