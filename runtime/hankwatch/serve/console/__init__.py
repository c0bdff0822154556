"""The console: pages for people over what REST gives programs. Everything can be read without its script."""

from hankwatch.pages.console import compile_pages
from hankwatch.serve.console import assets, events, live, login, playground, runs, sentinels, watch_settings, watches
from hankwatch.serve.shelf import Shelf

PARTS = (assets, login, runs, events, sentinels, playground, watch_settings, watches, live)
"""Modules with routes."""


def warm(shelf: Shelf) -> None:
    """Do before anybody asks what the first page would wait for; blocks for as long as the newest journals are."""
    compile_pages()
    shelf.warm()
