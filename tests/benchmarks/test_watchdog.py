"""What the loop watchdog costs per character and per call, and what it keeps (spec watchdog 0: < 2 µs, < 16 KB)."""

import random
import statistics
import time
from collections.abc import Sequence

import pytest
from tests.support.sizes import deep_size
from tests.support.watchdog import call, feeds_of

from hankwatch.watchdog.core import WatchdogCore
from hankwatch.watchdog.policy import WatchdogPolicy
from hankwatch.watchdog.signals import Delta, RoundEnd, RoundStart, Signal, TurnStart

pytestmark = pytest.mark.benchmark

CHARS = 100_000
ROUNDS = 5
MAX_US_PER_CHAR = 2.0
MAX_STATE_BYTES = 16 * 1024
WORDS = [
    "scheduler",
    "reads",
    "the",
    "priority",
    "field",
    "once",
    "at",
    "start",
    "and",
    "then",
    "a",
    "worker",
    "never",
    "looks",
    "again",
    "which",
    "explains",
    "that",
    "stall",
    "so",
    "fix",
    "is",
    "to",
    "read",
    "it",
    "on",
    "each",
    "pass",
    "before",
    "queue",
    "drains",
    "config",
    "port",
    "module",
    "interface",
    "public",
    "parser",
    "token",
]


def prose() -> str:
    chance = random.Random(7)
    sentences = (" ".join(chance.choices(WORDS, k=chance.randint(6, 16))) for _ in range(CHARS // 30))
    return ". ".join(sentences)[:CHARS]


def cjk() -> str:
    chance = random.Random(7)
    sentences = (
        "".join(chance.choices("我需要先确认配置文件里的端口是否正确", k=chance.randint(12, 40)))
        for _ in range(CHARS // 20)
    )
    return "。".join(sentences)[:CHARS]


TEXTS = {
    "prose": prose(),
    "CJK": cjk(),
    "code": "    value = call(argument) + other;\n" * (CHARS // 36),
    "marks": "?!" * (CHARS // 2),
    "one long line": "=" * CHARS,
    "a fence": "```\n" + "anything at all. " * (CHARS // 17),
}


def us_each(signals: Sequence[Signal]) -> float:
    """CPU microseconds per signal, the median of a few rounds; every round feeds a new watchdog."""
    rounds = []
    for _ in range(ROUNDS):
        watchdog = WatchdogCore(WatchdogPolicy())
        watchdog.feed(TurnStart(), 0.0)
        before = time.process_time()
        for signal in signals:
            watchdog.feed(signal, 0.0)
        rounds.append(time.process_time() - before)
    return 1e6 * statistics.median(rounds) / len(signals)


@pytest.mark.parametrize("size", [4, 20, 1_000])
@pytest.mark.parametrize("name", TEXTS)
def test_a_character_of_a_delta_is_cheap(name: str, size: int) -> None:
    text = TEXTS[name]
    # A round of its own for each 2,000 characters, so that a repetition does not end the work.
    signals: list[Signal] = []
    for start in range(0, len(text), 2_000):
        part = text[start : start + 2_000]
        signals += [TurnStart(), RoundStart(), *(Delta("text", part[i : i + size]) for i in range(0, len(part), size))]
    each = us_each(signals) * len(signals) / len(text)
    print(f"\n{name}, deltas of {size}: {each:.2f} µs per character")
    assert each < MAX_US_PER_CHAR


def test_a_call_is_cheap() -> None:
    rounds = [
        {"calls": [call("bash", "ok", f"line {number}\n" * 20, command=f"make target{number % 40}")], "dt": 1.0}
        for number in range(2_000)
    ]
    signals = [signal for signal, _ in feeds_of({"turns": [{"rounds": rounds}]})]
    each = us_each(signals) * len(signals) / len(rounds)
    print(f"\na round of one call, its result of 200 characters included: {each:.0f} µs")
    assert each < 500


@pytest.mark.parametrize("name", TEXTS)
def test_the_state_is_small_after_a_million_characters(name: str) -> None:
    policy = WatchdogPolicy(max_think_nudges=0, interrupt_on_cap=False, min_armed_sentences=10**9)
    watchdog = WatchdogCore(policy)
    for number in range(40):
        watchdog.feed(RoundStart(), 0.0)
        watchdog.feed(Delta("thinking", TEXTS[name][: CHARS // 4]), 0.0)
        watchdog.feed(Delta("text", TEXTS[name][: CHARS // 4]), 0.0)
        for signal, _ in feeds_of(
            {"turns": [{"rounds": [{"calls": [call(f"tool{number}", "ok", str(number))], "dt": 1.0}]}]}
        ):
            if not isinstance(signal, TurnStart | RoundStart | RoundEnd):
                watchdog.feed(signal, 0.0)
        watchdog.feed(Delta("text", TEXTS[name][:1_900]), 0.0)
        watchdog.feed(Delta("thinking", TEXTS[name][:1_900]), 0.0)
    size = deep_size(watchdog, shared=[policy])
    print(f"\n{name}: {size:,} bytes of state")
    assert size < MAX_STATE_BYTES
