"""JavaScript in prompts and Zod texts, and schemas, that would take the machine fail as one job (spec sentinels 6, 7)."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import RenderFault, SchemaFault, TemplateFault
from hankwatch.sandbox.sandbox import Sandbox

TOO_LONG = r"longer than 2 s"
TOO_MUCH = r"out of memory|too l[oa]|Invalid string length|invalid array|more than 512 MB|longer than 2 s"
TOO_DEEP = r"Maximum call stack|nested too deeply"
ENDLESS = [
    "<% while (true) {} %>",
    "<%= /^(a+)+$/.test('a'.repeat(40) + 'b') %>",
    "<%= it.events.sort(() => { for (;;) {} }) %>",
    "<% (function again() { try { again() } finally { again() } })() %>",
]
EATERS = [
    "<%= 'a'.repeat(5e8) + 'é'.repeat(5e8) %>",
    "<% let s = 'x'; for (;;) s += s + 'y' %>",
    "<% const a = []; for (;;) a.push(new Array(1000).fill(a.length)) %>",
    "<% for (;;) __eta.res += 'more and more ' + Date.now() %>",
    "<%= new ArrayBuffer(4e9) %>",
    "<%= 10n ** 100000000n %>",
    "<%= JSON.stringify(Array(1e6).fill(Array(1e6).fill(it))) %>",
]
DEEP = [
    "<% function f() { return f() + 1 } f() %>",
    "<% let a = []; for (let i = 0; i < 1e5; i++) a = [a] %><%= JSON.stringify(a) %>",
    "<%= " + "(" * 100_000 + "1" + ")" * 100_000 + " %>",
    "<%= " + "`${" * 3_000 + "1" + "}`" * 3_000 + " %>",
]
CONTEXT = {"events": [{"type": "a"}, {"type": "b"}]}


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """A sandbox that must still serve after the test."""
    async with Sandbox(clock=SystemClock()) as sandbox:
        yield sandbox
        assert await sandbox.render("eta", "<%= it.x %>", {"x": "served"}) == "served"


@pytest.mark.slow
@pytest.mark.parametrize("source", ENDLESS)
async def test_code_that_does_not_end_is_ended_after_two_seconds(source: str, sandbox: Sandbox) -> None:
    with pytest.raises(RenderFault, match=TOO_LONG):
        await sandbox.render("eta", source, CONTEXT)


@pytest.mark.slow
@pytest.mark.parametrize("source", EATERS)
async def test_code_that_eats_memory_fails_alone(source: str, sandbox: Sandbox) -> None:
    with pytest.raises(RenderFault, match=TOO_MUCH):
        await sandbox.render("eta", source, CONTEXT)


@pytest.mark.parametrize("source", DEEP)
async def test_code_that_is_too_deep_fails_alone(source: str, sandbox: Sandbox) -> None:
    with pytest.raises(RenderFault, match=TOO_DEEP):
        await sandbox.render("eta", source, CONTEXT)


async def test_a_check_runs_nothing_of_a_bomb(sandbox: Sandbox) -> None:
    for source in [*ENDLESS, *EATERS]:
        await sandbox.check("eta", source)


async def test_a_check_of_code_that_is_too_deep_fails_alone(sandbox: Sandbox) -> None:
    for source in DEEP[2:]:
        with pytest.raises(TemplateFault, match=TOO_DEEP):
            await sandbox.check("eta", source)


async def test_a_full_batch_renders_within_the_limits(sandbox: Sandbox) -> None:
    """1,000 events of 16 MiB together, the most a trigger may hold."""
    event = {"type": "tool.result", "data": {"text": "abc\n" * 3800}}
    text = await sandbox.render("eta", "<%= JSON.stringify(it.events, null, 1) %>", {"events": [event] * 1000})
    assert len(text) > 16 * 1024 * 1024


@pytest.mark.parametrize("depth", [100, 240])
async def test_data_as_deep_as_intake_lets_through_renders(depth: int, sandbox: Sandbox) -> None:
    data: Any = []
    for _ in range(depth):
        data = [data]
    assert await sandbox.render("eta", "<%= JSON.stringify(it.d) %>", {"d": data}) == "[" * (depth + 1) + "]" * (
        depth + 1
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "while (true) {}",
        "z.string().describe((() => { for (;;) {} })())",
        "z.string().regex(/^(a+)+$/).describe(String(/^(a+)+$/.test('a'.repeat(40) + 'b')))",
        "(() => { let a = z.string(); for (;;) a = z.array(a); })()",
        "(() => { let a = z.null(); for (let i = 0; i < 60; i++) a = z.object({ a, b: a }); return a })()",
        "z.string().describe('x'.repeat(1e9))",
        "z.string().describe('x'.repeat(300_000))",
        "(() => { let a = z.null(); for (let i = 0; i < 5000; i++) a = a.array(); return a })()",
        "z.union(Array(1e7).fill(z.null()))",
        "z.object(" * 20_000 + ")" * 20_000,
    ],
)
async def test_a_zod_text_that_is_a_bomb_is_a_fault(text: str, sandbox: Sandbox) -> None:
    with pytest.raises(SchemaFault):
        await sandbox.zod_schema(text)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}, 1),
        ({"$ref": "#"}, {}),
    ],
)
async def test_a_schema_that_does_not_end_is_a_fault(schema: dict[str, Any], value: Any, sandbox: Sandbox) -> None:
    with pytest.raises(SchemaFault, match=r"without end|longer than 2 s"):
        await sandbox.validate(schema, value)


async def test_a_pattern_that_would_backtrack_for_ever_answers_in_time(sandbox: Sandbox) -> None:
    for pattern in (r"^(a+)+$", r"^(?=(a+)+$)", r"(a|aa)+$"):
        await sandbox.validate({"pattern": pattern}, "a" * 50 + "!")
        await sandbox.validate({"patternProperties": {pattern: {}}}, {"a" * 50 + "!": 1})
