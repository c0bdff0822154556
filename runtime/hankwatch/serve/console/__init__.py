"""The console: pages for people over what REST gives programs. Everything can be read without its script."""

from hankwatch.serve.console import assets, live, login, playground, runs

PARTS = (assets, login, runs, playground, live)
"""Modules with routes."""
