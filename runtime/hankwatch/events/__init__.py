"""Events: the envelope, the catalogue of types with their payload models, and the journal's line codec."""

from typing import TYPE_CHECKING

from hankwatch.core.lazy import lazy_names

if TYPE_CHECKING:
    from hankwatch.events.catalogue import PAYLOADS, routing
    from hankwatch.events.codec import Decoded, decode_line, encode_line, parse_stamp
    from hankwatch.events.envelope import Event, EventData, Routing
    from hankwatch.events.payload import Payload

__all__ = [
    "PAYLOADS",
    "Decoded",
    "Event",
    "EventData",
    "Payload",
    "Routing",
    "decode_line",
    "encode_line",
    "parse_stamp",
    "routing",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_names(
        __name__,
        {
            "PAYLOADS": "hankwatch.events.catalogue",
            "Decoded": "hankwatch.events.codec",
            "Event": "hankwatch.events.envelope",
            "EventData": "hankwatch.events.envelope",
            "Payload": "hankwatch.events.payload",
            "Routing": "hankwatch.events.envelope",
            "decode_line": "hankwatch.events.codec",
            "encode_line": "hankwatch.events.codec",
            "parse_stamp": "hankwatch.events.codec",
            "routing": "hankwatch.events.catalogue",
        },
    )
