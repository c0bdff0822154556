"""Events: the envelope, the catalogue of types with their payload models, and the journal's line codec."""

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
