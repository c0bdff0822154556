"""The service of watches as it stands for one execution: behind what its journal has now (design "How it runs" 13)."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from hankwatch.runner.layout import Layout
from hankwatch.serve.live import size_of
from hankwatch.serve.shelf import Followed
from hankwatch.watches.authority import Principal
from hankwatch.watches.service import WatchService


def in_execution(service: WatchService, followed: Followed) -> WatchService:
    """The service whose new watches belong to an execution, and look behind what its journal has now."""
    defaults = replace(service.defaults, home=str(followed.execution.layout.root.resolve()))
    cursor = followed.cursor
    return replace(service, defaults=defaults, journal_end=lambda: cursor)


async def where_it_stands(service: WatchService, principal: Principal, watch_id: str) -> WatchService:
    """The service for which the journal of a watch's home ends where it does now.

    Raises:
        WatchNotFound: there is no such watch that the asker may know of.
    """
    watch = await service.get(principal, watch_id)
    if watch.home is None:
        return service
    return replace(service, journal_end=partial(size_of, Layout(Path(watch.home)).journal))
