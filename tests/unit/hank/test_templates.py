"""Templates that do not parse are found before a run, in the file and line they stand in."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, hank, load, sentinel

from hankwatch.core.clock import SystemClock
from hankwatch.hank.load import LoadedHank
from hankwatch.hank.templates import template_faults
from hankwatch.sandbox.sandbox import Sandbox

BROKEN = "{{ it.events }}\n{% if %}\n"


async def faults(
    loaded: LoadedHank, *, required_only: bool = False, code: str = "template-invalid"
) -> list[tuple[str, str, int | None]]:
    """(file name, pointer, line) of each."""
    async with Sandbox(clock=SystemClock()) as sandbox:
        found = await template_faults(loaded, sandbox, required_only=required_only)
    assert all(d.code == code and d.severity == "error" and d.hint for d in found)
    return [(Path(d.file).name, d.pointer, d.line) for d in found]


def one_sentinel(folder: Path, files: dict[str, str | bytes] | None = None, /, **fields: Any) -> LoadedHank:
    config = {key: value for key, value in sentinel(**fields).items() if value is not None}
    entry = {"sentinelConfig": config}
    return load(folder, hank(codon(sentinels=[entry])), files)


async def test_a_hank_without_faults_has_none(tmp_path: Path) -> None:
    assert await faults(one_sentinel(tmp_path)) == []


async def test_a_text_in_the_hank_is_shown_there(tmp_path: Path) -> None:
    loaded = one_sentinel(tmp_path, userPromptText=BROKEN)
    ((file, pointer, line),) = await faults(loaded)
    assert (file, pointer) == ("hank.json", "/hank/0/sentinels/0/sentinelConfig/userPromptText")
    assert line is not None


async def test_a_text_in_a_config_file_is_shown_there(tmp_path: Path) -> None:
    files = {
        "observer.json": '{\n"id": "o", "name": "o", "trigger": {"type": "event", "on": ["*"]},\n'
        '"execution": {"strategy": "immediate"}, "model": "a/b",\n"userPromptText": "{% if %}"}'
    }
    loaded = load(tmp_path, hank(codon(sentinels=[{"sentinelConfig": "observer.json"}])), dict(files))
    assert await faults(loaded) == [("observer.json", "/userPromptText", 4)]


@pytest.mark.parametrize("before", ["", "One.", "One.\nTwo.\n\n"])
async def test_a_line_of_joined_prompt_files_is_shown_in_its_own_file(tmp_path: Path, before: str) -> None:
    files: dict[str, str | bytes] = {"a.md": before or "{{ it.events }}", "b.md": BROKEN}
    loaded = one_sentinel(tmp_path, files, userPromptFile=["a.md", "b.md"], userPromptText=None)
    assert await faults(loaded) == [("b.md", "", 2)]


async def test_the_system_prompt_is_compiled_too(tmp_path: Path) -> None:
    loaded = one_sentinel(tmp_path, {"system.md": "{{ it."}, systemPromptFile="system.md")
    assert [(file, line) for file, _, line in await faults(loaded)] == [("system.md", 1)]


async def test_an_eta_prompt_is_compiled_too(tmp_path: Path) -> None:
    loaded = one_sentinel(tmp_path, {"user.md": "one\n<% if ( %>"}, userPromptFile="user.md", userPromptText=None)
    assert [(file, line) for file, _, line in await faults(loaded)] == [("user.md", 2)]


async def test_a_schema_that_cannot_be_used_is_a_fault_where_it_stands(tmp_path: Path) -> None:
    at = "/hank/0/sentinels/0/sentinelConfig/structuredOutput"
    wanted = {"output": "object", "schemaStr": "z.object({ a: z.custom() })"}
    ((file, pointer, _),) = await faults(one_sentinel(tmp_path, structuredOutput=wanted), code="schema-invalid")
    assert (file, pointer) == ("hank.json", f"{at}/schemaStr")
    files: dict[str, str | bytes] = {
        "schema.json": '{"type": "object", "properties": 5}',
        "schema.ts": "z.object({\n  a: z.nope(),\n})",
    }
    for name, place in (("schema.json", ("hank.json", f"{at}/schemaFile")), ("schema.ts", ("schema.ts", ""))):
        wanted = {"output": "object", "schemaFile": name}
        ((file, pointer, _),) = await faults(
            one_sentinel(tmp_path, files, structuredOutput=wanted), code="schema-invalid"
        )
        assert (file, pointer) == place


async def test_only_required_sentinels_keep_a_run_from_starting(tmp_path: Path) -> None:
    entries = [
        {"sentinelConfig": sentinel("a", userPromptText=BROKEN)},
        {"sentinelConfig": sentinel("b", userPromptText=BROKEN), "settings": {"failCodonIfNotLoaded": True}},
    ]
    loaded = load(tmp_path, hank(codon(sentinels=entries)))
    assert len(await faults(loaded)) == 2
    ((_, pointer, _),) = await faults(loaded, required_only=True)
    assert pointer.startswith("/hank/0/sentinels/1/")


async def test_a_sentinel_with_another_fault_is_left_to_that(tmp_path: Path) -> None:
    loaded = one_sentinel(tmp_path, userPromptText=BROKEN, trigger=None)
    assert not loaded.diagnostics.ok
    assert await faults(loaded) == []
