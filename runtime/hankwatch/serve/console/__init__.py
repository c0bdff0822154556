"""The console: pages for people over what REST gives programs. Everything can be read without its script."""

from hankwatch.serve.console import assets, events, live, login, playground, runs, sentinels

PARTS = (assets, login, runs, events, sentinels, playground, live)
"""Modules with routes."""
