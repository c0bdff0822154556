"""What can be said of a configured model before it is called; for ``validate``. Imports no provider library."""

from dataclasses import dataclass
from typing import Final

from hankwatch.llm.builtin import BuiltinModels
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import Unavailable
from hankwatch.llm.registry import Price

_BUILTIN: Final = "builtin/"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model, as this environment sees it."""

    model: str
    provider: str
    """Empty for an id without ``/``."""
    known: bool
    """The registry has it, or it is builtin."""
    key_variables: tuple[str, ...]
    """Variables of which one has to be set; empty when no key is needed."""
    key: str | None
    """The variable that gives the key; None when none is set."""
    price: Price | None
    """None when unknown: its calls will cost "≥"."""
    context_tokens: int | None
    """What a request may hold; None when unknown."""
    supports_schema: bool
    """Structured output is the provider's own; otherwise it is asked for in words."""
    base_url: str | None
    """The address used in place of the provider's own."""
    problem: Unavailable | None
    """Why a call would fail here; None when nothing speaks against it."""

    @property
    def unpriced(self) -> str | None:
        """What to tell about a model that can be called but whose cost will not be known; None otherwise."""
        if self.price is not None or self.problem is not None:
            return None
        return unpriced_warning(self.model)


def unpriced_warning(model: str) -> str:
    """What people are told about a model whose price is not known."""
    return f"the price of {model} is not known: cost totals are lower bounds (≥)"


def unstated_warning(model: str) -> str:
    """What people are told about a model that states no believable usage."""
    return f"a reply of {model} does not say what it used: cost totals are lower bounds (≥)"


def model_facts(model: str, catalog: ModelCatalog) -> ModelFacts:
    """What is known of ``model``; asks neither the network nor the provider."""
    if model.startswith(_BUILTIN):
        found = BuiltinModels().check(model)
        problem = found if isinstance(found, Unavailable) else None
        price = None if problem else Price(0.0, 0.0)
        return ModelFacts(model, "builtin", problem is None, (), None, price, None, False, None, problem)
    info, found = catalog.info(model), catalog.check(model)
    variables, key = catalog.keys(model)
    return ModelFacts(
        model,
        info.provider,
        known=catalog.knows(model),
        key_variables=variables,
        key=key,
        price=catalog.price(model),
        context_tokens=info.context_tokens,
        supports_schema=info.supports_schema,
        base_url=catalog.base_url(model),
        problem=found if isinstance(found, Unavailable) else _no_provider(model, info.provider),
    )


def _no_provider(model: str, provider: str) -> Unavailable | None:
    """An id without ``/`` loads and fails at its first call (spec sentinels 7); better said before."""
    if provider:
        return None
    hint = "write the full id, provider and name, for example anthropic/claude-haiku-4-5"
    return Unavailable(model, "unknown-provider", "No LLM provider available", hint)
