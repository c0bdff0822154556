"""The page of the command line, from the typer application."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer.main

from hankwatch.cli.commands import app
from hankwatch.reference.markdown import code, prose, table

_EXIT_CODES = (
    ("0", "Done."),
    ("1", "The thing that was looked at failed: a codon, an expectation, a lint error."),
    ("2", "Wrong usage or configuration; the message names file, pointer, line and what would be right."),
    ("3", "Infrastructure: the journal cannot be written, a port is taken, or a defect of hankwatch."),
    ("130", "Interrupted."),
)


def page() -> str:
    """Every command with its arguments and options."""
    root: Any = typer.main.get_command(app)
    made = "# Command line\n\n" + prose(root.help) + "\n\n"
    made += (
        "`RUN` is a path to an execution directory or a journal, the beginning of an id, or `latest`. With `--json` "
        "a command's result is JSON on stdout, and text for people goes to stderr. Colours are off when piped and "
        "with `NO_COLOR`. Options of all commands stand before or behind the command.\n\n"
    )
    made += table(("option of all commands", "meaning"), _options(root))
    made += "## Exit codes\n\n" + table(("code", "meaning"), _EXIT_CODES)
    for name, command in walk(root, "hankwatch"):
        made += f"## {name}\n\n{prose(command.help)}\n\n```text\n{_usage(name, command)}\n```\n\n"
        made += table(("argument", "meaning"), _arguments(command)) + table(("option", "meaning"), _options(command))
    return made.rstrip() + "\n"


def walk(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """(its words, the command) of every command of a group, those of its groups included."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from walk(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def _usage(name: str, command: Any) -> str:
    arguments = [_argument(one) for one in command.params if one.param_type_name == "argument"]
    return " ".join([name, *arguments, "[OPTIONS]"])


def _argument(argument: Any) -> str:
    word = (argument.metavar or argument.name.upper()).strip("[]")
    many = "…" if argument.nargs == -1 and "…" not in word else ""
    return f"{word}{many}" if argument.required else f"[{word}{many}]"


def _arguments(command: Any) -> Iterator[tuple[str, str]]:
    for one in command.params:
        if one.param_type_name == "argument":
            yield code(_argument(one)), prose(one.help) + _default(one)


def _options(command: Any) -> Iterator[tuple[str, str]]:
    for one in command.params:
        if one.param_type_name == "option" and not one.hidden:
            names = [*one.opts, *one.secondary_opts]
            value = "" if one.is_flag else f" {_value(one)}"
            yield ", ".join(code(name + value) for name in names), prose(one.help) + _default(one)


def _value(option: Any) -> str:
    if option.metavar:
        return str(option.metavar)
    annotation = option.type_descriptor.annotation
    if get_origin(annotation) is Literal:
        return "|".join(get_args(annotation))
    kinds = {Path: "PATH", int: "NUMBER", float: "NUMBER"}
    return kinds.get(annotation, "TEXT")


def _default(parameter: Any) -> str:
    default = parameter.default
    shown = isinstance(default, int | str | Path) and not isinstance(default, bool)
    return f" Default: {code(str(default))}." if shown and not parameter.required else ""
