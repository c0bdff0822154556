"""The worker process: one job a line on stdin, one reply a line on stdout; ends with its stdin.

A job is ``{"engine", "source", "context"}`` (``context`` null: only check), a reply ``{"text"}`` or
``{"fault", "line"}`` with ``"spent": true`` when the worker ends after it. The time limit is the kernel's
alarm, the memory limit the kernel's too, so no template can talk its way around them, and a worker whose
parent was killed does not outlive it by more than one job.

Run as ``python -I -m hankwatch.sandbox.worker``; imports as little as it can.
"""

import importlib
import json
import resource
import signal
import sys
from typing import Any

from hankwatch.core.contain import contain
from hankwatch.sandbox.limits import JOB_LIMIT_S, MEMORY_LIMIT_MB

ENGINES = ("jinja",)
"""Each is a module of this room with ``check(source)``, ``render(source, context)`` and ``explain(error)``."""

_REASON_CHARS = 500


def main() -> None:
    """Serve jobs until stdin ends or a job used the memory up."""
    memory = MEMORY_LIMIT_MB * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    engines = {name: importlib.import_module(f"hankwatch.sandbox.{name}") for name in ENGINES}
    for line in sys.stdin.buffer:
        if not line.endswith(b"\n"):
            break
        signal.setitimer(signal.ITIMER_REAL, JOB_LIMIT_S)
        reply = _reply(engines, line)
        frame = json.dumps(reply, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        signal.setitimer(signal.ITIMER_REAL, 0)
        sys.stdout.buffer.write(frame)
        sys.stdout.buffer.flush()
        if reply.get("spent"):
            break


def _reply(engines: dict[str, Any], frame: bytes) -> dict[str, Any]:
    job = json.loads(frame)
    engine = engines.get(job["engine"])
    if engine is None:
        return {"fault": f"the {job['engine']} engine is not supported by this version yet", "line": None}
    reply: dict[str, Any] = {}
    with contain(lambda error: reply.update(_fault(engine, error))):
        if job["context"] is None:
            engine.check(job["source"])
            reply["text"] = ""
        else:
            reply["text"] = engine.render(job["source"], job["context"])
    return reply


def _fault(engine: Any, error: Exception) -> dict[str, Any]:
    if isinstance(error, MemoryError):
        return {"fault": f"needed more than {MEMORY_LIMIT_MB} MB", "line": None, "spent": True}
    reason, line = engine.explain(error)
    return {"fault": reason[:_REASON_CHARS], "line": line}


if __name__ == "__main__":
    main()
