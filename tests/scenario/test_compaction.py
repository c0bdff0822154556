"""``autoCompact``: off unless a codon says so, as far as its program can be kept from it (reference 2.2)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon
from tests.support.runs import Ran, environment, run_here, write_hank

RESULT = '{"type":"result","subtype":"success","is_error":false,"result":"Done."}'
OFF = {"claude": "DISABLE_AUTO_COMPACT", "opencode": "OPENCODE_DISABLE_AUTOCOMPACT"}


async def seen(tmp_path: Path, name: str, environ: dict[str, str], **fields: Any) -> tuple[Ran, list[str]]:
    """The run of a codon, and what a program named ``name`` found of compaction in its environment."""
    found = tmp_path / "found"
    program = ["sh", "-c", f"env | grep COMPACT > {found}; echo '{RESULT}'; cat > /dev/null"]
    path = write_hank(tmp_path / "hank", codon(agent={"name": name, "command": program}, **fields))
    ran = await run_here(path, tmp_path / "run", environ=environment(environ))
    return ran, found.read_text().splitlines()


@pytest.mark.parametrize("name", OFF)
async def test_it_is_off_unless_a_codon_turns_it_on(tmp_path: Path, name: str) -> None:
    for value in (None, False, True):
        folder = tmp_path / str(value)
        folder.mkdir()
        _, found = await seen(folder, name, {}, autoCompact=value)
        assert found == ([] if value else [f"{OFF[name]}=1"])


async def test_what_is_set_by_hand_goes_before(tmp_path: Path) -> None:
    _, found = await seen(tmp_path, "claude", {"HANKWEAVE_DISABLE_AUTO_COMPACT": "0"})
    assert found == ["DISABLE_AUTO_COMPACT=0"]


@pytest.mark.parametrize(("name", "value"), [("exec", True), ("codex", False)])
async def test_what_a_program_does_not_heed_is_told(tmp_path: Path, name: str, value: bool) -> None:
    ran, found = await seen(tmp_path, name, {}, autoCompact=value)
    assert found == []
    (told,) = [event.data for event in ran.of("info") if event.data.get("code") == "auto-compact"]
    assert name in told["message"]


@pytest.mark.parametrize(("name", "value"), [("exec", None), ("codex", None), ("codex", True), ("claude", False)])
async def test_what_is_heeded_or_was_never_asked_is_not_told(tmp_path: Path, name: str, value: bool | None) -> None:
    ran, _ = await seen(tmp_path, name, {}, autoCompact=value)
    assert not [event for event in ran.of("info") if event.data.get("code") == "auto-compact"]
