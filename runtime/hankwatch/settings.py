"""The settings of a run: what may be set, where it is read, and where each value came from (spec hank 6)."""

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ConfigDict, Field

from hankwatch.agents.settings import AgentSettings
from hankwatch.config.diagnostics import Diagnostic, Diagnostics
from hankwatch.config.layers import Layer, Name, Value, lay, leaves, tree
from hankwatch.config.legacy_names import PLACES, VARIABLES
from hankwatch.config.scanner import escape
from hankwatch.config.shapes import close_to
from hankwatch.config.source import Document
from hankwatch.config.validation import ConfigModel, add_fault, validate
from hankwatch.core.text import clean_text
from hankwatch.runner.settings import RunSettings
from hankwatch.sentinels.settings import SentinelsSettings
from hankwatch.serve.settings import ServeSettings
from hankwatch.stream.settings import JournalSettings
from hankwatch.watches.settings import WatchesSettings

if TYPE_CHECKING:
    from hankwatch.core.redaction import Redactor
    from hankwatch.hank.model import Overrides

_LOG = logging.getLogger(__name__)

FILE = "hankwatch.toml"
LEGACY_FILE = "hankweave.json"
_PREFIX = "HANKWATCH_"
NOT_SETTINGS: Mapping[str, str] = {
    "HANKWATCH_PROCESS": "Marks every process of a run, as run/codon/attempt, so that none is left behind.",
    "HANKWATCH_TURN": "For an `exec:` command: which turn of its session is asked for, from 1.",
    "HANKWATCH_SESSION_ID": "For an `exec:` command: the session to go on with; not set on the first turn.",
    "HANKWATCH_MODEL": "For an `exec:` command: the codon's model.",
    "HANKWATCH_SYSTEM_PROMPT": "For an `exec:` command: the system prompt, when there is one.",
    "HANKWATCH_MCP_CONFIG": "For an `exec:` command of a codon with `mcp`: a file that says how our MCP server is started.",
    "HANKWATCH_TOKEN": "For `hankwatch watch … --server`: the token that the server is shown.",
    "HANKWATCH_SESSION": "For the agent of a turn: its session; `hankwatch watch` speaks for that agent.",
    "HANKWATCH_EXECUTION": "For the agent of a turn: the execution directory, where its watches belong.",
    "HANKWATCH_WATCH_DEPTH": "For the agent of a turn: how deep its watches stand, 0 unless a watch woke it.",
    "HANKWATCH_CASES": "For this project's own tests: another folder of conformance cases.",
}
"""Variables with our prefix that set nothing, and what they are for."""
_SECRET = re.compile(r"key|token|secret|passw|credential", re.IGNORECASE)
_WORDS = {"1": True, "yes": True, "on": True, "0": False, "no": False, "off": False}


class RedactionSettings(ConfigModel):
    """Secrets are replaced before anything is written."""

    model_config = ConfigDict(alias_generator=None)

    enabled: bool = True
    """Turn it off only for data that holds no secret."""
    variables: tuple[str, ...] = ()
    """Further environment variables whose values are secrets."""

    def redactor(self, environment: Mapping[str, str]) -> "Redactor":
        """What replaces the secrets of these variables, as set here."""
        from hankwatch.core.redaction import Redactor

        return Redactor.from_environment(environment, variables=self.variables, enabled=self.enabled)


class Settings(ConfigModel):
    """Everything that can be set; each room owns its section."""

    model_config = ConfigDict(alias_generator=None)

    journal: JournalSettings = JournalSettings()
    """How the journal reaches the disk."""
    agents: dict[str, AgentSettings] = Field(default_factory=dict)
    """Agent program -> how it is started here."""
    run: RunSettings = RunSettings()
    """Where and how a run works."""
    sentinel: SentinelsSettings = SentinelsSettings()
    """What holds for all sentinels."""
    watches: WatchesSettings = WatchesSettings()
    """Watches."""
    serve: ServeSettings = ServeSettings()
    """The server."""
    redaction: RedactionSettings = RedactionSettings()
    """Secrets."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A value from the command line."""

    name: str
    """Dotted: ``run.budget.max_dollars``."""
    value: Any
    origin: str
    """The flag as it is typed: ``--max-cost``."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings that hold, and what was wrong with their sources."""

    settings: Settings
    values: Mapping[Name, Value]
    """Each value with its origin."""
    diagnostics: Diagnostics
    """With errors in it, ``settings`` lack the values at fault."""

    def log_warnings(self) -> None:
        """Say what was probably meant otherwise; 0.10 settings without effect are left to ``validate``."""
        for diagnostic in self.diagnostics:
            if diagnostic.severity == "warning" and diagnostic.code != "no-effect":
                _LOG.warning("%s", diagnostic.text())

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """(dotted name, value as JSON, origin) of each value, secrets masked; for ``validate``."""
        for name, value in sorted(self.values.items()):
            dotted = ".".join(name)
            secret = value.value is not None and ("env" in name[1:-1] or _SECRET.search(dotted))
            yield dotted, "***" if secret else json.dumps(value.value), value.origin


def load_settings(
    *,
    environ: Mapping[str, str],
    cwd: Path,
    hank_dir: Path | None = None,
    overrides: "Overrides | None" = None,
    config: Path | None = None,
    flags: Sequence[Flag] = (),
) -> LoadedSettings:
    """Lay defaults, one file, the hank's overrides, the environment and flags over each other.

    The file is the first found of ``config``, ``hankwatch.toml`` in ``hank_dir``, ``hankweave.json`` in
    ``cwd``, ``hankwatch/hankwatch.toml`` in the user's config folder. Bad input never raises: it is in
    ``diagnostics``, and the value of the layer below stands.
    """
    diagnostics = Diagnostics()
    path = config or find_file(environ, cwd, hank_dir)
    layers = [
        Layer({name: Value(value, "default") for name, value in leaves(Settings().model_dump(mode="json"))}),
        Layer(_file_values(path, diagnostics) if path else {}),
        _hank_layer(overrides),
        Layer(dict(_environment_values(environ, diagnostics))),
        Layer(dict(_flag_values(flags, diagnostics))),
    ]
    values = lay(layers)
    given = {name: value.value for name, value in values.items()}
    return LoadedSettings(Settings.model_validate_json(json.dumps(tree(given))), values, diagnostics)


def find_file(environ: Mapping[str, str], cwd: Path, hank_dir: Path | None) -> Path | None:
    """The settings file that is used when none is named."""
    home = environ.get("XDG_CONFIG_HOME") or (f"{environ['HOME']}/.config" if environ.get("HOME") else None)
    places = [
        *([hank_dir / FILE] if hank_dir else []),
        cwd / LEGACY_FILE,
        *([Path(home) / "hankwatch" / FILE] if home else []),
    ]
    return next((place for place in places if place.is_file()), None)


def variables() -> Mapping[str, Name]:
    """Environment variable -> the setting it sets; ours follow those of 0.10, because the later one wins."""
    ours = {_PREFIX + "_".join(name).upper(): name for name, _ in leaves(Settings().model_dump(mode="json"))}
    del ours["HANKWATCH_AGENTS"]
    return {**VARIABLES, **ours}


def _file_values(path: Path, diagnostics: Diagnostics) -> dict[Name, Value]:
    if path.suffix == ".toml":
        from hankwatch.config.toml import load_toml

        document = load_toml(path)
        if validate(Settings, document, diagnostics) is None:
            return {}
        _warn_of_unknown_agents(document, diagnostics)
        return {name: _from_file(value, document, name) for name, value in leaves(document.value)}
    from hankwatch.config.legacy import LegacySettings

    document = Document.load(path)
    if validate(LegacySettings, document, diagnostics) is None:
        return {}
    values: dict[Name, Value] = {}
    for name, value in leaves(document.value):
        if name in PLACES:
            values |= _here(value, document, name, diagnostics)
        elif name != ("$schema",):
            add_fault(
                diagnostics, document, "/" + "/".join(name), "no-effect", "has no effect here", severity="warning"
            )
    return values


def _here(value: Any, document: Document, old: Name, diagnostics: Diagnostics) -> dict[Name, Value]:
    """A value of 0.10 under its name here, when it may stand there."""
    faults, name = Diagnostics(), PLACES[old]
    validate(Settings, Document.from_value(tree({name: value})), faults)
    for fault in faults:
        add_fault(diagnostics, document, "/" + "/".join(old), fault.code, fault.message, hint=fault.hint)
    return {name: _from_file(value, document, old)} if faults.ok else {}


def _warn_of_unknown_agents(document: Document, diagnostics: Diagnostics) -> None:
    """A section that no program here has the name of: a slip, or a plugin that is not installed."""
    named = document.value.get("agents")
    if not named:
        return
    from hankwatch.agents.catalogue import PROGRAMS
    from hankwatch.agents.plugins import plugin_names

    known = [*PROGRAMS, "exec", *plugin_names()]
    for name in named:
        if name not in known:
            meant = close_to(name, known)
            add_fault(
                diagnostics,
                document,
                f"/agents/{escape(name)}",
                "unknown-agent",
                f"no agent program or plugin is named {name!r}",
                hint=f"did you mean {meant}?" if meant else None,
                severity="warning",
            )


def _from_file(value: Any, document: Document, name: Name) -> Value:
    place = document.locate("/" + "/".join(name))
    return Value(value, f"{document.file}:{place[0]}" if place else document.file)


def _hank_layer(overrides: "Overrides | None") -> Layer:
    if overrides is None:
        return Layer({})
    sentinel, budget = overrides.sentinel, overrides.budget
    said = {
        ("run", "model"): overrides.model,
        ("run", "data_hash_limit_ms"): overrides.data_hash_time_limit,
        ("run", "idle_limit_s"): overrides.shim_idle_timeout,
        ("sentinel", "persistence"): sentinel.enable_persistence if sentinel else None,
        ("sentinel", "max_concurrent_calls"): sentinel.max_concurrent_calls if sentinel else None,
        ("sentinel", "drain_s"): sentinel.drain_seconds if sentinel else None,
        ("run", "budget", "max_dollars"): budget.max_dollars if budget else None,
        ("run", "budget", "max_time_seconds"): budget.max_time_seconds if budget else None,
    }
    values = {name: Value(value, "the hank's overrides") for name, value in said.items() if value is not None}
    # A hank may lower a ceiling of the user's, never raise it (reference 2.8).
    return Layer(values, {name: min for name in values if name[1] == "budget"})


def _environment_values(environ: Mapping[str, str], diagnostics: Diagnostics) -> Iterator[tuple[Name, Value]]:
    known = variables()
    for variable, name in known.items():
        if variable in environ and clean_text(environ[variable]) != environ[variable]:
            diagnostics.add(Diagnostic("environment", f"/{variable}", "not-utf-8", "its value is not UTF-8"))
        elif variable in environ:
            yield from _accepted(name, _readings(variable, environ[variable]), variable, "environment", diagnostics)
    ours = [variable for variable in known if variable.startswith(_PREFIX)]
    for variable in sorted(environ):
        if variable.startswith(_PREFIX) and variable not in known and variable not in NOT_SETTINGS:
            meant = close_to(variable, ours)
            hint = f"did you mean {meant}?" if meant else None
            diagnostics.add(
                Diagnostic("environment", f"/{clean_text(variable)}", "unknown-key", "no such setting", hint, "warning")
            )


def _flag_values(flags: Sequence[Flag], diagnostics: Diagnostics) -> Iterator[tuple[Name, Value]]:
    for flag in flags:
        name = tuple(flag.name.split("."))
        yield from _accepted(name, [flag.value], flag.origin, "command line", diagnostics)


def _readings(variable: str, raw: str) -> list[Any]:
    """What the text of a variable may mean: itself, JSON, or a yes or no."""
    readings: list[Any] = [raw]
    read = Document.parse(raw, variable)
    if read.readable and not read.faults:
        readings.append(read.value)
    if raw.lower() in _WORDS:
        readings.append(_WORDS[raw.lower()])
    return readings


def _accepted(
    name: Name, readings: Sequence[Any], origin: str, file: str, diagnostics: Diagnostics
) -> Iterator[tuple[Name, Value]]:
    """The first reading that the setting takes; none, and the fault of the likeliest one."""
    faults = Diagnostics()
    for reading in readings:
        faults = Diagnostics()
        if validate(Settings, Document.from_value(tree({name: reading})), faults) is not None and faults.ok:
            yield name, Value(reading, origin)
            return
    for fault in faults:
        diagnostics.add(Diagnostic(file, f"/{origin}", fault.code, fault.message, fault.hint))
