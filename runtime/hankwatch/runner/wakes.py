"""Wakes of watches: each is accepted once, then is a turn of its session (spec watches 6)."""

from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from hankwatch.agents.program import Resumes
from hankwatch.events.catalogue import KNOWN_TYPES
from hankwatch.events.run import Info
from hankwatch.runner.jobs import CodonJob
from hankwatch.runner.ledger import Ledger
from hankwatch.runner.plan import StartCodon
from hankwatch.runner.reentry import unfinished
from hankwatch.runner.sessions import SESSION_CODON, WAKE, resumable
from hankwatch.runner.state import CodonRecord
from hankwatch.stream.reader import JournalReader
from hankwatch.stream.stream import EventStream
from hankwatch.watches.delivery import Channel, Delivery, Woken, payload_of
from hankwatch.watches.turn import woken_by


@dataclass(frozen=True, slots=True)
class Wake:
    """One turn that a watch asks for."""

    session: str
    text: str
    """Its prompt."""
    delivery_id: str
    depth: int
    """Of the watches that it arms."""


class Watches(Protocol):
    """The watches of a run's home, as its line sees them."""

    def watching(self) -> AbstractAsyncContextManager[None]:
        """While the body runs they are checked, and told of in the journal."""
        ...

    async def next_wake(self, sessions: Collection[str] = ()) -> Wake | None:
        """The oldest wake that waits, accepted now; None when there is none that can be run.

        Args:
            sessions: Names of the running codon's session; empty between codons.
        """
        ...

    async def live(self, sessions: Collection[str] = ()) -> tuple[str, ...]:
        """Ids of those that are still active, of any session or of these."""
        ...

    async def cancel(self, sessions: Collection[str]) -> None:
        """End the watches of a session that nobody goes on with."""
        ...

    async def tell_every_ending(self, sessions: Collection[str]) -> None:
        """Let a session be woken by any ending of its watches: somebody waits for them."""
        ...


class WatchJournal:
    """Puts what watches tell into a run's journal, each delivery once, whatever was killed in between."""

    def __init__(self, stream: EventStream, journal: Path, home: str) -> None:
        self._stream, self._journal, self._home = stream, journal, home
        self._told: set[str] | None = None

    def tell(self, delivery: Delivery) -> bool:
        """See ``watches.deliveries.Journals``."""
        if delivery.home != self._home:
            return False
        if self._told is None:
            self._told = {_key(event.data, event.type) for event in JournalReader(self._journal).read(types=_TOLD)}
        if delivery.id not in self._told:
            self._stream.emit(payload_of(delivery))
            self._told.add(delivery.id)
        return True


_TOLD = {kind for kind in KNOWN_TYPES if kind.startswith("watch.")}


def _key(data: Mapping[str, Any], kind: str) -> str:
    """The id of the delivery that made an event; one about another delivery names that (``delivery.receipt``)."""
    about = str(data.get("deliveryId"))
    return f"{Channel.EVENT}:{data.get('status')}:{about}" if kind == "watch.delivery" else about


@dataclass(slots=True)
class WakeDesk:
    """Takes one wake at a time for the run's line; a journaled one is never taken again (``deliveries.Sessions``)."""

    ledger: Ledger
    jobs: Mapping[str, CodonJob]
    """By authored codon id."""
    journal: Path
    only_wakes: bool = False
    """The run does nothing else, so a session that is not there does not come."""
    waiting: Collection[str] = ()
    """Names of the session of the codon that is between two turns; empty between codons."""
    _taken: Wake | None = None
    _accepted: set[str] | None = None
    """Ids of deliveries whose turn was begun."""

    async def wake(self, session: str, text: str, delivery: Delivery) -> Woken:
        """See ``watches.deliveries.Sessions``."""
        if self._accepted is None:
            self._accepted = _accepted(self.journal)
        if delivery.id in self._accepted:
            return Woken.ACCEPTED
        if self.waiting and session not in self.waiting:
            return Woken.BUSY
        if not self.waiting and self.record(session) is None:
            comes = (not self.only_wakes and session.partition("#")[0] in self.jobs) or self._is_waited_in(session)
            return Woken.BUSY if comes else Woken.GONE
        if self._taken is not None:
            return Woken.BUSY
        depth = woken_by(delivery)
        details = {"deliveryId": delivery.id, "watchId": delivery.watch_id, "session": session, "depth": depth}
        self.ledger.stream.emit(
            Info(message=f"Watch {delivery.watch_id} wakes session {session}", code=WAKE, details=details)
        )
        self._accepted.add(delivery.id)
        self._taken = Wake(session, text, delivery.id, depth)
        return Woken.ACCEPTED

    def take(self) -> Wake | None:
        """What was accepted since."""
        taken, self._taken = self._taken, None
        return taken

    def record(self, session: str) -> CodonRecord | None:
        """The attempt whose session the turn goes on with; None when there is none, or nothing could carry it out."""
        record = resumable(session, self.ledger.state)
        job = self._job(session)
        return record if job is not None and isinstance(job.program, Resumes) else None

    def turn(self, wake: Wake) -> tuple[StartCodon, CodonJob]:
        """The turn as a codon between codons: the program, model and limits of the session's own, and nothing else of it."""
        record, job = self.record(wake.session), self._job(wake.session)
        assert record is not None
        assert job is not None
        codon_id = f"{SESSION_CODON}{wake.session}"
        codon = job.codon.model_copy(
            update={
                "id": codon_id,
                "name": f"Session {wake.session}",
                "continuation_mode": "continue-previous",
                "rig_setup": (),
                "output_files": (),
                "sentinels": (),
                "archive_on_success": (),
                "on_failure": "ignore",
                "retry_config": None,
                "exhaust_with_prompt": None,
                "wait_for_watches": False,
            }
        )
        made = replace(
            job,
            codon=codon,
            codon_id=codon_id,
            request=replace(job.request, prompt=wake.text),
            sentinels=(),
            extension_prompt=None,
            ends_when_full=False,
            prompt_metadata=None,
            depth=wake.depth,
        )
        return StartCodon(codon, codon_id, previous=record.codon_id), made

    def _is_waited_in(self, session: str) -> bool:
        """Whether a codon waits in it that an earlier process left: who resumes the execution takes its wakes."""
        left = unfinished(self.journal)
        return left is not None and left.reentry is not None and session in left.names

    def _job(self, session: str) -> CodonJob | None:
        return self.jobs.get(session.partition("#")[0])


def _accepted(journal: Path) -> set[str]:
    """Ids of the deliveries whose ``info`` stands in a journal."""
    return {
        str(event.data["details"].get("deliveryId"))
        for event in JournalReader(journal).read(types={Info.TYPE})
        if event.data.get("code") == WAKE and isinstance(event.data.get("details"), dict)
    }
