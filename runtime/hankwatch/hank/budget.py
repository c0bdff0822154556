"""Spending limits of a codon, a loop and a whole hank (reference 2.2, 2.4)."""

from typing import Annotated, Literal

from pydantic import Field

from hankwatch.config.validation import ConfigModel

Positive = Annotated[float, Field(gt=0)]
PositiveInt = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(gt=0, le=1)]
OnExceeded = Literal["complete", "fail"]


class CodonBudget(ConfigModel):
    """What one attempt of a codon may use; reaching a limit ends its agent."""

    max_dollars: Positive | None = None
    """Cost of the agent's model calls, in US dollars."""
    max_time_seconds: Positive | None = None
    """Wall-clock time of the agent, in seconds."""
    max_output_tokens: PositiveInt | None = None
    """Tokens that the model wrote, summed over its calls."""
    max_context_tokens: PositiveInt | None = None
    """Input and output tokens of the largest single call."""
    on_exceeded: OnExceeded | None = None
    """Whether a codon that reached a limit counts as completed or as failed; default complete."""


class ContainerBudget(ConfigModel):
    """What all codons of a loop, or of the hank, may use together."""

    max_dollars: Positive | None = None
    """Cost of all agents' model calls, in US dollars."""
    max_time_seconds: Positive | None = None
    """Wall-clock time of all agents, in seconds."""
    allocation: Literal["shared", "proportional", "proportional-strict"] | None = None
    """shared (default): whoever runs may use all that is left. proportional: each child has its share of
    maxDollars, unspent parts stay in the pool. proportional-strict: unspent parts are gone."""
    shares: dict[str, Share] | None = None
    """Child id -> its part of maxDollars, above 0 and at most 1; children without one split the rest evenly."""
    on_exceeded: OnExceeded | None = None
    """Whether a codon that reached a limit counts as completed or as failed; default complete."""

    @property
    def proportional(self) -> bool:
        """Each child has a share of its own."""
        return self.allocation in {"proportional", "proportional-strict"}
