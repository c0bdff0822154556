"""Sentinels over a virtual stream: a manager, a scripted model, templates rendered in this process."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.source import Document
from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import HankwatchError, RenderFault, SchemaFault
from hankwatch.events.run import Info
from hankwatch.llm.client import ModelClient
from hankwatch.sandbox import eta, jinja, zod
from hankwatch.sandbox import schema as schemas
from hankwatch.sandbox.sandbox import Engine, Sandbox
from hankwatch.sentinels.config import SentinelEntry
from hankwatch.sentinels.manager import CodonScope, SentinelManager
from hankwatch.sentinels.retry import Retried, retry
from hankwatch.sentinels.source import SentinelSource, read_entry
from hankwatch.stream.reader import JournalReader
from hankwatch.testing import ScriptedModel, VirtualStream, open_test_stream

IMMEDIATE = {"strategy": "immediate"}


def on(*types: str, **conditions: Any) -> dict[str, Any]:
    """An event trigger on these types whose data has these values."""
    wanted = [{"path": path, "operator": "equals", "value": value} for path, value in conditions.items()]
    return {"type": "event", "on": list(types), "conditions": wanted}


def source(id: str = "narrator", /, **config: Any) -> SentinelSource:  # noqa: A002 - the field's name
    """An inline sentinel, on every ``info`` at once unless ``config`` (camelCase keys) says otherwise.

    None leaves a key out; ``settings`` are the codon entry's; ``hank_dir`` is what its refs are relative to.
    """
    settings: Mapping[str, Any] | None = config.pop("settings", None)
    hank_dir: Path = config.pop("hank_dir", Path("/nowhere"))
    whole = {
        "id": id,
        "name": id.capitalize(),
        "trigger": on("info"),
        "execution": IMMEDIATE,
        "model": "scripted/model",
        "userPromptText": "What happened?",
        **config,
    }
    whole = {key: value for key, value in whole.items() if value is not None}
    return entry_source({"sentinelConfig": whole, **({"settings": settings} if settings else {})}, hank_dir)


def entry_source(entry: Mapping[str, Any], hank_dir: Path) -> SentinelSource:
    """What a codon's entry names."""
    document = Document.from_value({"entry": dict(entry)}, "hank.json")
    made = SentinelEntry.model_validate(entry)
    return read_entry(made, hank_dir=hank_dir, document=document, pointer="/entry", diagnostics=Diagnostics())


def scope(codon_id: str = "build") -> CodonScope:
    """A codon."""
    return CodonScope(codon_id, codon_id.partition("#")[0], codon_id.capitalize(), None, "2000-01-01T00:00:00.000Z")


class InProcessSandbox(Sandbox):
    """Renders here: a worker process per test would cost more than the test."""

    def __init__(self) -> None:
        super().__init__(clock=VirtualClock())

    async def check(self, engine: Engine, source: str) -> None:
        eta.check(source) if engine == "eta" else jinja.check(source)

    async def render(self, engine: Engine, source: str, context: Mapping[str, Any]) -> str:
        if "{" not in source and "<%" not in source:
            return source  # most tests ask nothing of their prompt, and compiling one costs milliseconds
        try:
            return eta.render(source, context) if engine == "eta" else jinja.render(source, context)
        except HankwatchError:
            raise
        except Exception as error:
            raise RenderFault(str(error)) from error

    async def zod_schema(self, text: str) -> dict[str, Any]:
        try:
            return zod.json_schema(text)
        except Exception as error:
            raise SchemaFault(*zod.explain(error)) from error

    async def check_schema(self, schema: Mapping[str, Any]) -> None:
        schemas.check(dict(schema))

    async def validate(self, schema: Mapping[str, Any], value: Any) -> list[str]:
        return schemas.validate(dict(schema), value)


@dataclass
class Desk:
    """Everything a test of sentinels looks at."""

    root: Path
    """The execution directory."""
    stream: VirtualStream
    manager: SentinelManager
    model: ModelClient
    clock: VirtualClock

    @property
    def journal_path(self) -> Path:
        return self.root / ".hankweave" / "events" / "events.jsonl"

    def info(self, text: str = "x", after_ms: int = 0) -> str:
        """Emit an ``info``; its event id."""
        self.stream.advance(after_ms)
        (event,) = self.stream.emit(Info(message=text))
        return event.id

    def reader(self) -> JournalReader:
        return JournalReader(self.journal_path)

    async def retry(self, sources: Mapping[str, Sequence[SentinelSource]], **options: Any) -> list[Retried]:
        """Carry out again what failed."""
        return await retry(
            self.stream,
            self.model,
            InProcessSandbox(),
            managed_dir=self.root / ".hankweave",
            agent_root=self.root / "agentRoot",
            clock=self.clock,
            sources=sources,
            **options,
        )

    def report(self, sentinel_id: str = "narrator") -> Path:
        """The only report of a sentinel in its managed folder."""
        (path,) = (self.root / ".hankweave" / "sentinels" / "outputs" / sentinel_id).iterdir()
        return path

    def said(self, *types: str, sentinel_id: str | None = None) -> list[dict[str, Any]]:
        """The data of the sentinel events of these types (without ``sentinel.``), in journal order."""
        found = self.stream.of_type(*(f"sentinel.{name}" for name in types))
        return [event.data for event in found if sentinel_id in {None, event.data["sentinelId"]}]

    def triggers(self, sentinel_id: str | None = None) -> list[list[str]]:
        """The event ids of each trigger that was carried out."""
        return [data["eventIds"] for data in self.said("triggered", sentinel_id=sentinel_id)]


@asynccontextmanager
async def desk(
    root: Path,
    answers: Any = "seen",
    *,
    model: ModelClient | None = None,
    sandbox: Sandbox | None = None,
    journaled: bool = True,
    persistence: bool = True,
) -> AsyncIterator[Desk]:
    """A running manager; ``answers`` are ``ScriptedModel``'s."""
    (root / "agentRoot").mkdir(parents=True, exist_ok=True)
    managed = root / ".hankweave"
    stream = open_test_stream(managed / "events" / "events.jsonl" if journaled else None)
    clock = VirtualClock()
    client = model or ScriptedModel(answers, clock=clock)
    manager = SentinelManager(
        stream,
        client,
        sandbox or InProcessSandbox(),
        managed_dir=managed,
        agent_root=root / "agentRoot",
        clock=clock,
        persistence=persistence,
    )
    try:
        async with manager:
            yield Desk(root, stream, manager, client, clock)
    finally:
        stream.close()
