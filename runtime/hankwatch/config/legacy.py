"""hankweave.json: the settings of 0.10 under their names (reference 2.8)."""

from typing import Annotated

from pydantic import Field

from hankwatch.config.validation import ConfigModel

PositiveInt = Annotated[int, Field(gt=0)]
Positive = Annotated[float, Field(gt=0)]


class LegacySentinel(ConfigModel):
    """Sentinel settings of 0.10."""

    enable_persistence: bool | None = None
    """Keep conversations on disk."""
    health_check_grace_period_ms: PositiveInt | None = None
    """Without effect here: models are checked when a sentinel loads."""
    wait_for_all_health_checks: bool | None = None
    """Without effect here: models are checked when a sentinel loads."""


class LegacyBudget(ConfigModel):
    """Ceilings of 0.10."""

    max_dollars: Positive | None = None
    """US dollars."""
    max_time_seconds: Positive | None = None
    """Seconds."""


class LegacySettings(ConfigModel):
    """The file ``hankweave.json``."""

    schema_url: str | None = Field(default=None, alias="$schema")
    """JSON Schema for editors."""
    port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """Of the server; 0 lets the system pick."""
    autostart: bool | None = None
    """Start the next codon without being asked."""
    show_costs: bool | None = None
    """Without effect here: costs are always shown."""
    without_proxy: bool | None = None
    """Without effect here: there is no proxy."""
    model: Annotated[str, Field(min_length=1)] | None = None
    """Used for every codon."""
    anthropic_base_url: Annotated[str, Field(min_length=1)] | None = None
    """Where the claude agent finds its API."""
    output_directory: Annotated[str, Field(min_length=1)] | None = None
    """Where output files are copied."""
    execution_base_dir: Annotated[str, Field(min_length=1)] | None = None
    """Where execution directories are made."""
    log_parsing_interval: PositiveInt | None = None
    """Without effect here: agents are read as they write."""
    data_hash_time_limit: PositiveInt | None = None
    """Milliseconds."""
    idle_timeout: Annotated[int, Field(ge=0, le=255)] | None = None
    """Without effect here: a run ends when it is done."""
    shim_idle_timeout: Annotated[int, Field(ge=1, le=1800)] | None = None
    """Seconds without a sign of life after which an agent is ended."""
    ignore_rig_failures: bool | None = None
    """Go on when a rig operation fails."""
    sentinel: LegacySentinel | None = None
    """Sentinel settings."""
    telemetry: bool | dict[str, object] | None = None
    """Without effect here: nothing is sent anywhere."""
    budget: LegacyBudget | None = None
    """Ceilings of a run."""
