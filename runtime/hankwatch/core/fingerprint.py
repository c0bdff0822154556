"""A fingerprint of a tool's answer that stays the same when only its noise changes (spec watchdog 5.4)."""

import hashlib
import re

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]")
_NOISE = re.compile(
    r"""
      \d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:\ ?(?:Z|[+-]\d\d:?\d\d))?)?  # dates, with or without a time
    | \b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?                                                      # clock times
    | \b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b                             # UUIDs
    | \b(?:0x)?(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{12,}\b                                        # hashes, addresses
    | \b\d{10,}\b                                                                          # epoch stamps, large ids
    | \b\d+(?:\.\d+)?\ ?(?:ns|µs|us|ms|s|sec|secs|seconds?|min|minutes?)\b                  # durations
    | (?i:\bpid)[\ =:]*\d+ | \[\d{2,7}\](?=:)                                               # process ids
    | (?:/private)?/(?:tmp|var/tmp|var/folders)/[^\s'":;,)\]]+                              # temporary paths
    """,
    re.VERBOSE,
)
_SPACE = re.compile(r"\s+")


_WHOLE_CHARS = 32_768
"""Longer texts are calmed at both ends only, so that a fingerprint never costs more than milliseconds."""


def fingerprint(text: str) -> str:
    """16 hex digits that are equal for texts equal but for their noise.

    Noise is: terminal escapes, dates, clock times, numbers of ten digits or more, UUIDs, long hex,
    durations, process ids, temporary paths, and how white space is laid out. Plain numbers stay: they
    count progress. Takes the whole text, before any cut; of more than 32,768 characters the middle
    counts exactly as it is, noise included.
    """
    half = _WHOLE_CHARS // 2
    short = len(text) <= _WHOLE_CHARS
    parts = [_calm(text)] if short else [_calm(text[:half]), text[half:-half], _calm(text[-half:])]
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part.encode("utf-8", "surrogatepass"))
        digest.update(b"\0\0")
    return digest.hexdigest()


def _calm(text: str) -> str:
    plain = _ANSI.sub("", text) if "\x1b" in text else text
    return _SPACE.sub(" ", _NOISE.sub("\0", plain)).strip()
