"""The worker behind the templates: order, loss, cancellation, its own small start."""

import os
import signal
import subprocess
import sys

import anyio
import pytest
from tests.support.children import flowing

from hankwatch.core.clock import SystemClock, VirtualClock
from hankwatch.core.errors import RenderFault, SchemaFault, TemplateFault
from hankwatch.processes import marked_pids
from hankwatch.sandbox.sandbox import Sandbox

OURS = f"sandbox/{os.getpid()}"


async def test_jobs_are_done_in_the_order_of_the_calls() -> None:
    done: list[int] = []
    async with Sandbox(clock=SystemClock()) as sandbox:

        async def job(number: int) -> None:
            assert await sandbox.render("jinja", "{{ n }}", {"n": number}) == str(number)
            done.append(number)

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(job, number)
    assert done == list(range(20))


async def test_one_worker_serves_many_jobs_and_ends_with_the_block() -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        await sandbox.check("jinja", "a")
        first = marked_pids(OURS)
        await sandbox.check("jinja", "b")
        assert len(first) == 1
        assert marked_pids(OURS) == first
    assert marked_pids(OURS) == []


async def test_no_worker_is_started_before_the_first_job() -> None:
    async with Sandbox(clock=SystemClock()):
        assert marked_pids(OURS) == []


async def test_a_worker_that_died_is_replaced_and_the_job_done() -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        await sandbox.check("jinja", "a")
        (worker,) = marked_pids(OURS)
        os.kill(worker, signal.SIGKILL)
        assert await sandbox.render("jinja", "{{ x }}", {"x": "still here"}) == "still here"
        assert marked_pids(OURS) != [worker]


async def test_a_job_whose_worker_is_lost_twice_fails() -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        lost: set[int] = set()

        async def kill_each() -> None:
            while len(lost) < 2:
                for worker in marked_pids(OURS):
                    os.kill(worker, signal.SIGKILL)
                    lost.add(worker)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(kill_each)
            with pytest.raises(RenderFault, match="lost twice"):
                await sandbox.render("jinja", "x", {})


async def test_a_cancelled_job_leaves_the_next_one_in_step() -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        await sandbox.check("jinja", "a")
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sandbox.render, "jinja", "{% for a in range(99999) %}{{ a }}{% endfor %}", {})
                await anyio.wait_all_tasks_blocked()
                scope.cancel()
        assert await sandbox.render("jinja", "{{ x }}", {"x": 1}) == "1"


async def test_a_context_that_is_not_plain_json_is_refused() -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        with pytest.raises(RenderFault, match="not plain JSON"):
            await sandbox.render("jinja", "{{ x }}", {"x": object()})


async def test_a_text_that_is_not_unicode_is_refused() -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        for source in (r"{{ '\ud800' }}", r"{{ {}['\ud800'] }}"):
            with pytest.raises(RenderFault):
                await sandbox.render("jinja", source, {})


async def test_zod_texts_and_schemas_are_jobs_too() -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        schema = await sandbox.zod_schema("z.object({ b: z.string(), a: z.number() }).strict()")
        assert list(schema["properties"]) == ["b", "a"]
        await sandbox.check_schema(schema)
        assert await sandbox.validate(schema, {"b": "x", "a": 1}) == []
        assert await sandbox.validate(schema, {"b": 1, "a": 1}) == ["/b: 1 is not of type 'string'"]


async def test_schema_faults_have_their_reason_and_line() -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        with pytest.raises(SchemaFault, match=r"line 2: z\.lazy is not supported"):
            await sandbox.zod_schema("z.object({\n  a: z.lazy(() => z.null()) })")
        with pytest.raises(SchemaFault, match="/type"):
            await sandbox.check_schema({"type": "no such type"})
        with pytest.raises(SchemaFault, match="/type"):
            await sandbox.validate({"type": "no such type"}, 1)
        with pytest.raises(SchemaFault, match="not plain JSON"):
            await sandbox.validate({}, object())


async def test_a_syntax_error_in_an_eta_prompt_is_told_with_its_line() -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        with pytest.raises(TemplateFault, match="line 2: unclosed tag"):
            await sandbox.check("eta", "one\n<% two")


async def test_dates_print_alike_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    async with Sandbox(clock=SystemClock()) as sandbox:
        assert await sandbox.render("eta", "<%= new Date(0).getHours() %>", {}) == "0"


async def test_a_closed_sandbox_refuses_jobs() -> None:
    async with Sandbox(clock=SystemClock()) as sandbox:
        pass
    with pytest.raises(RenderFault, match="closed"):
        await sandbox.render("jinja", "x", {})


async def test_closing_fails_the_job_under_way() -> None:
    async with anyio.create_task_group() as tasks, Sandbox(clock=SystemClock()) as sandbox:
        await sandbox.check("jinja", "a")

        async def job() -> None:
            with pytest.raises(RenderFault, match="closed"):
                await sandbox.render("jinja", "{% for a in range(99999) %}{{ a }}{% endfor %}" * 99, {})

        tasks.start_soon(job)
        await anyio.wait_all_tasks_blocked()


async def test_a_worker_that_never_takes_its_job_is_given_up() -> None:
    clock = VirtualClock()
    async with Sandbox(clock=clock) as sandbox:
        await sandbox.check("jinja", "a")
        (worker,) = marked_pids(OURS)
        os.kill(worker, signal.SIGSTOP)
        async with flowing(clock, step_s=0.1):
            with pytest.raises(RenderFault, match="did not take the job"):
                await sandbox.render("jinja", "x", {})
        assert await sandbox.render("jinja", "x", {}) == "x"


async def test_virtual_time_that_stands_still_does_not_hold_a_job_up() -> None:
    async with Sandbox(clock=VirtualClock()) as sandbox:
        assert await sandbox.render("jinja", "{{ 1 + 1 }}", {}) == "2"


def test_the_worker_imports_nothing_heavy() -> None:
    code = "import sys, hankwatch.sandbox.worker, hankwatch.sandbox.jinja; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    heavy = {"anyio", "asyncio", "pydantic", "orjson", "litellm", "rich", "typer", "jsonschema", "quickjs", "re2"}
    assert not heavy & set(run.stdout.split())
