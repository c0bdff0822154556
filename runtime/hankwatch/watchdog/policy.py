"""The policy of a loop watchdog (spec watchdog 0 and 6): when it nudges, when it interrupts.

Unknown keys, values out of range and rules that could never apply are faults, each of them named by its field.
"""

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from hankwatch.config.validation import ConfigModel

Count = Annotated[int, Field(ge=0)]
Text = Annotated[str, Field(pattern=r"\S")]
ToolClass = Literal["mutate", "poll", "wait", "noop"]
"""What kind of call it is: changes something, looks whether something is ready, waits, or only takes a note."""

MAX_SENTENCE_CHARS = 400
"""A sentence without an end is cut here, so no sentence is wider than twice this (spec watchdog 5.1)."""
NUDGE_TEXT = (
    "The last steps have not moved the task forward. Before the next call, say in one line what you expected and what "
    "happened instead. Then take a different step: other input, another tool, or a smaller check. If you are waiting "
    "for something, wait once for longer and then look once. If something outside your control blocks you, say what "
    "it is and what you need."
)
BREAK_LOOP_TEXT = (
    "Your output was stopped because it was repeating. Do not continue it. Use what is already known: either take one "
    "concrete action now, or give the answer, or state what is missing."
)


class WatchdogPolicy(ConfigModel):
    """All optional; a key left out has its default. Keys are snake_case in files too."""

    model_config = ConfigDict(alias_generator=None)

    max_consecutive_errors: Count = 5
    """Failed calls in a row, over two rounds or more, that arm a nudge; 0 is off."""
    max_rounds_without_success: Count = 6
    """Rounds in a row without a successful call that arm a nudge; 0 is off."""
    refractory_rounds: Count = 3
    """Rounds that must pass between a nudge and the next one about calls and rounds."""
    refractory_seconds: Annotated[float, Field(ge=0)] = 20.0
    """Seconds that must pass as well."""
    repeat_sentence_window: Count = 64
    """Sentences remembered per channel."""
    repeat_sentence_threshold: Count = 4
    """Occurrences of one sentence in the window that break the loop; 0 or 1 is off."""
    repeat_sentence_threshold_loose: Count = 6
    """The same for sentences of equal content words; 0 or 1 is off."""
    min_sentence_chars: Count = 24
    """Shorter sentences are not counted (display width)."""
    min_armed_sentences: Count = 8
    """Sentences that must have been seen before a repetition counts."""
    repeat_call_window: Count = 32
    """Tool calls remembered."""
    repeat_call_threshold: Count = 3
    """Copies of a call sequence that arm a nudge; 0 or 1 is off."""
    repeat_call_max_len: Count = 5
    """Longest call sequence looked for; no longer than fits the window as often as the threshold says."""
    max_think_nudges: Count = 2
    """Nudges for repeated sentences per turn before the cap."""
    interrupt_on_cap: bool = True
    """At the cap: true interrupts the turn, false leaves it alone."""
    nudge_text: Text = NUDGE_TEXT
    """Said to an agent that makes no progress; sent as it stands."""
    break_loop_text: Text = BREAK_LOOP_TEXT
    """Said to an agent that repeats itself; sent as it stands."""
    mode: Literal["act", "observe"] = "act"
    """observe reports what it would have done, and does nothing."""
    tool_classes: dict[str, ToolClass] = Field(default_factory=dict)
    """Tool name -> what kind of call it is, beyond what is known of each agent program."""

    @property
    def strict(self) -> int | None:
        """The threshold of equal sentences; None when off."""
        return _on(self.repeat_sentence_threshold)

    @property
    def loose(self) -> int | None:
        """The threshold of equal content words; None when off."""
        return _on(self.repeat_sentence_threshold_loose)

    @property
    def copies(self) -> int | None:
        """The threshold of call sequences; None when off."""
        return _on(self.repeat_call_threshold)

    @property
    def call_lengths(self) -> int:
        """The longest call sequence that is looked for; 0 when the tier is off."""
        return min(self.repeat_call_max_len, self.repeat_call_window // self.copies) if self.copies else 0

    @model_validator(mode="after")
    def _every_rule_can_apply(self) -> Self:
        faults = [
            InitErrorDetails(
                type=PydanticCustomError("never_applies", "{said}", {"said": f"{name} {said}"}),
                loc=(name,),
                input=getattr(self, name),
            )
            for name, said in self._dead_rules()
        ]
        if faults:
            raise ValidationError.from_exception_data(type(self).__name__, faults)
        return self

    def _dead_rules(self) -> Iterator[tuple[str, str]]:
        strict, loose, copies = self.strict, self.loose, self.copies
        most = max(strict or 0, loose or 0)
        if strict and loose and loose < strict:
            yield "repeat_sentence_threshold_loose", f"({loose}) must be at least repeat_sentence_threshold ({strict})"
        if self.repeat_sentence_window < most:
            said = f"({self.repeat_sentence_window}) must hold as many sentences as the thresholds ask for ({most})"
            yield "repeat_sentence_window", said
        if most and self.min_sentence_chars > 2 * MAX_SENTENCE_CHARS:
            said = f"({self.min_sentence_chars}) is more than any sentence has ({2 * MAX_SENTENCE_CHARS})"
            yield "min_sentence_chars", said
        if copies and self.repeat_call_window < copies:
            said = f"({self.repeat_call_window}) must hold as many calls as repeat_call_threshold asks for ({copies})"
            yield "repeat_call_window", said
        if copies and not self.repeat_call_max_len:
            yield "repeat_call_max_len", "must be at least 1; repeat_call_threshold 0 turns the rule off"


def _on(threshold: int) -> int | None:
    return threshold if threshold > 1 else None
