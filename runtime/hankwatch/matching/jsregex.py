"""A JavaScript regular expression (no flags) written in the syntax that re2 and ``regex`` share.

JavaScript without the ``u`` flag works on UTF-16 code units: ``.`` is one unit, ``😀`` in a class is two. The
engines work on code points, so both pattern and subject have every surrogate unit moved to a private plane-16
code point first (``code_units``); then each unit is one character for the engine as well.
Source of the rules: ECMA-262 "RegExp (Regular Expression) Objects" with its Annex B.
"""

import re

_UNIT_BASE = 0x10F800
"""Where U+D800…U+DFFF go: the last 2,048 code points."""
_NOT_BMP = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")
_SPACE = "\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NOT_SPACE = (
    "\0-\x08\x0e-\x1f!-\x9f\u00a1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e"
    "\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff"
)
_NOT_LINE_END = "[^\n\r\u2028\u2029]"
_ANYTHING = "[\0-\U0010ffff]"
_NOTHING = "[^\0-\U0010ffff]"
_SETS = {"d": r"\d", "D": r"\D", "w": r"\w", "W": r"\W", "s": _SPACE, "S": _NOT_SPACE}
_CONTROLS = {"t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_META = frozenset(r"\.+*?()|[]{}^$-&~#")
_QUANTIFIER = re.compile(r"([*+?]|\{([0-9]+)(?:(,)([0-9]*))?\})(\??)")
_GROUP = re.compile(r"\?(?:(:|=|!|<=|<!|-?i:)|<([^>]*)>)")
_NAME = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_TOKENS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(\((?!\?))|\(\?<(?![=!])([^>]*)>", re.DOTALL)
_MAX_DEPTH = 100
_MAX_REPEAT = 20_000


class RegexInvalid(ValueError):
    """The pattern is not a JavaScript regular expression, or too large to run; the text says why."""


def code_units(text: str) -> str:
    """The text with one character for each UTF-16 code unit; the same object when it is so already."""
    if text.isascii():
        return text
    return _NOT_BMP.sub(lambda found: _as_units(ord(found[0])), text)


def translate(pattern: str) -> tuple[str, int]:
    """The pattern for an engine with ASCII classes, and how many atoms it has with all repeats written out.

    To be searched in ``code_units`` of the subject. Raises ``RegexInvalid``.
    """
    translator = _Translator(code_units(pattern))
    return translator.run()


def _as_units(code_point: int) -> str:
    if code_point < 0x10000:
        return chr(code_point - 0xD800 + _UNIT_BASE)
    high, low = divmod(code_point - 0x10000, 0x400)
    return chr(_UNIT_BASE + high) + chr(_UNIT_BASE + 0x400 + low)


def _literal(char: str) -> str:
    return "\\" + char if char in _META else char


class _Translator:
    """Recursive descent over one pattern; ``_out`` grows as it is read."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        self._depth = 0
        self._opened = 0
        self._unfinished: set[int] = set()
        self._group_count = 0
        self._names: dict[str, int] = {}
        self._find_groups()

    def run(self) -> tuple[str, int]:
        size = self._disjunction()
        if self._at < len(self._pattern):
            raise self._fault("')' without '('")
        return "".join(self._out), size

    def _find_groups(self) -> None:
        r"""Count the groups beforehand: whether ``\2`` and ``\k`` refer to one depends on what follows too."""
        for token in _TOKENS.finditer(self._pattern):
            if token[1] is None and token[2] is None:
                continue
            self._group_count += 1
            name = token[2]
            if name is None:
                continue
            self._at = token.start()
            if not _NAME.fullmatch(name):
                raise self._fault(f"{name!r} is not a group name")
            if name in self._names:
                raise self._fault(f"two groups are named {name!r}")
            self._names[name] = self._group_count
        self._at = 0

    def _fault(self, reason: str) -> RegexInvalid:
        return RegexInvalid(f"{reason} at character {self._at + 1}")

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise self._fault("the pattern ends too early")
        self._at += 1
        return char

    def _disjunction(self) -> int:
        size = 0
        while self._peek() not in {"", ")"}:
            size += self._term()
        return size

    def _term(self) -> int:
        if _QUANTIFIER.match(self._pattern, self._at):
            raise self._fault("nothing to repeat")
        char = self._take()
        size, repeatable = 1, True
        if char in "|^$":
            self._out.append(r"\z" if char == "$" else char)
            repeatable = False
        elif char == "(":
            size, repeatable = self._group()
        elif char == "[":
            self._out.append(self._class())
        elif char == ".":
            self._out.append(_NOT_LINE_END)
        elif char == "\\":
            repeatable = self._escape()
        else:
            self._out.append(_literal(char))
        return size * self._quantifier() if repeatable else size

    def _quantifier(self) -> int:
        """Copy a quantifier, if one follows; how often the atom before it stands then at most."""
        found = _QUANTIFIER.match(self._pattern, self._at)
        if found is None:
            return 1
        symbol, low, comma, high, lazy = found.groups()
        if low is not None:
            if high and int(high) < int(low):
                raise self._fault("the numbers of the repeat are out of order")
            if max(int(low), int(high or 0)) > _MAX_REPEAT:
                raise self._fault(f"a repeat of more than {_MAX_REPEAT:,}")
            symbol = f"{{{int(low)}{',' if comma else ''}{int(high) if high else ''}}}"
        self._at = found.end()
        self._out.append(symbol + lazy)
        return max(1, int(high or low or 1))

    def _group(self) -> tuple[int, bool]:
        number = None
        kind = ""
        if self._peek() == "?":
            found = _GROUP.match(self._pattern, self._at)
            if found is None:
                raise self._fault("not a JavaScript group")
            self._at = found.end()
            kind = found[1] or ""
        if not kind:
            self._opened += 1
            number = self._opened
            self._unfinished.add(number)
        self._out.append(f"(?{kind}" if kind else "(")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._fault(f"groups are nested more than {_MAX_DEPTH} deep")
        size = self._disjunction()
        self._depth -= 1
        if self._peek() != ")":
            raise self._fault("'(' without ')'")
        self._at += 1
        self._out.append(")")
        if number is not None:
            self._unfinished.discard(number)
        return max(1, size), not kind.startswith("<")

    def _escape(self) -> bool:
        """An escape outside a class; whether a quantifier may follow it."""
        char = self._take()
        if char in "bB":
            self._out.append("\\" + char)
            return False
        if char in "sS":
            self._out.append(f"[{_SETS[char]}]")
        elif char in _SETS:
            self._out.append(_SETS[char])
        elif char == "k" and self._names:
            self._refer_to(self._named_group())
        elif char in "123456789" and (number := self._group_number(char)):
            self._refer_to(number)
        else:
            self._out.append(_literal(self._character(char)))
        return True

    def _named_group(self) -> int:
        end = self._pattern.find(">", self._at)
        name = self._pattern[self._at + 1 : end]
        if self._peek() != "<" or end < 0 or name not in self._names:
            raise self._fault("\\k names no group")
        self._at = end + 1
        return self._names[name]

    def _group_number(self, first: str) -> int | None:
        digits = re.compile("[0-9]*").match(self._pattern, self._at)
        assert digits is not None
        number = int(first + digits[0]) if len(digits[0]) < 4 else self._group_count + 1
        if number > self._group_count:
            return None
        self._at = digits.end()
        return number

    def _refer_to(self, number: int) -> None:
        # A group that took no part, or is still open, matches the empty text in JavaScript.
        self._out.append("(?:)" if number in self._unfinished else f"(?({number})\\{number})")

    def _character(self, char: str) -> str:
        """The one character that an escape stands for, its backslash and ``char`` already read."""
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in "01234567":
            return self._octal(char)
        if char == "c":
            return self._control_letter()
        digits = {"x": 2, "u": 4}.get(char)
        code = self._pattern[self._at : self._at + digits] if digits else ""
        if digits and re.fullmatch(f"[0-9a-fA-F]{{{digits}}}", code):
            self._at += digits
            return code_units(chr(int(code, 16)))
        return char

    def _octal(self, first: str) -> str:
        more = re.compile("[0-7]{0,2}" if first <= "3" else "[0-7]?").match(self._pattern, self._at)
        assert more is not None
        self._at = more.end()
        return chr(int(first + more[0], 8))

    def _control_letter(self) -> str:
        letter = self._peek()
        if letter.isascii() and letter.isalpha():
            self._at += 1
            return chr(ord(letter) % 32)
        self._at -= 1  # "\c" without a letter is a backslash; the "c" is read again
        return "\\"

    def _class(self) -> str:
        negated = self._peek() == "^"
        if negated:
            self._at += 1
        items: list[str] = []
        while self._peek() != "]":
            low, low_is_set = self._class_atom()
            if self._peek() != "-" or self._pattern[self._at + 1 : self._at + 2] in {"]", ""}:
                items.append(low)
                continue
            self._at += 1
            high, high_is_set = self._class_atom()
            if low_is_set or high_is_set:
                items.append(f"{low}\\-{high}")
                continue
            if high.removeprefix("\\") < low.removeprefix("\\"):
                raise self._fault("the range in the class is out of order")
            items.append(f"{low}-{high}")
        self._at += 1
        if not items:
            return _ANYTHING if negated else _NOTHING
        return f"[{'^' if negated else ''}{''.join(items)}]"

    def _class_atom(self) -> tuple[str, bool]:
        """One member as it is written inside brackets, and whether it is a set rather than a character."""
        char = self._take()
        if char != "\\":
            return _literal(char), False
        char = self._take()
        if char in _SETS:
            return _SETS[char], True
        return _literal("\b" if char == "b" else self._character(char)), False
