"""The section ``run`` of the settings."""

import os
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field

from hankwatch.config.validation import ConfigModel


def _can_be_a_folder(value: str) -> str:
    if "\0" in value:
        raise ValueError("no path holds a NUL character")
    home = value.partition("/")[0]
    if home.startswith("~") and home != "~" and os.path.expanduser(home) == home:  # noqa: PTH111 - never raises
        raise ValueError(f"there is no home directory {home}; write the whole path")
    return value


Text = Annotated[str, Field(min_length=1)]
Folder = Annotated[Text, AfterValidator(_can_be_a_folder)]
Ceiling = Annotated[float, Field(gt=0)]


class RunBudget(ConfigModel):
    """Ceilings of a whole run."""

    model_config = ConfigDict(alias_generator=None)

    max_dollars: Ceiling | None = None
    """Cost of all agents, in US dollars."""
    max_time_seconds: Ceiling | None = None
    """Wall-clock time of all agents, in seconds."""


class RunSettings(ConfigModel):
    """Where and how a run works."""

    model_config = ConfigDict(alias_generator=None)

    execution_base_dir: Folder = "~/.hankweave-executions"
    """New execution directories are made here; ``~`` is the home directory."""
    output_dir: Folder | None = None
    """Output files of codons are copied here; none are copied without it."""
    model: Text | None = None
    """Used for every codon instead of its own."""
    autostart: bool = True
    """Start the next codon without being asked."""
    budget: RunBudget = RunBudget()
    """Ceilings of a whole run."""
    tool_result_chars: Annotated[int, Field(ge=0, le=10_000_000)] = 2_500
    """Longer tool results are shortened to this many characters in their event."""
    idle_limit_s: Annotated[float, Field(ge=1, le=1800)] | None = None
    """Seconds without output after which an agent is ended; default: its program's."""
    stop_budget_s: Annotated[float, Field(ge=3, le=600)] = 10.0
    """Seconds from the first stop signal to the end of the process."""
    ignore_rig_failures: bool = False
    """Go on when a rig operation fails."""
    data_hash_limit_ms: Annotated[int, Field(gt=0)] = 5_000
    """Milliseconds that hashing the data may take."""
