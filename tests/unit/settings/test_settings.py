"""Settings: one file, five layers, and the origin of each value (spec hank 6, reference 2.8)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hankwatch.agents.execute import ExecAgent
from hankwatch.agents.program import TurnRequest
from hankwatch.hank.model import Overrides
from hankwatch.settings import Flag, LoadedSettings, Settings, find_file, load_settings

OVERRIDES = Overrides.model_validate_json(
    json.dumps({
        "model": "opus",
        "shimIdleTimeout": 60,
        "dataHashTimeLimit": 9,
        "budget": {"maxDollars": 5, "maxTimeSeconds": 50},
        "sentinel": {"drainSeconds": 7, "maxConcurrentCalls": 2, "enablePersistence": False},
    })
)  # fmt: skip


def _load(folder: Path, environ: Mapping[str, str] | None = None, **arguments: Any) -> LoadedSettings:
    return load_settings(environ=environ or {}, cwd=folder / "cwd", hank_dir=folder, **arguments)


def _origins(loaded: LoadedSettings) -> dict[str, str]:
    return {name: origin for name, _, origin in loaded.rows() if origin != "default"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cwd").mkdir()
    return tmp_path


def test_without_any_source_the_defaults_hold(folder: Path) -> None:
    loaded = _load(folder)
    assert loaded.settings == Settings()
    assert loaded.diagnostics.items == []
    assert _origins(loaded) == {}
    run, journal, sentinel = loaded.settings.run, loaded.settings.journal, loaded.settings.sentinel
    assert (journal.sync_interval_s, run.tool_result_chars, run.stop_budget_s) == (1.0, 2_500, 10.0)
    assert (run.execution_base_dir, sentinel.drain_s, sentinel.max_concurrent_calls) == (
        "~/.hankweave-executions",
        120.0,
        8,
    )


def test_a_higher_layer_wins_and_says_where_it_was(folder: Path) -> None:
    (folder / "hankwatch.toml").write_text(
        '[run]\nmodel = "file"\noutput_dir = "file"\nidle_limit_s = 5\n[sentinel]\ndrain_s = 3\n'
    )
    loaded = _load(
        folder,
        {"HANKWATCH_SENTINEL_DRAIN_S": "9", "HANKWATCH_RUN_IDLE_LIMIT_S": "70"},
        overrides=OVERRIDES,
        flags=[Flag("run.idle_limit_s", 80.0, "--idle")],
    )
    file = str(folder / "hankwatch.toml")
    assert loaded.settings.run.model == "opus"
    assert loaded.settings.sentinel.drain_s == 9
    origins = _origins(loaded)
    assert origins["run.output_dir"] == f"{file}:3"
    assert origins["run.model"] == "the hank's overrides"
    assert origins["sentinel.drain_s"] == "HANKWATCH_SENTINEL_DRAIN_S"
    assert origins["run.idle_limit_s"] == "--idle"


def test_a_hank_lowers_a_ceiling_and_never_raises_it(folder: Path) -> None:
    (folder / "hankwatch.toml").write_text("[run.budget]\nmax_dollars = 2\nmax_time_seconds = 100\n")
    budget = _load(folder, overrides=OVERRIDES).settings.run.budget
    assert (budget.max_dollars, budget.max_time_seconds) == (2, 50)
    flagged = _load(folder, overrides=OVERRIDES, flags=[Flag("run.budget.max_dollars", 9.0, "--max-cost")])
    assert flagged.settings.run.budget.max_dollars == 9


def test_only_the_first_file_found_is_read(folder: Path) -> None:
    home = {"HOME": str(folder / "home")}
    user = folder / "home" / ".config" / "hankwatch" / "hankwatch.toml"
    user.parent.mkdir(parents=True)
    user.write_text('[run]\nmodel = "user"\n')
    assert _load(folder, home).settings.run.model == "user"
    (folder / "cwd" / "hankweave.json").write_text('{"model": "cwd"}')
    assert _load(folder, home).settings.run.model == "cwd"
    (folder / "hankwatch.toml").write_text('[run]\noutput_dir = "x"\n')
    assert _load(folder, home).settings.run.model is None
    named = folder / "named.toml"
    named.write_text('[run]\nmodel = "named"\n')
    assert _load(folder, home, config=named).settings.run.model == "named"


def test_the_users_folder_may_be_moved(folder: Path) -> None:
    (folder / "hankwatch").mkdir()
    (folder / "hankwatch" / "hankwatch.toml").write_text("")
    assert find_file({"XDG_CONFIG_HOME": str(folder)}, folder / "cwd", None) == folder / "hankwatch" / "hankwatch.toml"
    assert find_file({}, folder / "cwd", None) is None


def test_the_0_10_file_has_its_own_names(folder: Path) -> None:
    content = {
        "executionBaseDir": "/z",
        "outputDirectory": "/o",
        "port": 7,
        "anthropicBaseUrl": "http://x",
        "shimIdleTimeout": 9,
        "dataHashTimeLimit": 8,
        "ignoreRigFailures": True,
        "autostart": False,
        "sentinel": {"enablePersistence": False},
        "budget": {"maxDollars": 1, "maxTimeSeconds": 2},
        "showCosts": True,
    }
    (folder / "cwd" / "hankweave.json").write_text(json.dumps(content))
    loaded = _load(folder)
    run = loaded.settings.run
    assert (run.execution_base_dir, run.output_dir, run.idle_limit_s, run.data_hash_limit_ms) == ("/z", "/o", 9, 8)
    assert (run.ignore_rig_failures, run.autostart, loaded.settings.serve.port) == (True, False, 7)
    assert (run.budget.max_dollars, run.budget.max_time_seconds) == (1, 2)
    assert loaded.settings.sentinel.persistence is False
    assert loaded.settings.agents["claude"].env == {"ANTHROPIC_BASE_URL": "http://x"}
    assert [(d.code, d.pointer, d.severity) for d in loaded.diagnostics] == [("no-effect", "/showCosts", "warning")]


@pytest.mark.parametrize(
    ("text", "line", "column", "code", "says"),
    [
        ("[journal]\nsync_interval = 1", 2, 1, "unknown-key", "'sync_interval'"),
        ("[journl]\nx = 1", 1, 1, "unknown-key", "'journl'"),
        ("[watches]\ninterval = 1", 2, 12, "out-of-range", "from 5 to 86,400, not 1"),
        ("[watches]\n  interval = nan", 2, 14, "out-of-range", "not NaN"),
        ("[run]\ntool_result_chars = true", 2, 21, "wrong-type", "not true"),
        ("[run]\nmodel = 2020-01-01\ntool_result_chars = 2020-01-01", 3, 21, "wrong-type", "2020-01-01"),
        ("[agents.claude]\ncommand = []", 2, 11, "too-short", "non-empty list"),
        ("[watches]\ninterval_s = 30", 2, 1, "unknown-key", "'interval_s'"),
        ("[serve]\nhost = '0.0.0.0'", 2, 1, "unknown-key", "'host'"),
        ("[run]\nexecution_base_dir = '~nobody-by-this-name/x'", 2, 22, "invalid-value", "~nobody-by-this-name;"),
        ("[run]\nexecution_base_dir = '~nobody-by-this-name'", 2, 22, "invalid-value", "~nobody-by-this-name;"),
        ('[run]\noutput_dir = "a\\u0000"', 2, 14, "invalid-value", "NUL"),
        ("[run]\nmodel = ", 2, 9, "toml-syntax", "nvalid value"),
        ("run.budget.max_dollars = 0", 1, 26, "out-of-range", "above 0"),
    ],
)
def test_a_fault_of_the_file_has_its_line(
    folder: Path, text: str, line: int, column: int, code: str, says: str
) -> None:
    (folder / "hankwatch.toml").write_text(text)
    loaded = _load(folder)
    (fault,) = loaded.diagnostics.errors
    assert (fault.line, fault.column, fault.code) == (line, column, code)
    assert says in fault.message
    assert loaded.settings == Settings()


def test_a_file_that_was_named_and_is_not_there_is_a_fault(folder: Path) -> None:
    assert [d.code for d in _load(folder, config=folder / "no.toml").diagnostics] == ["file-unreadable"]
    assert [d.code for d in _load(folder, config=folder / "no.json").diagnostics] == ["file-unreadable"]


@pytest.mark.parametrize(
    ("variable", "raw", "read"),
    [
        ("HANKWATCH_JOURNAL_SYNC_INTERVAL_S", "0", lambda s: s.journal.sync_interval_s == 0),
        ("HANKWATCH_JOURNAL_SYNC_INTERVAL_S", "null", lambda s: s.journal.sync_interval_s is None),
        ("HANKWATCH_JOURNAL_SYNC_INTERVAL_S", "never", lambda s: s.journal.sync_interval_s is None),
        ("HANKWATCH_RUN_MODEL", "5", lambda s: s.run.model == "5"),
        ("HANKWATCH_RUN_BUDGET_MAX_DOLLARS", "0.5", lambda s: s.run.budget.max_dollars == 0.5),
        ("HANKWATCH_RUN_AUTOSTART", "no", lambda s: s.run.autostart is False),
        ("HANKWATCH_RUN_AUTOSTART", "0", lambda s: s.run.autostart is False),
        ("HANKWATCH_REDACTION_VARIABLES", '["A"]', lambda s: s.redaction.variables == ("A",)),
        ("HANKWEAVE_RUNTIME_EXECUTION_BASE_DIR", "/y", lambda s: s.run.execution_base_dir == "/y"),
        ("HANKWEAVE_RUNTIME_SENTINEL_ENABLE_PERSISTENCE", "false", lambda s: s.sentinel.persistence is False),
    ],
)
def test_a_variable_is_read_as_the_setting_takes_it(folder: Path, variable: str, raw: str, read: Any) -> None:
    loaded = _load(folder, {variable: raw})
    assert loaded.diagnostics.items == []
    assert read(loaded.settings)
    assert variable in _origins(loaded).values()


def test_our_variable_wins_over_its_0_10_name(folder: Path) -> None:
    environ = {"HANKWATCH_RUN_MODEL": "ours", "HANKWEAVE_RUNTIME_MODEL": "theirs"}
    assert _load(folder, environ).settings.run.model == "ours"


def test_a_bad_variable_or_flag_is_named_and_leaves_the_value_below(folder: Path) -> None:
    loaded = _load(
        folder,
        {"HANKWATCH_RUN_STOP_BUDGET_S": "soon", "HANKWATCH_RUN_STOP_BUDGT_S": "5", "HANKWATCH_PROCESS": "x"},
        flags=[Flag("run.budget.max_dollars", -1, "--max-cost")],
    )
    assert loaded.settings == Settings()
    assert [(d.file, d.pointer, d.code, d.severity) for d in loaded.diagnostics] == [
        ("environment", "/HANKWATCH_RUN_STOP_BUDGET_S", "wrong-type", "error"),
        ("environment", "/HANKWATCH_RUN_STOP_BUDGT_S", "unknown-key", "warning"),
        ("command line", "/--max-cost", "out-of-range", "error"),
    ]


@pytest.mark.parametrize("name", ["HANKWATCH_RUN_MODEL", "HANKWATCH_RUN_EXECUTION_BASE_DIR", "HANKWEAVE_RUNTIME_MODEL"])
def test_a_variable_that_is_no_text_is_a_fault_and_leaves_the_value_below(folder: Path, name: str) -> None:
    loaded = _load(folder, {name: "a\udcff", "HANKWATCH_\udcff": "x"})
    assert loaded.settings == Settings()
    assert [(d.pointer, d.code, d.severity) for d in loaded.diagnostics] == [
        (f"/{name}", "not-utf-8", "error"),
        ("/HANKWATCH_\ufffd", "unknown-key", "warning"),
    ]


def test_a_flag_that_is_no_text_is_a_fault(folder: Path) -> None:
    loaded = _load(folder, flags=[Flag("run.output_dir", "a\udcff", "--output")])
    assert [d.pointer for d in loaded.diagnostics.errors] == ["/--output"]
    assert loaded.settings == Settings()


@pytest.mark.parametrize(
    "content",
    ['{"executionBaseDir": "~nobody-by-this-name/x"}', '{"outputDirectory": "\\u0000"}'],
)
def test_a_0_10_value_that_cannot_stand_here_is_a_fault_with_its_line(folder: Path, content: str) -> None:
    (folder / "cwd" / "hankweave.json").write_text(content)
    loaded = _load(folder)
    (fault,) = loaded.diagnostics.errors
    assert fault.line == 1
    assert loaded.settings == Settings()


def test_a_section_of_an_agent_that_nobody_knows_is_a_warning(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hankwatch.agents.plugins.plugin_names", lambda: frozenset({"added"}))
    sections = "".join(f"[agents.{name}]\nidle_limit_s = 5\n" for name in ("claude", "exec", "added", "codx", "else"))
    (folder / "hankwatch.toml").write_text(sections)
    loaded = _load(folder)
    assert [(d.pointer, d.line, d.code, d.severity, d.hint) for d in loaded.diagnostics] == [
        ("/agents/codx", 7, "unknown-agent", "warning", "did you mean codex?"),
        ("/agents/else", 9, "unknown-agent", "warning", None),
    ]
    assert set(loaded.settings.agents) == {"claude", "exec", "added", "codx", "else"}


def test_what_a_command_of_ones_own_is_told_is_no_setting(folder: Path) -> None:
    told = ExecAgent(("tool",)).resume(TurnRequest("Go.", "model", "Be brief.", turn=2), "session").env
    assert len(told) == 4
    assert list(_load(folder, {**told}).diagnostics) == []


def test_warnings_are_logged_but_for_old_settings_without_effect(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "cwd" / "hankweave.json").write_text('{"showCosts": true}')
    loaded = _load(folder, {"HANKWATCH_RUN_MODLE": "x", "HANKWATCH_PROCESS": "x", "HANKWATCH_MODEL": "given by us"})
    assert [d.code for d in loaded.diagnostics] == ["no-effect", "unknown-key"]
    loaded.log_warnings()
    (line,) = caplog.messages
    assert "HANKWATCH_RUN_MODLE" in line
    assert "did you mean HANKWATCH_RUN_MODEL?" in line


def test_variables_named_in_the_settings_are_redacted(folder: Path) -> None:
    (folder / "hankwatch.toml").write_text('[redaction]\nvariables = ["LESS"]\n')
    redactor = _load(folder).settings.redaction.redactor({"LESS": "an ordinary value", "MORE": "another value"})
    assert redactor.text("an ordinary value").startswith("[redacted:LESS:")
    assert redactor.text("another value") == "another value"


def test_redaction_that_is_switched_off_stays_off(folder: Path) -> None:
    (folder / "hankwatch.toml").write_text('[redaction]\nenabled = false\nvariables = ["LESS"]\n')
    redactor = _load(folder).settings.redaction.redactor({"LESS": "an ordinary value"})
    assert redactor.text("an ordinary value") == "an ordinary value"


def test_secrets_are_masked_where_values_are_shown(folder: Path) -> None:
    (folder / "hankwatch.toml").write_text('[agents.claude.env]\nURL = "hidden"\n[agents.claude]\nidle_limit_s = 5\n')
    shown = {name: value for name, value, _ in _load(folder).rows()}
    assert shown["agents.claude.env.URL"] == "***"
    assert shown["agents.claude.idle_limit_s"] == "5"
    assert "hidden" not in str(shown)
