"""The unchangeable line about one check (spec watches 3, "evaluation row")."""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

import orjson
from sqlalchemy import Row

from hankwatch.watches.outbox import instant, millis
from hankwatch.watches.policies import Evidence, policy
from hankwatch.watches.watch import ErrorKind, Observation, Outcome, Watch

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One check of a watch, as it was decided on."""

    watch_id: str
    number: int
    """Increases; not without gaps."""
    generation: int
    observed_at: datetime
    late_s: float
    """How long after it was due it was decided."""
    outcome: Outcome
    reason: str
    digest: str
    """Of the value."""
    text: str
    """The reason in words; empty where the policy keeps no text."""
    evidence: str
    error: ErrorKind | None

    @classmethod
    def of(cls, watch: Watch, seen: Observation, number: int, late_s: float) -> Self:
        """What a check said, without the texts that the policy does not keep."""
        keeps_text = policy(watch.kind).evidence is not Evidence.DIGESTS
        return cls(
            watch.id,
            number,
            watch.generation,
            seen.observed_at,
            late_s,
            seen.outcome,
            seen.reason,
            seen.digest,
            seen.text if keeps_text else "",
            seen.evidence if keeps_text else "",
            seen.error,
        )

    def columns(self) -> dict[str, Any]:
        """Its row."""
        detail = {"text": self.text, "evidence": self.evidence, "error": self.error}
        return {
            "watch_id": self.watch_id,
            "number": self.number,
            "generation": self.generation,
            "observed_ms": millis(self.observed_at),
            "late_ms": int(self.late_s * 1000),
            "outcome": self.outcome.value,
            "reason": self.reason,
            "digest": self.digest,
            "detail": orjson.dumps(detail).decode(),
        }

    @classmethod
    def of_row(cls, row: Row[Any]) -> Self | None:
        """The evaluation of a row; None, said in the log, when it cannot be read."""
        try:
            detail = orjson.loads(row.detail)
            return cls(
                row.watch_id,
                row.number,
                row.generation,
                instant(row.observed_ms),
                row.late_ms / 1000,
                Outcome(row.outcome),
                row.reason,
                row.digest,
                detail["text"],
                detail["evidence"],
                ErrorKind(detail["error"]) if detail["error"] else None,
            )
        except (ValueError, TypeError, KeyError) as error:
            _LOG.warning("a check of watch %s is left out: %s", row.watch_id, error)
            return None
