"""Every command's signature and help, by subject; each body lives in the module of its subject.

Bodies are imported when their command runs, so that ``--help`` loads neither a model package nor the
runtime (design rule 10). The order here is the order of the help.
"""

# isort: off
from hankwatch.cli.commands import (
    running,
    validation,
    bench,
    replay,
    check,
    report,
    journal,
    watches,
    serve,
    mcp,
    sentinels,
)

# isort: on
from hankwatch.cli.commands.application import app

__all__ = [
    "app",
    "bench",
    "check",
    "journal",
    "mcp",
    "replay",
    "report",
    "running",
    "sentinels",
    "serve",
    "validation",
    "watches",
]
