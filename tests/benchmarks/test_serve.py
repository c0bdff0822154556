"""What a server carries: events to 1, 10 and 100 live clients, requests over 10,000 watches, a run that is served.

Run with ``make bench``; prints what it measured. Each ratio is measured side by side in one run.
"""

import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import httpx
import pytest
from anyio.from_thread import start_blocking_portal
from tests.benchmarks.test_watches import FEW, MANY, armed, dial
from tests.support.cli import Cli
from tests.support.raw_clients import clients
from tests.support.serving import execution, journal_of, lines
from tests.support.streams import Bench, info
from tests.support.watch_bench import WatchBench

from hankwatch.core.clock import SystemClock
from hankwatch.serve.auth import open_door
from hankwatch.serve.context import Serving
from hankwatch.serve.server import address_of, listen, serving_on
from hankwatch.serve.shelf import Shelf
from hankwatch.stream import Journal
from hankwatch.watches.service import WatchService

pytestmark = pytest.mark.benchmark

EVENTS = 4_000
ROUNDS = 3
CALLS = 300


@contextmanager
def served(folder: Path, watches: WatchService | None = None) -> Iterator[str]:
    """The address of a server in a thread of its own."""
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        service = watches or stack.enter_context(a_store()).service
        serving = Serving(open_door("127.0.0.1", None), Shelf(folder), SystemClock(), service)
        listening = listen("127.0.0.1", 0)
        portal = stack.enter_context(start_blocking_portal())
        stack.enter_context(portal.wrap_async_context_manager(serving_on(listening, serving)))
        yield address_of(listening)


@contextmanager
def a_store() -> Iterator[WatchBench]:
    """One with few watches, of its own."""
    with TemporaryDirectory() as folder, armed(Path(folder) / "store", FEW, dial) as bench:
        yield bench


@pytest.mark.parametrize("protocol", ["sse", "websocket"])
def test_events_to_one_ten_and_a_hundred_clients(tmp_path: Path, protocol: str) -> None:
    cli = Cli(tmp_path, tmp_path)
    root = execution(cli.executions, "1764522000000-a", lines("first"))
    body = lines(*(f"{number} " + "x" * 200 for number in range(EVENTS)))
    rates = dict[int, float]()
    with cli.start("serve", "--json") as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        for count in (1, 10, 100):
            events, rounds = (EVENTS, ROUNDS) if count < 100 else (EVENTS // 4, ROUNDS)
            part = b"".join(body.splitlines(keepends=True)[:events])
            with clients(address, protocol, count) as crowd:
                taken = []
                for _ in range(rounds):
                    with journal_of(root).open("ab", buffering=0) as file:
                        file.write(part)
                    taken.append(crowd.read(events))
            rates[count] = events * count / statistics.median(taken)
        process.terminate()
        process.communicate(timeout=15)

    told = ", ".join(f"{rate:,.0f}/s to {count}" for count, rate in rates.items())
    print(f"\nevents sent over {protocol}: {told}")
    assert rates[10] > 0.7 * rates[1], "more clients may not cost more than what they are sent"
    assert rates[100] > 0.5 * rates[10]


def percentiles(calls: list[Callable[[], httpx.Response]], rounds: int = CALLS) -> list[tuple[float, float]]:
    """Milliseconds of the median and of the slowest of a hundred; the calls take turns."""
    taken: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, taken, strict=True):
            began_s = time.perf_counter()
            answer = call()
            times.append((time.perf_counter() - began_s) * 1_000)
            assert answer.is_success, answer.text
    return [(statistics.median(times), statistics.quantiles(times, n=100)[98]) for times in taken]


def test_requests_over_ten_thousand_watches(tmp_path: Path) -> None:
    with ExitStack() as stack:
        addresses = {}
        for name, count in (("few", FEW), ("many", MANY)):
            bench = stack.enter_context(armed(tmp_path / name, count, dial))
            addresses[name] = stack.enter_context(served(tmp_path / f"{name}-runs", bench.service))
        few = stack.enter_context(httpx.Client(base_url=addresses["few"]))
        many = stack.enter_context(httpx.Client(base_url=addresses["many"]))
        asked: dict[str, list[Callable[[], httpx.Response]]] = {
            "list 10": [partial(c.get, "/api/watches", params={"limit": 10}) for c in (few, many)],
            "get one": [partial(c.get, "/api/watches/watch-7") for c in (few, many)],
            "create": [creating(few), creating(many)],
        }
        for name, calls in asked.items():
            (few_50, few_99), (many_50, many_99) = percentiles(calls)
            told = (
                f"p50 {few_50:.1f}, p99 {few_99:.1f} ms with {FEW}; p50 {many_50:.1f}, p99 {many_99:.1f} ms with {MANY}"
            )
            print(f"\n{name}: {told}")
            assert many_50 < 2.5 * few_50, name
        page = percentiles([lambda: many.get("/api/watches", params={"limit": 200, "after": "watch-5"})], 50)[0]
        print(f"\nlist 200 of {MANY}: p50 {page[0]:.1f}, p99 {page[1]:.1f} ms")


def creating(client: httpx.Client) -> Callable[[], httpx.Response]:
    """Arms another watch with each call."""
    numbers = iter(range(1_000_000))

    def create() -> httpx.Response:
        number = next(numbers)
        written: dict[str, Any] = {
            "condition": f"created {number}",
            "verifier": {"type": "check", "name": "dial", "args": {"name": f"new-{number}"}},
            "id": f"created-{number}",
        }
        return client.post("/api/watches", json=written)

    return create


def test_a_server_in_a_thread_of_its_own_delays_no_emit(tmp_path: Path) -> None:
    """As ``run --serve`` has it; a server that is idle costs nothing, one that is asked only the interpreter's turns."""
    journal = execution(tmp_path / "runs", "a", lines("first")) / ".hankweave" / "events" / "events.jsonl"
    bench = Bench(Journal.open(journal, sync_interval_s=None))
    medians: dict[str, list[float]] = {"alone": [], "idle server": [], "asked server": []}

    def emit_all() -> float:
        taken = []
        for number in range(2_000):
            began_ns = time.perf_counter_ns()
            bench.stream.emit(info(f"step {number}"))
            taken.append(time.perf_counter_ns() - began_ns)
        return statistics.median(taken) / 1_000

    for _ in range(5):
        medians["alone"].append(emit_all())
        with served(tmp_path / "runs") as address:
            medians["idle server"].append(emit_all())
            ended = Event()
            asker = Thread(target=ask_on, args=(address, ended))
            asker.start()
            medians["asked server"].append(emit_all())
            ended.set()
            asker.join()
    bench.stream.close()
    told = {name: statistics.median(each) for name, each in medians.items()}
    print("\nmedian emit: " + ", ".join(f"{value:.0f} us {name}" for name, value in told.items()))
    assert told["idle server"] < 1.5 * told["alone"]


def ask_on(address: str, ended: Event) -> None:
    with httpx.Client(base_url=address) as client:
        while not ended.is_set():
            client.get("/api/runs/latest/events", params={"limit": 100})
