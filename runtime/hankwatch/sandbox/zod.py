"""Zod texts (spec sentinels 7)."""

from typing import Any

from hankwatch.core.errors import SchemaFault
from hankwatch.sandbox.javascript import explain

__all__ = ["explain", "json_schema"]


def json_schema(text: str) -> dict[str, Any]:
    raise SchemaFault("Zod texts are not supported by this version yet")
