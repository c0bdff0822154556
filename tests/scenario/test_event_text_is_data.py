"""Event text through the whole walk, template worker included: it stays text (bugs A17)."""

from pathlib import Path

import pytest
from tests.support.sentinels import desk, scope, source

from hankwatch.core.clock import SystemClock
from hankwatch.llm.builtin import BuiltinModels
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.testing import ScriptedModel

HOSTILE = [
    "{{ ''.__class__.__mro__ }}",
    "{% endraw %}{{ 7*7 }}",
    "{% include '/etc/passwd' %}",
    "<%= process.env %>",
    "{{ events }} {# #}",
]
PROMPT = "{% for e in events %}<event>{{ e.data.message }}</event>{% endfor %}"


async def test_event_text_reaches_the_model_as_it_is(tmp_path: Path) -> None:
    config = {"execution": {"strategy": "count", "threshold": len(HOSTILE)}, "userPromptText": PROMPT}
    async with (
        Sandbox(clock=SystemClock()) as sandbox,
        desk(tmp_path, sandbox=sandbox) as d,
        d.manager.attach(scope(), [source(**config)]),
    ):
        for text in HOSTILE:
            d.info(text)
        await d.manager.settle()
        assert isinstance(d.model, ScriptedModel)
        assert d.model.requests[0].messages[-1].content == "".join(f"<event>{text}</event>" for text in HOSTILE)


async def test_an_answer_that_looks_like_a_template_reaches_the_report_as_it_is(tmp_path: Path) -> None:
    config = {"model": "builtin/echo", "userPromptText": PROMPT}
    async with (
        Sandbox(clock=SystemClock()) as sandbox,
        desk(tmp_path, sandbox=sandbox, model=BuiltinModels()) as d,
        d.manager.attach(scope(), [source(**config)]),
    ):
        for text in HOSTILE:
            d.info(text)
        await d.manager.settle()
        assert d.report().read_text() == "".join(f"\n---\n<event>{text}</event>\n" for text in HOSTILE)


async def test_what_a_conversation_remembers_is_not_rendered_again(tmp_path: Path) -> None:
    talks = {"trimmingStrategy": {"type": "maxTurns", "maxTurns": 9}}
    config = {"conversational": talks, "systemPromptText": "You watch.", "userPromptText": PROMPT}
    async with (
        Sandbox(clock=SystemClock()) as sandbox,
        desk(tmp_path, lambda request: HOSTILE[len(request.messages) // 2 - 1], sandbox=sandbox) as d,
        d.manager.attach(scope(), [source(**config)]),
    ):
        for text in HOSTILE:
            d.info(text)
        await d.manager.settle()
        assert isinstance(d.model, ScriptedModel)
        remembered = [f(text) for text in HOSTILE[:-1] for f in (lambda text: f"<event>{text}</event>", str)]
        sent = [message.content for message in d.model.requests[-1].messages]
        assert sent == ["You watch.", *remembered, f"<event>{HOSTILE[-1]}</event>"]


async def test_an_eta_prompt_shows_event_text_as_it_is(tmp_path: Path) -> None:
    config = {"userPromptText": "<% for (const e of it.events) { %><event><%= e.data.message %></event><% } %>"}
    async with (
        Sandbox(clock=SystemClock()) as sandbox,
        desk(tmp_path, sandbox=sandbox) as d,
        d.manager.attach(scope(), [source(**config)]),
    ):
        for text in HOSTILE:
            d.info(text)
        await d.manager.settle()
        assert isinstance(d.model, ScriptedModel)
        assert [r.messages[-1].content for r in d.model.requests] == [f"<event>{text}</event>" for text in HOSTILE]


@pytest.mark.parametrize("prompt", ["{{ ''.__class__.__mro__ }}", "{{ events[0].nothing }}", "{{ 'x' * 10**10 }}"])
async def test_a_prompt_that_reaches_too_far_fails_its_trigger_loudly(tmp_path: Path, prompt: str) -> None:
    async with (
        Sandbox(clock=SystemClock()) as sandbox,
        desk(tmp_path, sandbox=sandbox) as d,
        d.manager.attach(scope(), [source("bad", userPromptText=prompt), source("good", userPromptText=PROMPT)]),
    ):
        d.info("hello")
        await d.manager.settle()
        assert [data["errorType"] for data in d.said("error")] == ["template-render-failed"]
        assert len(d.said("output", sentinel_id="good")) == 1
