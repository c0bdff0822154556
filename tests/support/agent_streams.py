"""The recorded agent streams, read as the runner reads them; ``python -m tests.support.agent_streams`` rewrites the goldens."""

import gzip
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hankwatch.agents.detect import DetectingDialect, detect
from hankwatch.agents.evidence import Evidence
from hankwatch.agents.outcome import Outcome, decide
from hankwatch.agents.program import Dialect
from hankwatch.agents.translate import Translator
from hankwatch.events.envelope import EventData
from hankwatch.events.payload import Payload

FOLDER = Path(__file__).parents[2] / "fixtures" / "agent-streams"
GOLDEN = FOLDER / "golden"
NAMES = tuple(sorted(path.name.split(".")[0] for path in FOLDER.glob("*.jsonl*")))
"""Every stream as ``<program>-<scenario>``."""

STEP_MS = 5
"""Between lines that bear no stamp."""


@dataclass(frozen=True, slots=True)
class Played:
    """A stream after its last line."""

    program: str | None
    payloads: list[Payload]
    counts: Counter[str]
    evidence: Evidence
    states_result: bool

    @property
    def events(self) -> list[tuple[str, EventData]]:
        return [(payload.TYPE, payload.dump()) for payload in self.payloads]

    def of(self, event_type: str) -> list[EventData]:
        return [data for kind, data in self.events if kind == event_type]

    def outcome(self, exit_code: int = 0) -> Outcome:
        return decide(self.evidence.ending(exit_code=exit_code, states_result=self.states_result))


def stream_lines(name: str) -> list[bytes]:
    """The lines of a stream without their newlines."""
    plain = FOLDER / f"{name}.jsonl"
    data = plain.read_bytes() if plain.exists() else gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes())
    return data.split(b"\n")


def raw_records(name: str) -> list[dict[str, Any]]:
    """The JSON objects of a stream, read by the standard library alone; lines of plain text are left out."""
    return [json.loads(line) for line in stream_lines(name) if line.startswith(b"{")]


def play(lines: list[bytes], dialect: Dialect | None = None, *, codon_id: str = "codon") -> Played:
    """Feed lines to a dialect and its signals to a translator; stamps come from the lines."""
    dialect = dialect if dialect is not None else DetectingDialect()
    translator, evidence = Translator(codon_id), Evidence()
    payloads: list[Payload] = []
    at_ms = 0
    for line in lines:
        signals = dialect.feed(line)
        at_ms = max(at_ms, dialect.stamp_ms or at_ms + STEP_MS)
        for signal in signals:
            evidence.note(signal)
            payloads += translator.translate(signal, at_ms)
    for signal in dialect.finish():
        evidence.note(signal)
        payloads += translator.translate(signal, at_ms)
    payloads += translator.finish()
    return Played(detect(lines), payloads, +translator.counts, evidence, dialect.states_result)


def golden(played: Played) -> dict[str, Any]:
    """A stream's events in their compact form: type and key fields, one short list each."""
    return {
        "program": played.program,
        "outcome": {f"exit {code}": played.outcome(code).status for code in (0, 1)},
        "counts": dict(sorted(played.counts.items())),
        "events": [_compact(kind, data) for kind, data in played.events],
    }


def golden_text(played: Played) -> str:
    """The golden file: one event per line."""
    document = golden(played)
    events = ",\n".join("  " + json.dumps(event, ensure_ascii=True) for event in document.pop("events"))
    head = json.dumps(document, ensure_ascii=True)[:-1]
    return f'{head}, "events": [\n{events}\n]}}\n' if events else f'{head}, "events": []}}\n'


def _compact(kind: str, data: EventData) -> list[Any]:
    match kind:
        case "assistant.action" if data["action"] == "tool_use":
            return ["tool_use", data["toolName"], _tail(data["toolUseId"]), _tail(data.get("parentToolUseId"))]
        case "assistant.action":
            return [data["action"], data["content"][:80], len(data["content"]), _tail(data.get("parentToolUseId"))]
        case "tool.result":
            flags = [data["outcome"], data["isError"], data["truncated"], data["originalLength"]]
            return ["tool.result", data["toolName"], _tail(data["toolUseId"]), *flags, data["fingerprint"]]
        case "token.usage":
            tokens = [data[f"{name}Tokens"] for name in ("input", "output", "cacheCreation", "cacheRead")]
            cost = data["totalCost"]
            return [kind, *tokens, None if cost is None else round(cost, 9), *(["final"] if "isFinal" in data else [])]
        case _:
            return [kind, data.get("code") or data.get("severity"), data["message"][:120]]


def _tail(call_id: str | None) -> str | None:
    return call_id and call_id[-12:]


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for stream in NAMES:
        (GOLDEN / f"{stream}.json").write_text(golden_text(play(stream_lines(stream))), encoding="utf-8")
