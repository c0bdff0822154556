"""What tokens of a codon's agent cost by the registry, where its program does not say (reference 3.4)."""

from hankwatch.events.run import TokenUsage
from hankwatch.hank.prices import price_of

_MILLION = 1_000_000


def estimate_usd(usage: TokenUsage, model: str | None) -> float | None:
    """The cost of one increment; of ``model`` when it names none that has a price. None when nobody knows one."""
    names = (name for name in (usage.model_id, model) if name)
    price = next((found for name in names if (found := price_of(name)) is not None), None)
    if price is None:
        return None
    cached_usd = price.input_usd if price.cached_input_usd is None else price.cached_input_usd
    fresh_tokens = usage.input_tokens + usage.cache_creation_tokens
    cost = (
        fresh_tokens * price.input_usd + usage.cache_read_tokens * cached_usd + usage.output_tokens * price.output_usd
    )
    return cost / _MILLION
