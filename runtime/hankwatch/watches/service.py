"""Everything one can do with watches; SDK, agent tools, REST, command line and console are thin over it (spec watches 5)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

import anyio.to_thread
import orjson

from hankwatch.core.errors import Forbidden, IdTaken, WatchInvalid, WatchNotFound, WrongState
from hankwatch.processes.limits import ends_within
from hankwatch.watches.arming import planned
from hankwatch.watches.authority import Action, Authorizer, Principal
from hankwatch.watches.bounds import Defaults
from hankwatch.watches.checks import Trust
from hankwatch.watches.codec import encode
from hankwatch.watches.decide import Decision, Raised, end, next_check
from hankwatch.watches.deliveries import SINK_LIMIT_S
from hankwatch.watches.delivery import Channel, Delivery
from hankwatch.watches.editing import Editing, require_readable
from hankwatch.watches.evaluation import Evaluation
from hankwatch.watches.evaluator import Evaluator
from hankwatch.watches.hooks import Hook, Hooks, PlainHook
from hankwatch.watches.instance import Configured, Setting, SettingsEdit
from hankwatch.watches.outbox import Outbox
from hankwatch.watches.requests import WatchEdit, WatchRequest, require_distinct
from hankwatch.watches.rows import identity_of
from hankwatch.watches.specs import TimeSpec
from hankwatch.watches.store import WatchStore
from hankwatch.watches.verifiers import Verifiers
from hankwatch.watches.watch import EndReason, Signal, Status, Watch

T = TypeVar("T")
_ID_TRIES: Final = 4
_LOOK_AGAIN_S: Final = 0.05
ENDINGS: Final = frozenset({Signal.MET, Signal.CHANGED, Signal.IMPOSSIBLE, Signal.EXPIRED, Signal.CANCELLED})
"""What a session that waits is told of, each of its watches."""


@dataclass(frozen=True, slots=True)
class Armed:
    """What became of a request."""

    watch: Watch
    is_new: bool
    """False: an identical one was live already."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What applying a set has changed, by id."""

    armed: tuple[str, ...]
    kept: tuple[str, ...]
    cancelled: tuple[str, ...]


@dataclass(slots=True)
class WatchService:
    """Asynchronous and safe from many tasks; nothing of it waits for a check but ``evaluate_now`` and ``approve``."""

    store: WatchStore
    outbox: Outbox
    evaluator: Evaluator
    authorizer: Authorizer
    defaults: Defaults = field(default_factory=Defaults)
    journal_end: Callable[[], int] = lambda: 0
    """The cursor behind which a new ``event`` watch looks."""
    on_changed: Callable[[], None] = lambda: None
    """Called after each change, so that an engine looks at once."""
    agents_enabled: bool = True
    """``watches.enabled``: whether agents may use watches at all."""
    keep_terminal_h: float = 24.0
    """As it is configured: hours that ended watches are kept; 0 is for ever."""
    hooks: Hooks = field(default_factory=Hooks)
    """What deliverers of this process call."""

    @property
    def verifiers(self) -> Verifiers:
        """What checks are there, and who may use them."""
        return self.evaluator.verifiers

    async def create_watch(self, principal: Principal, request: WatchRequest, *, depth: int = 0) -> Armed:
        """Arm a watch, or propose it where its policy asks for an approval.

        Raises:
            WatchInvalid: it cannot be as it is asked for.
            Forbidden: the asker may not.
            CapReached: too many are active.
            StoreFailed: the database failed.
        """
        await self._require_enabled(principal)
        return await self._arm(principal, request, depth=depth, applied=False)

    def register_watch_hook(self, **hooks: Hook | PlainHook) -> None:
        """Call functions on signals: ``on_met=…``, ``on_changed=…`` and so on.

        They are called in this process while it delivers, for every watch that has the action ``hook``: a coroutine
        function on the loop, a plain one, which may block, in a thread of its own. One that fails is tried again.

        Raises:
            UsageError: no such signal.
        """
        self.hooks.register(hooks)

    async def list_watches(
        self,
        principal: Principal,
        prefix: str = "",
        *,
        session: str | None = None,
        statuses: Iterable[Status] = tuple(Status),
        text: str = "",
        after: str = "",
        limit: int = 10_000,
    ) -> list[Watch]:
        """The first watches behind an id that the asker may read, by id; ``text`` stands somewhere in their records."""
        tenant = None if principal.is_operator else principal.tenant
        find = partial(
            self.store.find,
            tenant=tenant,
            prefix=prefix,
            session=session,
            statuses=tuple(statuses),
            text=text,
            limit=limit,
        )
        readable, found = list[Watch](), await _in_thread(partial(find, after=after))
        while True:
            readable += [watch for watch in found if self._may(principal, Action.READ, watch)]
            if len(readable) >= limit or len(found) < limit:
                return readable[:limit]
            found = await _in_thread(partial(find, after=found[-1].id))

    async def get(self, principal: Principal, watch_id: str, action: Action = Action.READ) -> Watch:
        """One watch.

        Raises:
            WatchNotFound: there is none that the asker may know of.
            Forbidden: it may know of it, and not do ``action``.
        """
        watch = await _in_thread(partial(self.store.get, watch_id))
        if watch is None:
            raise WatchNotFound(watch_id)
        self.authorizer.check(principal, action, watch)
        return watch

    async def update_watch(self, principal: Principal, watch_id: str, edit: WatchEdit) -> Watch:
        """Change only what is given; a check that runs meanwhile is decided on the changed watch.

        Raises:
            WatchInvalid: it cannot be.
            WatchNotFound: as ``get``.
            Forbidden: as ``get``.
        """
        await self._require_enabled(principal)
        await self.get(principal, watch_id, Action.EDIT)
        now = self.evaluator.now()
        editing = Editing(edit, principal, self.verifiers, await self._defaults(), now)

        def work(stands: Watch) -> Decision:
            self.authorizer.check(principal, Action.EDIT, stands)
            decision = editing.of(stands)
            if decision.watch.generation != stands.generation:
                decision = replace(decision, watch=replace(decision.watch, cursor=cursor))
            return decision

        cursor = self.journal_end()
        changed = await self._change(watch_id, work, now)
        self.on_changed()
        return changed

    async def cancel_watch(self, principal: Principal, watch_id: str) -> Watch:
        """End a watch; one that has ended stays as it is. After this returns nothing of it fires or wakes.

        Raises:
            WatchNotFound: as ``get``.
            Forbidden: as ``get``.
        """
        return await self._end(principal, watch_id, Action.CANCEL, EndReason.CANCELLED)

    async def clear_watch(self, principal: Principal, watch_id: str) -> bool:
        """Cancel and forget; False when there was none."""
        try:
            await self.cancel_watch(principal, watch_id)
        except WatchNotFound:
            return False
        return await _in_thread(partial(self.store.delete, watch_id))

    async def approve(self, principal: Principal, watch_id: str) -> Watch:
        """Activate a proposal, and check it at once: what that finds stands in the watch that is returned.

        Raises:
            WatchInvalid: it is no proposal any more.
            WatchNotFound: as ``get``.
            Forbidden: as ``get``.
            CapReached: too many are active.
        """
        await self.get(principal, watch_id, Action.APPROVE)
        now, cursor = self.evaluator.now(), self.journal_end()

        def work(stands: Watch) -> Decision | None:
            self.authorizer.check(principal, Action.APPROVE, stands)
            require_readable(stands)
            if stands.status is not Status.PROPOSED:
                raise WrongState([f"watch {watch_id} is {stands.status.value}; only proposals are approved"])
            if not principal.is_operator and self.verifiers.trust(stands.verifier) is not Trust.SAFE:
                raise Forbidden(Action.APPROVE, watch_id, "only an operator approves such a verifier")
            # Not due before the check below, whose result is the answer, has been made.
            later = next_check(stands, now, stands.interval_s)
            active = replace(stands, status=Status.ACTIVE, cursor=cursor, next_check_at=later)
            return Decision(active, (Raised(Signal.ARMED, None, "approved"),))

        await self._change(watch_id, work, now)
        return await self.evaluate_now(principal, watch_id, Action.APPROVE)

    async def reject(self, principal: Principal, watch_id: str) -> Watch:
        """End a proposal without activating it."""
        return await self._end(principal, watch_id, Action.APPROVE, EndReason.REJECTED)

    async def evaluate_now(self, principal: Principal, watch_id: str, action: Action = Action.EDIT) -> Watch:
        """Check an active watch now, and wait for that; one that is being checked already is left alone.

        Raises:
            WatchNotFound: as ``get``.
            Forbidden: as ``get``.
            WrongState: its record cannot be read.
        """
        require_readable(await self.get(principal, watch_id, action))
        take = partial(self.store.take_one, watch_id, self.evaluator.now(), lease_s=self.evaluator.lease_s)
        if (lease := await _in_thread(take)) is not None:
            await self.evaluator.evaluate(lease)
        self.on_changed()
        watch = await _in_thread(partial(self.store.get, watch_id))
        if watch is None:
            raise WatchNotFound(watch_id)
        return watch

    async def apply_watches(self, principal: Principal, requests: Sequence[WatchRequest]) -> Applied:
        """Make the asker's applied watches be exactly these; a second time changes nothing.

        One that has ended by itself since stays ended, unless it is asked for with ``replace``.

        Raises:
            WatchInvalid: one of them cannot be, or has no id; nothing has changed then.
            IdTaken: two have the same id; nothing has changed then.
            CapReached: too many are active; those before it are armed.
        """
        await self._require_enabled(principal)
        ids = [request.id for request in requests]
        if None in ids:
            raise WatchInvalid(["each watch of a set has an id"])
        require_distinct(ids)
        now, defaults = self.evaluator.now(), await self._defaults()

        def planned_ones() -> dict[str, tuple[Watch, WatchRequest]]:
            made = [(planned(request, principal, self.verifiers, defaults, now), request) for request in requests]
            return {watch.id: (watch, request) for watch, request in made}

        plans = await _in_thread(planned_ones)
        find = partial(
            self.store.find,
            tenant=principal.tenant,
            owner=principal.actor,
            applied=True,
        )
        stands = {watch.id: watch for watch in await _in_thread(find)}
        extra = sorted(id_ for id_ in stands.keys() - plans.keys() if stands[id_].status is not Status.ENDED)
        for watch_id in extra:  # first, so that they give up their places
            await self.cancel_watch(principal, watch_id)
        armed, kept = list[str](), list[str]()
        for watch_id, (plan, request) in plans.items():
            if watch_id in stands and _still_holds(stands[watch_id], plan, request):
                kept.append(watch_id)
            else:
                await self._arm(principal, request, depth=0, applied=True)
                armed.append(watch_id)
        return Applied(tuple(armed), tuple(kept), tuple(extra))

    async def evaluations(self, principal: Principal, watch_id: str, limit: int = 100) -> list[Evaluation]:
        """The latest checks of a watch, newest first."""
        await self.get(principal, watch_id)
        return await _in_thread(partial(self.store.evaluations, watch_id, limit))

    async def notifications(self, principal: Principal, limit: int = 100) -> list[Delivery]:
        """What the asker is told in the console, newest first."""
        return await self.deliveries(principal, channel=Channel.IN_APP, limit=limit)

    async def deliveries(
        self, principal: Principal, *, watch_id: str | None = None, channel: Channel | None = None, limit: int = 100
    ) -> list[Delivery]:
        """What the asker's watches have to tell, by whatever channel, newest first."""
        tenant = None if principal.is_operator else principal.tenant
        owner = None if principal.is_operator else principal.actor
        find = partial(self.outbox.find, watch_id=watch_id, tenant=tenant, owner=owner, home=principal.home)
        return await _in_thread(partial(find, channel=channel, limit=limit))

    async def live_in(self, session: str, tenant: str = "local") -> list[Watch]:
        """The active watches of a session that are checked; while there are some, a codon may wait for them."""
        find = partial(
            self.store.find, tenant=tenant, session=session, home=self.defaults.home, statuses=(Status.ACTIVE,)
        )
        return [watch for watch in await _in_thread(find) if watch.fault is None]

    async def tell_every_ending(self, session: str, tenant: str = "local") -> None:
        """Let the session be woken by any ending of its watches from now on: somebody waits for them."""
        now = self.evaluator.now()

        def work(stands: Watch) -> Decision | None:
            is_checked = stands.status is Status.ACTIVE and stands.fault is None
            if not is_checked or (stands.notify_on >= ENDINGS and "wake" in stands.actions):
                return None
            wants = stands.notify_on | ENDINGS
            return Decision(replace(stands, notify_on=wants, actions=stands.actions | {"wake"}), ())

        for watch in await self.live_in(session, tenant):
            await self._change(watch.id, work, now)

    async def _arm(self, principal: Principal, request: WatchRequest, *, depth: int, applied: bool) -> Armed:
        now = self.evaluator.now()
        defaults = await self._defaults()
        # In a thread: conditions and triggers are compiled.
        watch = await _in_thread(partial(planned, request, principal, self.verifiers, defaults, now, depth=depth))
        watch = replace(watch, cursor=self.journal_end())
        self.authorizer.check(principal, Action.PROPOSE, watch)
        for number in range(1, _ID_TRIES + 1):
            candidate = watch if number == 1 else replace(watch, id=f"{watch.id}-{number}")
            takes_over = partial(self._takes_over, principal, request, candidate, applied=applied)
            arm = partial(
                self.store.arm,
                candidate,
                counts=not principal.is_operator,
                applied=applied,
                now=now,
                twins=request.id is not None or request.replace,
                takes_over=takes_over,
            )
            try:
                stored, is_new = await _in_thread(arm)
            except IdTaken:  # a derived id may be another's by chance
                if request.id is not None or number == _ID_TRIES:
                    raise
            else:
                break
        self.on_changed()
        return Armed(stored, is_new)

    def _takes_over(
        self, principal: Principal, request: WatchRequest, new: Watch, stands: Watch, *, applied: bool
    ) -> bool:
        """Whether a new watch takes the place of the one that has its id.

        Raises:
            IdTaken: it is somebody else's, or another live one that nobody asked to replace.
        """
        is_own = (stands.tenant, stands.owner) == (principal.tenant, principal.actor)
        # A session of the same name in another execution; what has ended there only left its id behind.
        is_elsewhere = principal.home not in {None, stands.home} and stands.status is not Status.ENDED
        if (not is_own or is_elsewhere) and not (principal.is_operator and request.id is not None):
            raise IdTaken(stands.id, "choose another")
        if stands.status is Status.ENDED or request.replace or applied:
            return True
        if identity_of(stands) == identity_of(new):
            return False
        raise IdTaken(stands.id, "say replace to take its place, or edit it")

    async def _end(self, principal: Principal, watch_id: str, action: Action, reason: EndReason) -> Watch:
        await self.get(principal, watch_id, action)
        now = self.evaluator.now()

        def work(stands: Watch) -> Decision | None:
            self.authorizer.check(principal, action, stands)
            return None if stands.status is Status.ENDED else end(stands, reason, now)

        ended = await self._change(watch_id, work, now)
        self.on_changed()
        if not await ends_within(self.evaluator.clock, SINK_LIMIT_S + 1.0, partial(self._hand_over, watch_id)):
            await _in_thread(partial(self.outbox.withdraw, watch_id, self.evaluator.now(), overdue=True))
        return ended

    async def _hand_over(self, watch_id: str) -> None:
        """A wake that somebody is just handing over arrives before a cancel returns, or never.

        That holds for a fire that came before the cancel too, and whose wake still waits.
        """
        while not await _in_thread(partial(self.outbox.withdraw, watch_id, self.evaluator.now())):
            await self.evaluator.clock.sleep(_LOOK_AGAIN_S)

    async def _change(self, watch_id: str, work: Callable[[Watch], Decision | None], now: datetime) -> Watch:
        changed = await _in_thread(partial(self.store.change, watch_id, work, now))
        if changed is None:
            raise WatchNotFound(watch_id)
        return changed

    def _may(self, principal: Principal, action: Action, watch: Watch) -> bool:
        try:
            self.authorizer.check(principal, action, watch)
        except (Forbidden, WatchNotFound):
            return False
        return True

    async def settings(self) -> dict[str, Setting]:
        """What can be set for the store while it is in use, as it holds now, by name."""
        configured = Configured(self.defaults.interval_s, self.agents_enabled, self.keep_terminal_h)
        return await _in_thread(partial(self.store.settings.holding, configured))

    async def change_settings(self, principal: Principal, edit: SettingsEdit) -> dict[str, Setting]:
        """Set what is given for every process that works with this store; null goes back to what is configured.

        Raises:
            Forbidden: the asker is no operator.
        """
        if not principal.is_operator:
            raise Forbidden("set", "*", "only an operator sets what holds for all watches")
        changes = edit.model_dump(exclude_unset=True)
        await _in_thread(partial(self.store.settings.write, changes, principal.actor, self.evaluator.now()))
        self.on_changed()
        return await self.settings()

    async def _defaults(self) -> Defaults:
        return replace(self.defaults, interval_s=float((await self.settings())["interval"].value))

    async def _require_enabled(self, principal: Principal) -> None:
        if principal.is_agent and not (await self.settings())["enabled"].value:
            raise Forbidden("use", "*", "watches are switched off for agents (watches.enabled)")


def described(watch: Watch) -> dict[str, Any]:
    """A watch as it is listed everywhere: what was asked for, how it stands, and the seeds' word for it."""
    record: dict[str, Any] = orjson.loads(encode(watch))
    del record["cursor"]
    several = {name: sorted(record[name]) for name in ("actions", "notify_on")}
    return {**record, **several, "state": state_word(watch)}


def state_word(watch: Watch) -> str:
    """``proposed``, ``active``, or the ending, in the words of the systems this one follows (spec watches 1)."""
    if watch.status is not Status.ENDED:
        return watch.status.value
    return {
        EndReason.SATISFIED: "met",
        EndReason.CHANGED: "met",
        EndReason.IMPOSSIBLE: "terminal_unsatisfied",
        EndReason.EXPIRED: "expired",
    }.get(watch.end_reason or EndReason.CANCELLED, "canceled")


_ASKED: Final = (
    "kind",
    "session",
    "condition",
    "trigger",
    "repeat",
    "interval_s",
    "stall_after",
    "run_prompt",
    "run_session",
    "actions",
    "notify_on",
)


def _still_holds(stands: Watch, plan: Watch, request: WatchRequest) -> bool:
    """Whether what was applied before needs no arming now."""
    if not _asks_the_same(stands, plan, request):
        return False
    ended_by_itself = stands.end_reason in {
        EndReason.SATISFIED,
        EndReason.CHANGED,
        EndReason.IMPOSSIBLE,
        EndReason.EXPIRED,
    }
    return stands.status is not Status.ENDED or (ended_by_itself and not request.replace)


def _asks_the_same(live: Watch, plan: Watch, request: WatchRequest) -> bool:
    """Whether a live watch is what the request would make; times that count from now on do not matter."""
    is_relative = isinstance(request.verifier, TimeSpec) and request.verifier.after_s is not None
    return (
        all(getattr(live, name) == getattr(plan, name) for name in _ASKED)
        and (is_relative or live.verifier == plan.verifier)
        and (request.deadline is None or live.expires_at == plan.expires_at)
    )


async def _in_thread(work: Callable[[], T]) -> T:
    return await anyio.to_thread.run_sync(work)
