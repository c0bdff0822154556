"""From what files say to a sentinel that can run, everything that can fail tried on the way (spec sentinels 1)."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hankwatch.core.contain import contain
from hankwatch.core.errors import PathRefused, SchemaFault, TemplateFault
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.history import Conversation, history_path
from hankwatch.sentinels.prompts import CodonScope, Prompts, check_prompts, read_prompts
from hankwatch.sentinels.report_book import ReportBook
from hankwatch.sentinels.reports import ReportWriter
from hankwatch.sentinels.schema import AnswerSchema, answer_schema
from hankwatch.sentinels.source import SentinelSource

if TYPE_CHECKING:
    # Only a run needs these, and they cost `validate` a sixth of its time.
    from hankwatch.llm.client import ModelClient, ModelInfo
    from hankwatch.sandbox.sandbox import Sandbox

__all__ = ["Desk", "LoadFailure", "LoadedSentinel", "SentinelSource", "load"]

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """A sentinel that could not be loaded and is skipped."""

    sentinel_id: str
    reason: str
    required: bool
    """``failCodonIfNotLoaded``: the codon fails."""


@dataclass(frozen=True, slots=True)
class LoadedSentinel:
    """All that a running sentinel stands on."""

    config: SentinelConfig
    source: SentinelSource
    prompts: Prompts
    answers: AnswerSchema | None
    """What its answers have to be; None for text."""
    model: "ModelInfo"
    report: ReportWriter
    conversation: Conversation | None
    scope: CodonScope

    @property
    def identity(self) -> dict[str, Any]:
        """What every event about it begins with."""
        return {
            "sentinel_id": self.config.id,
            "codon_id": self.scope.codon_id,
            "base_codon_id": self.scope.base_codon_id,
        }


@dataclass(frozen=True, slots=True)
class Desk:
    """What every load of a run works with."""

    model: "ModelClient"
    sandbox: "Sandbox"
    book: ReportBook
    managed_dir: Path
    persistence: bool
    """Whether conversations are kept on disk."""


async def load(source: SentinelSource, scope: CodonScope, desk: Desk, at_ms: int) -> LoadedSentinel | LoadFailure:
    """Try everything a run of this sentinel needs; its report file is made. Nothing but cancellation gets out."""
    reasons: list[str] = []
    with contain(lambda error: reasons.append(_reason(error))):
        if source.config is None:
            raise _NotLoadable("; ".join(fault.text() for fault in source.faults))
        return await _load(source, source.config, scope, desk, at_ms)
    return LoadFailure(source.id, reasons[0], source.settings.fail_codon_if_not_loaded)


async def _load(
    source: SentinelSource, config: SentinelConfig, scope: CodonScope, desk: Desk, at_ms: int
) -> LoadedSentinel:
    from hankwatch.llm.client import Unavailable

    prompts = read_prompts(config, base_dir=source.base_dir, root=source.root)
    await check_prompts(prompts, desk.sandbox)
    answers = await answer_schema(config, base_dir=source.base_dir, root=source.root, sandbox=desk.sandbox)
    model = desk.model.check(config.model)
    if isinstance(model, Unavailable):
        _LOG.info("sentinel %s: model %s: %s", source.id, model.model, model.reason)
        raise _NotLoadable(f"model {model.model}: {model.reason} ({model.hint})")
    conversation = _conversation(config, scope, desk)
    report = desk.book.open(config, source.settings, scope, at_ms, same_file=source.source == "retry")
    return LoadedSentinel(config, source, prompts, answers, model, report, conversation, scope)


def _conversation(config: SentinelConfig, scope: CodonScope, desk: Desk) -> Conversation | None:
    """Its conversation, read from disk where it is kept there.

    Damage is fatal, as for a running sentinel, unless the config says that it is not: the sentinel is skipped.
    The damaged file has been set aside by then, so that the next load begins with what was sound.
    """
    if config.conversational is None:
        return None
    path = history_path(desk.managed_dir, config.id, scope.codon_id) if desk.persistence else None
    conversation = Conversation(config.conversational, path)
    if conversation.damage is not None and not config.tolerates_damage:
        raise _NotLoadable(conversation.damage.message)
    return conversation


class _NotLoadable(Exception):
    """Carries the reason to the one place that makes a failure of it."""


def _reason(error: Exception) -> str:
    match error:
        case PathRefused():
            return str(error)
        case TemplateFault():
            return f"a prompt does not parse: {error}"
        case SchemaFault():
            return f"the schema of its answers cannot be used: {error}"
        case _NotLoadable():
            return str(error)
        case _:
            return f"{type(error).__name__}: {error}"
