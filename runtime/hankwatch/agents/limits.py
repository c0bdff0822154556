"""What a program can have used at most; a statement of more is not believed (spec events, intake)."""

from hankwatch.agents.signals import ModelUse, Used

MAX_TOKENS = 10**12
"""Of one kind in one attempt: decades of the fastest model, and no run's sum of them leaves 63 bits."""
MAX_COST_USD = 1e9
"""Of one attempt; no run has enough attempts to make their sum infinite."""


def is_possible(used: Used) -> bool:
    """Whether every number of a statement, its parts by model included, is one that a program can have used."""
    return all(map(could_be_used, (ModelUse(used.tokens, used.cost_usd), *used.by_model.values())))


def could_be_used(use: ModelUse) -> bool:
    """Whether nothing of it is negative, not finite or beyond the limits."""
    tokens = use.tokens
    counts = (tokens.input, tokens.output, tokens.cache_creation, tokens.cache_read)
    # Comparisons with NaN are false, so it is refused as well.
    return all(0 <= count <= MAX_TOKENS for count in counts) and 0 <= (use.cost_usd or 0.0) <= MAX_COST_USD
