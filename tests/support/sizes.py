"""How much memory a value holds on to."""

import gc
import sys
from collections.abc import Iterable
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any


def deep_size(value: Any, *, shared: Iterable[Any] = ()) -> int:
    """Bytes of ``value`` and all it refers to, without types, code, and what is ``shared`` with others."""
    seen = {id(one) for one in shared}
    left, size = [value], 0
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type | ModuleType | FunctionType | BuiltinFunctionType | MethodType):
            continue
        seen.add(id(one))
        size += sys.getsizeof(one)
        left += gc.get_referents(one)
    return size
