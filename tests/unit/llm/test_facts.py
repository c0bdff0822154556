"""What validate can say of a model before it is called."""

import subprocess
import sys

import pytest

from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.facts import ModelFacts, model_facts
from hankwatch.llm.registry import Price


def _facts(model: str, **env: str) -> ModelFacts:
    return model_facts(model, ModelCatalog(env))


def test_a_model_with_its_key_has_price_window_and_no_problem() -> None:
    assert _facts("anthropic/claude-haiku-4-5", ANTHROPIC_API_KEY="k") == ModelFacts(
        "anthropic/claude-haiku-4-5",
        "anthropic",
        known=True,
        key_variables=("ANTHROPIC_API_KEY",),
        key="ANTHROPIC_API_KEY",
        price=Price(1.0, 5.0, cached_input_usd=0.1),
        context_tokens=200_000,
        supports_schema=True,
        base_url=None,
        problem=None,
    )


def test_a_missing_key_is_a_problem_of_a_known_model() -> None:
    facts = _facts("google/gemini-2.5-flash")
    assert (facts.known, facts.provider, facts.key) == (True, "gemini", None)
    assert facts.key_variables == ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    assert facts.price == Price(0.3, 2.5, cached_input_usd=0.03)
    assert facts.problem is not None
    assert facts.problem.code == "missing-key"


def test_the_sentinels_own_key_is_the_one_that_is_named() -> None:
    facts = _facts("openai/gpt-5-mini", OPENAI_API_KEY="k", HANKWEAVE_SENTINEL_OPENAI_API_KEY="k")
    assert facts.key == "HANKWEAVE_SENTINEL_OPENAI_API_KEY"


def test_an_id_without_a_provider_is_a_problem_before_it_is_called() -> None:
    facts = _facts("haiku")
    assert not facts.known
    assert facts.problem is not None
    assert facts.problem.reason == "No LLM provider available"


@pytest.mark.parametrize(("model", "code"), [("openai/no-such", "unknown-model"), ("nope/nope", "unknown-provider")])
def test_what_the_registry_lacks_is_not_known(model: str, code: str) -> None:
    facts = _facts(model, OPENAI_API_KEY="k")
    assert (facts.known, facts.price, facts.unpriced) == (False, None, None)
    assert facts.problem is not None
    assert facts.problem.code == code


def test_a_base_url_makes_an_unknown_model_callable_and_unpriced() -> None:
    facts = _facts("acme/new-1", ACME_API_BASE="http://acme/v1")
    assert (facts.known, facts.problem, facts.base_url) == (False, None, "http://acme/v1")
    assert facts.unpriced == "the price of acme/new-1 is not known: cost totals are lower bounds (≥)"


def test_a_priced_model_is_not_told_of() -> None:
    assert _facts("openai/gpt-5-mini", OPENAI_API_KEY="k").unpriced is None


def test_builtin_models_cost_nothing_and_need_no_key() -> None:
    facts = _facts("builtin/digest")
    assert (facts.known, facts.key_variables, facts.price, facts.problem) == (True, (), Price(0.0, 0.0), None)
    assert facts.unpriced is None
    assert _facts("builtin/none").problem is not None


@pytest.mark.slow
def test_facts_import_no_provider_library() -> None:
    script = (
        "import sys\n"
        "from hankwatch.llm.catalog import ModelCatalog\n"
        "from hankwatch.llm.facts import model_facts\n"
        "assert model_facts('openai/gpt-5-mini', ModelCatalog({})).known\n"
        "print('litellm' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
