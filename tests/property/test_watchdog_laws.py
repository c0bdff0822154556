"""Laws of the loop watchdog: the cut of a text into deltas, retries, and how often it may act (spec watchdog 6.3)."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.cases import Case, cases_of
from tests.support.sizes import deep_size
from tests.support.watchdog import Feed, a_turn, call, calling, feeds_of, run, watch

from hankwatch.watchdog.core import WatchdogCore
from hankwatch.watchdog.policy import WatchdogPolicy
from hankwatch.watchdog.segments import Segment, Segmenter
from hankwatch.watchdog.signals import (
    Call,
    Channel,
    Delta,
    Interrupt,
    Nudge,
    Result,
    Retry,
    RoundEnd,
    RoundStart,
    TurnStart,
)

SENTENCES = [
    "The lock is taken before the queue is read. ",
    "The queue is read before the lock is taken!\n",
    "So the config has to name port 8080. ",
    "- Check the e.g. approx. 3.5 values (twice).\n",
    "我需要先确认配置文件里的端口是否正确。",
    "彼女は「もう一度テストを実行してください。」と言いました。",
    "yes agree ",
    "Hmm. Wait. ",
    "?!" * 40,
    "=" * 80,
    "| a | b |\n",
    "    indented(code);\n",
    "```py\nprint(1)\n```\n",
    "~~~\n",
    "😀",
]
TEXTS = st.lists(
    st.one_of(
        st.builds(lambda piece, times: piece * times, st.sampled_from(SENTENCES), st.integers(1, 50)),
        st.text(" \n\t.!?…。！？；\"')」`~|*_-1aZ字ы{;=", max_size=60),
    ),
    max_size=3,
).map("".join)
SIZES = [1, 2, 5, 13, 64]
CHANNELS: tuple[Channel, ...] = ("thinking", "text")


def in_deltas(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def at(text: str, places: Sequence[int]) -> list[str]:
    """``text`` cut at these places, which may be anywhere and empty pieces too."""
    cuts = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    return [text[start:end] for start, end in pairwise(cuts)]


CUTS = st.one_of(
    st.sampled_from(SIZES).map(lambda size: lambda text: in_deltas(text, size)),
    st.lists(st.integers(0, 4_000), max_size=40).map(lambda places: lambda text: at(text, places)),
)


@settings(max_examples=100)
@given(TEXTS, CUTS, st.booleans())
def test_a_segment_is_known_at_the_same_character_however_the_text_is_cut(text: str, cut: Any, fences: bool) -> None:
    one_by_one = Segmenter(fences=fences)
    known = [one_by_one.feed(char) for char in text]
    pieces = list(cut(text))
    segmenter = Segmenter(fences=fences)
    for end, piece in zip(accumulate(map(len, pieces)), pieces, strict=True):
        expected = [segment for found in known[end - len(piece) : end] for segment in found]
        assert list(segmenter.feed(piece)) == expected
    assert segmenter.flush(end=True) == one_by_one.flush(end=True)


@settings(max_examples=100)
@given(TEXTS, st.booleans())
def test_segments_are_parts_of_the_text_in_its_order_and_bounded(text: str, fences: bool) -> None:
    segmenter = Segmenter(fences=fences)
    segments: list[Segment] = [*segmenter.feed(text), *segmenter.flush(end=True)]
    place = 0
    for segment in segments:
        assert len(segment.text) <= (2_000 if segment.kind == "raw" else 400)
        place = text.index(segment.text, place) + len(segment.text)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", cases_of("watchdog"))
def test_the_cut_into_deltas_changes_no_action_in_any_case(case: Case, size: int) -> None:
    assert watch(case, lambda text: in_deltas(text, size)) == watch(case, lambda text: [text])


SPEECH = st.fixed_dictionaries({}, optional={"think": TEXTS, "text": TEXTS})
CALLS = st.lists(
    st.builds(
        call,
        st.sampled_from(["read", "bash"]),
        st.sampled_from(["ok", "ok", "error", "denied", "cancelled", "infra"]),
        st.sampled_from(["", "x", "y"]),
        tool_class=st.sampled_from([None, None, "mutate", "poll", "wait", "noop"]),
        n=st.integers(0, 2),
    ),
    max_size=3,
)
ROUNDS = st.builds(
    lambda said, calls, dt, voided: {**said, "calls": calls, "dt": dt, **({"voided": voided} if voided else {})},
    SPEECH,
    CALLS,
    st.sampled_from([0.0, 1.0, 10.0, 60.0]),
    st.none(),
)
RUNS = st.lists(st.lists(ROUNDS, min_size=1, max_size=8).map(lambda rounds: {"rounds": rounds}), min_size=1, max_size=3)
NEAR = st.builds(lambda piece, times: {"text": piece * times}, st.sampled_from(SENTENCES[:2]), st.integers(0, 5))
"""Speech in which every sentence brings a tier nearer."""
STUCK = st.lists(
    st.builds(
        lambda said, calls, dt: {**said, "calls": calls, "dt": dt},
        st.one_of(st.just({}), NEAR),
        st.sampled_from([[call("look")], [call("run", "error")], [call("look"), call("run", "error")], []]),
        st.sampled_from([0.0, 1.0, 10.0, 60.0]),
    ),
    min_size=8,
    max_size=30,
).map(lambda rounds: {"rounds": rounds})
"""A turn in which nothing new happens."""
POLICIES = st.fixed_dictionaries(
    {},
    optional={
        "max_consecutive_errors": st.integers(0, 4),
        "max_rounds_without_success": st.integers(0, 4),
        "refractory_rounds": st.integers(0, 4),
        "refractory_seconds": st.sampled_from([0.0, 0.5, 20.0, 100.0]),
        "max_think_nudges": st.integers(0, 3),
        "interrupt_on_cap": st.booleans(),
        "min_armed_sentences": st.integers(0, 10),
        "mode": st.sampled_from(["act", "observe"]),
    },
)


@settings(max_examples=60)
@given(RUNS, POLICIES, CUTS)
def test_the_cut_into_deltas_changes_no_action(turns: Any, policy: dict[str, Any], cut: Any) -> None:
    case = {"turns": turns}
    assert watch(case, cut, **policy) == watch(case, lambda text: [text], **policy)


@settings(max_examples=80)
@given(st.lists(STUCK, min_size=1, max_size=2), POLICIES)
def test_actions_are_bounded_by_refractory_and_cap(turns: Any, policy: dict[str, Any]) -> None:
    limits = WatchdogPolicy(**policy)
    watchdog = WatchdogCore(limits)
    for turn in turns:
        nudges: list[tuple[Nudge, float]] = []
        interrupts = 0
        rounds, began, at_s = 0, None, 0.0
        for signal, instant in feeds_of({"turns": [turn]}):
            at_s = instant
            began = at_s if began is None else began
            rounds += isinstance(signal, RoundEnd)
            actions = watchdog.feed(signal, at_s)
            assert len(actions) <= 1
            nudges += [(action, at_s) for action in actions if isinstance(action, Nudge)]
            interrupts += sum(isinstance(action, Interrupt) for action in actions)
        escalations = [nudge for nudge, _ in nudges if nudge.kind == "escalation"]
        assert len(escalations) <= 1 + rounds / max(1, limits.refractory_rounds)
        if limits.refractory_seconds:
            assert len(escalations) <= 1 + (at_s - (began or 0.0)) / limits.refractory_seconds
        assert len(nudges) - len(escalations) <= limits.max_think_nudges
        assert interrupts <= (1 if limits.interrupt_on_cap else 0)
        for (_, before), (later, instant) in pairwise(nudges):
            assert later.kind == "break_loop" or instant - before >= limits.refractory_seconds


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 4), POLICIES)
def test_a_turn_without_repetition_or_failure_is_left_alone(rounds: int, batch: int, policy: dict[str, Any]) -> None:
    told = [
        calling(
            *(call("read", "ok", f"content {number} of {index}", n=number, i=index) for index in range(batch)),
            text=f"In step {number} the part called name{number} of the parser is read. ",
            think=f"Part {number} may explain why module{number} fails, so it comes next in the list.\n",
        )
        for number in range(rounds)
    ]
    assert watch(a_turn(*told), **policy) == []


@settings(max_examples=200)
@given(
    st.lists(NEAR, min_size=1, max_size=6),
    NEAR,
    CALLS,
    st.integers(0, 5),
    st.fixed_dictionaries(
        {"min_armed_sentences": st.integers(0, 8), "max_think_nudges": st.integers(0, 1), "mode": st.just("observe")},
        optional={"interrupt_on_cap": st.booleans()},
    ),
)
def test_an_attempt_undone_by_a_retry_has_never_been(
    told: list[dict[str, str]], said: dict[str, str], calls: Any, where: int, policy: dict[str, Any]
) -> None:
    plain = list(feeds_of(a_turn(*told)))
    starts = [index for index, (signal, _) in enumerate(plain) if isinstance(signal, RoundStart)]
    begin = starts[where % len(starts)]
    attempt = list(_inside(a_turn({**said, "calls": calls}), plain[begin][1]))
    before = [*plain[: begin + 1], *attempt]
    if run(before, **policy) == run(plain[: begin + 1], **policy):  # what was said to the agent is not taken back
        retried = [*before, (Retry(), plain[begin][1]), *plain[begin + 1 :]]
        assert run(retried, **policy) == run(plain, **policy)


def _inside(case: Any, at_s: float) -> Iterator[Feed]:
    """What happens between the start and the end of a case's only round."""
    for signal, _ in feeds_of(case):
        if not isinstance(signal, TurnStart | RoundStart | RoundEnd):
            yield signal, at_s


@settings(max_examples=60)
@given(RUNS, POLICIES)
def test_a_new_turn_knows_nothing_of_the_one_before(turns: Any, policy: dict[str, Any]) -> None:
    *_, last = turns
    alone = watch({"turns": [last]}, **policy)
    rounds_before = sum(len(turn["rounds"]) for turn in turns) - len(last["rounds"])
    after = [action for action in watch({"turns": turns}, **policy) if action.round > rounds_before]
    assert [(type(a), a.round, a.trigger, a.detail) for a in alone] == [
        (type(a), a.round - rounds_before, a.trigger, a.detail) for a in after
    ]


@settings(max_examples=60)
@given(STUCK, POLICIES)
@example(
    turn={
        "rounds": [
            {
                "calls": [{"name": "look", "args": {}, "outcome": "ok", "result": ""}],
                "dt": 0.0,
                "text": "I will look at the next file of the list now. " * 4,
            }
        ]
        * 8
    },
    policy={"mode": "observe", "refractory_seconds": 0.0, "refractory_rounds": 0, "max_think_nudges": 9},
)
def test_a_round_has_one_action_at_most(turn: Any, policy: dict[str, Any]) -> None:
    long = {"rounds": [{**told, "text": told.get("text", "") * 6} for told in turn["rounds"]]}
    rounds = [action.round for action in watch({"turns": [long]}, lambda text: in_deltas(text, 64), **policy)]
    assert len(rounds) == len(set(rounds))


@pytest.mark.parametrize("length", [100_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    "piece", ["Part {} of the walk covers module {} as well. ", "?!", "我需要先确认配置{}。", "| {} | cell {} "]
)
def test_the_state_stays_small_however_much_is_said(piece: str, length: int) -> None:
    policy = WatchdogPolicy(min_armed_sentences=10**9)
    watchdog = WatchdogCore(policy)
    chars = number = 0
    while chars < length:
        number += 1
        watchdog.feed(RoundStart(), 0.0)
        for channel in CHANNELS:
            text = "".join(piece.format(number * 100 + index, index) for index in range(1_999 // len(piece)))
            chars += len(text)
            watchdog.feed(Delta(channel, text), 0.0)
        watchdog.feed(Call("a", f"tool{number}", {"n": number}), 0.0)
        watchdog.feed(Result("a", "ok", str(number)), 0.0)
        for channel in CHANNELS:
            watchdog.feed(Delta(channel, text), 0.0)
    assert deep_size(watchdog, shared=[policy]) < 16 * 1024


def test_a_delta_of_another_channel_in_between_changes_nothing() -> None:
    text = "The lock is taken before the queue is read. " * 10
    mixed: list[Feed] = [(TurnStart(), 0.0), (RoundStart(), 0.0)]
    for piece in in_deltas(text, 7):
        mixed += [(Delta("text", piece), 0.0), (Delta("thinking", "x"), 0.0)]
    found = run(mixed)
    assert [action.trigger for action in found] == ["sentence_strict"]
