"""The loop watchdog: sees that an agent is stuck, nudges it, interrupts it at a cap (spec watchdog)."""

from hankwatch.watchdog.policy import WatchdogPolicy
from hankwatch.watchdog.watchdog import Watchdog

__all__ = ["Watchdog", "WatchdogPolicy"]
