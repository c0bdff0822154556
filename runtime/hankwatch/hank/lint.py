"""Lints of sentinels: configurations that are allowed and will disappoint (spec hank 1). One function each."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.shapes import close_to
from hankwatch.config.source import Document
from hankwatch.config.validation import add_fault
from hankwatch.events.catalogue import enum_values, has_path
from hankwatch.hank.interpolation import shows_events
from hankwatch.hank.mentions import covers, workspace_path, written_by
from hankwatch.matching.conditions import (
    Condition,
    ContainmentCondition,
    EqualityCondition,
    MembershipCondition,
    RegexCondition,
    compile_test,
)
from hankwatch.matching.regexes import MATCH_LIMIT_MS, compile_js
from hankwatch.matching.triggers import ANY, MAX_OVERRUNS, EventTrigger, SequenceTrigger
from hankwatch.sentinels.config import Output, OutputPaths, SentinelConfig, SentinelSettings
from hankwatch.sentinels.prompts import Prompts
from hankwatch.sentinels.strategies import DebounceExecution

if TYPE_CHECKING:
    from hankwatch.llm.catalog import ModelCatalog

READS_EVENTS_ITSELF = "builtin/digest"
_BUILTIN = "builtin/"
_NO_SETTINGS = SentinelSettings()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a lint knows of the codon that a sentinel observes; the defaults are those of a config by itself."""

    settings: SentinelSettings = _NO_SETTINGS
    """The codon entry's."""
    agent_prompt: str = ""
    """Everything that the agent is told; its workspace stands in it as ``mentions.WORKSPACE``."""
    checkpointed: tuple[str, ...] = ()
    """The codon's ``checkpointedFiles``."""
    time_limit_s: float | None = None
    """What the tightest budget above the sentinel lets the agent run; None for no limit."""
    models: "ModelCatalog | None" = None
    """None where the environment is not known."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One sentinel as it will run."""

    config: SentinelConfig
    prompts: Prompts
    around: Surroundings


@dataclass(frozen=True, slots=True)
class Lint:
    """One finding about a sentinel."""

    pointer: str
    """Into the sentinel's own config, or with ``of_settings`` into the codon entry's ``settings``."""
    code: str
    message: str
    hint: str
    of_settings: bool = False


def prompt_shows_no_events(subject: Subject) -> Iterator[Lint]:
    """Without an interpolation of ``it.events`` the model is asked about nothing."""
    config = subject.config
    if config.model == READS_EVENTS_ITSELF or any(map(shows_events, subject.prompts.templates)):
        return
    shown = "<%= JSON.stringify(it.events) %>" if subject.prompts.user.engine == "eta" else "{{ it.events }}"
    yield Lint(
        "/userPromptText" if config.user_prompt_text is not None else "/userPromptFile",
        "prompt-without-events",
        "the prompt never shows the events, so the model sees none of them",
        f"put {shown} where they should stand",
    )


def value_never_occurs(subject: Subject) -> Iterator[Lint]:
    """A closed set of strings has none that the condition names (``successs``)."""
    for pointer, types, condition in _conditions(subject.config):
        allowed = _possible(types, condition.path)
        if allowed is None:
            continue
        for place, value in _impossible(condition, allowed):
            meant = close_to(value, sorted(allowed))
            listed = ", ".join(map(repr, sorted(allowed)))
            yield Lint(
                f"{pointer}/value{place}",
                "unknown-enum-value",
                f"{condition.path!r} is never {_asked(condition)}{json.dumps(value, ensure_ascii=False)}",
                f"did you mean {meant!r}?" if meant else f"it is one of {listed}",
            )


def regex_is_not_linear(subject: Subject) -> Iterator[Lint]:
    """Lookaround and backreferences need an engine whose time has to be limited (spec sentinels 2)."""
    for pointer, _, condition in _conditions(subject.config):
        if isinstance(condition, RegexCondition) and not compile_js(condition.value).linear:
            yield Lint(
                f"{pointer}/value",
                "regex-not-linear",
                f"needs backtracking: a search over {MATCH_LIMIT_MS} ms is no match, and {MAX_OVERRUNS} such end the "
                "sentinel",
                "write it without lookaround, backreferences and large repeats",
            )


def debounce_outlasts_the_codon(subject: Subject) -> Iterator[Lint]:
    """A pause longer than the agent may run never comes; everything then fires once, at the codon's end."""
    execution, limit_s = subject.config.execution, subject.around.time_limit_s
    if not isinstance(execution, DebounceExecution) or limit_s is None:
        return
    waits_ms = min(execution.milliseconds, execution.max_wait_ms or execution.milliseconds)
    if waits_ms > limit_s * 1000:
        yield Lint(
            "/execution/milliseconds",
            "debounce-over-budget",
            f"waits {waits_ms / 1000:g} s for a pause in a codon that may run {limit_s:g} s: it fires at its end only",
            "wait for a shorter pause, or give the codon more time",
        )


def report_is_checkpointed(subject: Subject) -> Iterator[Lint]:
    """A report among the watched files is committed as the agent's work, and the agent's tools see it change."""
    for lint_at, path in _reports(subject):
        glob = next((glob for glob in subject.around.checkpointed if covers(glob, path)), None)
        if glob is not None:
            yield Lint(
                lint_at.pointer,
                "report-checkpointed",
                f"the report {path!r} lies inside checkpointedFiles ({glob!r}), as if the agent had written it",
                "give it a bare name, which lies in the sentinel's own folder, or leave it out of the globs",
                lint_at.of_settings,
            )


def report_is_the_agents_file(subject: Subject) -> Iterator[Lint]:
    """Two writers of one file: the agent's next edit may be refused because the file has changed under it."""
    for lint_at, path in _reports(subject):
        said = written_by(subject.around.agent_prompt, path)
        if said is not None:
            yield Lint(
                lint_at.pointer,
                "report-edited-by-agent",
                f"the prompt tells the agent to write {path!r} too: “{said}”",
                "give the report a file of its own, and let the agent read that",
                lint_at.of_settings,
            )


def model_has_no_provider(subject: Subject) -> Iterator[Lint]:
    """An id without ``/`` loads and fails at its first call (spec sentinels 7)."""
    model = subject.config.model
    if "/" not in model:
        yield Lint(
            "/model",
            "model-without-provider",
            f"{model!r} names no provider, so the first call fails",
            "write provider/model, as anthropic/claude-haiku-4-5",
        )


def model_cannot_be_called(subject: Subject) -> Iterator[Lint]:
    """A model that the registry lacks, or whose key is not set here, keeps its sentinel from loading."""
    model, models = subject.config.model, subject.around.models
    if models is None or "/" not in model:
        return
    from hankwatch.llm.builtin import BuiltinModels
    from hankwatch.llm.client import Unavailable

    found = (BuiltinModels() if model.startswith(_BUILTIN) else models).check(model)
    if isinstance(found, Unavailable):
        required = subject.around.settings.fail_codon_if_not_loaded
        follows = "the codon fails" if required else "this sentinel is skipped"
        code = "model-without-key" if found.code == "missing-key" else "unknown-model"
        yield Lint("/model", code, f"{found.reason}, so {follows}", found.hint)


LINTS: tuple[Callable[[Subject], Iterator[Lint]], ...] = (
    prompt_shows_no_events,
    value_never_occurs,
    regex_is_not_linear,
    debounce_outlasts_the_codon,
    report_is_checkpointed,
    report_is_the_agents_file,
    model_has_no_provider,
    model_cannot_be_called,
)
"""All of them, in the order in which they are reported.

Two more of spec hank 1 are rules of every sentinel config, because they need nothing but the config: a trigger on
a type that is never routed, and a condition path that no payload of its types has (``sentinels.rules``).
"""


@dataclass(frozen=True, slots=True)
class Places:
    """Where a sentinel's config and its codon entry's settings stand."""

    config: tuple[Document, str]
    """Document, and the pointer of the config in it."""
    settings: tuple[Document, str]
    """Document, and the pointer of the codon entry's ``settings``."""
    whole: bool = False
    """The config's own file is not the user's (a stock sentinel): point at the entry that names it."""


def lint_sentinel(subject: Subject, places: Places, diagnostics: Diagnostics) -> None:
    """Add every lint of one sentinel, as warnings where ``places`` says."""
    for check in LINTS:
        for lint in check(subject):
            document, pointer = places.settings if lint.of_settings else places.config
            at = pointer if places.whole and not lint.of_settings else pointer + lint.pointer
            add_fault(diagnostics, document, at, lint.code, lint.message, hint=lint.hint, severity="warning")


def _conditions(config: SentinelConfig) -> Iterator[tuple[str, list[str], Condition]]:
    """(pointer, the types it is asked of, condition) for all conditions of the trigger."""
    trigger = config.trigger
    if isinstance(trigger, EventTrigger):
        for index, condition in enumerate(trigger.conditions):
            yield f"/trigger/conditions/{index}", trigger.on, condition
    elif isinstance(trigger, SequenceTrigger):
        for number, step in enumerate(trigger.pattern):
            types = trigger.interest_filter.on if step.type == ANY else [step.type]
            for index, condition in enumerate(step.conditions):
                yield f"/trigger/pattern/{number}/conditions/{index}", types, condition


def _possible(types: list[str], path: str) -> frozenset[str] | None:
    """The strings possible at the path in any of the types; None where anything is."""
    sets = [enum_values(name, path) for name in types if has_path(name, path)]
    closed = [values for values in sets if values is not None]
    return frozenset().union(*closed) if closed and len(closed) == len(sets) else None


def _impossible(condition: Condition, allowed: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """(place below ``value``, value) of whatever the condition asks for in vain."""
    match condition:
        case EqualityCondition(value=value):
            wanted = [("", value)]
        case MembershipCondition(value=values):
            wanted = [(f"/{index}", value) for index, value in enumerate(values)]
        case ContainmentCondition(operator="contains") | RegexCondition(operator="matches"):
            if not any(map(compile_test(condition), allowed)):
                yield "", condition.value
            return
        case _:
            return
    yield from ((place, value) for place, value in wanted if value is not None and value not in allowed)


def _asked(condition: Condition) -> str:
    match condition:
        case ContainmentCondition():
            return "a text with "
        case RegexCondition():
            return "a text that matches "
        case _:
            return ""


@dataclass(frozen=True, slots=True)
class _At:
    """Where a report's path is said."""

    pointer: str
    of_settings: bool


def _reports(subject: Subject) -> Iterator[tuple[_At, str]]:
    """Where the sentinel's reports lie inside the agent's workspace, with what says so; the codon's word wins."""
    output = subject.config.output or Output()
    paths = subject.around.settings.output_paths or OutputPaths()
    for settings_key, of_codon, config_key, own in (
        ("logFile", paths.log_file, "file", output.file),
        ("lastValueFile", paths.last_value_file, "lastValueFile", output.last_value_file),
    ):
        if of_codon is not None:
            at, name = _At(f"/outputPaths/{settings_key}", of_settings=True), of_codon
        elif own is not None:
            at, name = _At(f"/output/{config_key}", of_settings=False), own
        else:
            continue
        path = workspace_path(name)
        if path is not None:
            yield at, path
