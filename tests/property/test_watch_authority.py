"""Nobody touches or reads what is not theirs, nor raises what they are trusted with (spec watches 8, invariants 9 and 10)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import anyio
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.support.watch_bench import WatchBench

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import CapReached, Forbidden, WatchInvalid, WatchNotFound
from hankwatch.watches.authority import AGENT_WATCHES, Principal, Standing, agent, operator
from hankwatch.watches.checks import Check, Finding, Trust
from hankwatch.watches.policies import Caps
from hankwatch.watches.requests import read_edit, read_request
from hankwatch.watches.watch import Kind, Outcome, Status, Watch

ENTITLED: Final = frozenset({AGENT_WATCHES})
STRANGERS: Final[list[Principal]] = [
    agent("main"),
    agent("other"),
    Principal("local", "bob", sessions={"other": Standing.OWNER}, entitlements=ENTITLED),
    Principal("local", "carol", sessions={"main": Standing.MEMBER}, entitlements=ENTITLED),
    Principal("local", "dave", sessions={"main": Standing.OWNER}, is_scoped=True, entitlements=ENTITLED),
    Principal("elsewhere", "alice", sessions={"*": Standing.OWNER}, entitlements=ENTITLED),
]
"""Nobody of them may manage alice's watches in session ``main``."""
UNTRUSTED: Final = [
    agent("main"),
    Principal("local", "alice", sessions={"main": Standing.OWNER}, entitlements=ENTITLED),
]
ALICE: Final = UNTRUSTED[1]
VERIFIERS: Final[list[dict[str, Any]]] = [
    {"type": "check", "name": "dial", "args": {"name": "a"}},
    {"type": "check", "name": "root", "args": {"name": "a"}},
    {"type": "command", "command": "true"},
    {"type": "document", "path": "in.json"},
    {"type": "document", "path": "/etc/passwd"},
    {"type": "document", "path": "../up.json"},
    {"type": "time", "after_s": 50},
    {"type": "event", "trigger": {"type": "event", "on": ["codon.completed"]}},
]
REQUESTS: Final = st.fixed_dictionaries(
    {
        "condition": st.sampled_from(["one", "two"]),
        "verifier": st.sampled_from(VERIFIERS),
        "session": st.sampled_from(["main", "other"]),
    },
    optional={
        "id": st.sampled_from(["taken", "mine", "free"]),
        "replace": st.booleans(),
        "kind": st.sampled_from([kind.value for kind in Kind]),
        "never_expires": st.booleans(),
    },
)
EDITS: Final = st.fixed_dictionaries(
    {}, optional={"condition": st.just("another"), "verifier": st.sampled_from(VERIFIERS), "interval_s": st.just(60)}
)
pytestmark = pytest.mark.slow
quick = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])


async def _root(_: object, __: object) -> Finding:
    return Finding(Outcome.PENDING)


def played(scenario: Callable[[WatchBench], Any], **more: Any) -> None:
    """Run a scenario over a fresh store."""

    async def run() -> None:
        with TemporaryDirectory() as folder:
            root = Check("root", _root, behaviour="root", trust=Trust.OPERATOR)
            bench = WatchBench(str(Path(folder) / "w.db"), VirtualClock(), checks=(root,), **more)
            try:
                await scenario(bench)
            finally:
                bench.database.close()

    anyio.run(run)


async def refused(work: Callable[[], Any]) -> bool:
    try:
        await work()
    except (Forbidden, WatchNotFound, WatchInvalid, CapReached):
        return True
    return False


@quick
@given(st.sampled_from(STRANGERS), REQUESTS, EDITS)
def test_a_stranger_neither_reads_nor_changes_a_watch_by_any_way(
    stranger: Principal, request: dict[str, Any], edit: dict[str, Any]
) -> None:
    async def scenario(bench: WatchBench) -> None:
        watch = await bench.arm("a", principal=ALICE, id="taken")
        service, asked = bench.service, read_request(request | {"id": "taken"})
        assert watch not in await service.list_watches(stranger)
        for attempt in (
            partial(service.get, stranger, watch.id),
            partial(service.update_watch, stranger, watch.id, read_edit(edit)),
            partial(service.cancel_watch, stranger, watch.id),
            partial(service.approve, stranger, watch.id),
            partial(service.reject, stranger, watch.id),
            partial(service.evaluate_now, stranger, watch.id),
            partial(service.evaluations, stranger, watch.id),
            partial(service.create_watch, stranger, asked),
            partial(service.apply_watches, stranger, [asked]),
        ):
            assert await refused(attempt)
        assert not await refused(partial(service.apply_watches, stranger, []))
        assert bench.store.get(watch.id) == watch
        assert await service.notifications(stranger) == []

    played(scenario)


@quick
@given(REQUESTS, st.booleans())
def test_the_agent_of_a_session_of_the_same_name_in_another_execution_is_a_stranger(
    request: dict[str, Any], meets: bool
) -> None:
    owner, other = agent("main", home="/first"), agent("main", home="/second")

    async def scenario(bench: WatchBench) -> None:
        bench.dials.says["a"] = meets
        await bench.arm("a", principal=owner, id="taken", repeat=True, actions=["in_app"])
        watch = await bench.service.evaluate_now(owner, "taken")
        asked = read_request(request | {"id": "taken"})
        assert len(await bench.service.notifications(owner)) == meets
        bench.service.defaults = replace(bench.service.defaults, home="/second")
        assert await bench.service.notifications(other) == []
        assert await bench.service.deliveries(other, watch_id=watch.id) == []
        assert await bench.service.list_watches(other) == []
        assert await refused(partial(bench.service.create_watch, other, asked))
        assert bench.store.get(watch.id) == watch

    played(scenario, home=Path("/first"))


@quick
@given(st.sampled_from(UNTRUSTED), st.lists(REQUESTS, min_size=1, max_size=4), EDITS)
@example(ALICE, [{"condition": "one", "verifier": VERIFIERS[1], "session": "main"}], {})
@example(agent("main"), [{"condition": "one", "verifier": VERIFIERS[2], "session": "main"}], {})
@example(ALICE, [{"condition": "one", "verifier": VERIFIERS[0], "session": "main"}], {"verifier": VERIFIERS[1]})
def test_no_way_of_asking_activates_a_verifier_that_only_an_operator_may_arm(
    asker: Principal, requests: list[dict[str, Any]], edit: dict[str, Any]
) -> None:
    async def scenario(bench: WatchBench) -> None:
        service = bench.service
        await bench.arm("a", principal=asker, id="mine")
        for request in requests:
            asked = read_request(request)
            await refused(partial(service.create_watch, asker, asked))
            await refused(partial(service.apply_watches, asker, [asked]))
        for watch in await service.list_watches(asker):
            await refused(partial(service.update_watch, asker, watch.id, read_edit(edit)))
            await refused(partial(service.approve, asker, watch.id))
        for watch in bench.store.find():
            was_active = watch.status is Status.ACTIVE or watch.check_count > 0
            assert is_harmless(bench, watch) or not was_active, watch.verifier

    played(scenario)


def is_harmless(bench: WatchBench, watch: Watch) -> bool:
    verifiers = bench.evaluator.verifiers
    of_a_monitor = watch.kind is Kind.MONITOR and watch.verifier.type == "check"
    return verifiers.trust(watch.verifier) is Trust.SAFE or (of_a_monitor and watch.verifier.name == "dial")  # type: ignore[union-attr]


@quick
@given(st.lists(REQUESTS, max_size=3), st.booleans())
def test_applying_the_same_set_twice_changes_nothing(requests: list[dict[str, Any]], meets: bool) -> None:
    """Nor does it when one of them has come true in between; a smaller set cancels exactly what it lacks."""
    named = [
        read_request(request | {"id": f"set-{number}", "replace": False, "kind": "watch"})
        for number, request in enumerate(requests)
    ]

    async def scenario(bench: WatchBench) -> None:
        by_hand = await bench.arm("by hand")
        first = await bench.service.apply_watches(operator(), named)
        if meets:
            bench.dials.says["a"] = True
            for request in named:
                await bench.service.evaluate_now(operator(), request.id or "")
        before = bench.store.find()
        second = await bench.service.apply_watches(operator(), named)

        assert bench.store.find() == before
        assert set(second.kept) == set(first.armed)
        assert (second.armed, second.cancelled) == ((), ())
        smaller = await bench.service.apply_watches(operator(), named[:-1])
        live = [watch.id for watch in before if watch.status is Status.ACTIVE and watch.id == f"set-{len(named) - 1}"]
        assert list(smaller.cancelled) == live
        assert bench.stands(by_hand).status is Status.ACTIVE

    played(scenario)


@quick
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=12))
def test_caps_hold_whatever_is_armed_and_cancelled(steps: list[tuple[int, bool]]) -> None:
    async def scenario(bench: WatchBench) -> None:
        for number, arms in steps:
            if arms:
                await refused(partial(bench.arm, str(number), principal=ALICE, id=f"w{number}"))
            else:
                await refused(partial(bench.service.clear_watch, ALICE, f"w{number}"))
            assert len(bench.store.find(statuses=[Status.ACTIVE])) <= 2
        await bench.arm("an operator's")  # is held to no cap

    played(scenario, caps={Kind.WATCH: Caps(per_session=2)})
