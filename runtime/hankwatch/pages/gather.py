"""The facts of a run with what lies beside its fold: the events that caused fires, and the prompts."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from hankwatch.core.errors import ModelCallFailed
from hankwatch.events.envelope import Event
from hankwatch.llm.client import ModelReply
from hankwatch.llm.recorded import RecordedCall
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fires import CallFacts, CitedEvent, Fire, Said, json_text
from hankwatch.pages.gist import gist, is_failure
from hankwatch.pages.limits import Limits
from hankwatch.pages.visible import Excerpt
from hankwatch.pages.words import Cost

FindEvents = Callable[[Collection[str]], Iterable[Event]]
"""The journal's events of these ids, in order."""
_SLACK_MS = 1_000
"""A call's stamps and its fire's are told by two clocks."""


def cite(facts: RunFacts, find: FindEvents) -> None:
    """Put the events that caused its fires into ``facts``: each once, linked with all fires it caused."""
    wanted: dict[str, list[Fire]] = {}
    uncited = 0
    for fire in _shown_fires(facts):
        fire.events = []
        for event_id in fire.event_ids:
            if event_id in wanted or len(wanted) < facts.limits.events:
                wanted.setdefault(event_id, []).append(fire)
            else:
                uncited += 1
    if wanted:
        for event in find(wanted):
            fires = wanted.pop(event.id, None)
            if fires is not None:
                cited = _cited(event, len(facts.events) + 1, facts.limits)
                cited.fires = fires
                facts.events.append(cited)
                for fire in fires:
                    fire.events.append(cited)
    facts.uncited = uncited + len(wanted)


def add_calls(facts: RunFacts, calls: Iterable[RecordedCall]) -> None:
    """Put each call that belongs to a fire of ``facts`` beside it; counts those of the run without a price."""
    facts.call_log = True
    by_id: dict[str, Fire] = {}
    by_label: dict[tuple[str, str, int], list[Fire]] = {}
    for fire in _shown_fires(facts):
        fire.calls = []
        if fire.call_id is not None:
            by_id[fire.call_id] = fire
        by_label.setdefault((fire.sentinel_id, fire.codon_id, fire.number), []).append(fire)
    room, unpriced = _Room(facts.limits), 0
    for call in calls:
        if call.started_ms is None or facts.began_ms - _SLACK_MS <= call.started_ms <= facts.ended_ms + _SLACK_MS:
            unpriced += _cost(call).unpriced
        fire_of = by_id.get(call.id) or _by_label(call, by_label)
        if fire_of is not None:
            fire_of.calls.append(_call_facts(call, room))
    facts.unpriced_calls = max(facts.unpriced_calls, unpriced)
    facts.sentinel_cost = Cost(facts.sentinel_cost.known_usd, facts.unpriced_calls)


def _shown_fires(facts: RunFacts) -> Iterable[Fire]:
    fires = sorted((fire for sentinel in facts.sentinels for fire in sentinel.fires), key=lambda fire: fire.anchor)
    return fires[: facts.limits.fires]


def _cited(event: Event, anchor: int, limits: Limits) -> CitedEvent:
    return CitedEvent(
        anchor,
        event.at_ms,
        event.type,
        is_failure(event),
        Excerpt.of(" ".join(gist(event)[: limits.payload_chars].split()), limits.gist_chars),
        Excerpt.of(json_text(event.data), limits.payload_chars),
        event.size_bytes,
    )


def _by_label(call: RecordedCall, fires: dict[tuple[str, str, int], list[Fire]]) -> Fire | None:
    """The fire that a call without an answer was made for: its labels and its time say so."""
    labels = call.request.labels
    number = labels.get("triggerNumber")
    key = (str(labels.get("sentinelId")), str(labels.get("codonId")), number if isinstance(number, int) else 0)
    for fire in fires.get(key, ()):
        ended_ms = fire.ended_ms if fire.ended_ms is not None else fire.at_ms
        if call.started_ms is not None and fire.at_ms - _SLACK_MS <= call.started_ms <= ended_ms + _SLACK_MS:
            return fire
    return None


@dataclass(slots=True)
class _Room:
    """How many characters of prompts still fit on the page."""

    limits: Limits
    used: int = 0

    def excerpt(self, text: str) -> Excerpt:
        left = max(0, self.limits.all_prompt_chars - self.used)
        made = Excerpt.of(text, min(left, self.limits.prompt_chars))
        self.used += len(made.text)
        return made


def _call_facts(call: RecordedCall, room: _Room) -> CallFacts:
    reply = call.outcome if isinstance(call.outcome, ModelReply) else None
    return CallFacts(
        call.id,
        call.request.model,
        tuple(Said(message.role, room.excerpt(message.content)) for message in call.request.messages),
        _cost(call),
        reply.input_tokens if reply else None,
        reply.output_tokens if reply else None,
        call.outcome.attempts,
        call.duration_ms,
        call.outcome.reason if isinstance(call.outcome, ModelCallFailed) else "",
    )


def _cost(call: RecordedCall) -> Cost:
    known = call.outcome.cost_usd
    return Cost(known or 0.0, int(known is None or not call.outcome.cost_complete))
