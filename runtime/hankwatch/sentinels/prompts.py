"""A sentinel's prompts: its files and text joined, and what a template sees of a trigger (spec sentinels 6)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hankwatch.config.refs import read_ref
from hankwatch.events.envelope import format_stamp
from hankwatch.sentinels.config import SentinelConfig

if TYPE_CHECKING:
    # Only a run and `try` need these, and they cost `validate` a sixth of its time.
    from hankwatch.llm.client import Message
    from hankwatch.sandbox.sandbox import Sandbox
    from hankwatch.sentinels.queue import Trigger
    from hankwatch.sentinels.window import Shown

Engine = Literal["jinja", "eta"]


@dataclass(frozen=True, slots=True)
class CodonScope:
    """The codon that a sentinel is attached to: what its prompts say of it, and the id its events carry."""

    codon_id: str
    """The runtime id; ``<id>#<n>`` in a loop."""
    base_codon_id: str
    """The authored id."""
    name: str
    description: str | None
    start_time: str
    """ISO-8601, UTC: when the codon (not this attempt) started."""


@dataclass(frozen=True, slots=True)
class Template:
    """One prompt as written."""

    engine: Engine
    source: str


@dataclass(frozen=True, slots=True)
class Prompts:
    """The templates of one sentinel."""

    system: Template | None
    user: Template

    @property
    def templates(self) -> tuple[Template, ...]:
        """All there are."""
        return (self.user,) if self.system is None else (self.system, self.user)


def prompt_refs(config: SentinelConfig) -> Iterator[tuple[str, str]]:
    """Every prompt file of a config, as (JSON pointer of the ref, ref)."""
    for key, files in (
        ("systemPromptFile", config.system_prompt_file),
        ("userPromptFile", config.user_prompt_file),
    ):
        if isinstance(files, str):
            yield f"/{key}", files
        else:
            yield from ((f"/{key}/{index}", ref) for index, ref in enumerate(files or ()))


def read_prompts(config: SentinelConfig, *, base_dir: Path, root: Path) -> Prompts:
    """The prompts with their files read; raises ``PathRefused`` for the first file that cannot be."""

    def joined(files: str | Sequence[str] | None, text: str | None) -> str:
        refs = [files] if isinstance(files, str) else files or ()
        parts = [read_ref(ref, base=base_dir, root=root) for ref in refs]
        return "\n\n".join([*(part.rstrip("\n") for part in parts), *([text] if text is not None else [])])

    system = joined(config.system_prompt_file, config.system_prompt_text)
    user = joined(config.user_prompt_file, config.user_prompt_text)
    return Prompts(
        Template(_engine(config, system), system) if system else None,
        Template(_engine(config, user), user),
    )


def _engine(config: SentinelConfig, source: str) -> Engine:
    return config.template_engine or ("eta" if "<%" in source else "jinja")


async def check_prompts(prompts: Prompts, sandbox: "Sandbox") -> None:
    """Parse both; raises ``TemplateFault`` for one that does not."""
    for template in prompts.templates:
        await sandbox.check(template.engine, template.source)


def trigger_context(
    trigger: "Trigger", strategy: str, scope: CodonScope, config: SentinelConfig, shown: "Shown | None" = None
) -> dict[str, Any]:
    """What a template calls ``it``: plain JSON data, nothing that could be called.

    ``shown`` are the events where not all of them fit; by default all are there.
    """
    batch = trigger.batch
    omitted = 0 if shown is None else shown.omitted
    return {
        "events": [event.envelope() for event in batch.events] if shown is None else shown.events,
        "codon": {
            "id": scope.codon_id,
            "name": scope.name,
            "description": scope.description,
            "startTime": scope.start_time,
        },
        "world": {"currentTime": format_stamp(batch.at_ms)},
        "trigger": {"number": trigger.number, "strategy": strategy, "cause": trigger.cause, "omitted": omitted},
        "sentinel": {"id": config.id, "name": config.name},
    }


async def render_prompts(prompts: Prompts, sandbox: "Sandbox", it: dict[str, Any]) -> "tuple[Message, ...]":
    """The request's messages; raises ``RenderFault``."""
    from hankwatch.llm.client import Message

    messages = []
    if prompts.system is not None:
        messages.append(Message("system", await sandbox.render(prompts.system.engine, prompts.system.source, it)))
    messages.append(Message("user", await sandbox.render(prompts.user.engine, prompts.user.source, it)))
    return tuple(messages)
