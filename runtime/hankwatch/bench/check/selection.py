"""``-k``: checks chosen by parts of their ids, joined by ``and``, ``or``, ``not`` and brackets, as pytest reads it."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from hankwatch.core.errors import UsageError

Selector = Callable[[str], bool]
_TOKEN = re.compile(r"\s*(?:(?P<bracket>[()])|(?P<word>[^\s()]+))")
_MAX_DEPTH = 50


def selector(expression: str) -> Selector:
    """A function that says whether an id is chosen; a word is looked for anywhere in it, whatever its case.

    Raises:
        UsageError: the expression is none.
    """
    parser = _Parser(expression, _TOKEN.findall(expression))
    chosen = parser.either()
    if parser.rest:
        raise parser.fault(f"{parser.rest[0]!r} is not expected")
    return lambda name: chosen(name.lower())


@dataclass(slots=True)
class _Parser:
    expression: str
    _found: list[tuple[str, str]]
    _depth: int = 0

    @property
    def rest(self) -> list[str]:
        """What is not read yet."""
        return [bracket or word for bracket, word in self._found]

    def fault(self, reason: str) -> UsageError:
        hint = "words joined by and, or, not and brackets: `narrator and not (demo or sweep)`"
        return UsageError(f"-k {self.expression!r}: {reason}", hint=hint)

    def either(self) -> Selector:
        parts = [self._both()]
        while self._takes("or"):
            parts.append(self._both())
        return lambda name: any(part(name) for part in parts)

    def _both(self) -> Selector:
        parts = [self._one()]
        while self._takes("and"):
            parts.append(self._one())
        return lambda name: all(part(name) for part in parts)

    def _one(self) -> Selector:
        if not self._found:
            raise self.fault("a word is missing at its end")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self.fault("it is nested too deep")
        try:
            return self._inner()
        finally:
            self._depth -= 1

    def _inner(self) -> Selector:
        if self._takes("not"):
            inner = self._one()
            return lambda name: not inner(name)
        if self._takes("("):
            inner = self.either()
            if not self._takes(")"):
                raise self.fault("a closing bracket is missing")
            return inner
        bracket, word = self._found.pop(0)
        if bracket or word in {"and", "or"}:
            raise self.fault(f"{bracket or word!r} stands where a word should")
        part = word.lower()
        return lambda name: part in name

    def _takes(self, word: str) -> bool:
        if self._found and word in self._found[0]:
            del self._found[0]
            return True
        return False
