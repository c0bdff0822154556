"""The policy keys of a loop watchdog (spec watchdog 0 and 6): when it nudges, when it interrupts."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from hankwatch.config.validation import ConfigModel

Count = Annotated[int, Field(ge=0)]
ToolClass = Literal["mutate", "poll", "wait", "noop"]


class WatchdogPolicy(ConfigModel):
    """All optional; a key left out has its default. Keys are snake_case in files too."""

    model_config = ConfigDict(alias_generator=None)

    max_consecutive_errors: Count | None = None
    """Failed calls in a row, over two rounds or more, that arm a nudge; default 5, 0 is off."""
    max_rounds_without_success: Count | None = None
    """Rounds in a row without a successful call that arm a nudge; default 6, 0 is off."""
    refractory_rounds: Count | None = None
    """Rounds that must pass between two nudges; default 3."""
    refractory_seconds: Annotated[float, Field(ge=0)] | None = None
    """Seconds that must pass between two nudges; default 20."""
    repeat_sentence_window: Count | None = None
    """Sentences remembered per channel; default 64."""
    repeat_sentence_threshold: Count | None = None
    """Occurrences of one sentence in the window that break the loop; default 4, 0 or 1 is off."""
    repeat_sentence_threshold_loose: Count | None = None
    """The same for sentences of equal content words; default 6, 0 or 1 is off."""
    min_sentence_chars: Count | None = None
    """Shorter sentences are not counted (display width); default 24."""
    min_armed_sentences: Count | None = None
    """Sentences that must have been seen before a repetition counts; default 8."""
    repeat_call_window: Count | None = None
    """Tool calls remembered; default 32."""
    repeat_call_threshold: Count | None = None
    """Copies of a call sequence that arm a nudge; default 3, 0 or 1 is off."""
    repeat_call_max_len: Count | None = None
    """Longest call sequence looked for; default 5."""
    max_think_nudges: Count | None = None
    """Nudges for repeated sentences per turn before the cap; default 2."""
    interrupt_on_cap: bool | None = None
    """At the cap: true (default) interrupts the turn, false leaves it alone."""
    nudge_text: Annotated[str, Field(pattern=r"\S")] | None = None
    """Said to an agent that makes no progress; sent as it stands."""
    break_loop_text: Annotated[str, Field(pattern=r"\S")] | None = None
    """Said to an agent that repeats itself; sent as it stands."""
    mode: Literal["act", "observe"] | None = None
    """observe reports what it would have done, and does nothing; default act."""
    tool_classes: dict[str, ToolClass] | None = None
    """Tool name -> what kind of call it is, beyond what is known of each agent program."""
