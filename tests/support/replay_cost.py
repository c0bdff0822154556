"""Run by path: replays a journal under sentinels that hardly ever fire, and prints what it took as JSON."""

import json
import sys
import time
from pathlib import Path

import anyio
from tests.support.replays import replayed
from tests.support.sentinels import on, source

from hankwatch.llm.client import ModelReply, ModelRequest
from hankwatch.testing import ScriptedModel


class Forgetful(ScriptedModel):
    """Remembers no request: the replay's own memory is what is measured."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await super().complete(request)
        self.requests.clear()
        return reply


async def cost(path: Path, out: Path, sentinels: int) -> dict[str, float]:
    """Seconds of CPU, events, fires and peak memory of one replay."""
    watchers = [source(f"s{number}", trigger=on("tool.result", isError=True)) for number in range(sentinels)]
    began_s = time.process_time()
    result = await replayed(path, out, {"*": watchers} if watchers else None, model=Forgetful("seen"))
    return {
        "cpu_s": time.process_time() - began_s,
        "events": result.events,
        "fires": sum(result.fires.values()),
        "peak_kb": _peak_kb(),
    }


def _peak_kb() -> int:
    # Not ru_maxrss: a process begins with that of the one that started it.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


if __name__ == "__main__":
    journal, out, count = sys.argv[1:]
    print(json.dumps(anyio.run(cost, Path(journal), Path(out), int(count))))
