"""Which files a hank's globs take in, and which its prompts tell an agent to write."""

import pytest

from hankwatch.hank.mentions import covers, workspace_path, written_by


@pytest.mark.parametrize(
    ("report", "path"),
    [("a.md", None), ("./a.md", "a.md"), ("notes/./a.md", "notes/a.md"), ("notes//x/../a.md", "notes/a.md")],
)
def test_only_a_report_with_a_folder_lies_in_the_workspace(report: str, path: str | None) -> None:
    assert workspace_path(report) == path


@pytest.mark.parametrize(
    "glob",
    [
        "notes/a.md",
        "./notes/a.md",
        "notes",
        "notes/",
        "**",
        "**/*",
        "**/*.md",
        "notes/**",
        "notes/**/*.md",
        "n*/?.md",
        "notes/[ab].md",
        "{src,notes}/*.{txt,md}",
        "**/**/**/**/**/**/**/**/**/**/**/**/**/**/**/**/**/**/**/**/a.md",
    ],
)
def test_a_glob_takes_in_a_path(glob: str) -> None:
    assert covers(glob, "notes/a.md")


@pytest.mark.parametrize(
    "glob",
    [
        "*",
        "*.md",
        "n*",
        "a.md",
        "notes/a.md/x",
        "note",
        "notes/*.txt",
        "src/**",
        "**/b.md",
        "notes/*/a.md",
        "{a,b}/*",
        "[",
    ],
)
def test_a_glob_leaves_a_path_alone(glob: str) -> None:
    assert not covers(glob, "notes/a.md")


def test_braces_without_end_are_looked_into_only_so_far() -> None:
    assert not covers("{a,b}" * 200, "notes/a.md")


@pytest.mark.parametrize(
    "prompt",
    [
        "Write your findings to notes/a.md.",
        "Keep a log in `notes/a.md`.",
        "Read app.py and update ./notes/a.md",
        "First look around.\nThen edit /workspace/notes/a.md, please",
        "notes/a.md must be updated after each step",
        "Creating notes/a.md is the first step.",
        "Do not touch app.py. Append to notes/a.md.",
    ],
)
def test_a_prompt_tells_its_agent_to_write_a_file(prompt: str) -> None:
    assert written_by(prompt, "notes/a.md")


@pytest.mark.parametrize(
    "prompt",
    [
        "Read notes/a.md.",
        "Update app.py after reading notes/a.md.",
        "Write app.py. See notes/a.md for what went wrong",
        "Do not edit notes/a.md.",
        "Never ever write to notes/a.md!",
        "Don't change notes/a.md",
        "Write notes/a.md.bak and other/notes/a.md",
        "The observer reports in notes/a.md",
        "Write the tests, and then follow notes/a.md",
    ],
)
def test_a_prompt_leaves_a_file_alone(prompt: str) -> None:
    assert written_by(prompt, "notes/a.md") is None


def test_the_words_are_quoted_at_most_so_far() -> None:
    said = written_by("Please " + "really " * 40 + "write notes/a.md", "notes/a.md")
    assert said is not None
    assert said.startswith("…")
    assert said.endswith("write notes/a.md")
    assert len(said) == 80
