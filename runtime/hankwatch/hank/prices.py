"""A dollar budget over a model whose price nobody knows: it may never be reached (spec hank 1, reference 2.4)."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hankwatch.hank.budget_rules import in_pools
from hankwatch.hank.fault import Fault
from hankwatch.hank.files import RECORDED
from hankwatch.hank.model import Codon, Hank

if TYPE_CHECKING:
    from hankwatch.llm.registry import Price

_SHORT_NAMES = frozenset({"sonnet", "opus", "haiku", "flash"})
"""Always the newest of their family, which all have a price."""
_EFFORT = re.compile(r"-(?:minimal|low|medium|high|xhigh|max)$")
_FAMILIES = (
    (re.compile(r"claude|sonnet|opus|haiku"), "anthropic"),
    (re.compile(r"gpt|codex|^o\d"), "openai"),
    (re.compile(r"gemini|flash"), "gemini"),
)


def unpriced_models(hank: Hank) -> Iterator[Fault]:
    """Codons under a dollar limit, of their own or from above, whose model has no price in the registry."""
    override = hank.overrides.model if hank.overrides else None
    for pointer, codon, pools in in_pools(hank):
        limits = [codon.budget, *pools]
        if not any(limit is not None and limit.max_dollars is not None for limit in limits) or _is_recorded(codon):
            continue
        model = override or codon.model
        if not _priced(model):
            at = "/overrides/model" if override else f"{pointer}/model"
            message = (
                f"no price of {model!r} is known: unless the agent program states its cost, maxDollars is never met"
            )
            yield Fault(at, "budget-unpriced", message, "limit maxOutputTokens or maxTimeSeconds as well", "warning")


def _is_recorded(codon: Codon) -> bool:
    """A recording has its costs in it."""
    return isinstance(codon.agent, str) and codon.agent.startswith(RECORDED)


def _priced(model: str) -> bool:
    return is_short_name(model) or price_of(model) is not None


def price_of(model: str) -> "Price | None":
    """What the registry says of a codon's model, with or without its provider; None when it says nothing."""
    from hankwatch.llm.catalog import ModelCatalog  # only budgets in dollars ask for the price list

    return ModelCatalog({}).price(registry_id(model))


def registry_id(model: str) -> str:
    """What the registry calls a codon's model, if it has it: with its provider, without pi and effort."""
    name = _plain(model)
    if "/" in name:
        return name
    provider = next((family for pattern, family in _FAMILIES if pattern.search(name.lower())), "")
    return f"{provider}/{name}"


def is_short_name(model: str) -> bool:
    """Whether this is no id but stands for the newest model of a family."""
    return _plain(model) in _SHORT_NAMES


def _plain(model: str) -> str:
    return _EFFORT.sub("", model.removeprefix("pi/"))
