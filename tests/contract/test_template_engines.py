"""What every template engine promises, whatever its language (spec sentinels 6)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import RenderFault, TemplateFault
from hankwatch.sandbox.sandbox import Engine, Sandbox
from hankwatch.sandbox.worker import ENGINES


@dataclass(frozen=True, slots=True)
class Language:
    """The same few prompts, written for one engine."""

    engine: Engine
    codon: str
    every_type: str
    first_data: str
    broken: str
    undefined: str
    too_large: str


LANGUAGES = [
    Language(
        engine="jinja",
        codon="Codon {{ it.codon.id }}",
        every_type="{% for e in it.events %}[{{ e.type }}]{% endfor %}",
        first_data="{{ it.events[0].data.text }}",
        broken="fine\n{% if %}",
        undefined="fine\n{{ it.missing.member }}",
        too_large="{{ 'a' * 10 ** 9 }}",
    ),
    Language(
        engine="eta",
        codon="Codon <%= it.codon.id %>",
        every_type="<% for (const e of it.events) { %>[<%= e.type %>]<% } %>",
        first_data="<%= it.events[0].data.text %>",
        broken="fine\n<% if ( %>",
        undefined="fine\n<%= it.codon.data.missing %>",
        too_large="<%= 'a'.repeat(1e9) %>",
    ),
]
HOSTILE = "{{ 7 * 7 }} {% endraw %} <%= 7 * 7 %> <b>&amp; ☕"
CONTEXT = {"codon": {"id": "c#1"}, "events": [{"type": "a", "data": {"text": HOSTILE}}, {"type": "b", "data": {}}]}


@pytest.fixture(params=LANGUAGES, ids=lambda language: language.engine)
def language(request: pytest.FixtureRequest) -> Language:
    chosen: Language = request.param
    return chosen


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(clock=SystemClock()) as sandbox:
        yield sandbox


def test_every_engine_is_under_contract() -> None:
    assert {language.engine for language in LANGUAGES} == set(ENGINES)


async def test_the_context_is_seen_as_it(language: Language, sandbox: Sandbox) -> None:
    assert await sandbox.render(language.engine, language.codon, CONTEXT) == "Codon c#1"
    assert await sandbox.render(language.engine, language.every_type, CONTEXT) == "[a][b]"


async def test_event_text_appears_literally(language: Language, sandbox: Sandbox) -> None:
    assert await sandbox.render(language.engine, language.first_data, CONTEXT) == HOSTILE


async def test_a_good_template_passes_the_check(language: Language, sandbox: Sandbox) -> None:
    await sandbox.check(language.engine, language.every_type)


async def test_a_broken_template_fails_the_check_with_its_line(language: Language, sandbox: Sandbox) -> None:
    with pytest.raises(TemplateFault) as caught:
        await sandbox.check(language.engine, language.broken)
    assert caught.value.line == 2


async def test_a_missing_member_fails_the_render(language: Language, sandbox: Sandbox) -> None:
    with pytest.raises(RenderFault, match="missing"):
        await sandbox.render(language.engine, language.undefined, CONTEXT)


async def test_a_template_that_wants_too_much_fails_alone(language: Language, sandbox: Sandbox) -> None:
    with pytest.raises(RenderFault):
        await sandbox.render(language.engine, language.too_large, CONTEXT)
    assert await sandbox.render(language.engine, language.codon, CONTEXT) == "Codon c#1"
