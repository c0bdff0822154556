"""What the model registry says: the JSON file that litellm carries, read without importing litellm."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson

_ANSWERING_MODES: Final = frozenset({"chat", "completion", "responses"})
_SCHEMA_FLAGS: Final[Mapping[str, str]] = {
    "anthropic": "supports_native_structured_output",
    "gemini": "supports_response_schema",
    "openai": "supports_response_schema",
}
"""What tells of a provider's own JSON-schema mode. For other providers litellm imitates one, or sends what they may
not know: those are asked in words."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in USD per million tokens."""

    input_usd: float
    output_usd: float
    cached_input_usd: float | None = None
    """Of input that the provider still had; None when it has no such price."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the registry says of one model that answers."""

    provider: str
    context_tokens: int | None
    price: Price | None
    supports_schema: bool


@cache
def read_registry() -> Mapping[str, Entry]:
    """Every model that answers prompts, by its id; some ids have the provider in front, some not."""
    spec = importlib.util.find_spec("litellm")
    assert spec is not None, "litellm is a dependency of this package"
    assert spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0]) / "model_prices_and_context_window_backup.json"
    listed: dict[str, dict[str, Any]] = orjson.loads(file.read_bytes())
    entries = {}
    for key, own in listed.items():
        facts = listed.get(own.get("alias_of", key), own)
        if facts.get("mode") in _ANSWERING_MODES:
            context = facts.get("max_input_tokens")
            provider = facts["litellm_provider"]
            entries[key] = Entry(
                provider,
                context_tokens=context if isinstance(context, int) else None,
                price=_price(facts),
                supports_schema=bool(facts.get(_SCHEMA_FLAGS.get(provider, ""))),
            )
    return entries


def same_provider(provider: str, listed: str) -> bool:
    """The registry splits some providers by route or family (``bedrock_converse``, ``vertex_ai-llama_models``)."""
    return listed == provider or listed.startswith((f"{provider}_", f"{provider}-"))


def _price(facts: Mapping[str, Any]) -> Price | None:
    per_token = [facts.get(f"{kind}_cost_per_token") for kind in ("input", "output")]
    cached = facts.get("cache_read_input_token_cost")
    # The registry writes 0 for what nobody has priced; only a price above it is known.
    if not any(per_token):
        return None
    input_usd, output_usd = (_per_million(cost or 0.0) for cost in per_token)
    return Price(input_usd, output_usd, cached_input_usd=_per_million(cached) if cached else None)


def _per_million(per_token: float) -> float:
    return round(per_token * 1_000_000, 9)
