"""What the process's environment decides for the provider library: nothing."""

import json
import os
import subprocess
import sys

import pytest
from tests.support.model_server import model_server

from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.surroundings import give_back, withhold

STEERING = (
    "OPENAI_BASE_URL",
    "ANTHROPIC_BASE_URL",
    "COMETAPI_BASE_URL",
    "GEMINI_API_BASE",
    "HF_API_BASE",
    "USE_LITELLM_PROXY",
    "LITELLM_PROXY_API_BASE",
    "LITELLM_MODE",
    "AWS_BEDROCK_RUNTIME_ENDPOINT",
    "DATABRICKS_HOST",
    "WATSONX_URL",
)


def test_what_steers_the_library_is_withheld_until_nobody_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in STEERING:
        monkeypatch.setenv(name, "http://elsewhere")
    monkeypatch.setenv("HANKWEAVE_SENTINEL_OPENAI_API_BASE", "http://ours")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    before = dict(os.environ)
    withhold()
    withhold()
    give_back()
    try:
        assert "http://elsewhere" not in os.environ.values()
        assert (os.environ["LITELLM_MODE"], os.environ["OPENAI_API_KEY"]) == ("PRODUCTION", "a-key")
        assert os.environ["HANKWEAVE_SENTINEL_OPENAI_API_BASE"] == "http://ours"
    finally:
        give_back()
    assert dict(os.environ) == before


def test_what_is_set_later_is_withheld_from_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    withhold()
    monkeypatch.setenv("OPENAI_BASE_URL", "http://elsewhere")
    withhold()
    assert "OPENAI_BASE_URL" not in os.environ
    assert os.environ["LITELLM_MODE"] == "PRODUCTION"
    give_back()
    give_back()
    assert os.environ["OPENAI_BASE_URL"] == "http://elsewhere"


def test_a_catalogue_of_the_process_sees_what_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "http://documented")
    withhold()
    try:
        assert ModelCatalog(os.environ).base_url("openai/gpt-5-mini") == "http://documented"
        assert ModelCatalog({}).base_url("openai/gpt-5-mini") is None
    finally:
        give_back()


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
def test_a_known_providers_address_is_always_ours(provider: str) -> None:
    model = {"openai": "gpt-5-mini", "anthropic": "claude-haiku-4-5", "gemini": "gemini-2.5-flash"}[provider]
    endpoint = ModelCatalog({f"{provider.upper()}_API_KEY": "a-key"}).endpoint(f"{provider}/{model}")
    assert endpoint.api_base is not None
    assert endpoint.api_base.startswith("https://")


_CALL = """
import os, sys, anyio, dotenv
seen = set()
sys.addaudithook(lambda name, _: seen.add(name))
dotenv.load_dotenv = lambda *_, **__: print("loaded a .env")
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import Message, ModelRequest
from hankwatch.llm.litellm import LitellmClient
from hankwatch.core.errors import ModelCallFailed

async def main():
    for proxy in ("", "true"):
        os.environ["USE_LITELLM_PROXY"] = proxy
        client = LitellmClient(ModelCatalog(os.environ))
        await client.prepare()
        if not proxy:
            print(sorted({"socket.connect", "socket.getaddrinfo", "socket.sendto"} & seen))
        for model in sys.argv[1:]:
            try:
                await client.complete(ModelRequest(model, (Message("user", "hi"),), timeout_s=5))
            except ModelCallFailed as failed:
                print(failed.reason)
        await client.aclose()

anyio.run(main)
"""


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_importing_opens_no_connection_and_undocumented_variables_and_env_files_send_no_key_elsewhere() -> None:
    models = ("openai/gpt-5-mini", "anthropic/claude-haiku-4-5", "google/gemini-2.5-flash", "deepseek/deepseek-chat")
    with model_server() as elsewhere:
        keys = {f"{name}_API_KEY": "a-key" for name in ("OPENAI", "ANTHROPIC", "GEMINI", "DEEPSEEK")}
        bases = {f"{name}_BASE_URL": elsewhere.url for name in ("OPENAI", "ANTHROPIC", "GEMINI", "DEEPSEEK")}
        litellm = {"LITELLM_PROXY_API_BASE": elsewhere.url, "LITELLM_MODE": "DEV"}
        # Where nothing listens, so that no request leaves this machine.
        nowhere = {"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "", "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(  # one process for all: importing the library takes five seconds
            [sys.executable, "-c", _CALL, *models],
            env={"PATH": os.environ["PATH"], **keys, **bases, **litellm, **nowhere},
            capture_output=True,
            text=True,
            check=True,
        )
        assert elsewhere.request_count == 0, json.dumps(elsewhere.paths)
    assert done.stdout.splitlines() == ["[]", *["the provider cannot be reached"] * 2 * len(models)], done.stderr
