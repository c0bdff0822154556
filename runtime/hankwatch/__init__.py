"""hankwatch: an event-stream sentinel runtime for supervised coding agents.

The public names below are imported when they are first used, so that ``import hankwatch`` costs nothing;
``hankwatch.agent`` and ``hankwatch.testing`` are public too. Everything else is private.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hankwatch.app import run_hank
    from hankwatch.bench.replay import Replayed
    from hankwatch.events import Event
    from hankwatch.replaying import replay
    from hankwatch.runner.run import RunResult
    from hankwatch.sentinels.manager import SentinelManager
    from hankwatch.stream import EventStream, Journal
    from hankwatch.watchdog import Watchdog
    from hankwatch.watches.authority import Principal, operator
    from hankwatch.watches.requests import WatchEdit, WatchRequest
    from hankwatch.watches.service import WatchService
    from hankwatch.watching import open_watches

__version__ = "0.1.0"

__all__ = [
    "Event",
    "EventStream",
    "Journal",
    "Principal",
    "Replayed",
    "RunResult",
    "SentinelManager",
    "WatchEdit",
    "WatchRequest",
    "WatchService",
    "Watchdog",
    "open_watches",
    "operator",
    "replay",
    "run_hank",
]

_HOMES = {
    "Event": "hankwatch.events",
    "EventStream": "hankwatch.stream",
    "Journal": "hankwatch.stream",
    "Principal": "hankwatch.watches.authority",
    "Replayed": "hankwatch.bench.replay",
    "RunResult": "hankwatch.runner.run",
    "SentinelManager": "hankwatch.sentinels.manager",
    "replay": "hankwatch.replaying",
    "Watchdog": "hankwatch.watchdog",
    "WatchEdit": "hankwatch.watches.requests",
    "WatchRequest": "hankwatch.watches.requests",
    "WatchService": "hankwatch.watches.service",
    "open_watches": "hankwatch.watching",
    "operator": "hankwatch.watches.authority",
    "run_hank": "hankwatch.app",
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
