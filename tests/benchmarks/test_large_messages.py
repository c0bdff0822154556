"""A message of 10 MB is read and made an event of in a thread; what is left for the loop is bounded.

Run with ``make bench``; prints what it measured.
"""

import json
import time
from pathlib import Path

import pytest
from tests.support.streams import Bench

from hankwatch.agents.claude import ClaudeDialect
from hankwatch.agents.translate import Translator
from hankwatch.stream.journal import Journal

pytestmark = pytest.mark.benchmark

LINES = "a line of 'text' with a number 12345 in it\n"
ROUNDS = 5


def emit_s(path: Path, text: str, *, prepared: bool) -> float:
    """What the loop's thread computes for the event of one large message, in seconds."""
    message = {"id": "m", "role": "assistant", "content": [{"type": "text", "text": text}]}
    line = json.dumps({"type": "assistant", "message": message}).encode()
    bench = Bench(Journal.open(path), {"KEY": "a value nobody may see"})
    [signal] = ClaudeDialect().feed(line)
    [payload] = Translator("c").translate(signal, 0)
    if prepared:
        bench.stream.prepare(payload)
    before = time.thread_time()
    bench.stream.emit(payload)
    spent_s = time.thread_time() - before
    bench.stream.close()
    return spent_s


@pytest.mark.parametrize("unit", ["A", LINES])
def test_preparing_a_large_message_takes_most_of_its_work_off_the_loop(unit: str, tmp_path: Path) -> None:
    text = unit * (10_000_000 // len(unit))
    spent: dict[bool, list[float]] = {True: [], False: []}
    for number in range(2 * ROUNDS):
        prepared = number % 2 == 0
        spent[prepared].append(emit_s(tmp_path / f"{number}.jsonl", text, prepared=prepared))
    with_s, without_s = min(spent[True]), min(spent[False])
    print(f"\nemitting {len(text):,} characters: {1000 * with_s:.1f} ms prepared, {1000 * without_s:.1f} ms not")
    assert with_s <= 0.7 * without_s
