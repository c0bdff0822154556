"""One entry of the section ``agents`` of the settings."""

from typing import Annotated

from pydantic import ConfigDict, Field

from hankwatch.config.validation import ConfigModel


class AgentSettings(ConfigModel):
    """How one agent program is started here, for every hank."""

    model_config = ConfigDict(alias_generator=None)

    command: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None = None
    """Program and leading arguments instead of the program's name."""
    env: dict[str, str] = Field(default_factory=dict)
    """Set for this program."""
    idle_limit_s: Annotated[float, Field(ge=1, le=1800)] | None = None
    """Seconds without output after which it is ended; default: the run's."""
