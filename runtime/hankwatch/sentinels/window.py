"""What fits into a model's context window, and what is left out when a prompt does not (spec sentinels 6)."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync

from hankwatch.events.envelope import EventData
from hankwatch.sentinels.tokens import (
    LEAST_FOR_A_CHARACTER,
    TOKENS_PER_MESSAGE,
    estimate_tokens,
    request_tokens,
)

if TYPE_CHECKING:
    from hankwatch.llm.client import Message

__all__ = ["TOKENS_PER_MESSAGE", "Shown", "counted", "estimate_tokens", "fitted", "request_tokens"]

STUB_CHARS = 300
"""What is kept of each long text of an event, its beginning and its end, as long as that helps."""
_LEAST_CHARS = 40
"""What is kept of the newest event's texts in any case; ids, stamps and names are not longer."""
_CHARS_OF_AN_ITEM = 8
"""A list or a free-form object may have one item for so many characters of a text."""
_MARK_CHARS = 42
"""Room for what is said in place of the middle of a text."""
_COUNTED_AT_ONCE_CHARS = 50_000
"""More is counted in a thread."""


async def counted(messages: "Sequence[Message]") -> int:
    """``request_tokens``, without keeping the event loop from others."""
    if sum(len(message.content) for message in messages) <= _COUNTED_AT_ONCE_CHARS:
        return request_tokens(messages)
    return await run_sync(request_tokens, messages)


@dataclass(frozen=True, slots=True)
class Shown:
    """The events of a trigger as a prompt shows them."""

    events: list[EventData]
    """Envelopes, in order."""
    shortened: int = 0
    """How many of them are there with their long texts cut."""
    dropped: int = 0
    """How many older ones are not there at all."""

    @property
    def omitted(self) -> int:
        """Events that are not shown whole: what templates see as ``it.trigger.omitted``."""
        return self.shortened + self.dropped

    @property
    def notice(self) -> str:
        """What the prompt says of it."""
        said = [f"the oldest {self.dropped} are left out"] if self.dropped else []
        said += [f"the long texts of {self.shortened} are cut"] if self.shortened else []
        total = len(self.events) + self.dropped
        return f"[Shortened to fit the model's context window: of {total} events {' and '.join(said)}.]\n\n"


Render = Callable[[Shown], Awaitable["tuple[Message, ...]"]]


async def fitted(
    render: Render, events: list[EventData], room_tokens: int | None
) -> "tuple[tuple[Message, ...], Shown]":
    """The messages that ``render`` makes of as much of ``events`` as fits into ``room_tokens`` (None: of all).

    Long texts are cut to ``STUB_CHARS``, the oldest events' first and the newest event's no more than has to be;
    then the oldest events go, and the newest has what room they leave; it is always there, alone it is cut further.
    A prompt that is too long
    even so is returned nevertheless: its length is not the events' fault, and the estimate may be too high.
    """
    whole = Shown(events)
    messages = await render(whole)
    if room_tokens is None or await _fits(messages, room_tokens):
        return messages, whole
    steps = _Steps(events)

    async def fits(shown: Shown) -> bool:
        return await _fits(await render(shown), room_tokens)

    async def lowest(at: Callable[[int], Shown], low: int, high: int) -> int:
        """The first place that fits, or ``high``: each leaves out more than the one before it."""
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if await fits(at(middle)) else (middle + 1, high)
        return low

    step = await lowest(steps.shown, 1, steps.last)
    shown = steps.shown(step)
    if shown.dropped > 0 and step <= steps.last_drop:
        # Where an event went there is room, though not for an event: the newest one has it.
        cuts = await lowest(lambda cuts: steps.after(shown.dropped, cuts), 0, steps.newest_cuts)
        shown = steps.after(shown.dropped, cuts)
    return await render(shown), shown


async def _fits(messages: "Sequence[Message]", room_tokens: int) -> bool:
    if sum(len(message.content) for message in messages) * LEAST_FOR_A_CHARACTER > room_tokens:
        return False
    return await counted(messages) <= room_tokens


class _Steps:
    """What may be left out, step by step, of at least one event."""

    def __init__(self, events: Sequence[EventData]) -> None:
        self._events = events
        self._stubs = [_cut(event, STUB_CHARS) for event in events]
        longest = max(_lengths(events[-1]["data"]), default=0)
        self._older = len(events) - 1
        self.newest_cuts = max(0, longest - STUB_CHARS)
        """How many characters the newest event's longest text has beyond a stub."""
        self.last_drop = 2 * self._older + self.newest_cuts
        """The step that leaves the newest event alone, as a stub."""
        self.last = self.last_drop + STUB_CHARS - _LEAST_CHARS
        """The step that leaves out the most."""

    def shown(self, step: int) -> Shown:
        """The events after so many steps."""
        stubs = min(step, self._older)
        cuts = min(step - stubs, self.newest_cuts)
        dropped = min(step - stubs - cuts, self._older)
        return self._shown(dropped, stubs, step - stubs - dropped)

    def after(self, dropped: int, cuts: int) -> Shown:
        """The stubs that are left when so many of the oldest events are gone, and the newest event."""
        return self._shown(dropped, self._older, cuts)

    def _shown(self, dropped: int, stubs: int, cuts: int) -> Shown:
        newest = self._events[-1]
        shown = [*self._stubs[dropped:stubs], *self._events[stubs : self._older]]
        shown.append(_cut(newest, STUB_CHARS + self.newest_cuts - cuts) if cuts else newest)
        cut = sum(event is not given for event, given in zip(shown, self._events[dropped:], strict=True))
        return Shown(shown, cut, dropped)


def _lengths(value: Any) -> Iterator[int]:
    """The lengths of all that can be cut, in characters of a text."""
    if isinstance(value, str):
        yield len(value)
    elif isinstance(value, (list, dict)):
        yield len(value) * _CHARS_OF_AN_ITEM
        for item in value.values() if isinstance(value, dict) else value:
            yield from _lengths(item)


def _cut(event: EventData, limit: int) -> EventData:
    """An event whose texts have at most ``limit`` characters, itself when none has more.

    Its fields stay, so that a template finds what it names; lists and free-form objects lose their middle alike.
    """
    data = {key: _short(item, limit) for key, item in event["data"].items()}
    return event if data == event["data"] else {**event, "data": data}


def _short(value: Any, limit: int) -> Any:
    if isinstance(value, str):
        return _ends(value, limit)
    if isinstance(value, dict):
        return {key: _short(item, limit) for key, item in _few([*value.items()], limit)}
    return [_short(item, limit) for item in _few(value, limit)] if isinstance(value, list) else value


def _few(items: list[Any], limit: int) -> list[Any]:
    few = limit // _CHARS_OF_AN_ITEM
    return items if len(items) <= few else items[: few - few // 3] + items[len(items) - few // 3 :]


def _ends(text: str, limit: int) -> str:
    """The beginning and the end of a text that is too long, two parts to one."""
    if len(text) <= limit:
        return text
    if limit >= STUB_CHARS:
        kept = limit - _MARK_CHARS
        mark = f" [… {len(text) - kept:,} characters left out …] "
    else:
        mark = " … "
        kept = limit - len(mark)
    return text[: kept - kept // 3] + mark + text[len(text) - kept // 3 :]
