"""What holds for every journal a run writes, whatever happened in it (spec hank 2, spec events, spec sentinels 5)."""

from collections.abc import Iterator, Sequence
from itertools import chain, groupby, pairwise, zip_longest
from typing import Any

from hankwatch.events.envelope import Event

FINAL = {"completed", "failed", "skipped"}
STATES = ("preparing", "starting", "initializing", "running", "completing-sentinels")
RUN_ENDS = {"RunCompleted", "RunFailed"}
OF_THE_AGENT = {"assistant.action", "tool.result"}
OF_A_SENTINEL = {"sentinel.triggered", "sentinel.output", "sentinel.error", "sentinel.unloaded"}
TOKENS = ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")


def check_laws(events: Sequence[Event]) -> None:
    """Raise ``AssertionError`` for the first law that this journal breaks."""
    stamps = [event.timestamp for event in events]
    assert stamps == sorted(stamps), "stamps never go back"
    assert len({event.id for event in events}) == len(events), "ids are unique"
    for run in _split(events, "RunStarted"):
        ended = any(transition(event) in RUN_ENDS for event in run)
        attempts = list(_split(run, "CodonStarted"))
        for attempt, following in zip_longest(attempts, attempts[1:]):
            _check_states(attempt)
            _check_agent(attempt)
            if ended or following is not None:
                _check_end(attempt)
        codons = [list(chain(*group)) for _, group in groupby(attempts, key=lambda a: a[0].data["codonId"])]
        for codon, later in zip_longest(codons, codons[1:]):
            _check_sentinels(codon, ended=ended or later is not None)


def transition(event: Event) -> str | None:
    """The kind of a ``state.transition``, or None for another event."""
    return event.data["transitionType"] if event.type == "state.transition" else None


def moved_to(event: Event) -> str | None:
    """The codon status that an event moves to, or None."""
    is_move = transition(event) == "CodonTransitioned"
    return str(event.data["transition"]["data"]["to"]) if is_move else None


def _split(events: Sequence[Event], kind: str) -> Iterator[list[Event]]:
    """From each transition of this kind to the next; what comes before the first is left out."""
    starts = [index for index, event in enumerate(events) if transition(event) == kind]
    for start, stop in pairwise([*starts, len(events)]):
        yield list(events[start:stop])


def _check_states(attempt: list[Event]) -> None:
    moves = [event.data["transition"]["data"] for event in attempt if moved_to(event)]
    assert all(later["from"] == earlier["to"] for earlier, later in pairwise(moves)), moves
    assert sum(move["to"] in FINAL for move in moves) <= 1, "a final state is final"
    assert not moves or moves[0]["from"] == "preparing"
    assert all(_is_legal(move["from"], move["to"]) for move in moves), moves


def _is_legal(status: str, target: str) -> bool:
    """Reference 3.6: one state after the other; any may fail or be skipped, and only an agent that ran completes."""
    if target in FINAL:
        return target != "completed" or status in {"running", "completing-sentinels"}
    return STATES.index(target) == STATES.index(status) + 1


def _check_end(attempt: list[Event]) -> None:
    ends = [index for index, event in enumerate(attempt) if event.type == "codon.completed"]
    assert len(ends) == 1, "exactly one codon.completed per attempt"
    assert moved_to(attempt[ends[0] - 1]) in FINAL, "the final transition stands directly before codon.completed"


def _check_agent(attempt: list[Event]) -> None:
    types = [event.type for event in attempt]
    assert types.count("codon.started") <= 1
    started = types.index("codon.started") if "codon.started" in types else len(types)
    completed = types.index("codon.completed") if "codon.completed" in types else len(types)
    for index, event in enumerate(attempt):
        if event.type in OF_THE_AGENT or event.type == "token.usage":
            assert started < index < completed, "an agent's events lie between codon.started and codon.completed"
    if started < len(types):
        assert moved_to(attempt[started - 1]) == "running"
    usages: list[dict[str, Any]] = [event.data for event in attempt if event.type == "token.usage"]
    finals = [usage for usage in usages if usage.get("isFinal")]
    assert len(finals) <= 1
    for name in TOKENS if finals else ():
        parts = sum(usage[name] for usage in usages if not usage.get("isFinal"))
        assert parts == finals[0][name], f"increments of {name} add up to the final one"


def _check_sentinels(codon: list[Event], *, ended: bool) -> None:
    """They stay loaded over all attempts of their codon."""
    present: set[str] = set()
    announced: set[tuple[str, int]] = set()
    for event in codon:
        sentinel_id = event.data.get("sentinelId", "")
        if event.type == "sentinel.loaded":
            assert sentinel_id not in present
            present.add(sentinel_id)
        elif event.type in OF_A_SENTINEL and event.data.get("errorType") != "load-failed":
            assert sentinel_id in present, f"{event.type} of {sentinel_id} outside its load and unload"
        if event.type == "sentinel.triggered":
            announced.add((sentinel_id, event.data["triggerNumber"]))
        elif event.type == "sentinel.output":
            assert (sentinel_id, event.data["triggerNumber"]) in announced
        elif event.type == "sentinel.unloaded":
            present.remove(sentinel_id)
    assert not (ended and present), "what was loaded is unloaded before the next codon starts or the run ends"
