"""Everything that can fail is tried at load; a sentinel that cannot load is skipped or fails its codon."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.support.sentinels import desk, entry_source, scope, source

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.sentinels.source import SentinelSource, read_config_file
from hankwatch.testing import ScriptedModel

CONFIG = {
    "id": "narrator",
    "name": "Narrator",
    "trigger": {"type": "event", "on": ["info"]},
    "execution": {"strategy": "immediate"},
    "model": "scripted/model",
}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def on_regex(pattern: str) -> dict[str, Any]:
    condition = {"path": "message", "operator": "matches", "value": pattern}
    return {"type": "event", "on": ["info"], "conditions": [condition]}


def write_config(path: Path, **more: Any) -> None:
    write(path, json.dumps({**CONFIG, **more}))


async def failure_of(tmp_path: Path, *sources: SentinelSource) -> str:
    """Attach, and the one reason for not loading the last of them."""
    async with desk(tmp_path / "execution") as d, d.manager.attach(scope(), sources) as attached:
        (failed,) = attached.failures
        (error,) = d.said("error")
        assert (error["errorType"], error["sentinelId"]) == ("load-failed", failed.sentinel_id)
        assert error["message"] == failed.reason
        assert len(d.said("loaded")) == len(sources) - 1
        return failed.reason


async def test_prompt_files_are_joined_with_a_blank_line_and_the_text_follows(tmp_path: Path) -> None:
    write(tmp_path / "prompts" / "a.md", "A {{ events | length }}\n")
    write(tmp_path / "prompts" / "b.md", "B\r\n")
    write_config(
        tmp_path / "sentinels" / "n.json",
        userPromptFile=["../prompts/a.md", "../prompts/b.md"],
        userPromptText="text",
    )
    made = entry_source({"sentinelConfig": "sentinels/n.json"}, tmp_path)
    assert (made.faults, made.source, made.source_path) == ((), "file", "sentinels/n.json")
    async with desk(tmp_path / "execution") as d, d.manager.attach(scope(), [made]):
        d.info()
        await d.manager.settle()
        assert isinstance(d.model, ScriptedModel)
        assert d.model.requests[0].messages[-1].content == "A 1\n\nB\n\ntext"


@pytest.mark.parametrize(
    ("ref", "said"),
    [
        ("missing.json", "does not exist"),
        ("../outside.json", "climbs above"),
        ("/etc/passwd", "is absolute"),
        ("link.json", "symbolic link"),
        ("stock:nothing-like-it", "is not the id of a stock sentinel"),
        ("stock:../sentinels", "is not the id of a stock sentinel"),
    ],
)
def test_a_config_that_cannot_be_read_is_a_fault_of_its_entry(tmp_path: Path, ref: str, said: str) -> None:
    (tmp_path / "link.json").symlink_to("/etc/passwd")
    made = entry_source({"sentinelConfig": ref}, tmp_path)
    assert made.config is None
    (fault,) = made.faults
    assert (fault.pointer, fault.file) == ("/entry/sentinelConfig", "hank.json")
    assert said in fault.message


@pytest.mark.parametrize("ref", ["missing.md", "a-folder", "link.md"])
def test_a_prompt_file_that_cannot_be_read_is_a_fault_with_its_place(tmp_path: Path, ref: str) -> None:
    (tmp_path / "sentinels" / "a-folder").mkdir(parents=True)
    (tmp_path / "sentinels" / "link.md").symlink_to("/etc/passwd")
    write_config(tmp_path / "sentinels" / "n.json", userPromptFile=["n.json", ref])
    (fault,) = entry_source({"sentinelConfig": "sentinels/n.json"}, tmp_path).faults
    assert (fault.file, fault.pointer, fault.line) == ("sentinels/n.json", "/userPromptFile/1", 1)


def test_every_fault_of_an_inline_config_has_its_place_in_the_hank(tmp_path: Path) -> None:
    config = {**CONFIG, "userPromptText": "x", "modle": "x", "output": {"file": "../x.md"}}
    made = entry_source({"sentinelConfig": config}, tmp_path)
    assert [fault.pointer for fault in made.faults] == ["/entry/sentinelConfig/modle"]
    del config["modle"]
    made = entry_source(
        {"sentinelConfig": config, "settings": {"outputPaths": {"lastValueFile": "./.hankweave/x"}}}, tmp_path
    )
    assert {(fault.pointer, fault.code) for fault in made.faults} == {
        ("/entry/sentinelConfig/output/file", "path-refused"),
        ("/entry/settings/outputPaths/lastValueFile", "path-refused"),
    }
    assert made.id == "narrator"


def test_a_config_by_itself_may_use_files_up_to_its_hank(tmp_path: Path) -> None:
    write(tmp_path / "hank.json", "{}")
    write(tmp_path / "prompts" / "a.md", "A")
    write_config(tmp_path / "sentinels" / "n.json", userPromptFile="../prompts/a.md")
    diagnostics = Diagnostics()
    assert read_config_file(tmp_path / "sentinels" / "n.json", diagnostics).config is not None
    (tmp_path / "hank.json").unlink()
    assert read_config_file(tmp_path / "sentinels" / "n.json", diagnostics).config is None
    assert "climbs above" in diagnostics.errors[0].message


async def test_a_prompt_that_does_not_parse_is_not_loaded(tmp_path: Path) -> None:
    assert "a prompt does not parse: line 2" in await failure_of(tmp_path, source(userPromptText="x\n{% for %}"))


async def test_an_unknown_model_is_not_loaded_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    model = ScriptedModel(unavailable=["acme/new"])
    async with desk(tmp_path, model=model) as d, d.manager.attach(scope(), [source(model="acme/new")]) as attached:
        assert "acme/new" in attached.failures[0].reason
        assert {record.levelname for record in caplog.records} == {"INFO", "WARNING"}


async def test_a_config_with_faults_is_not_loaded(tmp_path: Path) -> None:
    assert "unknown key 'modle'" in await failure_of(tmp_path, source(modle="x"))


async def test_a_prompt_file_that_vanished_since_the_start_is_not_loaded(tmp_path: Path) -> None:
    write(tmp_path / "a.md", "A")
    made = source(hank_dir=tmp_path, userPromptFile="a.md")
    (tmp_path / "a.md").unlink()
    assert "does not exist" in await failure_of(tmp_path, made)


async def test_a_report_that_cannot_be_opened_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "execution" / "agentRoot").mkdir(parents=True)
    (tmp_path / "execution" / "agentRoot" / "out").symlink_to("/tmp")
    assert "links are not followed" in await failure_of(tmp_path, source(output={"file": "out/x.md"}))


@pytest.mark.parametrize(
    "output", [{"file": "x.md", "lastValueFile": "x.md"}, {"file": "./a/../x", "lastValueFile": "./x"}]
)
async def test_one_file_for_two_purposes_is_not_loaded(tmp_path: Path, output: dict[str, str]) -> None:
    assert "two files" in await failure_of(tmp_path, source(output=output))


async def test_two_sentinels_of_a_codon_on_one_file_the_second_is_not_loaded(tmp_path: Path) -> None:
    shared = {"output": {"file": "./shared.md"}}
    assert "'a' already" in await failure_of(tmp_path, source("a", **shared), source("b", **shared))


async def test_two_sentinels_with_one_id_the_second_is_not_loaded(tmp_path: Path) -> None:
    assert "same id" in await failure_of(tmp_path, source("a"), source("a", output={"file": "other.md"}))


def damaged_history(root: Path) -> None:
    write(root / "execution" / ".hankweave" / "sentinels" / "history" / "narrator-codon-build.json", "{")


def linked_history(root: Path) -> None:
    damaged_history(root)
    file = root / "execution" / ".hankweave" / "sentinels" / "history" / "narrator-codon-build.json"
    file.rename(root / "elsewhere.json")
    file.symlink_to(root / "elsewhere.json")


def blocked_report(root: Path) -> None:
    (root / "execution" / ".hankweave" / "sentinels" / "outputs" / "narrator" / "report.md").mkdir(parents=True)


def nothing(root: Path) -> None:
    pass


TALKS = {"conversational": {"trimmingStrategy": {"type": "maxTurns", "maxTurns": 3}}, "systemPromptText": "x"}
NOT_LOADABLE: dict[str, tuple[dict[str, Any], Any, str]] = {
    "a fault in the config": ({"modle": "x"}, nothing, "modle"),
    "no prompt": ({"userPromptText": None}, nothing, "userPromptText"),
    "a missing prompt file": ({"userPromptFile": "gone.md"}, nothing, "does not exist"),
    "a prompt that does not parse": ({"userPromptText": "{% if %}"}, nothing, "does not parse"),
    "an eta prompt that does not parse": ({"userPromptText": "<% if ( %>"}, nothing, "does not parse"),
    "a system prompt that does not parse": ({"systemPromptText": "{{"}, nothing, "does not parse"),
    "a bad regex": ({"trigger": on_regex("(")}, nothing, "regular expression"),
    "an unknown event type": ({"trigger": {"type": "event", "on": ["inof"]}}, nothing, "did you mean"),
    "a schema that is no schema": (
        {"structuredOutput": {"output": "array", "schemaStr": '{"type": "x"}'}},
        nothing,
        "the schema of its answers",
    ),
    "a zod text that is too much": (
        {"structuredOutput": {"output": "object", "schemaStr": "z.object({}).refine(x => x)"}},
        nothing,
        "the schema of its answers",
    ),
    "a missing schema file": (
        {"structuredOutput": {"output": "object", "schemaFile": "gone.ts"}},
        nothing,
        "does not exist",
    ),
    "an unknown model": ({"model": "acme/new"}, nothing, "acme/new"),
    "a report path outside": ({"output": {"file": "../x.md"}}, nothing, "climbs above"),
    "a report that cannot be opened": ({"output": {"file": "report.md"}}, blocked_report, "not a regular file"),
    "a damaged history": (TALKS, damaged_history, "is damaged"),
    "a history behind a link": (TALKS, linked_history, "links are not followed"),
}


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("why", NOT_LOADABLE)
async def test_whatever_the_reason_a_sentinel_is_skipped_or_a_required_one_fails_its_codon(
    tmp_path: Path, why: str, required: bool
) -> None:
    config, prepare, said = NOT_LOADABLE[why]
    prepare(tmp_path)
    settings = {"failCodonIfNotLoaded": required}
    made = source(hank_dir=tmp_path, **config, settings=settings)
    model = ScriptedModel(unavailable=["acme/new"])
    async with desk(tmp_path / "execution", model=model) as d:
        async with d.manager.attach(scope(), [made, source("other")]) as attached:
            (failed,) = attached.failures
            assert said in failed.reason
            assert attached.required_failures == ((failed,) if required else ())
            (error,) = d.said("error")
            assert (error["errorType"], error["message"]) == ("load-failed", failed.reason)
            d.info()
            await d.manager.settle()
            assert len(d.said("output", sentinel_id="other")) == 1
        assert [data["sentinelId"] for data in d.said("loaded", "unloaded")] == ["other", "other"]


async def test_the_next_codon_may_use_the_files_of_the_last_one(tmp_path: Path) -> None:
    shared = {"output": {"file": "./shared.md"}}
    async with desk(tmp_path) as d:
        for codon_id in ("one", "two"):
            async with d.manager.attach(scope(codon_id), [source(codon_id, **shared)]) as attached:
                assert attached.failures == ()
