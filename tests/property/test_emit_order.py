"""Whatever listeners and timers emit: everyone hears the journal's order, each event once."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from tests.support.streams import Bench, info, message

from hankwatch.events.envelope import Event
from hankwatch.stream import Journal, JournalReader

Reaction = dict[str, list[str]]
"""What a listener emits when it first hears a message."""

names = st.sampled_from([f"m{n}" for n in range(8)])
reactions = st.lists(st.dictionaries(names, st.lists(names, min_size=1, max_size=3), max_size=5), max_size=3)
steps = st.lists(st.tuples(st.integers(-50, 50), st.lists(names, max_size=3)), max_size=6)
timers = st.lists(st.tuples(st.integers(0, 120), names), max_size=4)


def react(bench: Bench, reaction: Reaction, number: int) -> None:
    waiting = dict(reaction)

    def listener(event: Event) -> None:
        answers = waiting.pop(message(event), [])
        bench.stream.emit(*map(info, answers))
        if len(answers) == 2:
            raise ValueError("and then it failed")

    bench.stream.subscribe(listener, name=f"reaction {number}")


@given(reactions, steps, timers)
def test_every_listener_hears_the_journal(
    reacting: list[Reaction], emits: list[tuple[int, list[str]]], due: list[tuple[int, str]]
) -> None:
    with TemporaryDirectory() as folder:
        bench = Bench(Journal.open(Path(folder) / "events.jsonl", sync_interval_s=None))
        first: list[Event] = []
        last: list[Event] = []
        bench.stream.subscribe(first.append, name="first")
        for number, reaction in enumerate(reacting):
            react(bench, reaction, number)
        bench.stream.subscribe(last.append, name="last")
        for at, name in due:
            bench.emit_at(at, name)
        for step_ms, messages in emits:
            bench.clock.step_wall(step_ms)
            bench.clock.passes(max(0, step_ms) / 1000)
            bench.stream.emit(*map(info, messages))
        bench.stream.close()

        journal = list(JournalReader(Path(folder) / "events.jsonl").read())
        heard = [(event.cursor, event.id) for event in first]
        assert heard == [(event.cursor, event.id) for event in journal]
        assert heard == [(event.cursor, event.id) for event in last]
        stamps = [event.at_ms for event in journal]
        assert stamps == sorted(stamps)
        assert [event.id for event in journal] == sorted(event.id for event in journal)
