"""The drawing of an attempt: what stands where (spec cli, ``try``)."""

from typing import Any

from hankwatch.bench.attempt import Fire
from hankwatch.cli.timeline import MIN_WIDTH, Timeline
from hankwatch.sentinels.prompts import CodonScope
from hankwatch.sentinels.strategies import Batch, Cause
from hankwatch.testing import make_event


def timeline(*events: tuple[int, str, Any], fires: tuple[tuple[int, Cause], ...] = ()) -> Timeline:
    made = Timeline()
    for at_ms, name, data in events:
        made.look(make_event(name, at_ms, **data), matches=name == "error")
    for number, (at_ms, cause) in enumerate(fires, 1):
        made.fired(Fire(number, Batch((), cause, at_ms), CodonScope("", "", "", None, "")))
    return made


def drawn(made: Timeline, width: int = 60, *, plain: bool = False) -> list[str]:
    return [line.plain for line in made.draw(width, plain=plain)]


HOUR = 3_600_000
RUN: tuple[tuple[int, str, Any], ...] = (
    (0, "codon.started", {"codonId": "build"}),
    (HOUR // 4, "error", {}),
    (HOUR // 4, "error", {}),
    (HOUR // 2, "codon.completed", {"codonId": "build"}),
    (HOUR // 2 + 60_000, "codon.started", {"codonId": "test"}),
    (HOUR, "error", {}),
)


def test_codons_events_matches_and_fires_stand_over_one_axis() -> None:
    assert drawn(timeline(*RUN, fires=((HOUR // 2, Cause.QUIET), (HOUR, Cause.DRAIN)))) == [
        "1970-01-01 00:00:00.000 UTC + 1 h",
        "codons    ├build─────────────────┤├test───────────────────",
        "events    ▄          █           ▄▄                      ▄ 6",
        "matches              █                                   ▄ 3",
        "quiet                            1                         1",
        "drain                                                    1 1",
        "          ┴──────────┴───────────┴───────────┴───────────┴",
        "          0          15 min      30 min      45 min",
    ]


def test_the_plain_drawing_is_ascii_alone() -> None:
    lines = drawn(timeline(*RUN, fires=((HOUR, Cause.MAX_WAIT),)), plain=True)
    assert "".join(lines).isascii()
    assert lines[1].startswith("codons    [build--")


def test_milliseconds_are_drawn_as_milliseconds() -> None:
    lines = drawn(timeline((0, "info", {}), (2, "error", {}), (9, "info", {})))
    assert lines[1:3] == ["events    █ █      █ 3", "matches     █        1"]
    assert lines[0].endswith("+ 9 ms")


def test_one_instant_is_one_column() -> None:
    assert drawn(timeline((5, "info", {})))[1] == "events    █ 1"


def test_more_fires_than_a_digit_holds_are_a_plus_and_the_total_is_exact() -> None:
    lines = drawn(timeline((0, "info", {}), fires=((0, Cause.MATCH),) * 12))
    assert lines[3] == "match     + 12"


def test_codon_ids_of_any_kind_keep_their_columns() -> None:
    lines = drawn(timeline((0, "codon.started", {"codonId": "界\x1b[2J"}), (100, "info", {})))
    assert lines[1].startswith("codons    ├??[2J──")


def test_where_there_is_nothing_to_draw_or_no_room_nothing_is() -> None:
    assert drawn(Timeline()) == []
    assert drawn(timeline((0, "info", {})), MIN_WIDTH - 1) == []
