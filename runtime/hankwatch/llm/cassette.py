"""A model client that asks nobody: it answers from a call log (spec sentinels 7)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from hankwatch.core.errors import MissingCall, ModelCallFailed
from hankwatch.core.redaction import Redactor
from hankwatch.llm.builtin import BuiltinModels
from hankwatch.llm.call import digest_of, redacted
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import ModelInfo, ModelReply, ModelRequest, Unavailable
from hankwatch.llm.difference import difference
from hankwatch.llm.recorded import RecordedCall, RecordedCalls

_BUILTIN: Final = "builtin/"


class CallLogClient:
    """Answers each request as the call log at ``path`` says it was answered, failures included.

    Calls are found by the digest of the redacted request, worked out anew from what was recorded as asked;
    several with one digest answer once each: to who asked then, else in the order of the log. ``builtin/*``
    needs no recording and is worked out. Needs no key and no network; safe from many tasks of one event loop.

    Args:
        path: The log, read at once.
        redactor: Takes the same secrets out of a request as when it was recorded.

    Raises:
        OSError: The file cannot be read.
    """

    def __init__(self, path: Path, *, redactor: Redactor) -> None:
        recorded = RecordedCalls(path)
        self._path = path
        self._redactor = redactor
        self._builtin = BuiltinModels()
        self._catalog = ModelCatalog({})
        self._calls = [call for call in recorded if not call.request.model.startswith(_BUILTIN)]
        self._waiting: dict[str, list[RecordedCall]] = {}
        for call in self._calls:
            self._waiting.setdefault(digest_of(call.request), []).append(call)
        self.bad_lines = recorded.bad_lines
        """Lines of the log that are not calls; they are left out."""

    def check(self, model: str) -> ModelInfo | Unavailable:
        """What the registry says; every model can be asked, whether the log has a call of it or not."""
        return self._builtin.check(model) if model.startswith(_BUILTIN) else self._catalog.info(model)

    async def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded reply.

        Raises:
            ModelCallFailed: The recorded failure, or ``MissingCall``: the log has no such call, and the
                reason shows the recorded one that comes nearest and how it differs.
        """
        if request.model.startswith(_BUILTIN):
            return await self._builtin.complete(request)
        asked = redacted(request, self._redactor)
        waiting = self._waiting.get(digest_of(asked))
        if not waiting:
            raise MissingCall(request.model, self._why_missing(asked, known=waiting is not None))
        call = next((call for call in waiting if call.request.labels == asked.labels), waiting[0])
        waiting.remove(call)
        if isinstance(call.outcome, ModelCallFailed):
            raise call.outcome
        return call.outcome

    def _why_missing(self, asked: ModelRequest, *, known: bool) -> str:
        who = _who(asked.labels)
        if known:
            digest = digest_of(asked)
            count = sum(digest_of(call.request) == digest for call in self._calls)
            return f"{self._path.name} has this call {_times(count)}, and it was made once more (by {who})"
        unasked = {id(call) for calls in self._waiting.values() for call in calls}
        nearest = _nearest(asked, self._calls, unasked)
        if nearest is None:
            return f"{self._path.name} has no call of {who}; it has {_summary(self._calls)}"
        shown = difference(nearest.request, asked) or "(in characters that are not shown)"
        near = f"{nearest.id} of {_who(nearest.request.labels)}"
        return f"{self._path.name} has no such call; nearest is {near}, which differs:\n{shown}"


def _nearest(asked: ModelRequest, calls: Iterable[RecordedCall], unasked: set[int]) -> RecordedCall | None:
    """The recorded call of the same asker that this one most likely was, before it changed."""

    def closeness(call: RecordedCall) -> tuple[int, bool, bool]:
        labels = call.request.labels
        shared = sum(labels.get(name) == value for name, value in asked.labels.items())
        return shared, id(call) in unasked, call.request.model == asked.model

    same_asker = [call for call in calls if call.request.labels.get("sentinelId") == asked.labels.get("sentinelId")]
    return max(same_asker, key=closeness, default=None)


def _who(labels: Mapping[str, str | int]) -> str:
    names = (("sentinelId", "sentinel"), ("codonId", "codon"), ("triggerNumber", "trigger"))
    return ", ".join(f"{word} {labels[name]}" for name, word in names if name in labels) or "an unnamed asker"


def _summary(calls: Iterable[RecordedCall]) -> str:
    counts = Counter(_who({"sentinelId": call.request.labels.get("sentinelId", "?")}) for call in calls)
    return ", ".join(f"{count} of {who}" for who, count in counts.items()) or "none at all"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
