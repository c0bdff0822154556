"""Lints of sentinels: configurations that are allowed and will disappoint (spec hank 1). One function each."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.prompts import Prompts

_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|<%.*?%>", re.DOTALL)
_EVENTS = re.compile(r"\bevents\b")
_WHOLE_CONTEXT = re.compile(r"\bit\b(?!\s*[.\[])")
_BUILTIN = "builtin/"


@dataclass(frozen=True, slots=True)
class Lint:
    """One finding about a sentinel."""

    pointer: str
    """Into the sentinel's own config."""
    code: str
    message: str
    hint: str


def prompt_shows_no_events(config: SentinelConfig, prompts: Prompts) -> Iterator[Lint]:
    """Without an interpolation of ``it.events`` the model is asked about nothing."""
    if config.model.startswith(_BUILTIN):  # a builtin model reads the events themselves
        return
    written = [template.source for template in (prompts.system, prompts.user) if template is not None]
    tags = [tag for source in written for tag in _TAG.findall(source)]
    if not any(_EVENTS.search(tag) or _WHOLE_CONTEXT.search(tag) for tag in tags):
        pointer = "/userPromptText" if config.user_prompt_text is not None else "/userPromptFile"
        yield Lint(
            pointer,
            "prompt-without-events",
            "the prompt never shows the events, so the model sees none of them",
            "put {{ it.events }} where they should stand",
        )


def model_has_no_provider(config: SentinelConfig, prompts: Prompts) -> Iterator[Lint]:
    """An id without ``/`` loads and fails at its first call (spec sentinels 7)."""
    del prompts
    if "/" not in config.model:
        yield Lint(
            "/model",
            "model-without-provider",
            f"{config.model!r} names no provider, so the first call fails",
            "write provider/model, as anthropic/claude-haiku-4-5",
        )


LINTS: tuple[Callable[[SentinelConfig, Prompts], Iterator[Lint]], ...] = (
    prompt_shows_no_events,
    model_has_no_provider,
)
"""All of them, in the order in which they are reported."""


def lint_sentinel(
    config: SentinelConfig, prompts: Prompts, document: Document, diagnostics: Diagnostics, pointer: str = ""
) -> None:
    """Add every lint of one sentinel, as warnings in the document whose ``pointer`` holds its config."""
    for check in LINTS:
        for lint in check(config, prompts):
            add_fault(
                diagnostics,
                document,
                pointer + lint.pointer,
                lint.code,
                lint.message,
                hint=lint.hint,
                severity="warning",
            )
