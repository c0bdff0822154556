"""The worker process: one job a line on stdin, one reply a line on stdout; ends with its stdin.

A job is ``TOOL CALL ARGUMENTS`` (a JSON list), a reply ``{"value"}`` or ``{"fault", "line"}`` with ``"spent":
true`` when the worker ends after it. The time limit is the kernel's alarm, the memory limit the kernel's too, so
no template can talk its way around them, and a worker whose parent was killed does not outlive it by more than
one job.

Run as ``python -I -m hankwatch.sandbox.worker``; imports as little as it can, and each tool with its first job.
"""

import gc
import importlib
import json
import resource
import signal
import sys
from typing import Any

from hankwatch.core.contain import contain
from hankwatch.sandbox.limits import JOB_LIMIT_S, MEMORY_LIMIT_MB

ENGINES = ("jinja", "eta")
"""Each is a module of this room with ``check(source)``, ``render(source, context)`` and ``explain(error)``."""
TOOLS = (*ENGINES, "zod", "schema")
"""Modules of this room whose calls are jobs; each has ``explain(error)``."""

_REASON_CHARS = 500


def main() -> None:
    """Serve jobs until stdin ends or a job used the memory up."""
    memory = MEMORY_LIMIT_MB * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for line in sys.stdin.buffer:
        if not line.endswith(b"\n"):
            break
        name, call, arguments = line.split(b" ", 2)
        tool = _tool(name.decode())
        signal.setitimer(signal.ITIMER_REAL, JOB_LIMIT_S)
        reply = _reply(tool, call.decode(), arguments)
        frame = json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.buffer.write(frame)
        sys.stdout.buffer.flush()
        if reply.get("spent"):
            break


def _tool(name: str) -> Any:
    if name not in TOOLS:
        raise ValueError(name)
    gc.disable()  # what an import makes stays: looking for garbage in it is a tenth of the worker's start
    try:
        return importlib.import_module(f"hankwatch.sandbox.{name}")
    finally:
        gc.freeze()
        gc.enable()


def _reply(tool: Any, call: str, arguments: bytes) -> dict[str, Any]:
    reply: dict[str, Any] = {}
    with contain(lambda error: reply.update(_fault(tool, error))):
        reply["value"] = getattr(tool, call)(*json.loads(arguments))
    return reply


def _fault(tool: Any, error: Exception) -> dict[str, Any]:
    if isinstance(error, MemoryError):
        return {"fault": f"needed more than {MEMORY_LIMIT_MB} MB", "line": None, "spent": True}
    reason, line = tool.explain(error)
    return {"fault": reason[:_REASON_CHARS], "line": line}


if __name__ == "__main__":
    main()
