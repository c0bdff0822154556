"""Templates that would take the machine fail as one job, and the next job is served (packages: Jinja sandbox)."""

import os
import select
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator

import pytest

from hankwatch.core.clock import SystemClock
from hankwatch.core.errors import RenderFault, TemplateFault
from hankwatch.sandbox.sandbox import Sandbox

MEMORY_BOMBS = [
    "{{ 'a' * 10 ** 9 }}",
    "{{ [0] * 10 ** 9 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '{:>1000000000}'.format('x') }}",
    "{{ 'x'.ljust(10 ** 9) }}",
    "{{ 'x'|center(10 ** 9) }}",
    "{% set n = namespace(s='xx') %}{% for i in range(40) %}{% set n.s = n.s + n.s %}{% endfor %}",
    "{% set n = namespace(s='xx') %}{% for i in range(40) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
    "{{ ('x\\n' * 10 ** 6)|indent(1000) }}",
]
ENDLESS = [
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "{{ (3 ** 3000000) ** 30 % 7 }}",
]
OTHER_BOMBS = [
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "recursive without end"),
    ("{{ range(10 ** 9)|list }}", "Range too big"),
    ("{% for a in range(500) %}{{ 'x' * 100000 }}{% endfor %}", "longer than 32 MiB"),
    ("{{ " + "(" * 500 + "1" + ")" * 500 + " }}", "nested too deeply"),
]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """A sandbox that must still serve after the test."""
    async with Sandbox(clock=SystemClock()) as sandbox:
        yield sandbox
        assert await sandbox.render("jinja", "{{ x }}", {"x": "served"}) == "served"


@pytest.mark.parametrize("source", MEMORY_BOMBS)
async def test_a_template_that_eats_memory_fails_alone(source: str, sandbox: Sandbox) -> None:
    with pytest.raises(RenderFault, match=r"more than 512 MB|longer than 2 s"):  # a busy machine may need longer
        await sandbox.render("jinja", source, {})


@pytest.mark.slow
@pytest.mark.parametrize("source", ENDLESS)
async def test_a_template_that_does_not_end_is_ended_after_two_seconds(source: str, sandbox: Sandbox) -> None:
    with pytest.raises(RenderFault, match="longer than 2 s"):
        await sandbox.render("jinja", source, {})


@pytest.mark.parametrize(("source", "reason"), OTHER_BOMBS)
async def test_a_template_over_another_bound_is_told_which(source: str, reason: str, sandbox: Sandbox) -> None:
    with pytest.raises(RenderFault, match=reason):
        await sandbox.render("jinja", source, {})


async def test_a_check_runs_nothing_of_a_bomb(sandbox: Sandbox) -> None:
    for source in [*MEMORY_BOMBS, *ENDLESS]:
        await sandbox.check("jinja", source)


@pytest.mark.slow
async def test_a_template_that_takes_too_long_to_compile_fails_the_check(sandbox: Sandbox) -> None:
    with pytest.raises(TemplateFault, match=r"longer than 2 s|more than 512 MB"):
        await sandbox.check("jinja", "{{ x }}" * 1_000_000)


async def test_a_full_batch_renders_within_the_limits(sandbox: Sandbox) -> None:
    """1,000 events of 16 MiB together, the most a trigger may hold."""
    event = {"type": "tool.result", "data": {"text": "abc\n" * 3800}}
    text = await sandbox.render("jinja", "{% for e in events %}{{ e }}\n{% endfor %}", {"events": [event] * 1000})
    assert text.count("\n") == 1000
    assert len(text) > 16 * 1024 * 1024


@pytest.fixture
def parent_in_a_job() -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process whose sandbox renders without end, and the pid of its worker."""
    code = f"""
        import anyio, os
        from hankwatch.core.clock import SystemClock
        from hankwatch.processes import marked_pids
        from hankwatch.sandbox.sandbox import Sandbox

        async def main():
            async with Sandbox(clock=SystemClock()) as sandbox:
                await sandbox.check("jinja", "x")
                print(*marked_pids(f"sandbox/{{os.getpid()}}"), flush=True)
                await sandbox.render("jinja", {ENDLESS[0]!r}, {{}})

        anyio.run(main)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        yield parent, int(parent.stdout.readline())


@pytest.mark.slow
def test_no_worker_outlives_a_parent_that_was_killed(parent_in_a_job: tuple[subprocess.Popen[bytes], int]) -> None:
    parent, worker = parent_in_a_job
    handle = os.pidfd_open(worker)
    try:
        parent.kill()
        ended, _, _ = select.select([handle], [], [], 10)
        assert ended
    finally:
        os.close(handle)
