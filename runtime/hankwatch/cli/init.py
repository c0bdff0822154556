"""``init``: makes a hank and says what to do with it."""

import shlex
from pathlib import Path

from hankwatch.bench.scaffold import scaffold
from hankwatch.cli import output


def init(folder: Path, *, as_json: bool) -> int:
    """Make a hank in ``folder``; 0 when it is there."""
    made = scaffold(folder)
    if as_json:
        output.print_json(
            {"folder": str(made.folder), "files": list(map(str, made.files)), "kept": list(map(str, made.kept))}
        )
    say = output.people(as_json=as_json).print
    say(f"Made in {output.shown_path(folder)}:")
    for file in made.files:
        say(f"  {file}")
    for file in made.kept:
        say(f"{file} was there and is kept; `.hankweave/` and `.env` belong into it")
    sentinel, recording = (_word(folder / path) for path in ("sentinels/failures.json", "recordings/fix-the-app.jsonl"))
    say(
        "\nThe agent is a recording, so all of this works without a key or a network. Next:\n"
        f"  hankwatch try {sentinel} {recording}\n"
        f"  hankwatch run {_word(folder)}\n"
        f"  hankwatch check {_word(folder)}\n"
        f'A real agent does the work when the line "agent" is taken out of {output.shown_path(folder / "hank.json")}.'
    )
    return 0


def _word(path: Path) -> str:
    return shlex.quote(output.shown_path(path))
