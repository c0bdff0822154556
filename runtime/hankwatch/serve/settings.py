"""The section ``serve`` of the settings."""

from typing import Annotated

from pydantic import ConfigDict, Field

from hankwatch.config.validation import ConfigModel


class ServeSettings(ConfigModel):
    """The server."""

    model_config = ConfigDict(alias_generator=None)

    bind: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on; anything but loopback needs a policy file."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """0 lets the system pick."""
    policy_file: str | None = None
    """Who may do what."""
