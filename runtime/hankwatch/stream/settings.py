"""The section ``journal`` of the settings."""

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field

from hankwatch.config.validation import ConfigModel


def _never(value: Any) -> Any:
    return None if value == "never" else value


class JournalSettings(ConfigModel):
    """How the journal reaches the disk."""

    model_config = ConfigDict(alias_generator=None)
    NULLABLE: ClassVar[frozenset[str]] = frozenset({"sync_interval_s"})

    sync_interval_s: Annotated[Annotated[float, Field(ge=0, le=3600)] | None, BeforeValidator(_never)] = 1.0
    """Seconds between syncs of a dirty journal; 0 syncs before each event is published, null or "never" leaves
    it to the system."""
