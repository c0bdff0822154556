"""A payload prepared in a thread becomes the same event as any other."""

import gc
from pathlib import Path

import anyio.to_thread
import pytest
from tests.support.streams import Bench

from hankwatch.core.redaction import Redactor
from hankwatch.events.activity import AssistantAction
from hankwatch.stream.journal import Journal
from hankwatch.stream.prepared import Prepared

SECRET = "a value nobody may see"


def said(text: str) -> AssistantAction:
    return AssistantAction(codon_id="c", action="message", content=text)


@pytest.mark.parametrize("text", ["x" * 100_000, f"it is {SECRET}!", "합 🎉 é\u2028\n", "lone \ud800", ""])
async def test_a_prepared_payload_is_written_and_heard_as_any_other(text: str, tmp_path: Path) -> None:
    lines, heard = [], []
    for prepared in (False, True):
        path = tmp_path / f"{prepared}.jsonl"
        bench = Bench(Journal.open(path), {"SECRET": SECRET})
        bench.stream.subscribe(lambda event: heard.append((event.data, event.size_bytes)), name="hear")
        payload = said(text)
        if prepared:
            await anyio.to_thread.run_sync(bench.stream.prepare, payload)
        bench.stream.emit(payload)
        bench.stream.close()
        lines.append(path.read_bytes())
    assert lines[0] == lines[1]
    assert heard[0] == heard[1]
    assert SECRET.encode() not in lines[1]


async def test_what_was_prepared_serves_one_event_and_the_next_one_is_made_anew() -> None:
    bench = Bench(None)
    payload = said("again")
    bench.stream.prepare(payload)
    [first], [second] = bench.stream.emit(payload), bench.stream.emit(payload)
    assert first.data == second.data
    assert first.data is not second.data


def test_a_payload_that_nobody_emits_is_not_kept() -> None:
    prepared = Prepared(Redactor())
    prepared.add(said("x"))
    gc.collect()
    assert not prepared._data
