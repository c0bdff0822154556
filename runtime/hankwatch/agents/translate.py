"""From signals to event payloads: the one place that knows a codon's calls, usage and copies (spec hank 2)."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_never

from pydantic import ValidationError

from hankwatch.agents.account import Account
from hankwatch.agents.signals import (
    ContextExceeded,
    Junk,
    LeftOut,
    Recorded,
    Reported,
    Result,
    Retried,
    Signal,
    Spoke,
    Started,
    Streamed,
    Tokens,
    ToolFinished,
    ToolUsed,
    Used,
)
from hankwatch.core.fingerprint import fingerprint
from hankwatch.events.activity import AssistantAction, ToolResult
from hankwatch.events.catalogue import PAYLOADS
from hankwatch.events.payload import Payload
from hankwatch.events.run import ErrorEvent, Info, ModelUsage, TokenUsage

RETRY_TEXT = "The agent retries its model request: "
"""Begins an ``info`` with the code ``transport-retry``."""
CONTEXT_TEXT = "The agent's context is full: "
"""Begins an ``info`` with the code ``context-exceeded``."""

_MAX_EARLY_RESULTS = 64
_LONGEST_SECRET = 4_096
"""Characters read beyond a cut, so that a secret that crosses it is recognised whole."""


@dataclass(slots=True)
class _Call:
    name: str
    at_ms: int
    open: bool = True


class Translator:
    """Turns one attempt's signals into payloads that carry its codon's id.

    One per attempt, over all its turns. Instants are stream time in epoch milliseconds. Text was cleaned
    where the lines were read, and emitting redacts; only what a cut could hide from that is redacted here.
    """

    def __init__(
        self,
        codon_id: str,
        base_codon_id: str | None = None,
        *,
        tool_result_chars: int = 2_500,
        redact: Callable[[str], str] = str,
    ) -> None:
        """``redact`` is applied to a result before it is cut, so that no half of a secret is left behind."""
        self.counts: Counter[str] = Counter()
        """What did not become an event of its own, by name.

        ``junk`` lines not of the dialect · ``replayed`` copies of what was seen before · ``bad_line``
        payloads that did not fit (an ``info`` each) · ``dropped_keys`` of recorded events · ``early_results``
        that came before their call · ``unknown_results`` whose call never came · ``calls_without_result``,
        known after ``finish`` · ``repeated_problems`` said again with nothing done in between ·
        ``impossible_usage`` no program can have had, known after ``finish`` · and by its reason what an
        envelope tells beside the agent's own work (``LeftOut``).
        """
        self.account = Account()
        """Tokens and cost so far."""
        self.session_id = ""
        """The last session named; empty until then."""
        self._ids: dict[str, Any] = {"codon_id": codon_id, "base_codon_id": base_codon_id}
        self._tool_result_chars = tool_result_chars
        self._redact = redact
        self._calls: dict[str, _Call] = {}
        self._early: dict[str, ToolFinished] = {}
        self._seen: set[object] = set()
        self._problem = ""
        self._processes = 0

    def recall(self, earlier: "Translator") -> None:
        """Know what an earlier attempt told of the same session: its copy in this one is no news (bugs A7)."""
        if earlier._processes:  # its program numbers anew, so that the same id is another message
            return
        self._seen |= earlier._seen
        self._calls |= {call_id: call for call_id, call in earlier._calls.items() if not call.open}
        self.account.recall(earlier.account)

    def translate(self, signal: Signal, at_ms: int) -> list[Payload]:
        """The payloads of one signal that arrived at ``at_ms``; often one, sometimes none."""
        payloads: list[Payload] = []
        match signal:
            case Started():
                self.session_id = signal.session_id or self.session_id
                self._processes += signal.numbers_anew
            case Spoke():
                payloads = self._spoke(signal)
            case ToolUsed():
                payloads = self._tool_used(signal, at_ms)
            case ToolFinished():
                payloads = self._tool_finished(signal, at_ms)
            case Used():
                increment = self.account.add(signal)
                payloads = [] if increment is None else self._usage(increment)
            case Retried() | ContextExceeded():
                payloads = [_notice(signal)]
            case Reported():
                payloads = self._problem_event(
                    signal.message, "warning" if signal.severity == "warning" else "operation"
                )
            case Result():
                failed = not signal.success or signal.is_error
                payloads = self._problem_event(signal.text, "codon") if failed else []
            case Recorded():
                payloads = self._recorded(signal, at_ms)
            case Streamed():
                pass  # for the watchdog alone; its message becomes an event
            case Junk() | LeftOut():
                self.counts[signal.reason if isinstance(signal, LeftOut) else "junk"] += 1
            case _:
                assert_never(signal)
        return payloads

    def finish(self) -> list[Payload]:
        """The codon's final ``token.usage`` when any usage was stated; settles ``counts``. Call once."""
        self.counts["impossible_usage"] += self.account.refused
        self.counts["unknown_results"] += len(self._early)
        self.counts["calls_without_result"] += sum(call.open for call in self._calls.values())
        if self.account.tokens == Tokens() and self.account.cost_usd is None:
            return []
        account = self.account
        total = Used(account.tokens, model=account.model, cost_usd=account.whole_cost_usd, by_model=account.by_model)
        return self._usage(total, final=True)

    def _spoke(self, signal: Spoke) -> list[Payload]:
        if not signal.text:
            return []
        self._problem = ""
        message_id = self._own(signal.message_id)
        if message_id and self._is_copy((message_id, signal.kind, hash(signal.text))):
            return []
        return self._build(
            AssistantAction, action=signal.kind, content=signal.text, parent_tool_use_id=signal.parent, **self._ids
        )

    def _tool_used(self, signal: ToolUsed, at_ms: int) -> list[Payload]:
        call_id = self._own(signal.id)
        if call_id in self._calls:
            self.counts["replayed"] += 1
            return []
        if not signal.id or not signal.name:
            return [self._bad_line(AssistantAction.TYPE, "a tool call without id or name")]
        self._problem = ""
        self._calls[call_id] = _Call(signal.name, at_ms)
        payloads = self._build(
            AssistantAction,
            action="tool_use",
            content="",
            tool_name=signal.name,
            tool_input=dict(signal.input),
            tool_use_id=call_id,
            parent_tool_use_id=signal.parent,
            **self._ids,
        )
        early = self._early.pop(signal.id, None)
        return payloads if early is None else payloads + self._tool_finished(early, at_ms)

    def _tool_finished(self, signal: ToolFinished, at_ms: int) -> list[Payload]:
        call_id = self._own(signal.id)
        call = self._calls.get(call_id)
        if call is None:
            return self._hold_early(signal)
        if not call.open:
            self.counts["replayed"] += 1
            return []
        call.open = False
        limit = self._tool_result_chars
        cut = len(signal.text) > limit
        return self._build(
            ToolResult,
            tool_use_id=call_id,
            tool_name=call.name,
            result=self._redact(signal.text[: limit + _LONGEST_SECRET])[:limit] + "..." if cut else signal.text,
            truncated=cut,
            original_length=len(signal.text),
            execution_time_ms=max(0, at_ms - call.at_ms),
            is_error=signal.is_error,
            outcome=signal.outcome,
            parent_tool_use_id=signal.parent,
            fingerprint=fingerprint(signal.text),
            **self._ids,
        )

    def _own(self, program_id: str) -> str:
        """An id of the program, told apart from the same one of an earlier process that numbered from the start."""
        return f"{program_id}#{self._processes}" if program_id and self._processes > 1 else program_id

    def _hold_early(self, signal: ToolFinished) -> list[Payload]:
        # Parallel calls can be answered before they are announced.
        if len(self._early) >= _MAX_EARLY_RESULTS:
            self.counts["unknown_results"] += 1
        else:
            self.counts["early_results"] += 1
            self._early[signal.id] = signal
        return []

    def _usage(self, used: Used, *, final: bool | None = None) -> list[Payload]:
        models = {
            name: ModelUsage(
                input_tokens=use.tokens.input,
                output_tokens=use.tokens.output,
                cache_read_input_tokens=use.tokens.cache_read,
                cache_creation_input_tokens=use.tokens.cache_creation,
                cost_usd=use.cost_usd,
            )
            for name, use in used.by_model.items()
        }
        return self._build(
            TokenUsage,
            input_tokens=used.tokens.input,
            output_tokens=used.tokens.output,
            cache_creation_tokens=used.tokens.cache_creation,
            cache_read_tokens=used.tokens.cache_read,
            total_cost=used.cost_usd,
            model_id=used.model,
            model_usage=models if final and models else None,
            is_final=final,
            **self._ids,
        )

    def _problem_event(self, message: str, severity: str) -> list[Payload]:
        if not message:
            return []
        # The line that ends a turn repeats the error that ended it.
        if message == self._problem:
            self.counts["repeated_problems"] += 1
            return []
        self._problem = message
        codon, base = self._ids["codon_id"], self._ids["base_codon_id"]
        return self._build(ErrorEvent, message=message, codon=codon, base_codon_id=base, fatal=False, severity=severity)

    def _recorded(self, signal: Recorded, at_ms: int) -> list[Payload]:
        if signal.id and self._is_copy(signal.id):
            return []
        model = PAYLOADS.get(signal.type)
        if model is None:
            self.counts["junk"] += 1
            return []
        names = {info.alias or name: name for name, info in model.model_fields.items()}
        known = {names[key]: value for key, value in signal.data.items() if key in names}
        self.counts["dropped_keys"] += len(signal.data) - len(known)
        known |= {name: value for name, value in self._ids.items() if name in model.model_fields}
        return [] if self._is_copied_call(signal, at_ms) else self._build(model, **known)

    def _is_copied_call(self, signal: Recorded, at_ms: int) -> bool:
        """Whether a recorded call or result was seen before; notes it when not."""
        call_id = signal.data.get("toolUseId")
        if not isinstance(call_id, str) or not call_id:
            return False
        if signal.type == AssistantAction.TYPE:
            if copied := call_id in self._calls:
                self.counts["replayed"] += 1
            else:
                self._calls[call_id] = _Call(str(signal.data.get("toolName")), at_ms)
            return copied
        if signal.type == ToolResult.TYPE and (call := self._calls.get(call_id)) is not None:
            if copied := not call.open:
                self.counts["replayed"] += 1
            call.open = False
            return copied
        return False

    def _is_copy(self, key: object) -> bool:
        if key in self._seen:
            self.counts["replayed"] += 1
            return True
        self._seen.add(key)
        return False

    def _build(self, model: type[Payload], **fields: Any) -> list[Payload]:
        try:
            return [model(**fields)]
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in fault["loc"])
            return [self._bad_line(model.TYPE, f"{where}: {fault['msg']}")]

    def _bad_line(self, type_name: str, reason: str) -> Info:
        self.counts["bad_line"] += 1
        details = {"type": type_name, "reason": reason, "codonId": self._ids["codon_id"]}
        return Info(message=f"The agent's {type_name} was left out: {reason}", code="bad-line", details=details)


def _notice(signal: Retried | ContextExceeded) -> Info:
    if isinstance(signal, Retried):
        return Info(message=RETRY_TEXT + signal.message, code="transport-retry")
    return Info(message=CONTEXT_TEXT + signal.message, code="context-exceeded")
