"""hank.json: the 0.10 contract field by field (reference 2), and this runtime's additions (spec hank 1)."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, StringConstraints, Tag

from hankwatch.config.validation import ConfigModel
from hankwatch.hank.budget import CodonBudget, ContainerBudget, PositiveInt
from hankwatch.hank.rig import OutputGroup, RigOperation, Text
from hankwatch.sentinels.config import SentinelEntry
from hankwatch.watchdog.policy import WatchdogPolicy

Refs = Text | tuple[Text, ...]
"""One file or several, relative to the hank directory."""
Id = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^/\\\x00-\x1f\x7f]+$")]
"""Part of file names, so without separators and control characters."""
IdleSeconds = Annotated[int, Field(ge=1, le=1800)]


class RetryConfig(ConfigModel):
    """How a failed codon is tried again."""

    max_attempts: Annotated[int, Field(ge=1, le=10)] = 3
    """Attempts in all, the first included."""
    delay_ms: Annotated[int, Field(ge=0, le=60_000)] = 1_000
    """Wait before the second attempt in milliseconds; doubles for each further one."""
    max_delay_ms: Annotated[int, Field(ge=0, le=600_000)] = 60_000
    """Upper bound of the wait in milliseconds."""


class AgentSpec(ConfigModel):
    """An agent program with its own command line or environment."""

    name: Text
    """claude, codex, gemini, …: which dialect the program speaks."""
    command: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """Program and arguments instead of the usual ones."""
    env: dict[str, str] = Field(default_factory=dict)
    """Set for this agent only."""


class Codon(ConfigModel):
    """One unit of agent work."""

    type: Literal["codon"] = "codon"
    """codon, or left out."""
    id: Id
    """Unique over the whole file, loops and their codons included."""
    name: Text
    """For people."""
    description: str | None = None
    """For people, and for sentinels as it.codon.description."""
    prompt_file: Refs | None = None
    """Prompt files, joined by blank lines; they win over promptText."""
    prompt_text: str | None = None
    """The prompt itself."""
    append_system_prompt_file: Refs | None = None
    """System prompt files, after the global ones."""
    append_system_prompt_text: str | None = None
    """System prompt text, after the global one."""
    model: Text
    """Short name (sonnet, opus, haiku, flash), id, provider/id, or pi/<provider>/<model>."""
    agent: Text | AgentSpec | None = None
    """Agent program: a name, exec:COMMAND, recorded:PATH (a file, or a folder with 1.jsonl, 2.jsonl … for the turns of
    a session), or an object; default: the one for the model."""
    continuation_mode: Literal["fresh", "continue-previous"]
    """fresh: a new session. continue-previous: goes on in the session of the codon before."""
    rig_setup: tuple[RigOperation, ...] = ()
    """Prepares the workspace before the agent starts, in order."""
    checkpointed_files: tuple[Text, ...] = ()
    """Globs that are watched for file.updated and committed at checkpoints; gitignore respected."""
    env: dict[str, str] = Field(default_factory=dict)
    """Given to the agent, rig commands and beforeCopy."""
    output_files: tuple[OutputGroup, ...] = ()
    """Copied to the output directory after the codon, when one is set."""
    sentinels: tuple[SentinelEntry, ...] = ()
    """Observers of this codon."""
    archive_on_success: tuple[Text, ...] = ()
    """Paths and globs that are moved to the archive after success."""
    on_failure: Literal["abort", "retry", "ignore"] = "abort"
    """What a failure of this codon does to the run."""
    retry_config: RetryConfig | None = None
    """Only together with onFailure retry."""
    exhaust_with_prompt: str | None = None
    """Sent again to the same session after each success, until its context is used up."""
    max_extensions: PositiveInt = 100
    """At most so often."""
    auto_compact: bool = False
    """Let the agent program compact its context instead of failing when it is full; either way it was full then."""
    shim_idle_timeout: IdleSeconds | None = None
    """Seconds without a sign of life after which the agent is ended."""
    budget: CodonBudget | None = None
    """What one attempt may use."""
    watchdog: Literal["default"] | WatchdogPolicy | None = None
    """Notices that the agent is stuck; "default" adopts the one that the program set."""
    wait_for_watches: bool = False
    """Keep the session waiting while it has live watches."""
    wait_limit_seconds: Annotated[float, Field(gt=0)] = 86_400
    """Longest wait for watches, in seconds."""
    mcp: bool = False
    """Give the agent this runtime's MCP server."""


class IterationLimit(ConfigModel):
    """Ends after a number of iterations."""

    type: Literal["iterationLimit"]
    """Which end this is."""
    limit: Annotated[int, Field(ge=1)]
    """Iterations in all."""


class ContextExceeded(ConfigModel):
    """Ends when a codon's context is used up."""

    type: Literal["contextExceeded"]
    """Which end this is."""


class Loop(ConfigModel):
    """Codons that run again and again; loops do not nest."""

    type: Literal["loop"]
    """Makes this item a loop."""
    id: Id
    """Unique over the whole file."""
    name: Text
    """For people."""
    description: str | None = None
    """For people."""
    terminate_on: Annotated[IterationLimit | ContextExceeded, Field(discriminator="type")]
    """When the loop ends."""
    codons: tuple[Codon, ...] = Field(min_length=1)
    """Run in order, once per iteration."""
    budget: ContainerBudget | None = None
    """What all iterations may use together."""
    archive_on_success: tuple[Text, ...] = ()
    """Paths and globs that are moved to the archive when the loop ends."""


class Meta(ConfigModel):
    """What this hank is, for people."""

    name: Text
    """Its name."""
    version: Text
    """Its version."""
    description: str | None = None
    """What it does."""
    author: str | None = None
    """Who made it."""


class SentinelOverrides(ConfigModel):
    """Sentinel settings of this hank."""

    enable_persistence: bool | None = None
    """Keep conversations of sentinels on disk."""
    health_check_grace_period_ms: PositiveInt | None = None
    """Accepted for 0.10 hanks; models are checked when a sentinel loads."""
    wait_for_all_health_checks: bool | None = None
    """Accepted for 0.10 hanks; models are checked when a sentinel loads."""
    max_concurrent_calls: PositiveInt | None = None
    """Model calls of all sentinels on the wire at one time."""
    drain_seconds: Annotated[float, Field(gt=0)] | None = None
    """Time that each sentinel has to finish its work when the codon's agent has ended."""


class Overrides(ConfigModel):
    """Settings of this hank; they win over the settings file."""

    model: Text | None = None
    """Used for every codon instead of its own."""
    data_hash_time_limit: PositiveInt | None = None
    """Milliseconds that hashing the data may take."""
    sentinel: SentinelOverrides | None = None
    """Sentinel settings."""
    shim_idle_timeout: IdleSeconds | None = None
    """Seconds without a sign of life after which an agent is ended."""
    budget: ContainerBudget | None = None
    """What all codons may use together."""


class Requirements(ConfigModel):
    """What must be there before the hank starts."""

    env: tuple[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)], ...] = ()
    """Variables; each is present when NAME or HANKWEAVE_NAME is not empty."""


def _kind(item: Any) -> str:
    kind = item.get("type") if isinstance(item, dict) else getattr(item, "type", None)
    return "loop" if kind == "loop" else "codon"


Item = Annotated[Annotated[Codon, Tag("codon")] | Annotated[Loop, Tag("loop")], Discriminator(_kind)]


class Hank(ConfigModel):
    """A list of codons and loops, run in order."""

    schema_url: str | None = Field(default=None, alias="$schema")
    """JSON Schema for editors."""
    meta: Meta | None = None
    """What this hank is."""
    overrides: Overrides | None = None
    """Settings of this hank."""
    requirements: Requirements | None = None
    """What must be there before it starts."""
    global_system_prompt_file: Refs | None = None
    """System prompt files of every codon."""
    global_system_prompt_text: str | None = None
    """System prompt text of every codon; not together with the files."""
    watchdog: Literal["default"] | WatchdogPolicy | None = None
    """The watchdog of every codon that has none of its own."""
    hank: tuple[Item, ...] = Field(min_length=1)
    """Codons and loops, run in order."""

    def codons(self) -> Iterator[tuple[str, Codon]]:
        """Every codon with its JSON pointer, those of loops included, in file order."""
        for index, item in enumerate(self.hank):
            if isinstance(item, Loop):
                for inner, codon in enumerate(item.codons):
                    yield f"/hank/{index}/codons/{inner}", codon
            else:
                yield f"/hank/{index}", item

    @property
    def has_budgets(self) -> bool:
        """Whether a loop or a codon has a budget of its own."""
        loops = any(isinstance(item, Loop) and item.budget is not None for item in self.hank)
        return loops or any(codon.budget is not None for _, codon in self.codons())


def watchdog_of(codon: Codon, hank: Hank, default: WatchdogPolicy | None) -> WatchdogPolicy | None:
    """The watchdog of a codon, its own or else that of the hank; ``default`` is what ``"default"`` stands for."""
    policy = codon.watchdog if codon.watchdog is not None else hank.watchdog
    return default if policy == "default" else policy


def refs(value: Refs | None) -> tuple[str, ...]:
    """One ref or several, as a tuple; empty for none."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value
