"""What of sentinels is sent to clients of the 0.10 protocol: what their ``reportToWebsocket`` says (spec sentinels)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hankwatch.events.envelope import Event

_PART: Final[Mapping[str, tuple[str, bool]]] = {
    "sentinel.unloaded": ("lifecycle", True),
    "sentinel.error": ("errors", True),
    "sentinel.output": ("outputs", True),
    "sentinel.triggered": ("triggers", False),
}
"""Event type -> which part of the setting it belongs to, and that part's default."""
_MAX_SENTINELS: Final = 2_000


@dataclass(slots=True)
class Announced:
    """Follows ``sentinel.loaded`` events."""

    _settings: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """The next event of the journal."""
        if event.type == "sentinel.loaded":
            given, sentinel_id = event.data.get("reportToWebsocket"), str(event.data.get("sentinelId"))
            if isinstance(given, Mapping) and (sentinel_id in self._settings or len(self._settings) < _MAX_SENTINELS):
                self._settings[sentinel_id] = given

    def copy(self) -> "Announced":
        """For somebody who follows on from here."""
        return Announced(dict(self._settings))

    def __call__(self, event: Event) -> bool:
        """Take the event, and say whether clients are sent it."""
        self.take(event)
        part = _PART.get(event.type)
        if part is None:
            return True
        said = self._settings.get(str(event.data.get("sentinelId")), {}).get(part[0], part[1])
        return said is True
