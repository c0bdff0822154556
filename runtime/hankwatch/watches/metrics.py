"""Counts of what watches did, by trigger; ids never become labels (spec watches 3)."""

import logging
from collections import Counter
from dataclasses import dataclass, field

from hankwatch.watches.decide import Decision
from hankwatch.watches.watch import Signal

_LOG = logging.getLogger(__name__)
_FIRES = frozenset({Signal.MET, Signal.CHANGED})


@dataclass(slots=True)
class WatchMetrics:
    """Of one process, since its start."""

    fires: Counter[str] = field(default_factory=Counter)
    """By trigger."""
    flapping: Counter[str] = field(default_factory=Counter)
    """Episodes, by trigger."""
    checks: Counter[str] = field(default_factory=Counter)
    """By outcome."""

    def note(self, decision: Decision | None) -> None:
        """Count one decision; a flapping watch is named in the log, once per episode."""
        if decision is None:
            return
        watch = decision.watch
        if watch.last_outcome is not None:
            self.checks[watch.last_outcome.value] += 1
        for raised in decision.raised:
            if raised.signal in _FIRES:
                self.fires[watch.trigger.value] += 1
            elif raised.signal is Signal.FLAPPING:
                self.flapping[watch.trigger.value] += 1
                _LOG.warning(
                    "watch %s flaps: trigger %s, every %g s, %s; raise its interval or drop repeat",
                    watch.id,
                    watch.trigger.value,
                    watch.interval_s,
                    raised.reason,
                )
