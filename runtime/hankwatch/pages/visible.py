"""Text from outside made visible: nothing in it moves a cursor, turns a line around or hides."""

import re
from dataclasses import dataclass

from hankwatch.core.text import clean_text

_UNSEEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # terminal controls; newline and tab stay
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # turn the direction of what follows
    "\u00ad\u200b\u2028\u2029\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # no width
    "\U000e0000-\U000e0fff"  # tags and selectors: whole sentences that nobody sees
    "]"
)
_CONTROLS = "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US"
_NAMES = tuple(_CONTROLS.split())


def visible(text: str) -> str:
    """``text`` with every character that acts or hides shown as a sign of its own: ``⟨ESC⟩[31m``, ``⟨U+202E⟩``."""
    text = clean_text(text)
    if text.isascii() and text.isprintable():
        return text
    return _UNSEEN.sub(_shown, text.replace("\r\n", "\n"))


def _shown(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"⟨{_NAMES[code]}⟩" if code < len(_NAMES) else f"⟨U+{code:04X}⟩"


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A text, or its beginning."""

    text: str
    left_out: int = 0
    """Characters behind it that are not shown."""

    def __bool__(self) -> bool:
        return bool(self.text)

    @classmethod
    def of(cls, text: str, limit: int) -> "Excerpt":
        """The first ``limit`` characters."""
        return cls(text[:limit], max(0, len(text) - limit))


NO_TEXT = Excerpt("")
