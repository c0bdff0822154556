"""The wheel holds everything that a command needs: an installation away from the checkout runs the demo."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(90)
def test_the_demo_runs_from_an_installed_wheel(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    environment = tmp_path / "venv"
    venv.create(environment, with_pip=False)
    (site,) = environment.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    # The dependencies of this environment, but not its editable install of the checkout: .pth files in a folder
    # that is itself named by one are not read.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (tmp_path / "home").mkdir()
    env = {"HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"]}

    def run(code: str, *arguments: str) -> str:
        command = [str(environment / "bin" / "python"), "-c", f"from hankwatch.cli import main; {code}", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True, text=True)
        return str(done.stdout)

    assert run("print(main.__file__)").startswith(str(site))
    assert "narrator" in run("main.main()", "demo")
    assert '"outcome": "completed"' in run("main.main()", "runs", "--json")
    assert "Report: " in run("main.main()", "report")
    assert "hankwatch run mine" in run("main.main()", "init", "mine")
    assert "no faults" in run("main.main()", "validate", "mine")
    assert '"$schema"' in run("main.main()", "validate", "--print-schema", "hank")
