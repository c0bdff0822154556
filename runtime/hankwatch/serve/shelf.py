"""The executions that are served: found by name, followed by reading what their journals have more than before."""

import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from hankwatch.core.contain import contain
from hankwatch.core.errors import RunNotFound
from hankwatch.events.envelope import Event
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fold import RunFold
from hankwatch.runner.execution import Execution, executions, open_execution, run_ids
from hankwatch.runner.layout import Layout
from hankwatch.runner.state import RunState, fold
from hankwatch.runner.summary import is_live
from hankwatch.serve.announced import Announced
from hankwatch.serve.counters import Counters
from hankwatch.serve.live import size_of
from hankwatch.stream.reader import JournalReader, is_gzipped

_LOG = logging.getLogger(__name__)
_KEPT: Final = 256
"""Executions whose folds are kept; the one that was asked for longest ago is folded anew when it is asked for."""
_WARMED: Final = 20
_AT_ONCE: Final = 1_000
"""Events folded before others get a turn."""
_PACKED_AT_ONCE: Final = 100_000
"""The same of a compressed journal, each of whose turns unpacks it from its beginning."""
_MAX_RUNS: Final = 1_000
"""Of one journal, those that are told apart by where they begin."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where a run stands in its journal: behind ``after``, up to ``until``."""

    run: str
    after: int
    until: int | None = None
    """None: to the end."""


@dataclass(slots=True)
class Followed:
    """One execution's journal, folded as far as it was read; ``catch_up`` blocks and may be called by any thread."""

    execution: Execution
    cursor: int = 0
    """How far it is folded."""
    unreadable: str | None = None
    """Why it could not be read, or None."""
    counters: Counters = field(default_factory=Counters)
    state: RunState = field(default_factory=RunState)
    spans: list[Span] = field(default_factory=list)
    told: Announced = field(default_factory=Announced)
    _fold: RunFold = field(default_factory=RunFold)
    _to_its_end: bool = True
    _identity: tuple[int, int] | None = None
    _packed_bytes: int = 0
    """Size of a compressed journal, whose cursors count what is in it; 0 for a plain one."""
    _whole: tuple[int, int] | None = None
    """Size and time of change of the journal that was read to its end: reading it again would find nothing."""
    _reader: JournalReader = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._reader = JournalReader(self.journal)

    @property
    def journal(self) -> Path:
        return self.execution.layout.journal

    @property
    def live(self) -> bool:
        """Whether a process is at it."""
        return is_live(self.journal)

    @property
    def bad_lines(self) -> int:
        return self._reader.bad_lines

    def catch_up(self, goes_on: Callable[[], bool] = lambda: True) -> bool:
        """Fold what was written since; False when there is more, because ``goes_on`` has said to stop.

        Others may ask for the facts meanwhile: they get what is folded so far.
        """
        while True:
            with self._lock, contain(self._note):
                status = os.stat(self.journal)  # noqa: PTH116 - asked with every request
                if not self._is_same(status):
                    self._begin(status)
                now = status.st_size, status.st_mtime_ns
                if now == self._whole:
                    self.unreadable = None
                    return True
                count = 0
                at_once = _PACKED_AT_ONCE if self._packed_bytes else _AT_ONCE
                for event in islice(self._reader.read(max(self.cursor, self._reader.position)), at_once):
                    self._take(event)
                    count += 1
                self.unreadable = None
                if count == at_once:
                    if goes_on():
                        continue
                    self._to_its_end = False
                    return False
                self._whole = now
            self._to_its_end = True
            return True

    @property
    def share_read(self) -> float:
        """How much of the journal was folded when it was read last, from 0 to 1."""
        return 1.0 if self._to_its_end else min(1.0, self.cursor / max(1, size_of(self.journal)))

    def facts(self, run: str | None = None) -> RunFacts:
        """The facts of a run, by default of the latest one."""
        live = self.live
        with self._lock:
            latest = self._fold.facts(live=live)
        if run in {None, latest.run_id}:
            facts = latest
        else:
            earlier = RunFold(run)
            for event in JournalReader(self.journal).read():
                earlier.take(event)
            facts = earlier.facts(live=False)
        facts.bad_lines = self.bad_lines
        facts.misfits += self._reader.flags["payload-misfit"]
        return facts

    def span(self, run: str | None) -> Span:
        """Where a run stands; None is the whole journal."""
        return next((span for span in self.spans if span.run == run), Span(run or "", 0))

    def _note(self, error: Exception) -> None:
        match error:
            case FileNotFoundError():  # before its first event there is none
                self.unreadable = None
            case OSError():
                self.unreadable = error.strerror
            case _:
                self.unreadable = type(error).__name__

    def _is_same(self, status: os.stat_result) -> bool:
        before, self._identity = self._identity, (status.st_dev, status.st_ino)
        return before == self._identity and status.st_size >= (self._packed_bytes or self.cursor)

    def _begin(self, status: os.stat_result) -> None:
        self.cursor, self._whole = 0, None
        self._packed_bytes = status.st_size if is_gzipped(self.journal) else 0
        self.counters, self.state, self._fold, self.spans = Counters(), RunState(), RunFold(), []
        self.told = Announced()
        self._reader = JournalReader(self.journal)

    def _take(self, event: Event) -> None:
        if event.type == "state.transition":
            with contain(lambda _: None):  # a foreign journal can say anything; the facts count it
                self.state = fold((event,), self.state)
            if event.data.get("transitionType") == "RunStarted" and len(self.spans) < _MAX_RUNS:
                if self.spans:
                    last = self.spans[-1]
                    self.spans[-1] = Span(last.run, last.after, self.cursor)
                self.spans.append(Span(str(event.data.get("runId")), self.cursor))
        self.counters.take(event)
        self.told.take(event)
        self._fold.take(event)
        self.cursor = event.cursor


@dataclass(frozen=True, slots=True)
class Named:
    """What an id of a request means."""

    followed: Followed
    run: str | None
    """The run it names; None for the execution's latest."""

    @property
    def name(self) -> str:
        """An id that names it on the command line too."""
        return self.run or self.followed.execution.name

    def facts(self) -> RunFacts:
        """What its pages say, under its name; blocks where an earlier run is meant."""
        facts = self.followed.facts(self.run)
        facts.name = self.name
        return facts


class Shelf:
    """The executions of a folder, or the one execution that the folder is; used by any thread.

    Args:
        folder: Nothing outside of it is ever served.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._followed: OrderedDict[Path, Followed] = OrderedDict()
        self._lock = threading.Lock()

    def executions(self) -> Iterator[Followed]:
        """All of them, the one whose latest run began last first; not caught up."""
        if Layout(self.folder).managed.is_dir():
            yield self._follow(open_execution(self.folder))
            return
        for execution in executions(self.folder):
            yield self._follow(execution)

    def find(self, name: str, goes_on: Callable[[], bool] = lambda: True) -> Named:
        """What a whole id of an execution or run means, caught up; ``latest`` is the one that began last.

        Args:
            name: The id.
            goes_on: Asked now and then whether to read on; see ``Followed.catch_up``.

        Raises:
            RunNotFound: nothing has it.
        """
        named = self._named(name)
        named.followed.catch_up(goes_on)
        return named

    def _named(self, name: str) -> Named:
        if (root := self._root_of(name)) is not None:  # without a look at all the others
            return Named(self._follow(open_execution(root)), None)
        for followed in self.executions():
            if name in {"latest", followed.execution.name}:
                return Named(followed, None)
            if name in run_ids(followed.execution):
                return Named(followed, name)
        for followed in tuple(self._followed.values()):  # a run that started no agent has no folder
            if any(span.run == name for span in followed.spans):
                return Named(followed, name)
        raise RunNotFound(name, self.folder)

    def _root_of(self, name: str) -> Path | None:
        """The execution directory of that name in the folder, if there is one."""
        if name in {"", ".", "..", "latest"} or "/" in name or "\0" in name or Layout(self.folder).managed.is_dir():
            return None
        root = self.folder / name
        try:
            return root if Layout(root).managed.is_dir() else None
        except OSError:  # no name of a file, or closed to this user
            return None

    def warm(self) -> None:
        """Fold the newest before anybody asks for them, which takes seconds where journals are large; blocks."""
        with contain(lambda error: _LOG.warning("executions cannot be read ahead: %s", error)):
            for followed in islice(self.executions(), _WARMED):
                followed.catch_up()

    def _follow(self, execution: Execution) -> Followed:
        with self._lock:
            root = execution.layout.root
            found = self._followed.pop(root, None) or Followed(execution)
            self._followed[root] = found
            if len(self._followed) > _KEPT:
                self._followed.popitem(last=False)
            return found
