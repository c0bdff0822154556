"""Files of the agent's workspace as a hank speaks of them: in globs, and in the prompts of its agents."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Final

WORKSPACE: Final = "/workspace"
"""Stands for the agent's workspace in a prompt that is only looked at."""
_MAX_ALTERNATIVES: Final = 100
_MAX_CLAUSE_CHARS: Final = 400
_SHOWN_CHARS: Final = 80
_WILDCARD: Final = re.compile(r"[*?\[]")
_REPEATED: Final = re.compile(r"(?:\*\*/){2,}")

_VERB: Final = re.compile(
    r"\b(?:"
    r"(?P<writes>(?:add|amend|append|edit|extend|fill|fix|insert|keep|maintain|modify|overwrit|patch|prepend|put|record|"
    r"chang|creat|produc|remov|renam|replac|rewrit|sav|stor|updat|writ)(?:e|s|es|ing)?)"
    r"|(?:check|compar|consider|consult|follow|import|includ|inspect|load|look|open|quot|read|review|se|us)(?:e|s|es|ing)?"
    r")\b",
    re.IGNORECASE,
)
_NEGATED: Final = re.compile(r"\b(?:not|never|cannot|without|instead of|n't)\s+(?:\w+\s+){0,2}$|n't\s+$", re.IGNORECASE)
_TO_BE_WRITTEN: Final = re.compile(
    r"[`'\"*]*\s+(?:must|should|shall|will|has to|needs to|is to)\s+be\s+"
    r"(?:amended|appended|changed|created|edited|extended|filled|fixed|kept|modified|replaced|rewritten|saved|updated|"
    r"written)",
    re.IGNORECASE,
)
_CLAUSE_END: Final = re.compile(r"\n|[.;:!?]\s|,\s(?:and|then|but)\s")


def workspace_path(report: str) -> str | None:
    """Where a report lies in the agent's workspace; None for a bare name, which lies outside (spec sentinels 9)."""
    return posixpath.normpath(report) if "/" in report else None


def covers(glob: str, path: str) -> bool:
    """Whether a glob of ``checkpointedFiles`` takes in this path, by itself or by naming a folder above it."""
    parts = path.split("/")
    alternatives = islice(_alternatives(_REPEATED.sub("**/", posixpath.normpath(glob))), _MAX_ALTERNATIVES)
    return any(_covers(one.split("/"), parts) for one in alternatives)


def written_by(prompt: str, path: str) -> str | None:
    """The words with which a prompt tells its agent to write the file at ``path``, or None.

    Read as English: the last verb before the path in its clause decides, so “read notes.md and update app.py” says
    nothing about writing notes.md. A guess, good for a warning.
    """
    text = prompt.replace(f"{WORKSPACE}/", "")
    for mention in re.finditer(rf"(?<![\w./-])(?:\./)?{re.escape(path)}(?![\w/-]|\.\w)", text):
        ends = _CLAUSE_END.finditer(text, max(0, mention.start() - _MAX_CLAUSE_CHARS), mention.start())
        begin = max((end.end() for end in ends), default=max(0, mention.start() - _MAX_CLAUSE_CHARS))
        before = text[begin : mention.start()]
        verbs = list(_VERB.finditer(before))
        told = bool(verbs and verbs[-1]["writes"] and not _NEGATED.search(before[: verbs[-1].start()]))
        passive = _TO_BE_WRITTEN.match(text, mention.end())
        if told or passive:
            words = text[begin : passive.end() if passive else mention.end()].strip()
            return words if len(words) <= _SHOWN_CHARS else "…" + words[1 - _SHOWN_CHARS :]
    return None


def _alternatives(glob: str) -> Iterator[str]:
    """``{a,b}`` written out."""
    braces = re.search(r"\{([^{}]*)\}", glob)
    if braces is None:
        yield glob
        return
    for option in braces[1].split(","):
        yield from _alternatives(glob[: braces.start()] + option + glob[braces.end() :])


def _covers(glob: Sequence[str], path: Sequence[str]) -> bool:
    if not glob or not path:
        return not path and all(part == "**" for part in glob)
    if len(glob) == 1 and not _WILDCARD.search(glob[0]):
        return glob[0] == path[0]
    if glob[0] == "**":
        return _covers(glob[1:], path) or _covers(glob, path[1:])
    return fnmatchcase(path[0], glob[0]) and _covers(glob[1:], path[1:])
