"""What fits into a model's context window, and what is left out when a prompt does not (spec sentinels 6)."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hankwatch.events.envelope import EventData

if TYPE_CHECKING:
    from hankwatch.llm.client import Message

BYTES_PER_TOKEN = 3
"""UTF-8 bytes that are counted as one token.

No tokenizer is asked: each model has its own. English prose has four to five bytes to a token, the JSON of
events about three, so the count errs on the side of too many.
"""
TOKENS_PER_MESSAGE = 4
"""What a message costs beside its text."""
_LONG_CHARS = 80
"""A longer string of an event's data is left out with its body."""


def estimate_tokens(text: str) -> int:
    """Tokens of a text, rather too many than too few."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)


def request_tokens(messages: "Iterable[Message]") -> int:
    """Tokens of messages as they are sent."""
    return sum(estimate_tokens(message.content) + TOKENS_PER_MESSAGE for message in messages)


@dataclass(frozen=True, slots=True)
class Shown:
    """The events of a trigger as a prompt shows them."""

    events: list[EventData]
    """Envelopes, in order."""
    shortened: int = 0
    """How many of them, the oldest, are there without their long texts."""
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
        said += [f"the oldest {self.shortened} shown are without their long texts"] if self.shortened else []
        total = len(self.events) + self.dropped
        return f"[Shortened to fit the model's context window: of {total} events {' and '.join(said)}.]\n\n"


Render = Callable[[Shown], Awaitable["tuple[Message, ...]"]]


async def fitted(
    render: Render, events: list[EventData], room_tokens: int | None
) -> "tuple[tuple[Message, ...], Shown]":
    """The messages that ``render`` makes of as much of ``events`` as fits into ``room_tokens`` (None: of all).

    First the oldest events lose their bodies, one after the other; when all have, the oldest go. A prompt that
    is too long with a single event is returned nevertheless: its length is not the events' fault, and the
    estimate may be too high.
    """
    whole = Shown(events)
    messages = await render(whole)
    if room_tokens is None or request_tokens(messages) <= room_tokens:
        return messages, whole
    # Each step up leaves more out, so the lowest that fits is found by halving.
    low, high = 1, 2 * len(events) - 1
    while low < high:
        middle = (low + high) // 2
        if request_tokens(await render(_step(events, middle))) <= room_tokens:
            high = middle
        else:
            low = middle + 1
    shown = _step(events, low)
    return await render(shown), shown


def _step(events: Sequence[EventData], step: int) -> Shown:
    """Step 1 … n: so many bodies are gone; n + 1 … 2n - 1: and so many events beyond n."""
    dropped = max(0, step - len(events))
    shortened = min(step, len(events)) - dropped
    kept = events[dropped:]
    return Shown([*map(_without_body, kept[:shortened]), *kept[shortened:]], shortened, dropped)


def _without_body(event: EventData) -> EventData:
    """An event whose long strings are gone; its fields stay, so that a template finds what it names."""
    return {**event, "data": _short(event["data"])}


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    if isinstance(value, str) and len(value) > _LONG_CHARS:
        return f"[{len(value)} characters left out]"
    return value
