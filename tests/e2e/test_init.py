"""``init``: what it makes works at once, offline, without a warning (spec cli)."""

import shlex

import pytest
from tests.support.cli import Cli


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("folder", ["", "my hank"])
def test_every_command_it_names_succeeds(cli: Cli, folder: str) -> None:
    made = cli("init", *([folder] if folder else []))
    assert made.code == 0, made.err
    told = [shlex.split(line) for line in made.out.splitlines() if line.startswith("  hankwatch ")]
    assert [command[1] for command in told] == ["try", "run", "check"]
    for command in told:
        done = cli(*command[1:])
        assert done.code == 0, (command, done)
        if command[1] == "try":
            assert "would have fired 2 ×, at no cost" in done.out


def test_the_scaffold_is_valid_without_a_warning(cli: Cli) -> None:
    assert cli("init", "mine").code == 0
    assert cli("validate", "mine", "--json").json == {"diagnostics": [], "ok": True}
    assert cli("validate", "mine/sentinels/failures.json", "--json").json["diagnostics"] == []


def test_a_hank_that_is_there_is_refused_by_name(cli: Cli) -> None:
    (cli.cwd / "hank.json").write_text("{}")
    done = cli.refused("init", code="usage")
    assert "has hank.json already" in done.err
    assert "hankwatch validate ." in done.err
    assert [path.name for path in cli.cwd.iterdir()] == ["hank.json"]


def test_json_names_what_was_made(cli: Cli) -> None:
    (cli.cwd / ".gitignore").write_text("mine\n")
    made = cli("init", "--json").json
    assert made["kept"] == [".gitignore"]
    assert "hank.json" in made["files"]
    assert (cli.cwd / "hank.json").is_file()
