"""The documentation: its commands do what it shows, its links lead somewhere, what it names exists."""

import json
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main
from tests.support.cli import COMMAND, Cli

from hankwatch.cli.commands import app
from hankwatch.config.validation import _CODES as OF_VALUES
from hankwatch.events.catalogue import CONNECTION_TYPES, KNOWN_TYPES, has_path
from hankwatch.reference import PAGES, stale, write
from hankwatch.reference.commands import walk
from hankwatch.reference.markdown import anchor
from hankwatch.settings import NOT_SETTINGS, variables

PROJECT = Path(__file__).parents[2]
DOCS = PROJECT / "docs"
ALL = sorted([*DOCS.rglob("*.md"), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"])
WRITTEN = [page for page in ALL if page.parent.name != "reference"]
_FENCE = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MARK = "@@ block"
SHAPE_CODES = {*OF_VALUES.values(), "unknown-key", "missing-key", "invalid-value"}
_FILES = {".json", ".jsonl", ".md", ".py", ".toml"}


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the rest of its first line (a file's path, or why it is not one), its text."""

    language: str
    note: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*groups) for groups in _FENCE.findall(page.read_text(encoding="utf-8"))]


def is_run(block: Block) -> bool:
    return block.language == "sh" and not block.note


RUNNABLE = [page for page in sorted(DOCS.rglob("*.md")) if any(map(is_run, blocks(page)))]


def script(page: Path) -> Iterator[str]:
    """The page as one shell script: named blocks are files, ``sh`` blocks are carried out in their order."""
    for number, block in enumerate(blocks(page)):
        if is_run(block):
            yield f"echo '{_MARK} {number}'\n{block.text}"
        elif block.note and block.note not in {"not-run", "not-a-file"}:
            yield f"mkdir -p $(dirname {block.note})\ncat > {block.note} <<'END'\n{block.text}END\n"


def missing(shown: str, said: str) -> list[str]:
    """The lines of ``shown`` that do not follow each other in ``said``; … stands for anything."""
    lines, absent = iter(" ".join(line.split()) for line in said.splitlines()), []
    for line in filter(None, (" ".join(line.split()) for line in shown.splitlines())):
        pattern = re.compile(".*".join(re.escape(part.strip()) for part in line.split("…")))
        if line != "…" and not any(pattern.search(each) for each in lines):
            absent.append(line)
            break
    return absent


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(DOCS)))
def test_commands_of_a_page_do_what_it_shows(page: Path, cli: Cli) -> None:
    done = subprocess.run(
        ["bash", "-e", "-c", "exec 2>&1\n" + "".join(script(page))],
        cwd=cli.cwd,
        env=cli.environ(PATH=f"{Path(COMMAND[0]).parent}:{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    said = dict(part.partition("\n")[::2] for part in done.stdout.split(f"{_MARK} ")[1:])
    all_blocks = blocks(page)
    for number, block in enumerate(all_blocks[:-1]):
        if is_run(block) and all_blocks[number + 1].language == "text":
            assert not missing(all_blocks[number + 1].text, said[str(number)]), said[str(number)]


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_inside_the_project_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith("https:"):
            path, _, place = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), target
            if place:
                headings = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.MULTILINE)
                assert place in map(anchor, headings), target


def named(pages: list[Path], pattern: str) -> set[str]:
    """What stands alone in backticks or in a block and has this form."""
    texts = [re.findall(r"`([^`\n]+)`|^```\w+.*\n((?:.|\n)*?)^```$", page.read_text(), re.MULTILINE) for page in pages]
    return {found for spans in texts for pair in spans for said in pair for found in re.findall(pattern, said)}


def test_every_command_and_option_that_the_pages_name_exists() -> None:
    root = typer.main.get_command(app)
    commands = dict(walk(root, "hankwatch"))
    of_all = {option for one in root.params for option in one.opts} | {"--help"}
    lines = named(WRITTEN, r"(?m)(?:^|&& |until )(hankwatch [a-z][^`|&>;\n]*)")
    assert lines
    for line in lines:
        words = line.partition(" #")[0].split()
        name = next((" ".join(words[:size]) for size in (3, 2) if " ".join(words[:size]) in commands), None)
        assert name is not None or words[1] in {"journal", "sentinel"}, line
        if name is not None:
            options = of_all | {each for one in commands[name].params for each in (*one.opts, *one.secondary_opts)}
            assert {word for word in words if word.startswith("-")} <= options, line


def is_of_an_event(name: str) -> bool:
    """A known type, or a field of one."""
    types = [known for known in KNOWN_TYPES | CONNECTION_TYPES if f"{name}.".startswith(f"{known}.")]
    return any(name == known or has_path(known, name.removeprefix(f"{known}.")) for known in types)


def test_every_event_type_and_setting_that_the_pages_name_exists() -> None:
    prefixes = {name.partition(".")[0] for name in KNOWN_TYPES if "." in name}
    settings = {".".join(name[:size]) for name in variables().values() for size in (1, 2, 3)}
    names = {name for name in named(WRITTEN, r"^[a-z]+\.[a-zA-Z_.]+$") if Path(name).suffix not in _FILES}
    found = {name for name in names if name.partition(".")[0] in prefixes | settings}
    assert found
    assert {name for name in found if not is_of_an_event(name) and name not in settings} <= {"codon.name"}


def test_every_variable_of_ours_that_the_pages_name_exists() -> None:
    known = {*variables(), *NOT_SETTINGS}
    assert named(WRITTEN, r"\bHANKWATCH_[A-Z_]+\b") - {"HANKWATCH_UPDATE_GOLDEN"} <= known


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_whole_json_and_toml_block_can_be_read(page: Path) -> None:
    for block in blocks(page):
        if block.language == "json" and block.note != "not-a-file":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)


def test_a_page_that_was_edited_left_over_or_lost_is_stale(tmp_path: Path) -> None:
    write(tmp_path)
    assert stale(tmp_path) == []
    (tmp_path / "cli.md").write_text("edited")
    (tmp_path / "hank.md").unlink()
    (tmp_path / "old.md").touch()
    assert stale(tmp_path) == ["cli.md", "hank.md", "old.md"]


def test_every_fault_of_a_shape_is_in_the_reference() -> None:
    known = PAGES["diagnostics.md"]()
    assert {code for code in SHAPE_CODES if f"| `{code}` | error |" not in known} == set()


@pytest.mark.slow
def test_every_fault_of_the_shared_hanks_is_in_the_reference(cli: Cli) -> None:
    known = PAGES["diagnostics.md"]()
    for hank in sorted((PROJECT / "fixtures" / "hanks").glob("*.json")):
        for diagnostic in cli("validate", hank, "--json").json["diagnostics"]:
            assert f"| `{diagnostic['code']}` | {diagnostic['severity']} |" in known
