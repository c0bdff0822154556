"""The base of every event payload: strict on construction, plain JSON on dump (spec events).

Fields of payloads are spelled as in the contract; one whose name says it all has no string of its own. All
stamps inside payloads are ISO-8601 strings in UTC.
"""

from functools import partial
from operator import is_
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from hankwatch.events.envelope import EventData

T = TypeVar("T")

Maybe = Annotated[T | None, Field(exclude_if=partial(is_, None))]
"""A field that is absent from the JSON when None; give it the default None.

A nullable field proper (``cost: float | None``) is written as ``null`` instead.
"""

Count = Annotated[int, Field(ge=0)]
"""A number of things."""
Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""US dollars; ``None`` beside it means the price is unknown, never 0."""
Milliseconds = Annotated[int | float, Field(ge=0, allow_inf_nan=False)]
"""A duration; whole numbers stay whole."""

JsonObject = dict[str, Any]
"""A free-form object: anything may stand below it."""


class Shape(BaseModel):
    """A part of a payload: frozen, strict, camelCase in JSON and snake_case in Python, no unknown keys."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        frozen=True,
        strict=True,
        extra="forbid",
        defer_build=True,
        protected_namespaces=(),
    )


class Payload(Shape):
    """The ``data`` of one event type. Construction validates; a misfit raises ``pydantic.ValidationError``."""

    TYPE: ClassVar[str]
    """The event type this is the payload of."""

    def dump(self) -> EventData:
        """A new plain JSON dict: contract spelling, absent optionals omitted, nullable fields kept as None.

        Free-form values (``toolInput``, ``details``) come out as they went in.
        """
        data: EventData = self.__pydantic_serializer__.to_python(self)
        return data


class CodonPayload(Payload):
    """A payload that belongs to one codon."""

    codon_id: str
    """The runtime id: ``<id>#<n>`` inside loops."""
    base_codon_id: Maybe[str] = None
    """The id as authored in the hank."""
