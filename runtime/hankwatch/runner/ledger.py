"""The run's own line in the journal: the only emitter of ``state.transition``."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hankwatch.events.codec import parse_stamp
from hankwatch.events.envelope import Event, format_stamp
from hankwatch.events.payload import Payload
from hankwatch.events.run import ResultingState, StateTransition, TransitionType
from hankwatch.events.run import Transition as EventTransition
from hankwatch.runner.state import CodonRecord, RunRecord, RunState, Transition, may_move, reduce
from hankwatch.stream.stream import EventStream


class Ledger:
    """Holds the run's state and moves it: reduce, emit, adopt (design "How it runs" 7)."""

    def __init__(self, stream: EventStream, run_id: str, state: RunState) -> None:
        self.stream = stream
        self.run_id = run_id
        self.state = state
        self.started_ms = stream.now_ms()
        """Stream instant at which this process began the run."""

    @property
    def run(self) -> RunRecord:
        """The run this process carries out."""
        assert self.state.current is not None
        return self.state.current

    @property
    def codon(self) -> CodonRecord:
        """The latest codon attempt of this run."""
        return self.run.codons[-1]

    @property
    def marker(self) -> str:
        """What the children of the current attempt bear: ``<run>/<codon>/<attempt>``."""
        return f"{self.run_id}/{self.codon.codon_id}/{self.codon.attempt}"

    @property
    def codon_started_ms(self) -> int:
        """Stream instant of the latest CodonStarted."""
        return parse_stamp(self.codon.started_at) or self.started_ms

    def start_run(self, conditions: Mapping[str, Any]) -> None:
        """Emit RunStarted; from here on ``run`` is this process's run."""
        self.move("RunStarted", _of_start(self.run_id, conditions))

    @contextmanager
    def on_behalf_of(self, run_id: str) -> Iterator[None]:
        """While the body runs, emit what an earlier run that was killed had no time for."""
        own, self.run_id = self.run_id, run_id
        try:
            yield
        finally:
            self.run_id = own

    def move(
        self, kind: TransitionType, data: Mapping[str, Any] | None = None, *more: Payload, codon_id: str | None = None
    ) -> tuple[Event, ...]:
        """Emit one transition, and ``more`` in the same batch; the state is adopted once written."""
        return self._move(kind, self.run_id, data or {}, *more, codon_id=codon_id)

    def continue_as(self, run_id: str, reason: str, conditions: Mapping[str, Any]) -> None:
        """End this run and start ``run_id`` in one batch; from here on ``run`` is that one."""
        now = format_stamp(self.stream.now_ms())
        end = Transition("RunCompleted", {"runId": self.run_id, "reason": reason}, now)
        start = Transition("RunStarted", {"runId": run_id, **_of_start(run_id, conditions)}, now)
        ended = reduce(self.state, end)
        payloads = _told("RunCompleted", end, ended), _told("RunStarted", start, reduce(ended, start))
        for event, step in zip(self.stream.emit(*payloads), (end, start), strict=False):
            self.state = reduce(self.state, replace(step, at=event.timestamp))
        self.run_id = run_id

    def crash(self, run: RunRecord) -> None:
        """Mark an earlier run that has no end as crashed."""
        last = run.codons[-1].status if run.codons else None
        data = {"detectedAt": format_stamp(self.stream.now_ms()), "lastCodonStatus": last}
        self._move("RunCrashed", run.run_id, data)

    def _move(
        self, kind: TransitionType, run_id: str, data: Mapping[str, Any], *more: Payload, codon_id: str | None = None
    ) -> tuple[Event, ...]:
        full = {"runId": run_id, **({"codonId": codon_id} if codon_id else {}), **data}
        step = Transition(kind, full, format_stamp(self.stream.now_ms()))
        events = self.stream.emit(_told(kind, step, reduce(self.state, step), codon_id), *more)
        # The stamp a reader of the journal sees is the event's own.
        self.state = reduce(self.state, replace(step, at=events[0].timestamp) if events else step)
        return events

    def move_codon(self, target: str, metadata: Mapping[str, Any] | None = None, *more: Payload) -> None:
        """One CodonTransitioned of the current codon."""
        # A move that no reader takes would leave the codon unended, and the run would do it again for ever.
        assert may_move(self.codon.status, target), f"{self.codon.codon_id}: {self.codon.status} to {target}"
        data = {"from": self.codon.status, "to": target, **({"metadata": dict(metadata)} if metadata else {})}
        self.move("CodonTransitioned", data, *more, codon_id=self.codon.codon_id)


def _of_start(run_id: str, conditions: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "runFolder": f".hankweave/runs/{run_id}",
        "gitBranch": f"run-{run_id}",
        "startingConditions": dict(conditions),
        "serverPid": os.getpid(),
    }


def _told(kind: TransitionType, step: Transition, expected: RunState, codon_id: str | None = None) -> StateTransition:
    """The event of a step that leads to ``expected``."""
    return StateTransition(
        transition_type=kind,
        run_id=str(step.data["runId"]),
        codon_id=codon_id,
        base_codon_id=_base_id(expected, codon_id),
        transition=EventTransition(type=kind, data=dict(step.data)),
        resulting_state=ResultingState.model_validate(expected.resulting_state()),
    )


def _base_id(state: RunState, codon_id: str | None) -> str | None:
    """The authored id of a codon that is under way."""
    run = state.current
    record = run.codons[-1] if run and run.codons else None
    return record.base_codon_id if record is not None and record.codon_id == codon_id else None
