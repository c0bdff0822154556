"""From a trigger to the request that is put to the model (spec sentinels 6 and 7)."""

from dataclasses import dataclass

from hankwatch.events.envelope import EventData
from hankwatch.llm.client import Message, ModelRequest
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.history import Turn
from hankwatch.sentinels.loader import LoadedSentinel
from hankwatch.sentinels.prompts import render_prompts, trigger_context
from hankwatch.sentinels.queue import Trigger
from hankwatch.sentinels.tokens import estimate_tokens
from hankwatch.sentinels.window import Shown, counted, fitted


@dataclass(frozen=True, slots=True)
class Composed:
    """A request, and what it was made from."""

    request: ModelRequest
    question: str
    """The rendered user prompt, as a conversation remembers it."""
    omitted: int
    """Events that the prompt does not show whole."""


class Composer:
    """Makes the requests of one sentinel."""

    def __init__(self, sentinel: LoadedSentinel, sandbox: Sandbox) -> None:
        self._sentinel = sentinel
        self._sandbox = sandbox
        window = sentinel.model.context_tokens
        asked = sentinel.config.llm_params.max_output_tokens
        # At most half of the window is for the answer: a small model is not left without a prompt.
        self._output_tokens = asked if window is None else max(1, min(asked, window // 2))
        self._room_tokens = None if window is None else window - self._output_tokens
        schema = sentinel.answers
        self._enforced = None
        self._instructions = ""
        if schema is not None and sentinel.model.enforces(schema.for_provider):
            self._enforced = schema.for_provider
        elif schema is not None:
            self._instructions = f"\n\n{schema.instructions()}"

    async def compose(self, trigger: Trigger) -> Composed:
        """The request for a trigger; raises ``RenderFault``.

        What does not fit into the model's window, the answer's share set aside, goes in this order: the oldest
        turns of the conversation, long texts of events, the oldest events; see ``fitted``.
        """
        events = [event.envelope() for event in trigger.batch.events]
        extra_tokens = estimate_tokens(self._instructions)
        room_tokens = None if self._room_tokens is None else self._room_tokens - extra_tokens

        async def render(shown: Shown) -> tuple[Message, ...]:
            return await self._render(trigger, shown)

        messages, shown = await fitted(render, events, room_tokens)
        turns = await self._turns(messages, extra_tokens)
        *system, user = messages
        sent = (*system, *_messages(turns), Message("user", user.content + self._instructions))
        return Composed(self._request(trigger, sent, events), user.content, shown.omitted)

    async def _turns(self, messages: tuple[Message, ...], extra_tokens: int) -> list[Turn]:
        conversation = self._sentinel.conversation
        if conversation is None:
            return []
        return conversation.fitting(await counted(messages) + extra_tokens, self._room_tokens)

    async def _render(self, trigger: Trigger, shown: Shown) -> tuple[Message, ...]:
        sentinel = self._sentinel
        it = trigger_context(trigger, sentinel.config.execution.strategy, sentinel.scope, sentinel.config, shown)
        *system, user = await render_prompts(sentinel.prompts, self._sandbox, it)
        notice = shown.notice if shown.omitted else ""
        return (*system, Message("user", notice + user.content))

    def _request(self, trigger: Trigger, messages: tuple[Message, ...], events: list[EventData]) -> ModelRequest:
        config, params, schema = self._sentinel.config, self._sentinel.config.llm_params, self._sentinel.answers
        return ModelRequest(
            model=config.model,
            messages=messages,
            temperature=params.temperature,
            max_output_tokens=self._output_tokens,
            max_retries=params.max_retries,
            timeout_s=params.timeout_seconds,
            json_schema=self._enforced,
            schema_name=schema.name if schema is not None and self._enforced is not None else None,
            schema_description=schema.description if schema is not None and self._enforced is not None else None,
            events=tuple(events),
            labels={
                "sentinelId": config.id,
                "codonId": self._sentinel.scope.codon_id,
                "triggerNumber": trigger.number,
            },
        )


def _messages(turns: list[Turn]) -> list[Message]:
    return [
        message for turn in turns for message in (Message("user", turn.question), Message("assistant", turn.answer))
    ]
