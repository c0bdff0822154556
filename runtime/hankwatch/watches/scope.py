"""Which watches an engine is responsible for (design "How it runs" 13)."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, or_

from hankwatch.watches.tables import watches


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose watches an engine checks and delivers."""

    homes: frozenset[str] | None
    """Execution directories; None for all."""
    homeless: bool
    """Those without a home too."""
    is_held: bool = False
    """This process holds the locks of these homes: whoever else leased from them has died."""


def in_scope(scope: Scope) -> ColumnElement[bool]:
    """What selects them."""
    homeless = watches.c.home.is_(None)
    homes = watches.c.home.is_not(None) if scope.homes is None else watches.c.home.in_(sorted(scope.homes))
    return or_(homes, homeless) if scope.homeless else homes
