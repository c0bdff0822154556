"""A journal's events folded into the facts of one run."""

from collections.abc import Mapping
from typing import Any

from hankwatch.core.contain import contain
from hankwatch.events.envelope import Event, EventData
from hankwatch.events.stamps import parse_stamp
from hankwatch.pages.bins import Bins
from hankwatch.pages.budget import budget_facts
from hankwatch.pages.codons import ToldCodons, of_record
from hankwatch.pages.facts import (
    AGENT_SPENDING,
    BOOKKEEPING_LANE,
    NANO,
    OTHER_LANE,
    SENTINEL_SPENDING,
    Failure,
    Intervention,
    Moment,
    RunFacts,
)
from hankwatch.pages.fires import FireFold, cost_of, count_of
from hankwatch.pages.gist import gist
from hankwatch.pages.kept import Kept, Tally
from hankwatch.pages.limits import Limits
from hankwatch.pages.visible import Excerpt
from hankwatch.pages.words import Cost
from hankwatch.runner.state import RunRecord, RunState, fold

_BOOKKEEPING = frozenset({"state.transition", "state.snapshot", "token.usage", "filetree.updated", "server.idle"})
_ACTIONS = {"thinking": "thinking", "message": "messages", "tool_use": "tool calls"}
_LANES = {"file.updated": "file changes", "rig.output": "rig output"}
_NOTABLE_TYPES = frozenset(
    {
        "codon.extended",
        "loop.iteration.completed",
        "rig.setup.completed",
        "rig.setup.failed",
        "journal.repaired",
    }
)
_NOTABLE_FAMILIES = frozenset({"archive", "rollback", "watch"})


class RunFold:
    """Folds a journal's events, in order, into the facts of one run.

    Memory does not grow with the number of events: what a page shows is kept, the rest is counted.
    """

    def __init__(self, run: str | None = None, limits: Limits | None = None) -> None:
        self._wanted = run
        self._limits = limits or Limits()
        self._state = RunState()
        self._within = run is None
        self._ended: dict[str, str] = {}
        self._begin()

    def _begin(self) -> None:
        limits = self._limits
        half = limits.problems // 2
        self._facts = RunFacts(
            limits,
            types=Tally(limits.names),
            tools=Tally(limits.names),
            files=Tally(limits.names),
            lanes=Tally(limits.names),
            failures=Kept(half, half),
            interventions=Kept(half, half),
            moments=Kept(limits.moments // 2, limits.moments // 2),
        )
        self._fires = FireFold(limits)
        self._told = ToldCodons(limits.codons)
        self._models: dict[str, str] = {}
        self._ignored: set[str] = set()
        self._spent = ("", 0.0)

    def take(self, event: Event) -> None:
        """The next event of the journal."""
        kind = str(event.data.get("transitionType")) if event.type == "state.transition" else ""
        if kind:
            with contain(self._note_misfit):  # a foreign journal can say anything
                self._state = fold((event,), self._state)
            self._note_end(kind, event.data)
        if kind == "RunStarted":
            started = str(event.data.get("runId"))
            self._within = self._wanted is None or started == self._wanted
            if self._within:
                self._begin()
                self._facts.run_id = started
        if self._within:
            self._count(event, kind)

    def facts(self, *, live: bool) -> RunFacts:
        """What has become known so far; ``live`` when a process is still at it. The fold may go on."""
        facts = self._facts.copy()
        facts.sentinels, facts.events, facts.codons = self._fires.facts(), [], []
        facts.troubles, facts.unlisted_sentinel_events = self._fires.troubles.copy(), self._fires.unlisted
        facts.sentinel_cost = sum((sentinel.cost for sentinel in facts.sentinels), Cost())
        facts.unpriced_calls = facts.sentinel_cost.unpriced
        run = next((run for run in self._state.runs if run.run_id == facts.run_id), None)
        if run is None:
            self._recorded(facts)
        else:
            self._of_run(facts, run, live=live)
        return facts

    def _note_misfit(self, _: Exception) -> None:
        self._facts.misfits += 1

    def _recorded(self, facts: RunFacts) -> None:
        facts.codons = list(self._told.facts())
        facts.agent_cost = sum((codon.cost for codon in facts.codons), Cost())

    def _of_run(self, facts: RunFacts, run: RunRecord, *, live: bool) -> None:
        index = self._state.runs.index(run)
        latest = index == len(self._state.runs) - 1
        facts.other_runs = len(self._state.runs) - 1
        running = run.status == "running"
        facts.status = run.status if not running else "running" if live and latest else "crashed"
        facts.reason = self._ended.get(run.run_id, "")
        facts.continues = run.source.run_id if run.source else ""
        facts.began_ms = parse_stamp(run.started_at) or facts.began_ms
        facts.ended_ms = (parse_stamp(run.ended_at) if run.ended_at else None) or facts.ended_ms
        facts.agent_cost = sum((Cost(c.known_cost_usd, int(c.cost_usd is None)) for c in run.codons), Cost())
        own = {id(record) for record in run.codons}
        thread = RunState(self._state.runs[: index + 1]).thread
        facts.codons = [
            of_record(
                record,
                anchor,
                self._models.get(record.codon_id, ""),
                earlier=id(record) not in own,
                ignored=record.codon_id in self._ignored,
            )
            for anchor, record in enumerate([*(r for r in thread if id(r) not in own), *run.codons], 1)
        ]

    def _note_end(self, kind: str, data: EventData) -> None:
        if kind in {"RunCompleted", "RunFailed", "RunCrashed"}:
            inner = data.get("transition")
            said = inner.get("data") if isinstance(inner, Mapping) else None
            if isinstance(said, Mapping) and said.get("reason"):
                self._ended[str(data.get("runId"))] = str(said["reason"])

    def _count(self, event: Event, kind: str) -> None:
        facts, data = self._facts, event.data
        if facts.event_count == 0:
            facts.began_ms, facts.bins = event.at_ms, Bins(event.at_ms)
        facts.event_count += 1
        facts.ended_ms = max(facts.ended_ms, event.at_ms)
        facts.types.add(event.type, size_bytes=event.size_bytes)
        facts.bins.reach(event.at_ms)
        family = event.type.partition(".")[0]
        if family == "sentinel":
            self._of_sentinel(event)
        elif family == "watchdog":
            self._of_watchdog(event)
        else:
            lane = facts.lanes.add(_lane(event.type, data))
            facts.bins.add(f"type {lane or OTHER_LANE}", event.at_ms)
        coded = event.type == "info" and isinstance(data.get("code"), str)
        if coded or event.type in _NOTABLE_TYPES or family in _NOTABLE_FAMILIES:
            self._moment(event, gist(event))
        self._of_type(event, kind)

    def _of_type(self, event: Event, kind: str) -> None:
        facts, data = self._facts, event.data
        match event.type:
            case "tool.result":
                facts.tools.add(str(data.get("toolName")), failed=data.get("isError") is True)
            case "file.updated" if not _from_start(data.get("source")):
                facts.files.add(str(data.get("path")), failed=data.get("action") == "deleted")
            case "error":
                message = Excerpt.of(str(data.get("message")), self._limits.payload_chars)
                codon_id = str(data.get("codon") or "")
                facts.failures.add(Failure(event.at_ms, codon_id, data.get("fatal") is True, message))
            case "codon.started" | "codon.completed":
                self._told.take(event)
                if event.type == "codon.completed":
                    self._spend(event, cost_of(data.get("cost")).known_usd, in_all=True)
                    self._spent = ("", 0.0)
                if data.get("failureIgnored") is True and len(self._ignored) < self._limits.codons:
                    self._ignored.add(str(data.get("codonId")))
            case "token.usage":
                in_all = data.get("isFinal") is True
                self._spend(event, cost_of(data.get("totalCost")).known_usd, in_all=in_all)
                if data.get("modelId") and len(self._models) < self._limits.codons:
                    self._models[str(data.get("codonId"))] = str(data["modelId"])
            case "budget.summary":
                facts.budget = budget_facts(data, self._limits.codons)
            case "state.transition" if kind == "CheckpointCreated":
                facts.checkpoints += 1
            case _:
                pass

    def _spend(self, event: Event, cost_usd: float, *, in_all: bool) -> None:
        """Add what an agent has spent by now: on a message, or on its codon so far."""
        codon_id = str(event.data.get("codonId"))
        told = self._spent[1] if self._spent[0] == codon_id else 0.0
        more = max(0.0, cost_usd - told) if in_all else cost_usd
        if more:
            self._spent = (codon_id, told + more)
            self._facts.bins.add(AGENT_SPENDING, event.at_ms, round(more * NANO))

    def _of_sentinel(self, event: Event) -> None:
        fire = self._fires.take(event)
        if fire is not None:
            bins = self._facts.bins
            if event.type == "sentinel.triggered":
                bins.add(f"fired {fire.sentinel_id}", event.at_ms)
            elif fire.outcome == "answered":
                bins.add(SENTINEL_SPENDING, event.at_ms, round(fire.cost.known_usd * NANO))
            elif fire.outcome == "failed":
                bins.add(f"failed {fire.sentinel_id}", event.at_ms)

    def _of_watchdog(self, event: Event) -> None:
        facts, data = self._facts, event.data
        kind = event.type.partition(".")[2]
        facts.bins.add(f"watchdog {kind}", event.at_ms)
        facts.nudges += kind == "nudge"
        facts.interrupts += kind == "interrupt"
        undelivered = data.get("delivered") is False
        facts.undelivered += undelivered
        observed = data.get("observed") is True
        facts.observed[kind] += observed
        facts.interventions.add(
            Intervention(
                facts.interventions.count + 1,
                event.at_ms,
                str(data.get("codonId")),
                kind,
                str(data.get("trigger")),
                count_of(data.get("round")),
                Excerpt.of(str(data.get("text") or ""), self._limits.payload_chars),
                Excerpt.of(_flat(data.get("detail")), self._limits.payload_chars),
                not undelivered,
                observed,
            )
        )

    def _moment(self, event: Event, text: str) -> None:
        shown = Excerpt.of(text, self._limits.payload_chars)
        self._facts.moments.add(Moment(event.at_ms, event.type, shown))


def _lane(type_name: str, data: EventData) -> str:
    if type_name == "assistant.action":
        return _ACTIONS.get(str(data.get("action")), "other actions")
    if type_name == "tool.result":
        return "failed tool calls" if data.get("isError") is True else "tool results"
    if type_name in _BOOKKEEPING:
        return BOOKKEEPING_LANE
    return _LANES.get(type_name, OTHER_LANE)


def _from_start(source: Any) -> bool:
    return isinstance(source, Mapping) and source.get("kind") == "codon-start"


def _flat(detail: Any) -> str:
    """An object's parts in one line."""
    if not isinstance(detail, Mapping):
        return "" if detail is None else str(detail)
    return "; ".join(f"{key}: {_listed(value)}" for key, value in detail.items())


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
