"""What the process's environment must not decide for the provider library: where keys and prompts go.

The library looks dozens of addresses up in the process by itself (``OPENAI_BASE_URL``, ``COMETAPI_BASE_URL``,
``USE_LITELLM_PROXY``, …). Ours come from ``ModelCatalog`` alone, so all of them are withheld while clients are in use.
"""

import os
import re
import threading
from collections.abc import Mapping
from typing import Final

_STEERING: Final = re.compile(
    r"USE_LITELLM_PROXY|LITELLM_\w+|\w+_(?:BASE_URL|API_BASE(?:_\w+)?|API_HOST|API_ENDPOINT)"
    r"|AWS_BEDROCK_RUNTIME_ENDPOINT|AWS_ENDPOINT_URL(?:_\w+)?|AGENTCORE_GATEWAY_URL|AZURE_(?:AUTHORITY_HOST|ENDPOINT)"
    r"|AZURE_OPENAI_ENDPOINT|DATABRICKS_HOST|DATAROBOT_ENDPOINT|GIGACHAT_AUTH_URL|GITHUB_COPILOT_\w+_URL"
    r"|GRADIENT_AI_AGENT_ENDPOINT|OPENAI_CUSTOM_HEADERS|ANTHROPIC_CUSTOM_HEADERS|WATSONX_(?:IAM_)?URL|W(?:ML|X)_URL"
)
_OURS: Final = re.compile(r"HANKWEAVE_\w+|HANKWATCH_\w+")
_SETTINGS: Final = {
    # Without these it asks the network for its price list and headers while it is imported.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    # In any other mode it loads the nearest ``.env`` into the process while it is imported.
    "LITELLM_MODE": "PRODUCTION",
    # Its aiohttp sessions leak when the event loop changes.
    "DISABLE_AIOHTTP_TRANSPORT": "True",
}
_lock: Final = threading.Lock()
_users = 0
_withheld: Final[dict[str, str]] = {}


def withhold() -> None:
    """Take the variables that steer the library out of the process and set ours; to be undone by ``give_back``.

    Programs that are started meanwhile with this process's environment do not see them either; ours are given an
    environment that was put together before.
    """
    global _users  # noqa: PLW0603 - the environment is the process's, and so is the count of its users
    with _lock:
        _users += 1
        for name, value in list(os.environ.items()):
            ours = _users > 1 and value == _SETTINGS.get(name)
            if not ours and (_steers(name) or name in _SETTINGS):
                _withheld[name] = os.environ.pop(name)
        os.environ.update(_SETTINGS)


def give_back() -> None:
    """Restore what ``withhold`` took, once nobody needs it withheld."""
    global _users  # noqa: PLW0603 - as above
    with _lock:
        _users -= 1
        if _users:
            return
        for name in _SETTINGS:
            os.environ.pop(name, None)
        os.environ.update(_withheld)
        _withheld.clear()


def snapshot(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` as it is now; for the process's own, what is withheld included."""
    with _lock:
        return {**(_withheld if env is os.environ else {}), **env}


def _steers(name: str) -> bool:
    return _STEERING.fullmatch(name) is not None and _OURS.fullmatch(name) is None
