"""The page of the Python API, from the public names and their docstrings."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from typing import Any

from hankwatch.reference.markdown import code, prose, table

_MODULES = ("hankwatch", "hankwatch.agent", "hankwatch.testing")


def page() -> str:
    """Every public name: how it is called, what it gives."""
    made = (
        "# Python API\n\nThese names are public; everything else may change. `await` stands in an anyio or asyncio "
        "program. [Replay a run](../how-to/replay-a-run.md) has an example, "
        "[add an agent program](../how-to/add-an-agent-program.md) another.\n\n"
    )
    for name in _MODULES:
        module = import_module(name)
        made += f"## {name}\n\n{prose(module.__doc__)}\n\n"
        for public in sorted(module.__all__, key=str.lower):
            made += f"### {public}\n\n{_described(getattr(module, public))}"
    return made.rstrip() + "\n"


def _described(thing: Any) -> str:
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return f"{code(str(thing).replace(f'{thing.__module__}.', ''))}\n\n"
    source = textwrap.dedent(inspect.getsource(thing))
    tree = ast.parse(source).body[0]
    assert isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    if isinstance(tree, ast.ClassDef):
        return f"{prose(ast.get_docstring(tree))}\n\n" + table(("member", "meaning"), _members(tree))
    head = "\n".join(source.splitlines()[tree.lineno - 1 : tree.body[0].lineno - 1]).removesuffix(":")
    return f"```python\n{head}\n```\n\n{_whole(tree)}\n\n"


def _members(tree: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for node, after in pairwise([*tree.body, ast.Pass()]):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                yield code(f"{name}: {ast.unparse(node.annotation)}"), prose(_text(after))
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not node.name.startswith("_"):
                is_value = any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list)
                yield code(node.name if is_value else f"{node.name}()"), prose(ast.get_docstring(node))


def _text(node: ast.stmt) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str() as text)):
            return text
    return ""


def _whole(tree: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """A Google-style docstring: its paragraphs, then arguments and errors as lists."""
    lines = (ast.get_docstring(tree) or "").replace("``", "`").splitlines()
    made: list[str] = []
    for line in lines:
        text = line.strip()
        if text in {"Args:", "Returns:", "Raises:"}:
            made += [f"{text}", ""]
        elif line.startswith("    ") and not line.startswith("     ") and made:
            made.append(f"- {text}")
        else:
            made.append(f"  {text}" if line.startswith("     ") else text)
    return "\n".join(made)
