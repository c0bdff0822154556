"""Stock sentinels and the recordings that show them; ``HANKWATCH_UPDATE_GOLDEN=1`` writes what is expected anew."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from hankwatch.bench.attempt import Attempt, Fire
from hankwatch.bench.importing import import_journal
from hankwatch.bench.replay import EVERYTHING, ReplayOptions, replay
from hankwatch.bench.sources import open_source
from hankwatch.config.diagnostics import Diagnostics
from hankwatch.config.resources import resource
from hankwatch.core.redaction import Redactor
from hankwatch.events.codec import decode_line, encode_line
from hankwatch.events.envelope import Event, format_stamp
from hankwatch.llm.call import Call
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import ModelReply, ModelRequest
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.config import SentinelConfig
from hankwatch.sentinels.source import SentinelSource, read_config_file
from hankwatch.testing import ScriptedModel

FIXTURES = Path(__file__).parents[2] / "fixtures"
STOCK = resource("sentinels")
IDS = tuple(sorted(path.parent.name for path in STOCK.glob("*/sentinel.json")))


@dataclass(frozen=True, slots=True)
class Fixture:
    """One stock sentinel's recording, and what a model might answer about it."""

    id: str
    recording: Path
    stretch: float
    """What the gaps between the recording's events are multiplied by: its agent was faster than any real model."""
    answers: tuple[str, ...]
    """One for each fire, written by hand."""

    @property
    def folder(self) -> Path:
        return FIXTURES / "stock" / self.id

    def events(self, folder: Path, stretch: float | None = None) -> list[Event]:
        """The recording as a journal's events; ``folder`` is for passing files."""
        path = folder / "imported.jsonl"
        path.unlink(missing_ok=True)
        import_journal(open_source(str(self.recording), folder, codon=self._codon), path, Redactor(enabled=False))
        events = [decode_line(line, received_ms=0).event for line in path.read_bytes().splitlines()]
        by = self.stretch if stretch is None else stretch
        return [_at(event, round(events[0].at_ms + (event.at_ms - events[0].at_ms) * by)) for event in events]

    @property
    def _codon(self) -> str | None:
        return None if self.recording.name.endswith(".events.jsonl") else "recorded-codon"

    def fires(self, folder: Path) -> Iterator[Fire | Attempt]:
        """What ``try`` finds: each fire, then the attempt with its counts."""
        journal = folder / "journal.jsonl"
        journal.write_bytes(b"".join(map(encode_line, self.events(folder))))
        attempt = Attempt(config_of(self.id))
        yield from attempt.fires(open_source(str(journal), folder), Redactor(enabled=False))
        yield attempt


def fixture(stock_id: str) -> Fixture:
    """The fixture of a stock sentinel."""
    value = json.loads((FIXTURES / "stock" / stock_id / "fixture.json").read_text(encoding="utf-8"))
    return Fixture(stock_id, FIXTURES / value["recording"], value.get("stretch", 1), tuple(value["answers"]))


def source_of(stock_id: str) -> SentinelSource:
    """A stock sentinel read from its file; a fault of it fails the test."""
    diagnostics = Diagnostics()
    source = read_config_file(STOCK / stock_id / "sentinel.json", diagnostics)
    assert not diagnostics.items, [d.text() for d in diagnostics]
    return source


def config_of(stock_id: str) -> SentinelConfig:
    config = source_of(stock_id).config
    assert config is not None
    return config


class Answering(ScriptedModel):
    """Gives a fixture's answers, and keeps each call as a line of a call log."""

    check = ModelCatalog({}).info

    def __init__(self, answers: Sequence[str]) -> None:
        super().__init__(list(answers), cost_usd=None)
        self.log: list[bytes] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await super().complete(request)
        call = Call(f"call-{len(self.requests)}", request, outcome=reply)
        self.log.append(orjson.dumps(call.line()) + b"\n")
        return reply


async def check_files(shown: Fixture, folder: Path, sandbox: Sandbox) -> dict[str, bytes]:
    """The files that a fixture's check stands on, made of its recording and answers: name to content."""
    recording = b"".join(map(encode_line, shown.events(folder)))
    journal = folder / "recording.jsonl"
    journal.write_bytes(recording)
    model = Answering(shown.answers)
    await replay(
        open_source(str(journal), folder),
        {EVERYTHING: [source_of(shown.id)]},
        folder / "replayed",
        client=model,
        sandbox=sandbox,
        redactor=Redactor(),
        options=ReplayOptions("live"),
    )
    calls = {"calls.jsonl": b"".join(model.log)}
    return calls if recording == shown.recording.read_bytes() else {"recording.jsonl": recording, **calls}


def assert_text(path: Path, text: str) -> None:
    """The file at ``path`` says exactly this."""
    assert_bytes(path, text.encode())


def assert_bytes(path: Path, data: bytes) -> None:
    """The file at ``path`` holds exactly this."""
    if os.environ.get("HANKWATCH_UPDATE_GOLDEN"):
        path.write_bytes(data)
    assert data.decode() == path.read_text(encoding="utf-8")


def _at(event: Event, at_ms: int) -> Event:
    return Event(event.id, format_stamp(at_ms), event.type, event.data, at_ms)
