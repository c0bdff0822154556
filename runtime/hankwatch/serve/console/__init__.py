"""The console: pages for people over what REST gives programs. Everything can be read without its script."""

from hankwatch.serve.console import assets, events, live, login, playground, runs, sentinels, watch_settings, watches

PARTS = (assets, login, runs, events, sentinels, playground, watch_settings, watches, live)
"""Modules with routes."""
