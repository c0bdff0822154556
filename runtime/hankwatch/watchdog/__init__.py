"""The loop watchdog: sees that an agent is stuck, nudges it, interrupts it at a cap (spec watchdog).

It cannot see useless work that varies, a counter inside every sentence and argument, or idling through sleeps.
Its names are imported at their first use, so that a policy costs no watchdog (design rule 10).
"""

from typing import TYPE_CHECKING

from hankwatch.core.lazy import lazy_names

if TYPE_CHECKING:
    from hankwatch.watchdog.listener import Steering, Watchdog
    from hankwatch.watchdog.policy import WatchdogPolicy

__all__ = ["Steering", "Watchdog", "WatchdogPolicy"]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "Steering": "hankwatch.watchdog.listener",
            "Watchdog": "hankwatch.watchdog.listener",
            "WatchdogPolicy": "hankwatch.watchdog.policy",
        },
    )
