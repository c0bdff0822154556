"""Templates, Zod texts and JSON Schemas run in a worker process that may be lost at any time."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import anyio
import anyio.abc
import orjson

from hankwatch.core.clock import Clock
from hankwatch.core.errors import ProcessNotStarted, RenderFault, SchemaFault, TemplateFault
from hankwatch.processes import Child, Line, spawn
from hankwatch.processes.limits import ends_within
from hankwatch.sandbox.limits import JOB_LIMIT_S, MAX_OUTPUT_BYTES

Engine = Literal["jinja", "eta"]

# The worker's own alarm ends a job; this only catches a worker that never took it.
_TAKEN_WITHIN_S = 10.0
# JSON writes a control character with six bytes.
_REPLY_CAP_BYTES = 6 * MAX_OUTPUT_BYTES + 1024
_ATTEMPTS = 2
_numbers = count(1)


@dataclass(frozen=True, slots=True, eq=False)
class _Worker:
    child: Child
    replies: AsyncIterator[Line]
    retired: anyio.Event = field(default_factory=anyio.Event)


@dataclass(frozen=True, slots=True)
class _Done:
    """What a job gave."""

    value: Any


@dataclass(frozen=True, slots=True)
class _Failed:
    """A job that gave nothing."""

    reason: str
    line: int | None = None


class Sandbox:
    """Does jobs, one at a time in the order of the calls; used as ``async with``.

    Each job has 2 s from when the worker takes it, 512 MB and 32 MiB of output; going over a limit fails that
    job alone. A worker that ends for another reason is replaced and its job tried once more. Leaving the
    block ends the worker. Any task may call; a cancelled call gives its worker up. ``clock`` is real time: the
    worker runs in it, so virtual time must not be moved past 10 s while a job is under way.
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._turn = anyio.Lock()
        self._worker: _Worker | None = None
        self._open = False
        self._tasks: anyio.abc.TaskGroup

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        self._open = True
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)

    async def check(self, engine: Engine, source: str) -> None:
        """Compile ``source``.

        Raises:
            TemplateFault: it does not parse, goes over a limit while compiling, or its engine is not installed.
        """
        outcome = await self._run(engine, "check", source)
        if isinstance(outcome, _Failed):
            raise TemplateFault(outcome.reason, outcome.line)

    async def render(self, engine: Engine, source: str, context: Mapping[str, Any]) -> str:
        """The text of ``source`` over ``context``, which is plain JSON data and never a template itself.

        Raises:
            RenderFault: anything that keeps it from giving a text, limits and lost workers included.
        """
        outcome = await self._run(engine, "render", source, dict(context))
        if isinstance(outcome, _Failed):
            raise RenderFault(outcome.reason, outcome.line)
        text: str = outcome.value
        return text

    async def zod_schema(self, text: str) -> dict[str, Any]:
        """The JSON Schema of a Zod text: an expression, or a module that exports one; see ``zod``.

        Raises:
            SchemaFault: it uses what has no counterpart, does not parse, or goes over a limit; with its line.
        """
        schema: dict[str, Any] = await self._schema_job("zod", "json_schema", text)
        return schema

    async def check_schema(self, schema: Mapping[str, Any]) -> None:
        """Hold ``schema`` to JSON Schema itself, 2020-12 or draft-07.

        Raises:
            SchemaFault: it is no schema, a ``$ref`` leaves the document, leads nowhere or to itself, a pattern is no regex.
        """
        await self._schema_job("schema", "check", dict(schema))

    async def validate(self, schema: Mapping[str, Any], value: Any) -> list[str]:
        """What is wrong with ``value``, each as ``pointer: message``, at most 20; empty when it is valid.

        Raises:
            SchemaFault: no answer within the limits, or ``schema`` fails ``check_schema``.
        """
        errors: list[str] = await self._schema_job("schema", "validate", dict(schema), value)
        return errors

    async def _schema_job(self, tool: str, call: str, *arguments: Any) -> Any:
        outcome = await self._run(tool, call, *arguments)
        if isinstance(outcome, _Failed):
            raise SchemaFault(outcome.reason, outcome.line)
        return outcome.value

    async def _run(self, tool: str, call: str, *arguments: Any) -> _Done | _Failed:
        try:
            frame = f"{tool} {call} ".encode() + orjson.dumps(arguments, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError as error:
            return _Failed(f"what was given is not plain JSON data: {error}")
        async with self._turn:
            for _ in range(_ATTEMPTS):
                if not self._open:
                    return _Failed("the sandbox is closed")
                try:
                    worker = self._worker or await self._tasks.start(self._own_worker)
                except ProcessNotStarted as error:
                    return _Failed(str(error))
                outcome = await self._attempt(worker, frame)
                if outcome is not None:
                    return outcome
        return _Failed(f"the sandbox worker was lost twice: {worker.child.stderr_tail()[-200:] or 'killed'}")

    async def _attempt(self, worker: _Worker, frame: bytes) -> _Done | _Failed | None:
        """The outcome of one job, or None when the worker was lost; keeps the worker only when it is in step."""
        self._worker = None
        reply: Line | None = None
        exit_signal: int | None = None

        async def exchange() -> None:
            nonlocal reply, exit_signal
            if await worker.child.send(frame):
                reply = await anext(worker.replies, None)
            if reply is None:
                exit_signal = (await worker.child.wait()).signal

        try:
            if not await ends_within(self._clock, _TAKEN_WITHIN_S + JOB_LIMIT_S, exchange):
                return _Failed(f"the sandbox worker did not take the job within {_TAKEN_WITHIN_S:g} s")
            if exit_signal == signal.SIGALRM:
                return _Failed(f"took longer than {JOB_LIMIT_S:g} s")
            if reply is None or not reply.terminated:
                return None
            answer = orjson.loads(reply.data)
            if not answer.get("spent"):
                self._worker = worker
            return _Done(answer["value"]) if "value" in answer else _Failed(answer["fault"], answer["line"])
        finally:
            if self._worker is not worker:
                worker.retired.set()

    async def _own_worker(self, *, task_status: anyio.abc.TaskStatus[_Worker]) -> None:
        # A Python that was built with a shared library is found by this variable alone on some systems.
        env = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
        env["TZ"] = "UTC"  # dates print alike everywhere
        marker = f"sandbox/{os.getpid()}/{next(_numbers)}"
        argv = (sys.executable, "-I", "-m", "hankwatch.sandbox.worker")
        async with spawn(
            argv, cwd=Path("/"), env=env, marker=marker, clock=self._clock, stdin=True, cap_bytes=_REPLY_CAP_BYTES
        ) as child:
            worker = _Worker(child, child.lines())
            task_status.started(worker)
            await worker.retired.wait()
