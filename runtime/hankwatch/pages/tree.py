"""Codons as a tree: loops with their iterations, codons with their attempts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from hankwatch.pages.codons import CodonFacts

_OPEN: Final = 3
"""Iterations of a loop, its last ones, that are shown unfolded."""


@dataclass(frozen=True, slots=True)
class CodonNode:
    """One codon with its attempts, in order."""

    attempts: tuple[CodonFacts, ...]

    @property
    def last(self) -> CodonFacts:
        """The attempt that counts."""
        return self.attempts[-1]


@dataclass(frozen=True, slots=True)
class IterationNode:
    """One pass over a loop's codons."""

    number: int
    """From 0, as in the ids of its codons."""
    codons: tuple[CodonNode, ...]
    unfolded: bool

    @property
    def status(self) -> str:
        """``running``, ``failed`` or ``completed``."""
        lasts = [node.last for node in self.codons]
        if any(codon.ended_ms is None for codon in lasts):
            return "running"
        return "failed" if any(codon.failed for codon in lasts) else "completed"


@dataclass(frozen=True, slots=True)
class LoopNode:
    """A loop as far as it went."""

    loop_id: str
    iterations: tuple[IterationNode, ...]


@dataclass(slots=True)
class CodonTree:
    """The codons that are shown, as they came; ``left_out`` attempts between head and tail are not."""

    nodes: list[CodonNode | LoopNode] = field(default_factory=list)
    left_out: int = 0


def codon_tree(codons: Iterable[CodonFacts], left_out: int = 0) -> CodonTree:
    """A tree of these attempts, oldest first."""
    tree = CodonTree(left_out=left_out)
    for loop_id, found in groupby(codons, key=lambda codon: codon.loop_id):
        if not loop_id:
            tree.nodes += _nodes(found)
            continue
        passes = [(n, tuple(_nodes(inner))) for n, inner in groupby(found, key=lambda codon: codon.iteration)]
        iterations = [
            IterationNode(n, nodes, unfolded=at >= len(passes) - _OPEN) for at, (n, nodes) in enumerate(passes)
        ]
        tree.nodes.append(LoopNode(loop_id, tuple(iterations)))
    return tree


def _nodes(codons: Iterable[CodonFacts]) -> Iterator[CodonNode]:
    for _, attempts in groupby(codons, key=lambda codon: codon.codon_id):
        yield CodonNode(tuple(attempts))
