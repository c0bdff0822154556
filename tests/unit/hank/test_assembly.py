"""Prompts made of files and fields (reference 2.7)."""

from pathlib import Path

import pytest
from tests.support.hanks import codon, hank, load

from hankwatch.core.errors import PathRefused
from hankwatch.hank.assembly import fill, system_prompt, user_prompt
from hankwatch.hank.front_matter import Metadata, split
from hankwatch.hank.model import Codon, Hank

ROOT = Path("/run/agentRoot")


def _load(folder: Path, content: dict[str, object], files: dict[str, str | bytes]) -> tuple[Hank, Codon]:
    loaded = load(folder, content, files)
    assert loaded.config is not None
    return loaded.config, next(loaded.config.codons())[1]


def test_files_are_joined_by_a_blank_line_and_win_over_the_text(tmp_path: Path) -> None:
    _, only = _load(tmp_path, hank(codon(promptFile=["a.md", "b.md"])), {"a.md": "A", "b.md": "B"})
    assert user_prompt(only, hank_dir=tmp_path, agent_root=ROOT).text == "A\n\nB"


def test_a_text_is_the_prompt_where_there_is_no_file(tmp_path: Path) -> None:
    _, only = _load(tmp_path, hank(codon(promptText="in <%PROJECT_DIR%>")), {})
    assert user_prompt(only, hank_dir=tmp_path, agent_root=ROOT).text == "in /run/agentRoot"


def test_front_matter_is_taken_off_every_file_and_kept_of_the_first(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.md": "---\nname: One\n---\nA",
        "b.md": b"\xef\xbb\xbf---\r\nname: Two\r\n---\r\nB",
    }
    _, only = _load(tmp_path, hank(codon(promptFile=["a.md", "b.md"])), files)
    prompt = user_prompt(only, hank_dir=tmp_path, agent_root=ROOT)
    assert (prompt.text, prompt.metadata.as_data()) == ("A\n\nB", {"name": "One"})


def test_the_system_prompt_is_the_global_one_then_the_codons(tmp_path: Path) -> None:
    content = hank(codon(appendSystemPromptText="mine"), globalSystemPromptFile=["g.md", "h.md"])
    whole, only = _load(tmp_path, content, {"g.md": "G", "h.md": "H <%DATA_DIR%>"})
    found = system_prompt(only, whole, hank_dir=tmp_path, agent_root=ROOT)
    assert found == "G\n\nH /run/agentRoot/read_only_data_source\n\nmine"


def test_without_any_system_prompt_there_is_none(tmp_path: Path) -> None:
    whole, only = _load(tmp_path, hank(codon()), {})
    assert system_prompt(only, whole, hank_dir=tmp_path, agent_root=ROOT) is None


def test_a_file_that_became_a_link_after_the_check_is_refused(tmp_path: Path) -> None:
    _, only = _load(tmp_path, hank(codon(promptFile="a.md")), {"a.md": "A", "b.md": "B"})
    (tmp_path / "a.md").unlink()
    (tmp_path / "a.md").symlink_to(tmp_path / "b.md")
    with pytest.raises(PathRefused, match="symbolic link"):
        user_prompt(only, hank_dir=tmp_path, agent_root=ROOT)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("<%AGENT_ROOT%> <%PROJECT_DIR%> <%EXECUTION_DIR%>", "/r /r /r"),
        ("<%DATA_DIR%>/x", "/r/read_only_data_source/x"),
        ("<%UNKNOWN%> <% AGENT_ROOT %>", "<%UNKNOWN%> <% AGENT_ROOT %>"),
        ("a<!-- x\ny -->\nb", "ab"),
        ("a\n<!-- x -->\n\nb <!-- y --> c", "a\n\nb  c"),
        ("<!-- open", "<!-- open"),
        ("<%AGENT_<%AGENT_ROOT%>ROOT%>", "<%AGENT_/rROOT%>"),
    ],
)
def test_variables_are_filled_once_and_comments_taken_out(text: str, filled: str) -> None:
    assert fill(text, Path("/r")) == filled


@pytest.mark.parametrize(
    ("text", "metadata", "rest"),
    [
        ("no block", Metadata(), "no block"),
        ("---\nname: never closed\n", Metadata(), "---\nname: never closed\n"),
        ("text\n---\nname: later\n---\n", Metadata(), "text\n---\nname: later\n---\n"),
        ("---\n---\nx", Metadata(), "x"),
        ('---\nname: "A: b"\nversion: 1.2 # two\n---\nx', Metadata(name="A: b", version="1.2"), "x"),
        ("---\ntags: [a, 'b c']\n---\n", Metadata(tags=("a", "b c")), ""),
        ("---\ntags:\n  - a\n  - b\nauthor: me\n---\nx\n---\n", Metadata(tags=("a", "b"), author="me"), "x\n---\n"),
        ("---\nother: {deep: [1]}\n? odd\ndescription: d\n---\nx", Metadata(description="d"), "x"),
    ],
)
def test_front_matter_is_a_closed_block_at_the_beginning(text: str, metadata: Metadata, rest: str) -> None:
    assert split(text) == (metadata, rest)
