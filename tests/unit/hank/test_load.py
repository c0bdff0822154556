"""Loading a hank with everything it names: all faults of all files, and never an exception (spec hank 1)."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, findings, hank, load, loop, sentinel, stub_files

from hankwatch.hank.load import check_sentinel, load_hank

BAD = {"model": 5}


def test_a_folder_means_the_hank_in_it(tmp_path: Path) -> None:
    loaded = load(tmp_path, hank(codon()))
    assert (loaded.path, loaded.hank_dir) == (tmp_path / "hank.json", tmp_path)


def test_a_hank_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    loaded = load_hank(tmp_path / "nope.json", "nope.json")
    assert loaded.config is None
    assert [(d.file, d.code) for d in loaded.diagnostics] == [("nope.json", "file-unreadable")]


@pytest.mark.parametrize(
    ("ref", "says"),
    [
        ("nope.md", "does not exist"),
        ("../up.md", "climbs above"),
        ("/etc/passwd", "absolute"),
        ("a\\b", "backslash"),
        ("link.md", "symbolic link"),
        ("pipe", "not a regular file"),
        ("latin.md", "not UTF-8"),
        ("folder", "directory"),
    ],
)
@pytest.mark.parametrize("key", ["promptFile", "appendSystemPromptFile"])
def test_a_prompt_file_that_cannot_be_read_is_an_error_at_its_line(
    tmp_path: Path, key: str, ref: str, says: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.md").symlink_to(tmp_path / "ok.md")
    os.mkfifo(tmp_path / "pipe")
    loaded = load(tmp_path, hank(codon(**{key: ["ok.md", ref]})), {"ok.md": "x", "latin.md": b"\xff"})
    (fault,) = loaded.diagnostics.errors
    assert (fault.pointer, fault.line is not None) == (f"/hank/0/{key}/1", True)
    assert says in fault.message


def test_empty_and_huge_prompts_are_warnings(tmp_path: Path) -> None:
    content = hank(codon(promptText=None, promptFile=["empty.md", "huge.md"]), globalSystemPromptFile="empty.md")
    loaded = load(tmp_path, content, {"empty.md": " \n", "huge.md": "x" * (1024 * 1024 + 1)})
    assert findings(loaded) == [
        ("warning", "prompt-empty", "/hank/0/promptFile/0"),
        ("warning", "prompt-large", "/hank/0/promptFile/1"),
        ("warning", "prompt-empty", "/globalSystemPromptFile"),
    ]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("nope", "does not exist"),
        (".", "hank directory itself"),
        ("tree/..", "hank directory itself"),
        ("..", "above"),
        ("tree", "symbolic link"),
        ("dev", "neither"),
    ],
)
def test_what_a_rig_copies_is_a_plain_tree_below_the_hank(tmp_path: Path, source: str, says: str) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "link").symlink_to("/etc")
    (tmp_path / "dev").mkdir()
    os.mkfifo(tmp_path / "dev" / "pipe")
    content = hank(codon(rigSetup=[{"type": "copy", "copy": {"from": source, "to": "x"}}]))
    (fault,) = load(tmp_path, content).diagnostics.errors
    assert fault.pointer == "/hank/0/rigSetup/0/copy/from"
    assert says in fault.message


def test_a_recording_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    loaded = load(
        tmp_path, hank(codon("a", agent="recorded:r.jsonl"), codon("b", agent="recorded:nope")), {"r.jsonl": ""}
    )
    assert findings(loaded) == [("error", "file-unreadable", "/hank/1/agent")]


@pytest.mark.parametrize("names", [["2.jsonl"], ["1.jsonl", "3.jsonl"], ["1.jsonl", "01.jsonl"], ["one.jsonl"], []])
def test_a_recorded_session_has_one_file_for_each_turn(tmp_path: Path, names: list[str]) -> None:
    (tmp_path / "session").mkdir()
    content = hank(codon("a", agent="recorded:session"))
    loaded = load(tmp_path, content, {f"session/{name}": "" for name in names})
    assert findings(loaded) == [("error", "file-unreadable", "/hank/0/agent")]
    assert "1.jsonl, 2.jsonl" in next(iter(loaded.diagnostics)).message


def test_faults_of_every_file_come_at_once(tmp_path: Path) -> None:
    content = hank(
        codon("a", onFailre="retry"),
        codon("a", name="", promptFile="nope.md", sentinels=[{"sentinelConfig": "s.json"}]),
        codon("c", sentinels=[{"sentinelConfig": sentinel(**BAD), "setting": {}}]),
        loop(codon("d", promptFile="gone.md")),
    )
    loaded = load(tmp_path, content, {"s.json": json.dumps(sentinel(**BAD))})
    assert loaded.config is None
    assert {(Path(d.file).name, d.pointer) for d in loaded.diagnostics.errors} == {
        ("hank.json", "/hank/0/onFailre"),
        ("hank.json", "/hank/1/name"),
        ("hank.json", "/hank/1/id"),
        ("hank.json", "/hank/1/promptFile"),
        ("hank.json", "/hank/2/sentinels/0/setting"),
        ("hank.json", "/hank/2/sentinels/0/sentinelConfig/model"),
        ("hank.json", "/hank/3/codons/0/promptFile"),
        ("s.json", "/model"),
    }
    assert all(d.line is not None for d in loaded.diagnostics)


@pytest.mark.parametrize("fields", [{"promptText": 5}, {"promptText": 5, "promptFile": "p.md"}, {"promptFile": [5]}])
def test_a_faulty_setting_has_no_faults_that_follow_from_it(tmp_path: Path, fields: dict[str, Any]) -> None:
    loaded = load(tmp_path, hank({**codon(promptText=None), **fields}), {"p.md": "x"})
    assert [code for _, code, _ in findings(loaded)] == ["wrong-type"]


def test_the_findings_stand_in_the_order_of_the_file(tmp_path: Path) -> None:
    loaded = load(
        tmp_path, hank(codon("a", promptFile="nope.md"), codon("b", promptFile="gone.md"), watchdog="default")
    )
    lines = [d.line for d in loaded.diagnostics]
    assert lines == sorted(lines, key=lambda line: line or 0)


def test_two_sentinels_of_a_codon_may_not_share_an_id(tmp_path: Path) -> None:
    entries = [{"sentinelConfig": sentinel("x")}, {"sentinelConfig": "s.json"}]
    loaded = load(
        tmp_path,
        hank(codon("a", sentinels=entries), codon("b", sentinels=entries[:1])),
        {"s.json": json.dumps(sentinel("x"))},
    )
    assert findings(loaded) == [("error", "duplicate-sentinel", "/hank/0/sentinels/1")]


def test_a_sentinels_fault_keeps_only_a_required_one_from_running(tmp_path: Path) -> None:
    def blocking(**settings: Any) -> int:
        entry = {"sentinelConfig": sentinel(**BAD), "settings": settings}
        return len(load(tmp_path, hank(codon(sentinels=[entry]))).blocking)

    assert blocking() == 0
    assert blocking(failCodonIfNotLoaded=True) == 1
    assert blocking(failCodonIfNotLoadd=True) == 1


def test_a_fault_of_the_hank_itself_always_blocks(tmp_path: Path) -> None:
    loaded = load(tmp_path, hank(codon(promptText=None, sentinels=[{"sentinelConfig": sentinel(**BAD)}])))
    assert [d.code for d in loaded.blocking] == ["prompt-missing"]


def test_a_sentinel_by_itself_is_checked_with_its_files(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps(sentinel(model="haiku", userPromptFile="gone.md")))
    assert [d.code for d in check_sentinel(path)] == ["file-unreadable"]
    (tmp_path / "gone.md").write_text("x")
    assert [(d.code, d.pointer, d.line) for d in check_sentinel(path)] == [("model-without-provider", "/model", 1)]


def test_a_hank_named_from_its_own_folder_has_an_absolute_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(tmp_path, hank(codon()))
    monkeypatch.chdir(tmp_path)
    assert load_hank(Path("hank.json")).hank_dir == tmp_path


REAL = ["hank-budget-shared-starvation.json", "pack-fixture.hank.json", "test-codons-with-loop.config.json"]


@pytest.mark.parametrize("name", [*REAL, "test-failure-retry.hank.json"])
def test_a_real_hank_of_0_10_loads(tmp_path: Path, fixtures: Path, name: str) -> None:
    text = (fixtures / "hanks" / name).read_text()
    stub_files(text, tmp_path)
    loaded = load(tmp_path, text)
    assert loaded.config is not None
    assert loaded.diagnostics.errors == []


def test_a_real_hank_with_a_syntax_fault_is_rejected_with_its_line(tmp_path: Path, fixtures: Path) -> None:
    text = (fixtures / "hanks" / "plan-gen-v2-general.hank.json").read_text()
    stub_files(text, tmp_path)
    loaded = load(tmp_path, text)
    first = loaded.diagnostics.errors[0]
    assert loaded.config is None
    assert (first.line, first.code) == (116, "json-syntax")
    assert "trailing comma" in first.message
    assert {d.hint for d in loaded.diagnostics.errors[1:]} == {"belongs into 'command'"}


@pytest.mark.parametrize("folder", ["demo", "sentinel-sweep"])
def test_the_shipped_hanks_have_neither_fault_nor_lint(fixtures: Path, folder: str) -> None:
    loaded = load_hank(fixtures / folder)
    assert loaded.diagnostics.items == []
    assert any(loaded.sentinels.values())
