"""Which models can be called, and where their requests go (spec sentinels 7)."""

import pytest

from hankwatch.core.errors import ModelCallFailed
from hankwatch.llm.catalog import Endpoint, ModelCatalog
from hankwatch.llm.client import ModelInfo, Unavailable


def _refusal(catalog: ModelCatalog, model: str) -> Unavailable:
    found = catalog.check(model)
    assert isinstance(found, Unavailable), found
    return found


def _info(catalog: ModelCatalog, model: str) -> ModelInfo:
    found = catalog.check(model)
    assert isinstance(found, ModelInfo), found
    return found


def test_a_listed_model_with_its_key_can_be_called() -> None:
    catalog = ModelCatalog({"ANTHROPIC_API_KEY": "a-key"})
    info = _info(catalog, "anthropic/claude-haiku-4-5")
    assert (info.provider, info.context_tokens, info.priced) == ("anthropic", 200_000, True)
    assert catalog.endpoint("anthropic/claude-haiku-4-5") == Endpoint(
        "anthropic/claude-haiku-4-5", api_key="a-key", api_base="https://api.anthropic.com"
    )


def test_google_means_the_gemini_api() -> None:
    catalog = ModelCatalog({"GOOGLE_API_KEY": "g-key"})
    assert _info(catalog, "google/gemini-2.5-flash").provider == "gemini"
    assert catalog.endpoint("google/gemini-2.5-flash").model == "gemini/gemini-2.5-flash"
    assert catalog.endpoint("google/gemini-2.5-flash").api_key == "g-key"


@pytest.mark.parametrize("model", ["pi/google/gemini-2.5-flash", "nope/nope", "/gpt-5-mini"])
def test_an_unlisted_provider_is_refused(model: str) -> None:
    assert _refusal(ModelCatalog({"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}), model).code == "unknown-provider"


@pytest.mark.parametrize(
    "model",
    [
        "openai/no-such",
        "openai/",
        "openai/text-embedding-3-small",
        "gemini/claude-haiku-4-5",
        "anthropic/claude-haiku-9-9",
        "openai/sample_spec",
    ],
)
def test_a_model_the_provider_does_not_list_for_answering_is_refused(model: str) -> None:
    env = {"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    assert _refusal(ModelCatalog(env), model).code == "unknown-model"


def test_a_near_miss_is_named() -> None:
    assert "'openai/gpt-5-mini'" in _refusal(ModelCatalog({"OPENAI_API_KEY": "k"}), "openai/gpt-5-mimi").hint
    assert "'anthropic'" in _refusal(ModelCatalog({}), "antropic/claude-haiku-4-5").hint


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("openai/gpt-5-mini", "OPENAI_API_KEY"),
        ("gemini/gemini-2.5-flash", "GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("mistral/mistral-large-latest", "MISTRAL_API_KEY"),
        ("vertex_ai/gemini-2.5-flash", "VERTEXAI_PROJECT"),
    ],
)
def test_a_missing_key_is_named(model: str, names: str) -> None:
    refusal = _refusal(ModelCatalog({}), model)
    assert refusal.code == "missing-key"
    assert names in refusal.reason


def test_an_empty_key_is_a_missing_one() -> None:
    assert _refusal(ModelCatalog({"OPENAI_API_KEY": ""}), "openai/gpt-5-mini").code == "missing-key"


def test_the_sentinels_own_key_comes_first() -> None:
    catalog = ModelCatalog({"OPENAI_API_KEY": "of the agent", "HANKWEAVE_SENTINEL_OPENAI_API_KEY": "of sentinels"})
    assert catalog.endpoint("openai/gpt-5-mini").api_key == "of sentinels"


def test_any_key_of_the_sentinels_comes_before_any_of_the_agents() -> None:
    catalog = ModelCatalog({"GEMINI_API_KEY": "of the agent", "HANKWEAVE_SENTINEL_GOOGLE_API_KEY": "of sentinels"})
    assert catalog.endpoint("google/gemini-2.5-flash").api_key == "of sentinels"


@pytest.mark.parametrize(
    ("model", "supported"),
    [
        ("openai/gpt-5-mini", True),
        ("anthropic/claude-haiku-4-5", True),
        ("google/gemini-2.5-flash", True),
        ("openai/gpt-4", False),
        ("mistral/mistral-large-latest", False),
        ("vertex_ai/gemini-2.5-flash", False),
        ("openai/no-such", False),
        ("haiku", False),
    ],
)
def test_only_a_mode_that_the_provider_has_itself_counts(model: str, *, supported: bool) -> None:
    assert ModelCatalog({}).info(model).supports_schema == supported


def test_what_the_registry_says_needs_no_key() -> None:
    keyed = ModelCatalog({"OPENAI_API_KEY": "k"})
    assert ModelCatalog({}).info("openai/gpt-5-mini") == keyed.check("openai/gpt-5-mini")


def test_a_key_stays_out_of_representations() -> None:
    assert "secret" not in repr(ModelCatalog({"OPENAI_API_KEY": "secret"}).endpoint("openai/gpt-5-mini"))


def test_a_base_url_turns_registry_and_price_off_but_not_the_key() -> None:
    env = {"OPENAI_API_BASE": "http://localhost:1/v1"}
    assert _refusal(ModelCatalog(env), "openai/no-such").code == "missing-key"
    catalog = ModelCatalog({**env, "OPENAI_API_KEY": "k"})
    assert not _info(catalog, "openai/no-such").priced
    assert catalog.endpoint("openai/no-such").api_base == "http://localhost:1/v1"


def test_the_sentinels_own_base_url_comes_first() -> None:
    env = {"HANKWEAVE_SENTINEL_GEMINI_API_BASE": "http://own", "GEMINI_API_BASE": "http://all", "GEMINI_API_KEY": "k"}
    assert ModelCatalog(env).endpoint("google/gemini-2.5-flash").api_base == "http://own"


def test_a_base_url_under_the_alias_counts_too() -> None:
    env = {"GOOGLE_API_BASE": "http://alias", "GEMINI_API_KEY": "k"}
    assert ModelCatalog(env).endpoint("google/gemini-x").api_base == "http://alias"


def test_an_unlisted_provider_with_a_base_url_is_spoken_to_as_openai_and_has_no_price() -> None:
    catalog = ModelCatalog({"ACME_LABS_API_BASE": "http://acme/v1"})
    assert _info(catalog, "acme-labs/gpt-5-mini") == ModelInfo("acme-labs/gpt-5-mini", "acme-labs", priced=False)
    endpoint = catalog.endpoint("acme-labs/gpt-5-mini")
    assert (endpoint.model, endpoint.api_base, endpoint.priced) == ("openai/gpt-5-mini", "http://acme/v1", False)
    keyed = ModelCatalog({"ACME_API_BASE": "http://acme/v1", "ACME_API_KEY": "acme-key"})
    assert keyed.endpoint("acme/new-1").api_key == "acme-key"


def test_a_local_server_needs_no_key_and_its_zero_price_is_unknown() -> None:
    info = _info(ModelCatalog({}), "ollama/llama3")
    assert not info.priced


def test_cloud_credentials_are_left_to_the_provider_library() -> None:
    catalog = ModelCatalog({"AWS_PROFILE": "work"})
    model = "bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0"
    assert _info(catalog, model).provider == "bedrock"
    assert catalog.endpoint(model).api_key is None


def test_a_moving_name_has_the_facts_of_what_it_points_to() -> None:
    info = _info(ModelCatalog({"ANTHROPIC_API_KEY": "k"}), "anthropic/claude-sonnet-latest")
    assert info.priced
    assert info.context_tokens


def test_an_id_without_a_slash_passes_the_check_and_fails_when_called() -> None:
    catalog = ModelCatalog({})
    assert _info(catalog, "haiku").provider == ""
    with pytest.raises(ModelCallFailed) as failed:
        catalog.endpoint("haiku")
    assert failed.value.reason == "No LLM provider available"
    assert not failed.value.retriable
