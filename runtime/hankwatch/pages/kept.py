"""What is kept of more than a page can show: the first and the last, each kind counted, all in bounded memory."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Kept(Generic[T]):
    """The first ``first`` and the last ``last`` of what was added."""

    first: int
    last: int
    count: int = 0
    """All that were added."""
    head: list[T] = field(default_factory=list)
    tail: deque[T] = field(default_factory=deque)

    def add(self, item: T) -> None:
        """The next one."""
        self.count += 1
        if len(self.head) < self.first:
            self.head.append(item)
            return
        self.tail.append(item)
        if len(self.tail) > self.last:
            self.tail.popleft()

    def copy(self) -> "Kept[T]":
        """The same as of now, whatever is added later."""
        return replace(self, head=self.head.copy(), tail=self.tail.copy())

    def __iter__(self) -> Iterator[T]:
        yield from self.head
        yield from self.tail

    def __len__(self) -> int:
        return len(self.head) + len(self.tail)

    @property
    def left_out(self) -> int:
        """How many between head and tail are gone."""
        return self.count - len(self)


@dataclass(slots=True)
class Share:
    """One kind of a tally."""

    name: str
    count: int = 0
    failed: int = 0
    """How many of them say that they failed."""
    size_bytes: int = 0


class Tally:
    """Counts by name; what comes after ``limit`` different names is counted together."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._shares: dict[str, Share] = {}
        self.others = Share("")
        """All that had no place of their own."""

    def add(self, name: str, *, failed: bool = False, size_bytes: int = 0) -> str:
        """Count one; the name it was counted under, empty for the others."""
        share = self._shares.get(name)
        if share is None and len(self._shares) < self._limit:
            share = self._shares[name] = Share(name)
        share = share or self.others
        share.count += 1
        share.failed += failed
        share.size_bytes += size_bytes
        return share.name

    def copy(self) -> "Tally":
        """The same as of now, whatever is added later."""
        made = Tally(self._limit)
        made._shares = {name: replace(share) for name, share in self._shares.items()}
        made.others = replace(self.others)
        return made

    def __iter__(self) -> Iterator[Share]:
        """The most frequent first."""
        yield from sorted(self._shares.values(), key=lambda share: (-share.count, share.name))

    def __len__(self) -> int:
        return len(self._shares)

    @property
    def count(self) -> int:
        """All."""
        return self.others.count + sum(share.count for share in self._shares.values())

    @property
    def failed(self) -> int:
        """All that failed."""
        return self.others.failed + sum(share.failed for share in self._shares.values())

    @property
    def size_bytes(self) -> int:
        """Of all."""
        return self.others.size_bytes + sum(share.size_bytes for share in self._shares.values())
