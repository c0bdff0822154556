"""The models of a sentinel's configuration and of a codon's entry for it (spec sentinels 1).

The contract is 0.10's; what later versions added is optional. Defaults are the values that hold.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.config.validation import ConfigModel, validate
from hankwatch.matching.triggers import Trigger
from hankwatch.sentinels.rules import check_rules
from hankwatch.sentinels.strategies import Execution

Text = Annotated[str, StringConstraints(min_length=1)]
Files = str | Annotated[list[str], Field(min_length=1)]
"""One file or several; their spelling is a rule of ``check_rules``."""


class MaxTurns(ConfigModel):
    """Keep the last question-and-answer pairs."""

    type: Literal["maxTurns"]
    """Bound the number of pairs."""
    max_turns: int = Field(ge=1, le=100)
    """How many pairs are kept."""


class MaxTokens(ConfigModel):
    """Keep as many of the last pairs as fit."""

    type: Literal["maxTokens"]
    """Bound the size of the whole request."""
    max_tokens: int = Field(ge=1, le=100_000)
    """Tokens of the whole request, system prompt and new message included."""


class Conversational(ConfigModel):
    """Makes a sentinel remember its earlier answers."""

    trimming_strategy: Annotated[MaxTurns | MaxTokens, Field(discriminator="type")]
    """What is dropped from a conversation that has become too long."""
    continue_on_error: bool = False
    """A failed model call leaves the conversation as it was and does not count as a failure."""


class ErrorHandling(ConfigModel):
    """When a sentinel that fails is unloaded."""

    max_consecutive_failures: int = Field(default=3, ge=1)
    """Unload after this many failed triggers in a row."""
    unload_on_fatal_error: bool = True
    """Unload at once on a failure that every trigger would meet."""


class LlmParams(ConfigModel):
    """How the model is called."""

    temperature: float = Field(default=0.0, ge=0, le=2)
    """0 is deterministic, 2 most varied."""
    max_output_tokens: int = Field(default=8_192, ge=1, le=100_000)
    """Most tokens of one answer."""
    max_retries: int = Field(default=2, ge=0, le=5)
    """Repetitions of a call that failed for a passing reason."""
    timeout_seconds: float = Field(default=60.0, ge=1, le=300)
    """Longest time of one attempt; all attempts together have 300 seconds."""


class StructuredOutput(ConfigModel):
    """Asks the model for JSON instead of text."""

    output: Literal["object", "array", "enum"]
    """One object, a list, or one of `enumValues`."""
    schema_str: Text | None = None
    """The schema of the object, or of the list's items: a JSON Schema or a Zod expression."""
    schema_file: str | None = None
    """A file with that schema, relative to this config file's directory."""
    enum_values: list[Text] | None = Field(default=None, min_length=1)
    """The possible answers of `enum`."""
    schema_name: Text | None = None
    """A name for the schema that the model is told."""
    schema_description: Text | None = None
    """What the model is told about the schema."""


class ReportToWebsocket(ConfigModel):
    """Which of a sentinel's events connected clients are sent; all are journaled."""

    lifecycle: bool = True
    """`sentinel.loaded` and `sentinel.unloaded`."""
    errors: bool = True
    """`sentinel.error`."""
    outputs: bool = True
    """`sentinel.output`."""
    triggers: bool = False
    """`sentinel.triggered`."""


class Output(ConfigModel):
    """Where a sentinel's report goes."""

    format: Literal["text", "jsonl"] | None = None
    """Plain text with `joinString` between entries (default), or one JSON object per line."""
    file: Text | None = None
    """A bare name lies in the sentinel's managed folder, one with `/` inside the agent's workspace."""
    last_value_file: Text | None = None
    """A file that always holds only the latest entry."""


class SentinelConfig(ConfigModel):
    """A sentinel: what it waits for, how it gathers, whom it asks, where it reports."""

    schema_url: str | None = Field(default=None, alias="$schema")
    """For editors."""
    id: str = Field(pattern=r"^[a-z0-9-]+$")
    """Lower-case letters, digits and hyphens; unique within a codon."""
    name: Text
    """What people call it."""
    description: str | None = None
    """What it is for."""
    trigger: Trigger
    """What it waits for."""
    execution: Execution
    """How matches are gathered before the model is asked."""
    model: Text
    """Full model id, for example `anthropic/claude-haiku-4-5` or `builtin/digest`."""
    system_prompt_file: Files | None = None
    """File or files of the system prompt, relative to this config file's directory (inline: to the hank)."""
    system_prompt_text: Text | None = None
    """System prompt; follows the files."""
    user_prompt_file: Files | None = None
    """File or files of the user prompt, relative to this config file's directory (inline: to the hank)."""
    user_prompt_text: Text | None = None
    """User prompt, a template that sees the events; follows the files."""
    template_engine: Literal["jinja", "eta"] | None = None
    """The prompts' template language; by default `eta` for a prompt with a `<%` tag, else `jinja`."""
    conversational: Conversational | None = None
    """Remember earlier answers; needs a system prompt."""
    error_handling: ErrorHandling = ErrorHandling()
    """When it is unloaded because of failures."""
    llm_params: LlmParams = LlmParams()
    """Parameters of its model calls."""
    structured_output: StructuredOutput | None = None
    """Ask for JSON instead of text."""
    join_string: str | None = None
    """Stands before each entry of a text report (default `\\n---\\n`); `\\n`, `\\t`, `\\r` and `\\\\` are escapes."""
    report_to_websocket: ReportToWebsocket = ReportToWebsocket()
    """Which of its events connected clients are sent."""
    output: Output | None = None
    """Where its report goes."""

    @property
    def tolerates_damage(self) -> bool:
        """A damaged history does not end it (spec sentinels 8)."""
        goes_on = self.conversational is not None and self.conversational.continue_on_error
        return goes_on or not self.error_handling.unload_on_fatal_error


class OutputPaths(ConfigModel):
    """Report files for one codon."""

    log_file: Text | None = None
    """Instead of the sentinel's `output.file`."""
    last_value_file: Text | None = None
    """Instead of the sentinel's `output.lastValueFile`."""


class SentinelSettings(ConfigModel):
    """What a codon says about a sentinel; wins over the sentinel's own config."""

    fail_codon_if_not_loaded: bool = False
    """True: the codon fails when the sentinel cannot load. False: it goes on without."""
    output_paths: OutputPaths | None = None
    """Report files for this codon."""
    report_to_websocket: ReportToWebsocket | None = None
    """Which of its events connected clients are sent."""


class SentinelEntry(ConfigModel):
    """One sentinel of a codon."""

    sentinel_config: Text | dict[str, Any]
    """Path of a sentinel config, the config itself, or `stock:` and the id of a sentinel that comes along.

    An inline config is read by ``parse_sentinel`` like a file's: its faults are the sentinel's, not the hank's.
    """
    settings: SentinelSettings | None = None
    """What this codon wants of it."""


def parse_sentinel(document: Document, diagnostics: Diagnostics, pointer: str = "") -> SentinelConfig | None:
    """The sentinel config at ``pointer``, with every fault of it and every rule it breaks in ``diagnostics``.

    None when it could not be made at all. One that breaks a rule between fields is returned nevertheless, so
    that a caller can go on to its files: whether it may be used is for ``diagnostics.ok`` to say.
    """
    config = validate(SentinelConfig, document, diagnostics, pointer)
    if document.readable:
        check_rules(document, diagnostics, pointer)
    return config
