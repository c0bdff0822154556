"""The pages of ``docs/reference/``, made from the code they describe: ``python -m hankwatch.reference [--check]``."""

from hankwatch.reference.pages import PAGES, stale, write

__all__ = ["PAGES", "stale", "write"]
