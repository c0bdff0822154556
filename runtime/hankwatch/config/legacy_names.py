"""Where the settings of 0.10 live here (reference 2.8)."""

from collections.abc import Mapping

from pydantic.alias_generators import to_snake

from hankwatch.config.layers import Name

PLACES: Mapping[Name, Name] = {
    ("port",): ("serve", "port"),
    ("autostart",): ("run", "autostart"),
    ("model",): ("run", "model"),
    ("anthropicBaseUrl",): ("agents", "claude", "env", "ANTHROPIC_BASE_URL"),
    ("outputDirectory",): ("run", "output_dir"),
    ("executionBaseDir",): ("run", "execution_base_dir"),
    ("dataHashTimeLimit",): ("run", "data_hash_limit_ms"),
    ("shimIdleTimeout",): ("run", "idle_limit_s"),
    ("ignoreRigFailures",): ("run", "ignore_rig_failures"),
    ("sentinel", "enablePersistence"): ("sentinel", "persistence"),
    ("budget", "maxDollars"): ("run", "budget", "max_dollars"),
    ("budget", "maxTimeSeconds"): ("run", "budget", "max_time_seconds"),
}
"""0.10 name -> name here; the other keys are accepted and have no effect."""

VARIABLES: Mapping[str, Name] = {
    "HANKWEAVE_RUNTIME_" + "_".join(to_snake(part) for part in old).upper(): new for old, new in PLACES.items()
}
"""Environment variable of 0.10 -> name here."""
