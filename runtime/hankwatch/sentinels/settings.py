"""The section ``sentinel`` of the settings."""

from typing import Annotated

from pydantic import ConfigDict, Field

from hankwatch.config.validation import ConfigModel


class SentinelsSettings(ConfigModel):
    """What holds for all sentinels of a run."""

    model_config = ConfigDict(alias_generator=None)

    drain_s: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    """Seconds that each sentinel has per attempt to finish its work when the agent has ended."""
    max_concurrent_calls: Annotated[int, Field(ge=1, le=1_000)] = 8
    """Model calls of all sentinels on the wire at one time."""
    persistence: bool = True
    """Keep conversations on disk."""
