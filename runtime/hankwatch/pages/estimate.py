"""The estimated cost of an attempt in words."""

from hankwatch.bench.estimate import BUILTIN, Estimate
from hankwatch.pages.words import plural

_SMALLEST_USD = 0.0001


def cost(estimated: Estimate) -> str:
    """``about $0.0300``, ``at no cost``, ``cost unknown``."""
    if estimated.cost_usd is None:
        return "cost unknown"
    if not estimated.cost_usd:
        return "at no cost"
    return f"about {_money(estimated.cost_usd)}"


def cost_basis(estimated: Estimate, model: str, fires: int) -> str:
    """What that rests on; empty when there is nothing to say."""
    if model.startswith(BUILTIN) or not fires:
        return ""
    if estimated.cost_usd is None:
        if estimated.failed:
            return f"cost unknown: {_none_of(estimated.failed)} be rendered; --render shows why"
        return f"cost unknown: the registry has no price of {model}"
    if estimated.most_usd is None:
        return ""
    sampled = "" if estimated.rendered == fires else f", {estimated.rendered} of them rendered"
    failed = f"; {plural(estimated.failed, 'prompt')} failed to render, --render shows why" if estimated.failed else ""
    return (
        f"{model}: {estimated.input_tokens:,} tokens in {plural(fires, 'prompt')}{sampled}, counted rather high; replies of "
        f"{estimated.reply_tokens:,} tokens assumed, {_money(estimated.most_usd)} with {estimated.longest_reply_tokens:,} each{failed}"
    )


def _none_of(tried: int) -> str:
    return "the prompt could not" if tried == 1 else f"none of the {tried} prompts tried could"


def _money(cost_usd: float) -> str:
    if cost_usd < _SMALLEST_USD:
        return f"less than ${_SMALLEST_USD}"
    return f"${cost_usd:,.2f}" if cost_usd >= 1 else f"${cost_usd:.4f}"
