"""What the fires of an attempt would cost, from a sample of their prompts (spec cli, ``try``)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from random import Random
from statistics import StatisticsError, fmean, linear_regression

from hankwatch.bench.attempt import Fire, render
from hankwatch.core.errors import RenderFault
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import Message
from hankwatch.llm.registry import Price
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.config import MaxTokens, MaxTurns, SentinelConfig
from hankwatch.sentinels.prompts import read_prompts
from hankwatch.sentinels.schema import answer_schema
from hankwatch.sentinels.source import SentinelSource
from hankwatch.sentinels.strategies import event_bytes
from hankwatch.sentinels.tokens import estimate_tokens, request_tokens

REPLY_TOKENS = 300
"""What a reply is taken to have, two paragraphs, unless the sentinel allows less."""
SAMPLE_SIZE = 20
"""Prompts that are rendered at most; the others' tokens follow from the size of their events."""
BUILTIN = "builtin/"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a sentinel's model calls would cost on this recording."""

    cost_usd: float | None
    """None when the registry has no price of the model, or no prompt could be rendered."""
    most_usd: float | None = None
    """The same if each reply were as long as the sentinel allows."""
    input_tokens: int = 0
    """Of all prompts, rather too many than too few."""
    reply_tokens: int = 0
    """Assumed for each reply."""
    longest_reply_tokens: int = 0
    rendered: int = 0
    """Prompts that were rendered for this."""
    failed: int = 0
    """Of these, those that failed and so would not have been sent."""


class FireSample:
    """Some of the fires, the same ones every time: each as likely as another, the smallest and the largest."""

    def __init__(self) -> None:
        self.count = 0
        self.size_bytes = 0
        """Of all events of all fires."""
        self._random = Random(0)  # noqa: S311 - a sample, not a secret
        self._any: list[Fire] = []
        self._smallest: tuple[int, Fire] | None = None
        self._largest: tuple[int, Fire] | None = None

    def note(self, fire: Fire) -> None:
        """Take the next fire into account."""
        self.count += 1
        size = _size(fire)
        self.size_bytes += size
        if self._smallest is None or size < self._smallest[0]:
            self._smallest = size, fire
        if self._largest is None or size > self._largest[0]:
            self._largest = size, fire
        if len(self._any) < SAMPLE_SIZE - 2:
            self._any.append(fire)
        elif (place := self._random.randrange(self.count)) < len(self._any):
            self._any[place] = fire

    @property
    def fires(self) -> list[Fire]:
        """At most ``SAMPLE_SIZE``, in order."""
        ends = (end[1] for end in (self._smallest, self._largest) if end is not None)
        return sorted({fire.number: fire for fire in (*self._any, *ends)}.values(), key=lambda fire: fire.number)


@dataclass(frozen=True, slots=True)
class _Prompt:
    """One rendered prompt."""

    size_bytes: int
    """Of its events."""
    tokens: int
    system_tokens: int


def known_at_once(model: str, catalog: ModelCatalog) -> Estimate | None:
    """The estimate that needs no prompts: of a builtin model, or of one without a price; None for all others."""
    if model.startswith(BUILTIN):
        return Estimate(0.0)
    return Estimate(None) if catalog.price(model) is None else None


async def estimate(sample: FireSample, source: SentinelSource, catalog: ModelCatalog, sandbox: Sandbox) -> Estimate:
    """What the sampled fires, and by them all, would cost with a model that has a price, if no call is repeated.

    Raises:
        PathRefused: a prompt file went away.
        SchemaFault: the schema of its answers cannot be used.
    """
    config = source.config
    assert config is not None
    price = catalog.price(config.model)
    assert price is not None
    info = catalog.info(config.model)
    longest = config.llm_params.max_output_tokens
    if info.context_tokens is not None:
        longest = max(1, min(longest, info.context_tokens // 2))  # as a run shares the window out
    schema = await answer_schema(config, base_dir=source.base_dir, root=source.root, sandbox=sandbox)
    told = estimate_tokens(schema.instructions()) if schema and not info.enforces(schema.for_provider) else 0
    fires = sample.fires
    prompts = [
        _Prompt(prompt.size_bytes, prompt.tokens + told, prompt.system_tokens)
        for prompt in await _rendered(fires, source, config, sandbox)
    ]
    failed = len(fires) - len(prompts)
    if fires and not prompts:
        return Estimate(None, rendered=failed, failed=failed)
    sent = round(sample.count * len(prompts) / len(fires)) if fires else 0
    room = inf if info.context_tokens is None else info.context_tokens - longest
    reply = min(REPLY_TOKENS, longest)
    tokens = _input_tokens(prompts, sample, config, sent=sent, reply=reply, room=room) if sent else 0.0
    return Estimate(
        _cost(price, tokens, sent * reply),
        _cost(price, tokens, sent * longest),
        round(tokens),
        reply,
        longest,
        len(fires),
        failed,
    )


async def _rendered(
    fires: Sequence[Fire], source: SentinelSource, config: SentinelConfig, sandbox: Sandbox
) -> list[_Prompt]:
    prompts = read_prompts(config, base_dir=source.base_dir, root=source.root)
    rendered = []
    for fire in fires:
        try:
            texts = await render(fire, config, prompts, sandbox)
        except RenderFault:
            continue
        system = [Message("system", texts["system"])] if texts["system"] is not None else []
        user = Message("user", texts["user"] or "")
        rendered.append(_Prompt(_size(fire), request_tokens([*system, user]), request_tokens(system)))
    return rendered


def _input_tokens(
    prompts: Sequence[_Prompt], sample: FireSample, config: SentinelConfig, *, sent: int, reply: int, room: float
) -> float:
    prompt = _mean_tokens(prompts, sample.size_bytes / sample.count, room)
    if config.conversational is None:
        return sent * prompt
    turn = prompt - fmean(one.system_tokens for one in prompts) + reply
    return _with_turns(config.conversational.trimming_strategy, sent, prompt, turn, room)


def _with_turns(trimming: MaxTurns | MaxTokens, sent: int, prompt: float, turn: float, room: float) -> float:
    """Tokens of ``sent`` prompts, each after those of the conversation before it that are kept."""
    turns = trimming.max_turns if isinstance(trimming, MaxTurns) else sent
    whole = room if isinstance(trimming, MaxTurns) else min(room, trimming.max_tokens)
    return sum(max(prompt, min(whole, prompt + min(before, turns) * turn)) for before in range(sent))


def _mean_tokens(prompts: Sequence[_Prompt], mean_bytes: float, room: float) -> float:
    """Tokens of a prompt whose events have the mean size of all fires, not of the sampled ones alone."""
    tokens = [min(room, prompt.tokens) for prompt in prompts]
    try:
        slope, base = linear_regression([prompt.size_bytes for prompt in prompts], tokens)
    except StatisticsError:  # fewer than two, or all of one size
        return fmean(tokens)
    return min(max(base + slope * mean_bytes, min(tokens)), max(tokens))


def _cost(price: Price, input_tokens: float, output_tokens: float) -> float:
    return (input_tokens * price.input_usd + output_tokens * price.output_usd) / 1_000_000


def _size(fire: Fire) -> int:
    return sum(map(event_bytes, fire.batch.events))
