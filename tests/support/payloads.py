"""A valid payload of any type, built from its model alone."""

from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from hankwatch.events.payload import Shape

S = TypeVar("S", bound=Shape)


def sample(model: type[S], *, full: bool = True) -> S:
    """An instance with every field set, or with the required ones only (nullable ones then None)."""
    return model.model_validate(
        {
            info.alias or name: _value(info.annotation, full=full)
            for name, info in model.model_fields.items()
            if full or info.is_required()
        }
    )


def _value(annotation: Any, *, full: bool) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _value(arguments[0], full=full)
    if origin in (Union, UnionType):
        return None if NoneType in arguments and not full else _value(arguments[0], full=full)
    if origin is Literal:
        return arguments[0]
    if origin is list:
        return [] if arguments[0].__name__ == "FileNode" else [_value(arguments[0], full=full)]
    if origin is dict:
        return {"some-key": _value(arguments[1], full=full)}
    if isinstance(annotation, type) and issubclass(annotation, Shape):
        return sample(annotation, full=full).model_dump()
    return {str: "text", int: 3, float: 1.5, bool: True, Any: {"deep": [None, 1]}}[annotation]
