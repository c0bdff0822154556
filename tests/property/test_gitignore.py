"""Our reading of ``.gitignore`` against git's own."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.workspaces import write

from hankwatch.runner.copying import remove
from hankwatch.runner.ignores import Ignores

NAMES = st.sampled_from(["a", "b", "keep", "x.log", "y.md"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
LINES = st.sampled_from(
    [
        *(
            "a",
            "/a",
            "a/",
            "*.log",
            "!x.log",
            "!a/",
            "b/*",
            "!b/keep",
            "**/keep",
            "keep/**",
            "a/**/x.log",
            "*",
            "!*.md",
        ),
        *("# no", "", r"\!a", "x.log ", "[xy].*", "!/a/b/", "/*/a"),
    ]
)
RULES = st.lists(LINES, min_size=1, max_size=4).map("\n".join)
ENVIRON = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nowhere"}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(root)], check=True, env=ENVIRON)
    return root


def ignored_by_git(root: Path, paths: list[str]) -> set[str]:
    asked = "\0".join(paths).encode()
    command = ["git", "-C", str(root), "check-ignore", "-z", "--no-index", "--stdin"]
    out = subprocess.run(command, input=asked, stdout=subprocess.PIPE, env=ENVIRON, check=False).stdout
    return set(out.decode().split("\0")) - {""}


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.sets(PATHS, min_size=1, max_size=6), top=RULES, below=st.dictionaries(NAMES, RULES, max_size=2))
@example(files={"keep/x.log", "a/keep"}, top="*.log\n!keep/", below={})
@example(files={"a/b/x.log"}, top="*\n!a/\n!a/b/\n!*.log", below={})
@example(files={"a/x.log"}, top="!x.log", below={"a": "*.log"})
def test_what_git_ignores_is_ignored(repository: Path, files: set[str], top: str, below: dict[str, str]) -> None:
    paths = sorted(path for path in files if not any(other.startswith(f"{path}/") for other in files))
    for entry in repository.iterdir():
        if entry.name != ".git":
            remove(entry)
    write(repository, dict.fromkeys(paths, ""))
    rules = {f"{folder}/.gitignore": text for folder, text in below.items() if (repository / folder).is_dir()}
    write(repository, {".gitignore": top, **rules})
    ignores = Ignores(repository)
    assert {path for path in paths if ignores.ignored(path)} == ignored_by_git(repository, paths)
