"""Journal lines to events and back: strict writing, tolerant reading (spec events)."""

import hashlib
from typing import Any, NamedTuple

import orjson

from hankwatch.core.clock import EARLIEST_MS, LATEST_MS
from hankwatch.core.errors import BadLine
from hankwatch.core.intake import cut_deep, parse_json
from hankwatch.core.text import MAX_DEPTH, Cleaned, clean_json
from hankwatch.events.catalogue import PAYLOADS
from hankwatch.events.envelope import Event, EventData, format_stamp
from hankwatch.events.stamps import is_canonical, parse_stamp

__all__ = ["Decoded", "decode_line", "encode_line", "parse_json", "parse_stamp"]

_BOM = b"\xef\xbb\xbf"
_ENVELOPE_KEYS = frozenset({"id", "timestamp", "type", "data"})
_LINE_DEPTH = MAX_DEPTH + 1
"""The envelope is one container around the payload."""


class Decoded(NamedTuple):
    """A line that was read as an event, and what reading it took."""

    event: Event
    flags: frozenset[str]
    """``unknown-type`` (no model; passed through), ``payload-misfit`` (does not fit its model; passed on as
    it is), ``stamp-replaced`` (unreadable; the time of receipt stands instead), ``stamp-moved`` (before
    ``EARLIEST_MS`` or after ``LATEST_MS``; that instant stands instead), ``id-made`` (had none; made from the
    line), ``envelope-extra`` (keys beside the four), ``cleaned`` (see that field)."""
    cleaned: Cleaned
    original_stamp: Any
    """The stamp as it stood, where the event's reads differently; else None."""
    extra: EventData
    """Envelope keys beside the four; not part of the event."""


_NEWLINE = orjson.OPT_APPEND_NEWLINE


def encode_line(event: Event) -> bytes:
    """The journal line of an event: compact JSON, four keys in order, newline.

    Text that is no valid Unicode, integers beyond 64 bit and deeper nesting than JSON writers take are
    cleaned on the way (they come only from payloads that were built without intake).
    """
    try:
        # The envelope spelled out: a call for it would cost as much as encoding a small event.
        return orjson.dumps(
            {"id": event.id, "timestamp": event.timestamp, "type": event.type, "data": event.data}, None, _NEWLINE
        )
    except TypeError:
        clean, _ = clean_json(event.envelope(), max_depth=_LINE_DEPTH)
        return orjson.dumps(clean, None, _NEWLINE)


def decode_line(line: bytes, *, received_ms: int) -> Decoded:
    """Read one line of a journal, ours or foreign, old or damaged, as well as it can be read.

    ``line`` may have its newline, a CR or a BOM. ``received_ms`` stamps an event whose own stamp cannot be
    read. Payload keys that no model knows are kept. Raises only ``BadLine``: not JSON, not an object, or
    without a type.
    """
    line = line.removeprefix(_BOM).strip(b" \t\r\n")
    value, cleaned = parse_json(line, max_depth=_LINE_DEPTH)
    if not isinstance(value, dict):
        raise BadLine("not a JSON object")
    type_name = value.get("type")
    if not isinstance(type_name, str) or not type_name:
        raise BadLine("no event type")
    flags = {"cleaned"} if cleaned else set()
    data = _payload(type_name, value.get("data"), flags)
    stamp = value.get("timestamp")
    timestamp, at_ms = _instant(stamp, received_ms, flags)
    identifier = value.get("id")
    if not isinstance(identifier, str) or not identifier:
        flags.add("id-made")
        identifier = f"line-{hashlib.sha256(line).hexdigest()[:24]}"
    extra = {}
    if len(value) > len(_ENVELOPE_KEYS):
        flags.add("envelope-extra")
        extra = {key: item for key, item in value.items() if key not in _ENVELOPE_KEYS}
    return Decoded(
        Event(identifier, timestamp, type_name, data, at_ms),
        frozenset(flags),
        cleaned,
        None if timestamp == stamp else stamp,
        extra,
    )


def _instant(stamp: Any, received_ms: int, flags: set[str]) -> tuple[str, int]:
    """A stamp in our spelling and as epoch milliseconds; the time of receipt for one that cannot be read."""
    at_ms = parse_stamp(stamp)
    if at_ms is None:
        flags.add("stamp-replaced")
        at_ms = min(max(received_ms, EARLIEST_MS), LATEST_MS)
        return format_stamp(at_ms), at_ms
    if not is_canonical(stamp):
        return format_stamp(at_ms), at_ms
    if at_ms in (EARLIEST_MS, LATEST_MS) and (bound := format_stamp(at_ms)) != stamp:
        flags.add("stamp-moved")
        return bound, at_ms
    return stamp, at_ms


def _payload(type_name: str, data: Any, flags: set[str]) -> EventData:
    """The payload as an object, with the flags it earns; a payload that is none stands under ``value``."""
    model = PAYLOADS.get(type_name)
    if model is None:
        flags.add("unknown-type")
    if not isinstance(data, dict):
        flags.add("payload-misfit")
        return {} if data is None else {"value": cut_deep(data, max_depth=MAX_DEPTH - 1)[0]}
    if model is not None and not model.__pydantic_validator__.isinstance_python(data, extra="ignore", by_name=False):
        flags.add("payload-misfit")
    return data
