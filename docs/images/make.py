"""Makes ``try-timeline.svg`` and the ``.png`` here anew: ``python docs/images/make.py`` (needs chromium)."""

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME
from rich.text import Text

HERE = Path(__file__).parent
HANKWATCH = str(Path(sys.executable).parent / "hankwatch")
COLUMNS = 100
_PAGES = (("run", "", "1040,800"), ("sentinels", "/sentinels", "1240,640"), ("playground", "/playground", "1240,800"))
"""What is shown of the console: a name, the page of the run, the size of the window."""
_FRAME = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="TITLE">
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
{styles}
</style>
<defs>{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#ffffff" stroke="#d0d7de"/>
<g transform="translate({terminal_x}, {terminal_y})" class="{unique_id}-matrix">{backgrounds}{matrix}</g>
</svg>
"""
"""Rich's own frame loads a font from another site."""


def main() -> None:
    """Write all pictures beside this file."""
    with tempfile.TemporaryDirectory() as folder:
        hank = Path(folder) / "my-hank"
        _run("init", hank)
        sentinel, recording = "sentinels/failures.json", "recordings/fix-the-app.jsonl"
        shown = _on_a_terminal(hank, "try", sentinel, recording, "--where")
        _picture(shown, f"hankwatch try {sentinel} {recording} --where", HERE / "try-timeline.svg")
        _run("demo", "--execution", hank.parent / "run")
        _run("report", hank.parent / "run", "--out", hank.parent / "report.html")
        _photograph((hank.parent / "report.html").as_uri(), HERE / "report.png", "1040,990")
        with _served(hank.parent / "run") as address:
            for name, path, size in _PAGES:
                _photograph(f"{address}/runs/latest{path}", HERE / f"console-{name}.png", size)


def _run(*arguments: object) -> None:
    subprocess.run([HANKWATCH, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)


def _on_a_terminal(folder: Path, *arguments: str) -> str:
    """What a command prints on a terminal, without the line that shows its progress."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS)}
    with subprocess.Popen([HANKWATCH, *arguments], cwd=folder, stdout=theirs, stderr=subprocess.DEVNULL, env=env):
        os.close(theirs)
        said = b""
        try:
            while part := os.read(ours, 65_536):
                said += part
        except OSError:  # its last holder is gone
            pass
    return said.decode().replace("\r\n", "\n")


def _picture(shown: str, command: str, path: Path) -> None:
    with Path(os.devnull).open("w") as nowhere:
        console = Console(file=nowhere, record=True, width=COLUMNS, force_terminal=True)
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi(shown.rstrip()))
    frame = _FRAME.replace("TITLE", command)
    svg = console.export_svg(theme=DEFAULT_TERMINAL_THEME, code_format=frame, unique_id="t")
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


@contextmanager
def _served(execution: Path) -> Iterator[str]:
    """The address of a console that shows it."""
    command = [HANKWATCH, "serve", execution]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        try:
            yield next(found[0] for line in server.stdout if (found := re.search(r"http://[\d.:]+", line)))
        finally:
            server.terminate()


def _photograph(address: str, path: Path, size: str) -> None:
    chromium = shutil.which("chromium") or "chromium"
    options = ("--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={size}")
    subprocess.run([chromium, *options, f"--screenshot={path}", address], check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
