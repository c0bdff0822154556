"""Numbers as people read them."""

from dataclasses import dataclass

_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


@dataclass(frozen=True, slots=True)
class Cost:
    """Money spent, as far as it is known."""

    known_usd: float = 0.0
    unpriced: int = 0
    """Parts whose price is not known; with any, ``known_usd`` is a lower bound."""

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.known_usd + other.known_usd, self.unpriced + other.unpriced)

    def __str__(self) -> str:
        unknown = self.unpriced and not self.known_usd
        return money(None if unknown else self.known_usd, unpriced=self.unpriced)

    @property
    def usd(self) -> float | None:
        """None when nothing of it is known."""
        return None if self.unpriced and not self.known_usd else self.known_usd


NOTHING = Cost()


def money(cost_usd: float | None, *, unpriced: int = 0) -> str:
    """``$0.0245``, ``≥ $0.0245`` when calls without a known price are missing in it, ``unknown``."""
    if cost_usd is None:
        return "unknown"
    return f"{'≥ ' if unpriced else ''}${cost_usd:.4f}"


def duration(ms: float) -> str:
    """``760 ms``, ``1.4 s``, ``3 min 5 s``, ``2 h 4 min``: two units at most."""
    if ms < 1000:
        return f"{round(ms)} ms"
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    left = round(seconds)
    parts = []
    for name, size in (*_UNITS, ("s", 1)):
        if left >= size:
            parts.append(f"{left // size} {name}")
            left %= size
    return " ".join(parts[:2])


def number(count: int) -> str:
    """``12,345``."""
    return f"{count:,}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 event``, ``1,200 events``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def size(size_bytes: int) -> str:
    """``512 B``, ``1.2 MB``."""
    value = float(size_bytes)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def joined(*parts: str) -> str:
    """Those that say something, with commas."""
    return ", ".join(part for part in parts if part)
