"""One check of a watch: whatever happens, it ends within its limit and says one of four things (spec watches 3, 4)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal, TypeVar, assert_never

import anyio

from hankwatch.core.clock import Clock
from hankwatch.core.contain import contain
from hankwatch.core.errors import ProcessNotStarted
from hankwatch.core.redaction import Redactor
from hankwatch.core.text import clean_json, shorten, strip_controls
from hankwatch.events.envelope import EventData
from hankwatch.matching.conditions import Condition, compile_conditions
from hankwatch.processes.child import Child, Exit, spawn
from hankwatch.processes.limits import ends_within
from hankwatch.processes.tree import kill_marked
from hankwatch.watches.blocking import contained, in_daemon_thread, is_async
from hankwatch.watches.checks import CheckContext, Checks, Cost, Finding, Invoker, Trust
from hankwatch.watches.codec import digest, spec_json
from hankwatch.watches.documents import MAX_TEXT_CHARS, NoDocument, read_document
from hankwatch.watches.specs import CheckSpec, CommandSpec, DocumentSpec, EventSpec, TimeSpec, VerifierSpec
from hankwatch.watches.watch import MAX_EVIDENCE_CHARS, ErrorKind, Observation, Outcome, Watch

T = TypeVar("T")
COMMAND_LIMIT_S: Final = 30.0
DOCUMENT_LIMIT_S: Final = 5.0
OUTPUT_BYTES: Final = 64 * 1024
"""Of a command's output, the last that are kept."""
_DRAIN_S: Final = 0.2
"""After a command's end its output may still come for so long."""
_IMPOSSIBLE, _UNAVAILABLE = 2, 75
_CODE: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}")
"""A reason code; it is told outside of data blocks, so it may be no text of the watched world."""


@dataclass(frozen=True, slots=True)
class _Traits:
    """What a verifier is, whatever it finds."""

    trust: Trust
    cost: Cost
    limit_s: float


@dataclass(frozen=True, slots=True)
class Verifiers:
    """Carries out checks."""

    checks: Checks
    clock: Clock
    env: Mapping[str, str]
    """All that commands get; holds no secret of this runtime."""
    redactor: Redactor
    """Goes over whatever came from outside."""
    place: str = "here"
    """Tells processes of this store's watches from those of another's, which may have the same ids."""
    _blocked: set[str] = field(default_factory=set)
    """Watches whose last check still occupies a thread."""

    def trust(self, spec: VerifierSpec) -> Trust:
        """Who may arm a watch with it."""
        return self._traits(spec).trust

    def cost(self, spec: VerifierSpec) -> Cost:
        """What one check costs."""
        return self._traits(spec).cost

    def limit_s(self, spec: VerifierSpec) -> float:
        """Longest a check takes."""
        return self._traits(spec).limit_s

    def _traits(self, spec: VerifierSpec) -> "_Traits":
        match spec:
            case EventSpec() | TimeSpec():
                return _Traits(Trust.SAFE, Cost.CHEAP, DOCUMENT_LIMIT_S)
            case DocumentSpec():
                trust = Trust.SAFE if _is_inside(spec) else Trust.OPERATOR
                return _Traits(trust, Cost.CHEAP, DOCUMENT_LIMIT_S)
            case CommandSpec():
                return _Traits(Trust.OPERATOR, Cost.PROCESS, spec.timeout_s or COMMAND_LIMIT_S)
            case CheckSpec():
                check = self.checks.find(spec.name, spec.version)
                if check is None:
                    return _Traits(Trust.OPERATOR, Cost.REMOTE, COMMAND_LIMIT_S)
                return _Traits(check.trust, check.cost, check.limit_s)
            case _:
                assert_never(spec)

    def behaviour_digest(self, spec: VerifierSpec) -> str:
        """Changes when the same spec would check something else; empty for a check that is not registered."""
        if not isinstance(spec, CheckSpec):
            return digest(spec_json(spec))
        check = self.checks.find(spec.name, spec.version)
        return "" if check is None else check.behaviour_digest

    async def observe(self, watch: Watch, now: datetime) -> Observation:
        """One check; raises nothing but cancellation, and takes no longer than its limit and half a second."""
        seen = list[Observation]()
        limit_s = self.limit_s(watch.verifier)

        def crashed(error: Exception) -> None:
            seen.append(self._observation(_crashed(error), now))

        async def work() -> None:
            with contain(crashed):
                seen.append(self._observation(await self._find(watch, now), now))

        if not await ends_within(self.clock, limit_s, work) and not seen:
            seen.append(self._observation(_unavailable(ErrorKind.TIMEOUT, f"took longer than {limit_s:g} s"), now))
        return seen[0]

    async def _find(self, watch: Watch, now: datetime) -> Finding:
        match watch.verifier:
            case EventSpec():
                return Finding(Outcome.PENDING, "no-event")
            case TimeSpec() as spec:
                passed = spec.at is not None and now >= spec.at
                return Finding(Outcome.SATISFIED, "time-passed") if passed else Finding(Outcome.PENDING, "not-yet")
            case DocumentSpec() as spec:
                return await self._blocking(watch, partial(_document, spec, watch.home))
            case CommandSpec() as spec:
                return await self._command(spec, watch)
            case CheckSpec() as spec:
                return await self._check(spec, watch, now)
            case _:
                assert_never(watch.verifier)

    async def _command(self, spec: CommandSpec, watch: Watch) -> Finding:
        argv = ["/bin/sh", "-c", spec.command] if isinstance(spec.command, str) else spec.command
        cwd = Path(watch.home or "/") / (spec.cwd or "")
        marker = f"{self._family(watch)}/{watch.generation}"
        try:
            async with spawn(argv, cwd=cwd, env=self.env, marker=marker, clock=self.clock) as child:
                exit_, output = await self._listen(child)
                output = output or child.stderr_tail()
        except ProcessNotStarted as error:
            return _unavailable(ErrorKind.NOT_FOUND, str(error))
        return _exited(spec, exit_, strip_controls(output))

    async def end_leftovers(self, watch: Watch) -> None:
        """End what a check of it has left behind whose engine was killed: nobody else checks it meanwhile."""
        if isinstance(watch.verifier, CommandSpec):
            await kill_marked(self._family(watch), clock=self.clock)

    def _family(self, watch: Watch) -> str:
        return f"watch/{self.place}/{watch.id}"

    async def _listen(self, child: Child) -> tuple[Exit, str]:
        kept, ended = bytearray(), anyio.Event()

        async def read() -> None:
            async for chunk in child.chunks():  # not by line: a flood of tiny ones must not hold up the limit
                kept.extend(chunk)
                del kept[: -OUTPUT_BYTES - 1]
            ended.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            exit_ = await child.wait()
            await ends_within(self.clock, _DRAIN_S, ended.wait)
            tasks.cancel_scope.cancel()
        if len(kept) > OUTPUT_BYTES:  # begin with a whole line
            del kept[: max(kept.find(b"\n") + 1, 1)]
        return exit_, kept.replace(b"\r\n", b"\n").decode("utf-8-sig", "replace").strip()

    async def _check(self, spec: CheckSpec, watch: Watch, now: datetime) -> Finding:
        check = self.checks.find(spec.name, spec.version)
        if check is None:
            pinned = spec.name if spec.version is None else f"{spec.name}@{spec.version}"
            return _unavailable(ErrorKind.MISSING, f"no check {pinned} is registered")
        if check.behaviour_digest != watch.behaviour_digest:
            return _unavailable(ErrorKind.CHECK_CHANGED, f"{check.pinned} does something else than when it was armed")
        invoker = Invoker("watch", watch.id, watch.tenant, watch.owner, watch.session, watch.home, watch.interval_s)
        run = partial(check.run, CheckContext(invoker, now), spec.args)
        answer = await (contained(run) if is_async(check.run) else self._blocking(watch, run))
        found = await contained(lambda: answer)  # a plain function may give something to await too
        if isinstance(found, bool):
            found = Finding(Outcome.SATISFIED if found else Outcome.PENDING)
        if not isinstance(found, Finding):
            return _unavailable(ErrorKind.BAD_OUTPUT, f"{check.pinned} returned {type(found).__name__}, no finding")
        if not spec.conditions or found.outcome in {Outcome.UNAVAILABLE, Outcome.TERMINAL_UNSATISFIED}:
            return found
        holds = _hold(spec.conditions, {"value": found.value, "text": found.text or found.evidence})
        outcome, reason = _OF_CONDITIONS[holds]
        return Finding(outcome, reason, found.text, found.value, found.evidence)

    async def _blocking(self, watch: Watch, work: Callable[[], T]) -> T | Finding:
        """What a function returns that may block for ever; of each watch only one is under way."""
        if watch.id in self._blocked:
            return _unavailable(ErrorKind.TIMEOUT, "the check before has not ended yet")
        self._blocked.add(watch.id)

        def run() -> T:
            try:
                return work()
            finally:
                self._blocked.discard(watch.id)

        return await in_daemon_thread(run)

    def _observation(self, found: Finding, now: datetime) -> Observation:
        value = _in_small(found.value)
        return Observation(
            found.outcome,
            found.reason if _CODE.fullmatch(found.reason) else found.outcome.value.replace("_", "-"),
            self._shown(found.text),
            now,
            self.redactor.data({"value": value})["value"],
            digest(value),
            self._shown(found.evidence),
            found.error,
        )

    def _shown(self, text: str) -> str:
        # Cut first, with room for what goes: whoever waits for the loop does not wait for all of it.
        return shorten(self.redactor.text(strip_controls(text[: 8 * MAX_EVIDENCE_CHARS])), MAX_EVIDENCE_CHARS)


def _in_small(value: Any) -> Any:
    """JSON of a value; of a large text only what tells it from another."""
    if isinstance(value, str) and len(value) > MAX_TEXT_CHARS:
        return {"hash": blake2b(value.encode("utf-8", "replace"), digest_size=16).hexdigest(), "chars": len(value)}
    return clean_json(value)[0]


_OF_CONDITIONS: Final = {True: (Outcome.SATISFIED, "conditions-met"), False: (Outcome.PENDING, "conditions-not-met")}


def _is_inside(spec: DocumentSpec) -> bool:
    """Whether its path stays below the execution directory, as far as its words say."""
    path = Path(spec.path)
    return not path.is_absolute() and ".." not in path.parts


def _document(spec: DocumentSpec, home: str | None) -> Finding:
    path = Path(spec.path)
    inside = _is_inside(spec)
    root = Path(home) if home is not None else None
    try:
        held = read_document(path if root is None else root / path, spec.pointer, within=root if inside else None)
    except NoDocument as error:
        kind = ErrorKind.UNAUTHORIZED if error.code in {"unauthorized", "outside"} else ErrorKind.BAD_OUTPUT
        return _unavailable(kind, str(error), error.code)
    if not held.exists:
        return Finding(Outcome.PENDING, "not-there")
    holds = _hold(spec.conditions, {"value": held.value, "text": held.text})
    outcome, reason = _OF_CONDITIONS[holds]
    return Finding(outcome, reason if spec.conditions else "exists", "", held.value, held.text)


def _hold(conditions: list[Condition], data: EventData) -> bool:
    return compile_conditions(conditions).hold(data)


def _exited(spec: CommandSpec, exit_: Exit, output: str) -> Finding:
    if exit_.code is None:
        return _unavailable(ErrorKind.CRASHED, f"ended by signal {exit_.signal}")
    outcome = _meaning(spec, exit_.code)
    text = f"exit code {exit_.code}"
    if spec.reason_from_output and (last := next((x for x in reversed(output.splitlines()) if x.strip()), "")):
        text += f": {last.strip()}"
    error = ErrorKind.BAD_OUTPUT if outcome is Outcome.UNAVAILABLE else None
    return Finding(outcome, f"exit-{exit_.code}", text, output, output[-MAX_EVIDENCE_CHARS:], error)


def _meaning(spec: CommandSpec, code: int) -> Outcome:
    words: dict[Literal["satisfied", "impossible", "unavailable"], tuple[int, Outcome]] = {
        "satisfied": (0, Outcome.SATISFIED),
        "impossible": (_IMPOSSIBLE, Outcome.TERMINAL_UNSATISFIED),
        "unavailable": (_UNAVAILABLE, Outcome.UNAVAILABLE),
    }
    for word, (_, outcome) in words.items():
        if code in spec.exit_codes.get(word, ()):
            return outcome
    for word, (default, outcome) in words.items():
        if code == default and word not in spec.exit_codes:
            return outcome
    return Outcome.PENDING


def _unavailable(error: ErrorKind, text: str, reason: str = "") -> Finding:
    return Finding(Outcome.UNAVAILABLE, reason or error.value.replace("_", "-"), text, error=error)


def _crashed(error: Exception) -> Finding:
    return _unavailable(ErrorKind.CRASHED, f"{type(error).__name__}: {error}")
