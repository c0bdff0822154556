"""What can be checked, and how it is written, for whoever arms a watch from outside."""

from typing import Any, Final

from pydantic import BaseModel

from hankwatch.watches.service import WatchService
from hankwatch.watches.specs import CheckSpec, CommandSpec, DocumentSpec, EventSpec, TimeSpec


class VerifierView(BaseModel):
    """One way to find out whether a condition holds."""

    type: str
    name: str | None
    """Of a registered check."""
    version: str | None
    description: str
    trust: str
    """``safe``: agents may use it; ``operator``: others only propose it."""
    cost: str
    parameters: dict[str, Any]
    """JSON Schema of the verifier, of a check's ``args``."""


def known_verifiers(service: WatchService) -> list[VerifierView]:
    """The types, then the registered checks by name."""
    return [*_types(), *_checks(service)]


_TYPES: Final[tuple[tuple[type[BaseModel], str, str], ...]] = (
    (EventSpec, "safe", "cheap"),
    (TimeSpec, "safe", "cheap"),
    (DocumentSpec, "safe", "cheap"),
    (CommandSpec, "operator", "process"),
    (CheckSpec, "operator", "remote"),
)


def _types() -> list[VerifierView]:
    return [
        VerifierView(
            type=spec.__name__.removesuffix("Spec").lower(),
            name=None,
            version=None,
            description=(spec.__doc__ or "").strip(),
            trust=trust,
            cost=cost,
            parameters=spec.model_json_schema(),
        )
        for spec, trust, cost in _TYPES
    ]


def _checks(service: WatchService) -> list[VerifierView]:
    return [
        VerifierView(
            type="check",
            name=check.name,
            version=check.version,
            description=check.description,
            trust=check.trust.value,
            cost=check.cost.value,
            parameters=dict(check.parameters),
        )
        for check in service.verifiers.checks
    ]
