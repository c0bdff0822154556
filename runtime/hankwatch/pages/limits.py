"""How much of a run a page shows; beyond it there are counts, and the command that shows more."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers of things and of characters."""

    sentinels: int = 60
    first_fires: int = 20
    """Of each sentinel, the first and the last."""
    last_fires: int = 40
    fires: int = 1_000
    """Of all sentinels together."""
    events_per_fire: int = 40
    events: int = 2_000
    """Cited by all fires together."""
    gist_chars: int = 240
    payload_chars: int = 4_000
    content_chars: int = 20_000
    """Of one entry."""
    prompt_chars: int = 50_000
    """Of one message of a prompt."""
    all_prompt_chars: int = 6_000_000
    """Of all prompts together."""
    codons: int = 200
    moments: int = 100
    problems: int = 60
    names: int = 60
    """Different event types, tools and files."""
