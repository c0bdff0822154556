"""The loop watchdog: sees that an agent is stuck, nudges it, interrupts it at a cap (spec watchdog).

It cannot see useless work that varies, a counter inside every sentence and argument, or idling through sleeps.
"""

from hankwatch.watchdog.listener import Steering, Watchdog
from hankwatch.watchdog.policy import WatchdogPolicy

__all__ = ["Steering", "Watchdog", "WatchdogPolicy"]
