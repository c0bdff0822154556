import uuid

from hankwatch.events.envelope import Event, IdSource, format_stamp


def test_a_stamp_has_milliseconds_and_z() -> None:
    assert format_stamp(0) == "1970-01-01T00:00:00.000Z"
    assert format_stamp(1_796_040_000_123) == "2026-11-30T12:00:00.123Z"
    assert format_stamp(-1) == "1969-12-31T23:59:59.999Z"


def test_an_id_is_a_uuid_of_version_7_that_tells_its_instant() -> None:
    value = uuid.UUID(IdSource().next(1_796_040_000_123))
    assert value.version == 7
    assert value.variant == uuid.RFC_4122
    assert value.int >> 80 == 1_796_040_000_123


def test_ids_of_one_source_increase_inside_a_millisecond_and_when_time_steps_back() -> None:
    source = IdSource()
    ids = [source.next(at_ms) for at_ms in [5_000] * 1_000 + [4_000] * 1_000 + [6_000]]
    assert ids == sorted(set(ids))


def test_a_seed_makes_the_same_ids() -> None:
    instants = [1, 1, 2, 9]
    first, second = IdSource(7), IdSource(7)
    assert [first.next(at_ms) for at_ms in instants] == [second.next(at_ms) for at_ms in instants]
    assert IdSource(8).next(1) != IdSource(7).next(1)


def test_the_envelope_has_its_four_keys_in_order() -> None:
    event = Event("e", "2026-11-30T12:00:00.000Z", "info", {"message": "m"}, 0, cursor=10, size_bytes=10)
    assert list(event.envelope()) == ["id", "timestamp", "type", "data"]
