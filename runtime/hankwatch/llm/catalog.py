"""Which models can be called here, and how each is reached (spec sentinels 7)."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from hankwatch.llm.client import ModelInfo, Unavailable, require
from hankwatch.llm.registry import Entry, Price, read_registry, same_provider
from hankwatch.llm.surroundings import snapshot

_ALIASES: Final = {"google": "gemini"}
_ADDRESSES: Final[Mapping[str, str]] = {
    "anthropic": "https://api.anthropic.com",
    "cerebras": "https://api.cerebras.ai/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "groq": "https://api.groq.com/openai/v1",
    "mistral": "https://api.mistral.ai/v1",
    "openai": "https://api.openai.com/v1",
    "xai": "https://api.x.ai/v1",
}
"""The providers' own, so that nothing else can choose one; the library has the other providers'."""
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
    """None for the address that the library has for the provider."""
    priced: bool = True
    """False when the registry has no price of this model, whatever the library makes of its name."""


class ModelCatalog:
    """Answers ``check`` and ``endpoint`` from the registry's price list and the environment.

    The registry is the JSON file that litellm carries, read on first use without importing litellm.
    A model is callable when its provider is known, the registry has it under that provider, and the
    provider's key is in the environment. A base URL (``HANKWEAVE_SENTINEL_<PROVIDER>_API_BASE``, then
    ``<PROVIDER>_API_BASE``) replaces the first two conditions; a provider that the registry lacks is then
    spoken to in the OpenAI dialect, its key (``<PROVIDER>_API_KEY``) optional.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = snapshot(env)

    def check(self, model: str) -> ModelInfo | Unavailable:
        """What is known of ``model``, or why it cannot be called.

        An id without ``/`` passes with an empty provider: it is only looked up when it is called.
        """
        info = self.info(model)
        if "/" not in model:
            return info
        prefix, _, name = model.partition("/")
        if self.base_url(model) is None:
            if info.provider not in self._providers:
                return self._unknown_provider(model, prefix)
            if not self.knows(model):
                return self._unknown_model(model, prefix, info.provider, name)
        variables, found = self.keys(model)
        if variables and found is None:
            alone = "" if info.provider in _AMBIENT else f" (or HANKWEAVE_SENTINEL_{variables[0]} for sentinels alone)"
            return Unavailable(
                model,
                "missing-key",
                f"no key for {prefix}: {' or '.join(variables)} is not set",
                f"export {variables[0]}{alone}",
            )
        return info

    def info(self, model: str) -> ModelInfo:
        """What the registry says of ``model``, whether or not it can be called here."""
        entry = self._entry(model)
        provider = _provider(model)
        if entry is None:
            return ModelInfo(model, provider, priced=False)
        return ModelInfo(model, provider, entry.context_tokens, entry.price is not None, entry.supports_schema)

    def knows(self, model: str) -> bool:
        """The registry has ``model``."""
        return self._entry(model) is not None

    def price(self, model: str) -> Price | None:
        """What ``model`` costs; None when the registry does not say, or does not mean this model."""
        entry = self._entry(model)
        return entry.price if entry else None

    def keys(self, model: str) -> tuple[tuple[str, ...], str | None]:
        """The variables of which one has to be set (empty: none is needed), and the first that is."""
        provider = _provider(model)
        if provider in _LOCAL or provider not in self._providers:
            return (), None
        if ambient := _AMBIENT.get(provider):
            return ambient, next((name for name in ambient if self._env.get(name)), None)
        names = _key_names(provider)
        return names, next(self._set(names), None)

    def base_url(self, model: str) -> str | None:
        """The address that replaces the provider's own."""
        spellings = dict.fromkeys((_provider(model), model.partition("/")[0]))
        found = next(self._set(f"{_variable(provider)}_API_BASE" for provider in spellings), None)
        return self._env[found] if found else None

    def endpoint(self, model: str) -> Endpoint:
        """How to reach ``model``.

        Raises:
            ModelCallFailed: The model cannot be called; not retriable.
        """
        info = require(self.check(model))
        name = model.partition("/")[2]
        own_dialect = info.provider in self._providers
        variable = next(self._set(() if info.provider in _AMBIENT else _key_names(info.provider)), None)
        key = self._env[variable] if variable else None
        return Endpoint(
            f"{info.provider}/{name}" if own_dialect else f"openai/{name}",
            api_key=key if own_dialect else key or "none",
            api_base=self.base_url(model) or _ADDRESSES.get(info.provider),
            priced=info.priced,
        )

    def _set(self, names: Iterable[str]) -> Iterator[str]:
        """The variables among these that are set, the sentinels' own first."""
        names = tuple(names)
        for spelling in (*(f"HANKWEAVE_SENTINEL_{name}" for name in names), *names):
            if self._env.get(spelling):
                yield spelling

    def _entry(self, model: str) -> Entry | None:
        provider, name = _provider(model), model.partition("/")[2]
        for key in (f"{provider}/{name}", name):
            entry = self._entries.get(key)
            if entry is not None and same_provider(provider, entry.provider):
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
    def _entries(self) -> Mapping[str, Entry]:
        return read_registry()

    @cached_property
    def _providers(self) -> frozenset[str]:
        return frozenset(entry.provider for entry in self._entries.values()) | _LOCAL | _KEY_NAMES.keys()


def _provider(model: str) -> str:
    """Empty for an id without ``/``."""
    prefix, slash, _ = model.partition("/")
    return _ALIASES.get(prefix, prefix) if slash else ""


def _variable(provider: str) -> str:
    return provider.upper().replace("-", "_")


def _key_names(provider: str) -> tuple[str, ...]:
    return _KEY_NAMES.get(provider) or (f"{_variable(provider)}_API_KEY",)
