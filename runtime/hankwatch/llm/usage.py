"""Which token counts of a provider are believed; the one place that bounds them.

A count is a whole number from 0 to ``MAX_TOKENS``. A reply that states any other (negative, NaN, infinite, absurd,
no number at all), or none, keeps its answer: its usage and its cost are unknown (null).
"""

import math
import re
from typing import Any, Final

MAX_TOKENS: Final = 100_000_000
"""More than ten times what any model reads in one call."""
MAX_COST_USD: Final = 1_000_000.0
"""Of one call; a larger cost is a fault of the price list or of the reply."""
_COUNT: Final = re.compile(r"(?:.*_)?tokens|.*TokenCount|tokenCount")
_STATED_BESIDE: Final = {
    "candidates": "usageMetadata",
    "promptFeedback": "usageMetadata",
    "choices": "usage",
    "stop_reason": "usage",
}
"""Where each dialect has its counts, by a part that its replies have."""
_COUNTS: Final = (
    *("prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens"),
    *("promptTokenCount", "candidatesTokenCount", "totalTokenCount"),
)
_LARGEST_DEPTH: Final = 8


def believable_cost(cost_usd: object) -> float | None:
    """``cost_usd`` when it is a cost above 0; None otherwise: a price of 0 is how the registry says it knows none."""
    if not isinstance(cost_usd, int | float) or isinstance(cost_usd, bool):
        return None
    return float(cost_usd) if math.isfinite(cost_usd) and 0 < cost_usd <= MAX_COST_USD else None


def believable(count: object) -> bool:
    """Whether ``count`` can be a number of tokens."""
    if isinstance(count, bool) or not isinstance(count, int | float):
        return False
    return 0 <= count <= MAX_TOKENS and count == int(count)


def without_absurd_counts(reply: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """A provider's reply with its unbelievable counts as 0, and whether there was none of them.

    The library would fail on some of them, and on usage that is not there, and the answer would be lost.
    """
    key = next((key for part, key in _STATED_BESIDE.items() if part in reply), None)
    if key is not None and not isinstance(reply.get(key), dict):
        return {**reply, key: dict.fromkeys(_COUNTS, 0)}, False
    absurd: list[object] = []
    cleaned = {key: _cleaned(reply[key], absurd) for key in {*_STATED_BESIDE.values()} & reply.keys()}
    return {**reply, **cleaned}, not absurd


def _cleaned(usage: Any, absurd: list[object], depth: int = _LARGEST_DEPTH) -> Any:
    """``usage`` with believable counts only; what was one of the others is added to ``absurd``."""
    if isinstance(usage, list) and depth:
        return [_cleaned(item, absurd, depth - 1) for item in usage]
    if not isinstance(usage, dict) or not depth:
        return usage
    cleaned = {}
    for key, value in usage.items():
        if not _COUNT.fullmatch(key):
            cleaned[key] = _cleaned(value, absurd, depth - 1)
        elif value is not None:
            if not believable(value):
                absurd.append(value)
            cleaned[key] = value if believable(value) else 0
    return cleaned
