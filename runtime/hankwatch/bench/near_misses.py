"""Near misses as ``try --where --json`` prints them (spec cli)."""

from typing import Any

from hankwatch.matching.near_misses import ConditionMisses, NearMisses, StepMisses, TypeMisses

MAX_VALUES = 5
"""Values that are told of each condition, the most frequent first."""


def as_json(misses: NearMisses) -> dict[str, Any]:
    """What the trigger looked at, and for each step what kept events from being it."""
    return {
        "considered": misses.considered,
        "matched": misses.matched,
        "steps": [_step(number, step) for number, step in enumerate(misses.steps, 1)],
        "stepsTakenAtEnd": misses.pending,
        "overTimeLimit": {str(taken): count for taken, count in sorted(misses.late.items())},
        "shortestOverTimeLimitMs": misses.shortest_late_ms,
        "withoutCorrelation": misses.unrelated,
        "neverSeen": misses.unseen,
        "types": dict(misses.types.most_common()),
    }


def by_count(seen: TypeMisses) -> list[ConditionMisses]:
    """The conditions that were not met, the most frequent first."""
    return sorted((one for one in seen.conditions if one.count), key=lambda one: -one.count)


def _step(number: int, step: StepMisses) -> dict[str, Any]:
    return {
        "step": number,
        "wanted": list(step.wanted),
        "asked": step.asked,
        "fitted": step.fitted,
        "otherTypes": dict(step.others.most_common()),
        "byType": [
            {
                "type": seen.type,
                "asked": seen.asked,
                "fitted": seen.fitted,
                "failed": [_condition(one) for one in by_count(seen)],
            }
            for seen in sorted(step.by_type.values(), key=lambda seen: -seen.asked)
        ],
    }


def _condition(misses: ConditionMisses) -> dict[str, Any]:
    condition = misses.condition
    return {
        "path": condition.path,
        "operator": condition.operator,
        "value": condition.value,
        "count": misses.count,
        "alone": misses.alone,
        "found": [{"value": value, "count": count} for value, count in misses.found.most_common(MAX_VALUES)],
        "eventIds": misses.examples,
    }
