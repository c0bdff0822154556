import subprocess
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from tests.support.payloads import sample

from hankwatch.events import activity, observers, run
from hankwatch.events.catalogue import (
    CONNECTION_TYPES,
    KNOWN_TYPES,
    OPEN_TYPES,
    PAYLOADS,
    enum_values,
    has_path,
    routing,
)
from hankwatch.events.envelope import Routing
from hankwatch.events.payload import Payload


@pytest.mark.parametrize("module", [activity, observers, run])
def test_every_payload_is_in_the_catalogue(module: ModuleType) -> None:
    for model in vars(module).values():
        if isinstance(model, type) and issubclass(model, Payload) and "TYPE" in vars(model):
            assert PAYLOADS[model.TYPE] is model


def test_every_type_has_its_payload() -> None:
    assert [model.TYPE for model in PAYLOADS.values()] == list(PAYLOADS)


def test_only_the_payloads_that_are_asked_for_are_imported() -> None:
    """The others would cost a short command a tenth of its time."""
    script = """
import sys
from hankwatch.events.catalogue import has_path
assert has_path("tool.result", "isError")
print(*(name for name in ("activity", "observers", "run") if f"hankwatch.events.{name}" in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["activity"]


def test_27_types_are_open() -> None:
    assert len(OPEN_TYPES) == 27
    assert all(routing(name, {}) is Routing.OPEN for name in OPEN_TYPES)


@pytest.mark.parametrize("name", ["watch.met", "watch.value_changed", "watch.delivery", "watchdog.nudge"])
def test_observers_that_act_are_reached_by_name_only(name: str) -> None:
    assert routing(name, {}) is Routing.NAMED


def test_a_journals_repair_is_reached_by_name_only() -> None:
    assert routing("journal.repaired", {}) is Routing.NAMED


def test_sentinels_never_see_sentinels() -> None:
    names = {name for name in KNOWN_TYPES if name.startswith("sentinel.")}
    assert len(names) == 5
    assert all(routing(name, {}) is Routing.NEVER for name in names)
    assert routing("state.transition", {"transitionType": "SentinelStatesUpdated"}) is Routing.NEVER
    assert routing("state.transition", {"transitionType": "CodonStarted"}) is Routing.OPEN


@pytest.mark.parametrize("name", ["strange.type", "", "*", *CONNECTION_TYPES])
def test_a_type_that_is_no_event_of_ours_is_never_routed(name: str) -> None:
    assert routing(name, {}) is Routing.NEVER


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("tool.result", "isError"),
        ("tool.result", "result.length"),
        ("tool.result", "outcome"),
        ("assistant.action", "toolInput"),
        ("assistant.action", "toolInput.file_path.anything.0.length"),
        ("codon.completed", "exitStatus.type"),
        ("codon.completed", "exitStatus.code"),
        ("codon.completed", "exitStatus.signal.length"),
        ("codon.completed", "failureReason.sentinelRefs.0"),
        ("filetree.updated", "tree.0.children.12.children.length"),
        ("file.updated", "content"),
        ("file.updated", "content.length"),
        ("file.updated", "source.toolUseId"),
        ("file.updated", "bytes"),
        ("state.transition", "transition.data.to"),
        ("state.snapshot", "currentCodon.claudePid"),
        ("token.usage", "modelUsage.some-model.costUSD"),
        ("watch.met", "value.a.b"),
        ("info", "details.0.original"),
        ("*", "isError"),
        ("*", "toolInput.command"),
    ],
)
def test_a_path_that_some_payload_has_is_accepted(name: str, path: str) -> None:
    assert has_path(name, path)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("tool.result", "isErorr"),
        ("tool.result", "is_error"),
        ("tool.result", ""),
        ("tool.result", "result.0"),
        ("tool.result", "isError.length"),
        ("tool.result", "toolInput.command"),
        ("codon.completed", "exitStatus.kind"),
        ("filetree.updated", "tree.name"),
        ("filetree.updated", "tree.-1"),
        ("filetree.updated", "tree.²"),
        ("filetree.updated", "tree.length.length"),
        ("file.updated", "size_bytes"),
        ("strange.type", "anything"),
        ("*", "isErorr"),
        ("*", "sentinelId"),
    ],
)
def test_a_path_that_no_payload_has_is_refused(name: str, path: str) -> None:
    assert not has_path(name, path)


def _paths(value: Any, prefix: str = "") -> Iterator[str]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield f"{prefix}{key}"
        yield from _paths(item, f"{prefix}{key}.")
    if isinstance(value, str | list):
        yield f"{prefix}length"


@pytest.mark.parametrize("model", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_every_path_of_a_real_payload_is_accepted(model: type[Payload]) -> None:
    missing = [path for path in _paths(sample(model).dump()) if not has_path(model.TYPE, path)]
    assert missing == []


def test_the_strings_of_an_enum_are_known() -> None:
    assert enum_values("assistant.action", "action") == frozenset({"thinking", "message", "tool_use"})
    assert enum_values("tool.result", "outcome") == frozenset({"ok", "error", "denied", "cancelled", "infra"})


def test_the_enums_of_a_unions_members_are_joined() -> None:
    assert enum_values("codon.completed", "exitStatus.type") == frozenset({"success", "error", "killed"})


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("tool.result", "toolName"),
        ("tool.result", "isError"),
        ("assistant.action", "toolInput.action"),
        ("codon.completed", "failureIgnored"),
        ("strange.type", "action"),
        ("*", "message"),
        ("tool.result", "missing"),
    ],
)
def test_where_other_values_are_possible_there_is_no_enum(name: str, path: str) -> None:
    assert enum_values(name, path) is None
