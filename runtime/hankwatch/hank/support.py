"""Features of the contract that this version validates but does not carry out yet."""

from collections.abc import Iterator
from dataclasses import dataclass

from hankwatch.hank.fault import Fault
from hankwatch.hank.model import Codon, Hank


@dataclass(frozen=True, slots=True)
class Unsupported:
    """One use of such a feature."""

    feature: str
    """For people: ``waitForWatches``, ``mcp``."""
    pointer: str
    """Into hank.json."""


def unsupported(hank: Hank) -> list[Unsupported]:
    """Every use, in file order; a run of a hank that has any must fail and say so."""
    return list(_uses(hank))


def not_yet(hank: Hank) -> Iterator[Fault]:
    """The same as warnings for ``validate`` (spec cli)."""
    for use in _uses(hank):
        yield Fault(
            use.pointer,
            "not-yet",
            f"not supported by this version yet: {use.feature}; a run of this hank fails",
            "remove it, or wait for a version that has it",
            "warning",
        )


def _uses(hank: Hank) -> Iterator[Unsupported]:
    for pointer, codon in hank.codons():
        for key, used in _features(codon):
            if used:
                yield Unsupported(key, f"{pointer}/{key}")


def _features(codon: Codon) -> Iterator[tuple[str, bool]]:
    yield "mcp", codon.mcp
