"""Replays in this process, and what is compared of them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.sentinels import InProcessSandbox

from hankwatch.bench.replay import Replayed, ReplayOptions, replay
from hankwatch.bench.sources import Source, open_source
from hankwatch.core.clock import Clock
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import Event
from hankwatch.llm.client import ModelClient
from hankwatch.sentinels.source import SentinelSource
from hankwatch.stream.reader import JournalReader
from hankwatch.testing import ScriptedModel

Fire = tuple[str, str, str, tuple[str, ...]]
"""Sentinel, cause, instant, event ids."""


async def replayed(
    source: Source | Path,
    out: Path,
    sentinels: Mapping[str, Sequence[SentinelSource]] | None = None,
    *,
    model: ModelClient | None = None,
    clock: Clock | None = None,
    on_progress: Any = None,
    **options: Any,
) -> Replayed:
    """A deterministic replay; with ``sentinels`` a scripted model answers them."""
    if isinstance(source, Path):
        source = open_source(str(source), Path("/nowhere"))
    mode: Any = "skip" if sentinels is None else "cassette"
    return await replay(
        source,
        sentinels or {},
        out,
        client=model or ScriptedModel("seen"),
        sandbox=InProcessSandbox(),
        redactor=Redactor(enabled=False),
        options=ReplayOptions(**{"sentinels": mode, "deterministic": True, **options}),
        clock=clock,
        on_progress=on_progress,
    )


def journal(root: Path) -> list[Event]:
    """The whole journal of an execution."""
    reader = JournalReader(root / ".hankweave" / "events" / "events.jsonl")
    found = list(reader.read())
    assert reader.bad_lines == 0
    return found


def fires_of(events: Sequence[Event]) -> list[Fire]:
    """Every trigger, in order of instant and sentinel."""
    found = [event.data for event in events if event.type == "sentinel.triggered"]
    told = [(data["sentinelId"], data["cause"], data["at"], tuple(data["eventIds"])) for data in found]
    return sorted(told, key=lambda fire: (fire[2], fire[0]))


def written(root: Path) -> dict[str, bytes]:
    """Journal and reports by path."""
    files = [path for path in root.rglob("*") if path.is_file() and path.name != "runtime.lock"]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}
