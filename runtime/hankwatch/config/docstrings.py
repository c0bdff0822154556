"""The string under each field of a model, read when a schema is made and not whenever a program starts."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from pydantic import BaseModel


@lru_cache(maxsize=256)
def field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Field name -> the string that stands under it where it is declared, in the model or a base of it."""
    bases = [base for base in reversed(model.__mro__) if issubclass(base, BaseModel) and base is not BaseModel]
    return {name: said for base in bases for name, said in _of_body(base)}


def _of_body(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    declared = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    for field, said in pairwise(declared.body if isinstance(declared, ast.ClassDef) else []):
        match field, said:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str() as text)),
            ):
                yield name, inspect.cleandoc(text)
