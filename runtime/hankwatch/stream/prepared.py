"""Payloads of megabytes, redacted and encoded away from the loop, which they would hold for too long."""

import weakref
from dataclasses import replace
from typing import Any

import orjson

from hankwatch.core.redaction import Redactor
from hankwatch.events.codec import encode_line
from hankwatch.events.envelope import Event, EventData
from hankwatch.events.payload import Payload


class Prepared:
    """What emitting some payloads takes, done before; each is kept until its event is written, or it is forgotten."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        # By identity, of the payload and then of its data; an entry goes with what its key stands for.
        self._data: dict[int, tuple[weakref.ref[Payload], EventData, bytes]] = {}
        self._encoded: dict[int, tuple[EventData, bytes]] = {}

    def add(self, payload: Payload) -> None:
        """Redact and encode ``payload``; may be called from any thread."""
        data = payload.dump()
        try:
            encoded = orjson.dumps(data)
            if self._redactor.suspects(encoded):
                data = self._redactor.data(data)
                encoded = orjson.dumps(data)
        except TypeError:  # not clean: left to the writer of its line
            return
        key = id(payload)
        self._data[key] = (weakref.ref(payload, lambda _: self._data.pop(key, None)), data, encoded)

    def data(self, payload: Payload) -> EventData:
        """The data of the event of ``payload``, prepared or not."""
        if (entry := self._data.pop(id(payload), None)) is None:
            return payload.dump()
        _, data, encoded = entry
        self._encoded[id(data)] = (data, encoded)
        return data

    def line(self, event: Event) -> bytes | None:
        """The journal line of an event with such data; None when that was not prepared."""
        if (entry := self._encoded.pop(id(event.data), None)) is None:
            return None
        fragment: Any = orjson.Fragment(entry[1])
        return encode_line(replace(event, data=fragment))
