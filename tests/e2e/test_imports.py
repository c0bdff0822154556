"""Short commands stay light (design rule 10)."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.cli import Cli

HEAVY = {"litellm", "openai", "aiohttp", "httpx", "starlette", "fastapi", "tiktoken", "jsonschema"}


def imported(cli: Cli, *arguments: object) -> set[str]:
    """Top-level packages that a command's process imports."""
    done = cli(*arguments, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert done.code == 0, done.err
    names = [line.rpartition("|")[2].strip() for line in done.err.splitlines() if line.startswith("import time:")]
    assert "hankwatch.cli.main" in names
    return {name.partition(".")[0] for name in names}


NARRATOR = "demo/sentinels/narrator.json"
PRICED = "../sentinels/shell-error-watch/sentinel.json"
STREAM = "agent-streams/claude-success.jsonl"


LIGHT = [
    ("runs",),
    ("tail", "journals/recorded-0.10.events.jsonl"),
    ("journal", "stats", "journals/recorded-0.10.events.jsonl"),
    ("report", "journals/recorded-0.10.events.jsonl", "--markdown"),
    ("validate", "demo"),
    ("validate", NARRATOR),
    ("try", NARRATOR, STREAM),
    ("try", NARRATOR, STREAM, "--render"),
    ("try", PRICED, STREAM, "--where", "--timeline"),
    ("check", "demo", "stock/narrator"),
]
ONE_AFTER_ANOTHER = """
import json, sys
from hankwatch.cli.main import main
heavy, commands = map(json.loads, sys.argv[1:])
for arguments in commands:
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        loaded = sorted(set(heavy) & sys.modules.keys())
        assert not end.code and not loaded, (arguments, end.code, loaded)
print("light to the end", file=sys.stderr)
"""


def test_neither_a_model_package_nor_a_web_framework_is_imported(cli: Cli, fixtures: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER, json.dumps(sorted(HEAVY)), json.dumps(LIGHT)],
        cwd=fixtures,
        env=cli.environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr.splitlines()[-1:] == ["light to the end"], done.stderr


def test_help_imports_next_to_nothing(cli: Cli) -> None:
    packages = imported(cli, "--help")
    assert sorted(packages & (HEAVY | {"rich", "pydantic", "anyio", "orjson"})) == []


@pytest.mark.timeout(60)
def test_a_run_without_watches_loads_no_database_and_one_that_is_not_served_no_server(cli: Cli) -> None:
    assert sorted(imported(cli, "demo") & {"sqlalchemy", "fastapi", "starlette", "uvicorn"}) == []
