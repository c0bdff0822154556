"""The pages of what hankwatch says when something is wrong, read from the code that says it."""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hankwatch.config.resources import PACKAGE
from hankwatch.core import errors as tree
from hankwatch.core import request_errors
from hankwatch.core.errors import HankwatchError
from hankwatch.reference.markdown import code, prose, table

_HOLES = "…"
_KEBAB = re.compile(r"[a-z]+(?:-[a-z0-9]+)+")
_SOURCES = (
    "settings.py",
    "config",
    "hank",
    "sentinels/rules.py",
    "sentinels/source.py",
    "bench/check",
    "serve/trial.py",
)
"""Where diagnostics are made; a code, its message and its hint stand in one call or tuple there."""
_OF_SHAPES = (
    ("unknown-key", "error", "A key that does not exist.", "The nearest known key, or the known keys."),
    ("missing-key", "error", "A key that must be there.", "What kind of value it takes."),
    ("wrong-type", "error", "A value of another type than the key takes.", "What it takes."),
    ("unknown-value", "error", "A word that is none of the possible ones.", "The nearest possible word."),
    ("out-of-range", "error", "A number outside its bounds.", "The bounds."),
    ("too-short", "error", "A text or list with too little in it.", "The bounds."),
    ("too-long", "error", "A text or list with too much in it.", "The bounds."),
    ("bad-format", "error", "A text that does not have the form the key asks for.", "The form."),
    ("invalid-value", "error", "A value that a rule of its key refuses.", "The rule."),
)
"""What ``config.validation`` finds by a model's shape."""
_OF_TEMPLATES = ("template-invalid", "error", "A prompt that does not parse.", "Its line, and what was expected there.")
_OF_MODELS = (
    ("model-without-key", "warning", "The model's key is not set here.", "Which variable to set."),
    ("unknown-model", "warning", "The model registry lacks the model.", "The nearest known model."),
)
_OF_PROGRAMS = (
    ("agent-unknown", "error", "There is no such agent program.", "The nearest known name."),
    ("agent-resumes-not", "error", "The program cannot go on with a session, as the codon asks.", "What can."),
    ("auto-compact", "warning", "The program takes no setting of when it compacts.", "Which programs do."),
    (
        "no-mcp",
        "warning",
        "The program is not known to take an MCP server, or the server's package is missing.",
        "What does, and the package.",
    ),
)
"""What ``runner.program_faults`` finds; the programs say why."""


@dataclass(frozen=True, slots=True)
class _Said:
    code: str
    severity: str
    message: str
    hint: str


def diagnostics() -> str:
    """Every fault and lint of a file."""
    said = {(one.code, one.severity, *map(_tidy, (one.message, one.hint))) for one in _all_said()}
    found = sorted(row for row in said if re.search(r"\w", row[2]))
    fixed = (*_OF_SHAPES, _OF_TEMPLATES, *_OF_MODELS, *_OF_PROGRAMS)
    return (
        "# Faults and lints of files\n\n"
        "`hankwatch validate` reports all of them at once, as `file:line:column: severity[code] pointer: message "
        "(hint)`. An error refuses the file; a warning does not. Where a name or number of your file stands in the "
        "message, there is … here.\n\n"
        "## Shape\n\nFound in every file, by its [hank](hank.md), [sentinel](sentinel.md), [check](check.md) or "
        "[settings](settings.md) page.\n\n"
        + table(("code", "severity", "found", "the hint gives"), [(code(row[0]), *row[1:]) for row in fixed])
        + "## Rules and lints\n\n"
        + table(("code", "severity", "message", "hint"), [(code(row[0]), *row[1:]) for row in found])
    ).rstrip() + "\n"


def errors() -> str:
    """Every error of a command or of the Python API."""
    rows = [
        (code(kind.code), str(kind.exit_code), code(kind.__name__), prose(kind.__doc__))
        for kind in (vars(tree) | vars(request_errors)).values()
        if inspect.isclass(kind) and issubclass(kind, HankwatchError)
    ]
    drawn = inspect.cleandoc(tree.__doc__ or "").partition("::\n\n")[2].partition("\n\n")[0]
    return (
        "# Errors\n\nA command that fails prints `error[code]: message` and a hint on stderr, never a traceback "
        "(`--debug` shows it). Python code meets the same as exceptions of `hankwatch.core.errors` and `hankwatch.core.request_errors`.\n\n"
        + table(("code", "exit code", "class", "situation"), rows)
        + f"```text\n{inspect.cleandoc(drawn)}\n```\n"
    )


def _tidy(text: str) -> str:
    """One … for several in a row, and none in quotes of its own."""
    return re.sub(rf"'?{_HOLES}[{_HOLES} ]*{_HOLES}'?|'{_HOLES}'", _HOLES, text)


def _all_said() -> Iterator[_Said]:
    for source in _SOURCES:
        path = PACKAGE / source
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            if file.name != "validation.py":  # says what a model says; `_OF_SHAPES`
                yield from _said_in(file)


def _said_in(file: Path) -> Iterator[_Said]:
    for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(function, ast.FunctionDef):
            continue
        texts: dict[str, str] = {}
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if (text := _text(value, texts)) is not None:
                    texts[name] = text
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                yield from _of(node.args, {key.arg: key.value for key in node.keywords if key.arg}, texts, node)
            elif isinstance(node, ast.Tuple):
                yield from _of(node.elts, {}, texts, node)


def _of(
    said: list[ast.expr], named: dict[str, ast.expr], texts: dict[str, str], node: ast.Call | ast.Tuple
) -> Iterator[_Said]:
    """What a call or tuple says, when a code and a message stand side by side in it."""
    for at, value in enumerate(said[:-1]):
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and _KEBAB.fullmatch(value.value):
            message = _text(said[at + 1], texts)
            if message is None or " " not in message:
                return
            after = said[at + 2] if len(said) > at + 2 else named.get("hint")
            hint = _text(after, texts) if after is not None else ""
            is_lint = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Lint"
            warns = is_lint or any(
                isinstance(each, ast.Constant) and each.value == "warning" for each in (*said, *named.values())
            )
            yield _Said(value.value, "warning" if warns else "error", message, hint or "")
            return


def _text(value: ast.expr, texts: dict[str, str]) -> str | None:
    """A string as it stands in the code, … for what is filled in; None for what is none."""
    match value:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part, texts) or _HOLES if isinstance(part, ast.Constant) else _HOLES for part in parts)
        case ast.Name(id=name):
            return texts.get(name)
        case ast.IfExp(body=body, orelse=other):
            either = [text for text in (_text(body, texts), _text(other, texts)) if text]
            return " / ".join(either) or None
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return (_text(left, texts) or _HOLES) + (_text(right, texts) or _HOLES)
    return None
