"""Which models can be called here, and how each is reached (spec sentinels 7)."""

import difflib
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import orjson

from hankwatch.llm.client import ModelInfo, Unavailable, require

_ALIASES: Final = {"google": "gemini"}
_ANSWERING_MODES: Final = frozenset({"chat", "completion", "responses"})
_LOCAL: Final = frozenset(
    {"docker_model_runner", "hosted_vllm", "lemonade", "llamafile", "lm_studio", "ollama", "ollama_chat", "xinference"}
)
"""Servers on the user's own machine; they ask for no key."""
_KEY_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "cohere_chat": ("COHERE_API_KEY",),
    "fireworks_ai": ("FIREWORKS_AI_API_KEY", "FIREWORKS_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "huggingface": ("HUGGINGFACE_API_KEY", "HF_TOKEN"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "qwen_ai_platform": ("QWEN_AI_PLATFORM_API_KEY", "DASHSCOPE_API_KEY"),
    "qwencloud": ("QWENCLOUD_API_KEY", "DASHSCOPE_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_AI_API_KEY"),
}
"""Any one of them is enough; every other provider's is ``<PROVIDER>_API_KEY``."""
_AMBIENT: Final[Mapping[str, tuple[str, ...]]] = {
    "bedrock": (
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AWS_ROLE_ARN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_BEARER_TOKEN_BEDROCK",
    ),
    "vertex_ai": ("VERTEXAI_PROJECT",),
}
"""Clouds whose own library collects the credentials from the process; one of these tells that there are some."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a request for a model goes."""

    model: str
    """The id as the adapter's library spells it, provider included."""
    api_key: str | None = field(default=None, repr=False)
    """None for local servers and clouds that bring their own credentials."""
    api_base: str | None = None
    """None for the provider's own address."""
    priced: bool = True
    """False when the registry's price, if it has one, is not this model's."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """What the registry says of one model."""

    provider: str
    context_tokens: int | None
    priced: bool


class ModelCatalog:
    """Answers ``check`` and ``endpoint`` from the registry's price list and the environment.

    The registry is the JSON file that litellm carries, read on first use without importing litellm.
    A model is callable when its provider is known, the registry has it under that provider, and the
    provider's key is in the environment. A base URL (``HANKWEAVE_SENTINEL_<PROVIDER>_API_BASE``, then
    ``<PROVIDER>_API_BASE``) replaces the first two conditions; a provider that the registry lacks is then
    spoken to in the OpenAI dialect, its key (``<PROVIDER>_API_KEY``) optional.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def check(self, model: str) -> ModelInfo | Unavailable:
        """What is known of ``model``, or why it cannot be called.

        An id without ``/`` passes with an empty provider: it is only looked up when it is called.
        """
        prefix, slash, name = model.partition("/")
        if not slash:
            return ModelInfo(model, provider="", priced=False)
        provider = _ALIASES.get(prefix, prefix)
        entry = self._entry(provider, name)
        if self._base_url(prefix) is None:
            if provider not in self._providers:
                return self._unknown_provider(model, prefix)
            if entry is None:
                return self._unknown_model(model, prefix, provider, name)
        if missing := self._missing_keys(provider):
            alone = "" if provider in _AMBIENT else f" (or HANKWEAVE_SENTINEL_{missing[0]} for sentinels alone)"
            return Unavailable(
                model,
                "missing-key",
                f"no key for {prefix}: {' or '.join(missing)} is not set",
                f"export {missing[0]}{alone}",
            )
        return ModelInfo(
            model,
            provider,
            context_tokens=entry.context_tokens if entry else None,
            priced=entry is not None and entry.priced,
        )

    def endpoint(self, model: str) -> Endpoint:
        """How to reach ``model``.

        Raises:
            ModelCallFailed: The model cannot be called; not retriable.
        """
        info = require(self.check(model))
        prefix, _, name = model.partition("/")
        own_dialect = info.provider in self._providers
        key_names = () if info.provider in _AMBIENT else _key_names(info.provider)
        key = next(self._values(key_names), None)
        return Endpoint(
            f"{info.provider}/{name}" if own_dialect else f"openai/{name}",
            api_key=key if own_dialect else key or "none",
            api_base=self._base_url(prefix),
            priced=own_dialect,
        )

    def _values(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            for spelling in (f"HANKWEAVE_SENTINEL_{name}", name):
                if value := self._env.get(spelling):
                    yield value

    def _base_url(self, prefix: str) -> str | None:
        spellings = dict.fromkeys((_ALIASES.get(prefix, prefix), prefix))
        return next(self._values(f"{_variable(provider)}_API_BASE" for provider in spellings), None)

    def _missing_keys(self, provider: str) -> tuple[str, ...]:
        """The names of which one has to be set, when none is."""
        if provider in _LOCAL or provider not in self._providers:
            return ()
        if ambient := _AMBIENT.get(provider):
            return () if any(map(self._env.get, ambient)) else ambient
        names = _key_names(provider)
        return () if any(self._values(names)) else names

    def _entry(self, provider: str, name: str) -> _Entry | None:
        for key in (f"{provider}/{name}", name):
            entry = self._entries.get(key)
            if entry is not None and _same_provider(provider, entry.provider):
                return entry
        return None

    def _unknown_provider(self, model: str, prefix: str) -> Unavailable:
        close = difflib.get_close_matches(prefix, self._providers, n=1, cutoff=0.75)
        meant = f"did you mean {close[0]!r}? Otherwise " if close else ""
        return Unavailable(
            model,
            "unknown-provider",
            f"unknown model provider {prefix!r}",
            f"{meant}set {_variable(prefix)}_API_BASE to an OpenAI-compatible address",
        )

    def _unknown_model(self, model: str, prefix: str, provider: str, name: str) -> Unavailable:
        known = [key.removeprefix(f"{provider}/") for key, e in self._entries.items() if e.provider == provider]
        close = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {f'{prefix}/{close[0]}'!r}? Otherwise " if close else ""
        return Unavailable(
            model,
            "unknown-model",
            f"the model registry has no {name!r} of {prefix}",
            f"{meant}set {_variable(provider)}_API_BASE to call it unchecked",
        )

    @cached_property
    def _entries(self) -> Mapping[str, _Entry]:
        return _read_registry()

    @cached_property
    def _providers(self) -> frozenset[str]:
        return frozenset(entry.provider for entry in self._entries.values()) | _LOCAL | _KEY_NAMES.keys()


def _variable(provider: str) -> str:
    return provider.upper().replace("-", "_")


def _key_names(provider: str) -> tuple[str, ...]:
    return _KEY_NAMES.get(provider) or (f"{_variable(provider)}_API_KEY",)


def _same_provider(provider: str, listed: str) -> bool:
    """The registry splits some providers by route or family (``bedrock_converse``, ``vertex_ai-llama_models``)."""
    return listed == provider or listed.startswith((f"{provider}_", f"{provider}-"))


def _read_registry() -> dict[str, _Entry]:
    spec = importlib.util.find_spec("litellm")
    assert spec is not None, "litellm is a dependency of this package"
    assert spec.submodule_search_locations
    file = Path(spec.submodule_search_locations[0]) / "model_prices_and_context_window_backup.json"
    listed: dict[str, dict[str, Any]] = orjson.loads(file.read_bytes())
    entries = {}
    for key, facts in listed.items():
        resolved = listed.get(facts.get("alias_of", key), facts)
        if resolved.get("mode") in _ANSWERING_MODES:
            context = resolved.get("max_input_tokens")
            entries[key] = _Entry(
                resolved["litellm_provider"],
                context_tokens=context if isinstance(context, int) else None,
                # The registry writes 0 for what nobody has priced; only a price above it is known.
                priced=bool(resolved.get("input_cost_per_token") or resolved.get("output_cost_per_token")),
            )
    return entries
