"""Laws of the drawn timeline: it fits, and what it shows adds up."""

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from hankwatch.bench.attempt import Fire
from hankwatch.cli.timeline import MIN_WIDTH, Timeline
from hankwatch.sentinels.prompts import CodonScope
from hankwatch.sentinels.strategies import Batch, Cause
from hankwatch.testing import make_event

GAPS = st.one_of(st.integers(0, 5), st.integers(0, 10_000), st.integers(0, 400 * 86_400_000))
EVENTS = st.lists(
    st.tuples(GAPS, st.sampled_from(["info", "codon.started", "codon.completed"]), st.sampled_from([None, *Cause])),
    min_size=1,
    max_size=40,
)


@settings(max_examples=200)
@given(EVENTS, st.text(max_size=30), st.integers(MIN_WIDTH, 250), st.booleans())
def test_no_line_is_wider_than_the_terminal_and_no_event_is_lost(
    drawn: list[tuple[int, str, Cause | None]], codon: str, width: int, plain: bool
) -> None:
    timeline, at_ms, fired = Timeline(), 1_000, 0
    for gap, name, cause in drawn:
        at_ms += gap
        timeline.look(make_event(name, at_ms, codonId=codon), matches=cause is not None)
        if cause is not None:
            fired += 1
            timeline.fired(Fire(fired, Batch((), cause, at_ms), CodonScope("", "", "", None, "")))
    lines = [line.plain for line in timeline.draw(width, plain=plain)]
    assert all(cell_len(line) <= width for line in lines), lines
    lanes = {line[:10].strip(): line[10:].rpartition(" ") for line in lines}
    assert int(lanes["events"][2]) == len(drawn)
    assert int(lanes["matches"][2]) == fired
    causes = [lanes[cause] for cause in Cause if cause in lanes]
    assert sum(int(total) for _, _, total in causes) == fired
    for columns, _, total in causes:
        digits = columns.replace(" ", "")
        if "+" not in digits:
            assert sum(map(int, digits)) == int(total)
    columns = lanes["events"][0]
    # The first event stands in the first column, the last one in the last.
    assert columns[0] != " "
    assert columns.rstrip(" ") == columns[: len(lines[-2]) - 10]
