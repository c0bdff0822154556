"""The console: pages for people over what REST gives programs. Everything can be read without its script."""

from hankwatch.serve.console import assets, live, login, runs

PARTS = (assets, login, runs, live)
"""Modules with routes."""
