"""The default policy of a loop watchdog, for hanks that adopt it: ``"watchdog": "default"`` (spec watchdog 0)."""

from hankwatch.watchdog.policy import WatchdogPolicy

__all__ = ["WatchdogPolicy", "default_watchdog", "set_default_watchdog"]

_default: WatchdogPolicy | None = None


def default_watchdog() -> WatchdogPolicy | None:
    """The policy set by ``set_default_watchdog``, a fresh copy each time; None when none was set.

    A codon or hank adopts it with ``"watchdog": "default"``; while none is set, that leaves its watchdog off.
    """
    return None if _default is None else _default.model_copy(deep=True)


def set_default_watchdog(policy: WatchdogPolicy | None) -> None:
    """Set what ``default_watchdog`` gives, for this process; None takes it away.

    A copy is kept: what happens to ``policy`` later changes nothing.
    """
    global _default  # noqa: PLW0603 - one default per process is what the contract asks for
    _default = None if policy is None else policy.model_copy(deep=True)
