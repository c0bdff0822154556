"""Counts of the sentences of one channel, and when they are too many (spec watchdog 5.3)."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from hankwatch.watchdog.chants import Chant, chant
from hankwatch.watchdog.policy import WatchdogPolicy
from hankwatch.watchdog.prose import content_words, is_prose, strict_key, unmarked, width
from hankwatch.watchdog.segments import Segment

_KEY_BYTES = 8
_NO_KEY = bytes(_KEY_BYTES)
_LONG_CHARS = 160
"""A sentence longer than this may be a chant."""
_SHORTS_CHARS = 400
"""So many characters of sentences too short to count may be one."""
_CHANT_FACTOR, _MIN_CHANT = 4, 24


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a channel has said; a value, so that keeping an old one is keeping a reference."""

    strict: bytes = b""
    """Keys of 8 bytes, oldest first; the same number in ``loose``."""
    loose: bytes = b""
    seen: int = 0
    """Sentences that counted since the turn began or the evidence was cleared."""
    shorts: str = ""
    """The sentences since the last long one that were too short to count."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """A sentence that came too often."""

    trigger: Literal["sentence_strict", "sentence_loose"]
    count: int


class Sentences:
    """One channel's detector. ``evidence`` may be read and set at any time: that is how a retry is undone."""

    __slots__ = (
        "_loose",
        "_loose_keys",
        "_min_armed",
        "_min_chant",
        "_min_width",
        "_seen",
        "_shorts",
        "_strict",
        "_strict_keys",
        "_window_bytes",
    )

    def __init__(self, policy: WatchdogPolicy) -> None:
        self._strict, self._loose = policy.strict, policy.loose
        self._min_armed, self._min_width = policy.min_armed_sentences, policy.min_sentence_chars
        self._window_bytes = policy.repeat_sentence_window * _KEY_BYTES
        needed = max(_CHANT_FACTOR * (policy.strict or 0), _MIN_CHANT)
        self._min_chant = min(needed, policy.repeat_sentence_window)
        self.evidence = Evidence()

    @property
    def evidence(self) -> Evidence:
        """What the channel has said since its evidence was cleared."""
        return Evidence(self._strict_keys, self._loose_keys, self._seen, self._shorts)

    @evidence.setter
    def evidence(self, value: Evidence) -> None:
        self._strict_keys, self._loose_keys = value.strict, value.loose
        self._seen, self._shorts = value.seen, value.shorts

    def take(self, segment: Segment) -> Repetition | None:
        """Count a segment; the repetition that it completes, or None."""
        if segment.kind == "raw":
            return self._chant(chant(" ".join(segment.text.split()), letters=False))
        plain = unmarked(segment.text)
        key = strict_key(plain)
        long = segment.kind == "cut" or len(key) > _LONG_CHARS
        if not long and width(key) < self._min_width:
            return self._short(key)
        self._shorts = ""
        if long and (found := chant(key)):
            return self._chant(found)
        return self._sentence(key) if is_prose(plain, key) else None

    def _short(self, key: str) -> Repetition | None:
        self._shorts = f"{self._shorts} {key}" if self._shorts else key
        if len(self._shorts) < _SHORTS_CHARS:
            return None
        shorts, self._shorts = self._shorts, ""
        return self._chant(chant(shorts))

    def _chant(self, found: Chant | None) -> Repetition | None:
        if found is None or self._strict is None:
            return None
        strict = _digest(found.unit)
        self._push(strict * found.repeats, _NO_KEY * found.repeats, found.repeats)
        count = self._strict_keys.count(strict)
        armed = self._seen >= self._min_armed
        return Repetition("sentence_strict", count) if armed and count >= self._min_chant else None

    def _sentence(self, key: str) -> Repetition | None:
        words = content_words(key) if self._loose else None
        strict, loose = _digest(key), _digest(words) if words else _NO_KEY
        self._push(strict, loose, 1)
        if self._seen < self._min_armed:
            return None
        if self._strict and (count := self._strict_keys.count(strict)) >= self._strict:
            return Repetition("sentence_strict", count)
        if self._loose and words and (count := self._loose_keys.count(loose)) >= self._loose:
            return Repetition("sentence_loose", count)
        return None

    def _push(self, strict: bytes, loose: bytes, seen: int) -> None:
        self._seen += seen
        self._strict_keys = (self._strict_keys + strict)[-self._window_bytes :]
        self._loose_keys = (self._loose_keys + loose)[-self._window_bytes :]


def _digest(value: Hashable) -> bytes:
    """64 bit, keyed by the process (the built-in hash); enough, since a collision needs threshold-many of them."""
    return hash(value).to_bytes(_KEY_BYTES, "little", signed=True)
