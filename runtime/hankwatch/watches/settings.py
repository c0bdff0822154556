"""The section ``watches`` of the settings."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from hankwatch.config.validation import ConfigModel

Cap = Annotated[int, Field(ge=0, le=100_000)]


class WatchCaps(ConfigModel):
    """How many watches may be active at once; those that an operator armed take no place."""

    model_config = ConfigDict(alias_generator=None)

    per_session: Cap = 20
    """Watches of a session."""
    per_instance: Cap = 200
    """Watches of everybody."""
    agent_watches: Cap = 3
    """Of kind `agent_watch`, per tenant, actor and session."""
    monitors_per_session: Cap = 10
    """Monitors of a session."""
    monitors_per_owner: Cap = 50
    """Monitors of an owner."""
    tool_monitors_per_owner: Cap = 10
    """Those among them that check a tool."""


class JudgeSettings(ConfigModel):
    """A model that decides for watches that ask it, each answer of which costs money."""

    model_config = ConfigDict(alias_generator=None)

    model: Annotated[str, Field(min_length=1)] | None = None
    """Which; without one there is no judge."""
    max_calls_per_day: Annotated[int, Field(ge=1, le=100_000)] = 100
    """Calls of one process in a day (UTC)."""
    max_dollars_per_day: Annotated[float, Field(gt=0)] = 1.0
    """What they may cost, in US dollars."""


class WatchesSettings(ConfigModel):
    """Watches: waiting for something outside."""

    model_config = ConfigDict(alias_generator=None)

    enabled: bool = True
    """Offer agents the watch tools; the engine runs in any case."""
    interval: Annotated[float, Field(ge=5, le=86_400)] = 30.0
    """Seconds between two checks of a watch that names no interval."""
    keep_terminal_h: Annotated[float, Field(ge=0)] = 24.0
    """Hours that ended watches are kept; 0 is for ever."""
    store: Annotated[str, Field(min_length=1)] | None = None
    """Database of the watches, a path or `postgresql://…`; default: one file per user."""
    max_wakes: Annotated[int, Field(ge=1, le=100_000)] = 20
    """Wakes of a session in a day (UTC); what is over it is held, and told once."""
    activation: Literal["by-trust", "ask"] = "by-trust"
    """How watches that no operator asks for begin: `by-trust`, those with a safe verifier at once and others as
    proposals; `ask`, all of kind `watch` as proposals. Other kinds have a rule of their own."""
    caps: WatchCaps = WatchCaps()
    """How many may be active."""
    judge: JudgeSettings = JudgeSettings()
    """A model that decides."""
