"""The settings that hold for a command that has no hank."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from hankwatch.core.errors import ConfigError
from hankwatch.settings import Flag, Settings, load_settings


def cli_settings(config: Path | None, flags: Sequence[Flag] = ()) -> tuple[Settings, Mapping[str, str]]:
    """Settings of this process and the environment they were read from.

    Raises:
        ConfigError: a settings file or variable has faults.
    """
    loaded = load_settings(environ=os.environ, cwd=Path.cwd(), config=config, flags=flags)
    if not loaded.diagnostics.ok:
        raise ConfigError(loaded.diagnostics.errors)
    loaded.log_warnings()
    return loaded.settings, os.environ
