"""Results for GitHub Actions: annotations at the expectations that were missed, and a job summary.

Everything that is printed there line by line may be taken for a command of the runner, so what is not one goes
between ``stop`` and ``resume``.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from secrets import token_hex

from hankwatch.bench.check.result import CheckResult, Told, summary
from hankwatch.core.text import shorten

_ANNOTATION_LINES = 20
_SUMMARY_CHARS = 900_000
"""A step's summary may have 1 MiB."""
_SHOWN_CHARS = 200
_MARKS = {"passed": "✅", "failed": "❌", "faulty": "⚠️"}
_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@:])")


class Commands:
    """The runner's commands, switched off while other text is printed."""

    def __init__(self) -> None:
        self._token = token_hex(16)  # nothing that is printed can know it

    @property
    def stop(self) -> str:
        """From this line on nothing is a command."""
        return f"::stop-commands::{self._token}"

    @property
    def resume(self) -> str:
        """From this line on commands are commands again."""
        return f"::{self._token}::"


def annotations(results: Sequence[CheckResult], environ: Mapping[str, str]) -> Iterator[str]:
    """One ``::error`` line for each thing that is wrong."""
    for result in results:
        for one in result.told:
            place = {"file": _in_workspace(one, environ), "line": str(one.line or 1), "title": f"check {result.id}"}
            said = ",".join(f"{name}={_property(value)}" for name, value in place.items())
            details = one.details[:_ANNOTATION_LINES]
            more = len(one.details) - len(details)
            lines = [one.message, *details, *([f"… {more} more lines"] if more > 0 else [])]
            yield f"::error {said}::{_data(chr(10).join(lines))}"


def job_summary(results: Sequence[CheckResult]) -> str:
    """Markdown: a table of all checks, and what is wrong with each."""
    text = [f"### {summary(results)}\n", "| | check | fires | entries | time |", "|---|---|---:|---:|---:|"]
    for result in results:
        numbers = f"{result.fires} | {result.entries} | {result.duration_s:.1f} s"
        text.append(f"| {_MARKS[result.outcome]} | {_markdown(result.id)} | {numbers} |")
    for result in results:
        if result.told:
            body = "\n".join(result.lines())
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", body)), default=0))
            text += [f"\n#### {_markdown(result.id)}\n", f"{fence}text", body, fence]
    return shorten("\n".join(text) + "\n", _SUMMARY_CHARS, "\n… the summary is longer than GitHub shows\n")


def _in_workspace(told: Told, environ: Mapping[str, str]) -> str:
    """The file as GitHub knows it: relative to the checkout."""
    root = environ.get("GITHUB_WORKSPACE")
    path = Path(told.file).absolute()
    if root and path.is_relative_to(root):
        return os.path.relpath(path, root)
    return told.file


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _markdown(text: str) -> str:
    return _MARKUP.sub(r"\\\1", shorten(text.replace("\n", " "), _SHOWN_CHARS))
