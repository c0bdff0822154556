"""The facts of a run as one JSON value, for programs."""

from typing import Any

from hankwatch.events.envelope import format_stamp
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.problems import problems
from hankwatch.pages.words import Cost


def digest(facts: RunFacts) -> dict[str, Any]:
    """Outcome, costs, counts and problems; what texts say is left to the page."""
    return {
        "run": facts.run_id or None,
        "outcome": facts.status,
        "reason": facts.reason or None,
        "startedAt": format_stamp(facts.began_ms) if facts.event_count else None,
        "durationMs": facts.ended_ms - facts.began_ms,
        "events": facts.event_count,
        "types": {share.name: share.count for share in facts.types},
        "agentCost": _cost(facts.agent_cost),
        "sentinelCost": _cost(facts.sentinel_cost),
        "codons": [
            {"codonId": c.codon_id, "attempt": c.attempt, "status": c.status, "cost": _cost(c.cost)}
            for c in facts.codons
        ],
        "sentinels": [
            {
                "sentinelId": s.id,
                "fired": s.fired,
                "failed": s.failed,
                "droppedTriggers": s.dropped_triggers,
                "abandonedTriggers": s.abandoned,
                "cost": _cost(s.cost),
            }
            for s in facts.sentinels
        ],
        "nudges": facts.nudges,
        "interrupts": facts.interrupts,
        "unpricedCalls": facts.unpriced_calls,
        "badLines": facts.bad_lines,
        "problems": [{"severity": p.severity, "title": p.title, "text": p.text or None} for p in problems(facts)],
    }


def _cost(cost: Cost) -> dict[str, Any]:
    """``complete`` false means that ``usd`` is a lower bound."""
    return {"usd": cost.usd, "complete": not cost.unpriced}
