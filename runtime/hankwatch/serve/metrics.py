"""``/metrics`` for Prometheus, ``/healthz`` and ``/readyz``. No id is ever a label."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate, islice
from typing import Final

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.responses import Response

from hankwatch.core.errors import StoreFailed
from hankwatch.core.request_errors import ScopeMissing
from hankwatch.serve.context import Asking, Served, Serving
from hankwatch.serve.counters import LATENCIES_S, Counters
from hankwatch.serve.gate import Gate
from hankwatch.serve.problems import problem

router = APIRouter(tags=["operation"])
_EXECUTIONS: Final = 200
"""The newest, whose journals are counted."""
_TEXT: Final = "text/plain; charset=utf-8"


@router.get("/metrics", response_class=Response, responses={200: {"content": {_TEXT: {"schema": {"type": "string"}}}}})
def metrics(request: Request, serving: Served, caller: Asking) -> Response:
    """What runs, sentinels, watches and this server did; those of journals are counted anew at each start."""
    caller.require("metrics:read")
    if not caller.sees_runs:
        raise ScopeMissing("metrics count the runs of another tenant")
    gate: Gate = request.app.state.gate
    registry = CollectorRegistry()
    registry.register(_Collected([*_of_server(serving, gate), *_of_journals(serving), *_of_watches(serving)]))
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


@router.get("/healthz")
def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
def readyz(serving: Served) -> Response:
    """Everything that requests need is there; 503 names what is not."""
    missing = list(_missing(serving))
    if missing:
        return problem(503, "not-ready", f"not ready: {', '.join(missing)}", faults=missing)
    return Response(b'{"status":"ready"}', media_type="application/json")


def _missing(serving: Serving) -> Iterator[str]:
    if not serving.shelf.folder.is_dir():
        yield "the folder of executions is not there"
    if serving.door.policy is not None:
        serving.door.policy.current()
        if serving.door.policy.fault is not None:
            yield "the policy file has faults, and what it said before is in force"
    try:
        serving.watches.store.engines.liveness(serving.scope, serving.watches.evaluator.now())
    except StoreFailed:
        yield "the watch store does not answer"


class _Collected(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


def _counter(name: str, about: str, label: str, values: Iterable[tuple[str, float]]) -> CounterMetricFamily:
    family = CounterMetricFamily(f"hankwatch_{name}", about, labels=[label])
    for value, count in values:
        family.add_metric([value], count)
    return family


def _of_server(serving: Serving, gate: Gate) -> Iterator[Metric]:
    answers = CounterMetricFamily(
        "hankwatch_http_requests", "Requests by what was answered.", labels=["method", "route", "status"]
    )
    for (method, route, status), count in sorted(gate.answers.items()):
        answers.add_metric([method, route, str(status)], count)
    yield answers
    streams = serving.streams
    opened = GaugeMetricFamily("hankwatch_stream_clients", "Live streams that are open.", labels=["protocol"])
    for protocol, count in streams.open.items():
        opened.add_metric([protocol], count)
    yield opened
    yield GaugeMetricFamily("hankwatch_stream_queue_depth", "Events that wait for clients.", streams.waiting)
    yield _counter("stream_events", "Events sent to clients.", "protocol", streams.sent.items())
    yield _counter("stream_slow_clients", "Clients closed for being slow.", "protocol", streams.slow.items())


def _of_journals(serving: Serving) -> Iterator[Metric]:
    counted, unread_bytes, live = list[Counters](), 0, 0
    for followed in islice(serving.shelf.executions(), _EXECUTIONS):
        before = followed.cursor
        followed.catch_up()
        unread_bytes += max(0, followed.cursor - before)
        counted.append(followed.counters)
        live += followed.live
    yield GaugeMetricFamily("hankwatch_live_runs", "Executions that a process is at.", live)
    yield GaugeMetricFamily(
        "hankwatch_journal_lag_bytes", "What journals had more than was read when this was asked.", unread_bytes
    )
    yield _counter("events", "Events in journals.", "type", _sum(one.events for one in counted))
    yield GaugeMetricFamily(
        "hankwatch_sentinel_queue_depth", "Triggers without an end so far.", sum(one.waiting for one in counted)
    )
    yield CounterMetricFamily("hankwatch_sentinel_fires", "Triggers.", sum(one.fired for one in counted))
    yield _counter("sentinel_ends", "Triggers by what came of them.", "outcome", _sum(one.fires for one in counted))
    yield CounterMetricFamily(
        "hankwatch_sentinel_dropped", "Triggers lost to full queues.", sum(one.dropped for one in counted)
    )
    yield CounterMetricFamily(
        "hankwatch_sentinel_dropped_events", "Events in those.", sum(one.dropped_events for one in counted)
    )
    yield CounterMetricFamily(
        "hankwatch_sentinel_abandoned", "Triggers given up at an end.", sum(one.abandoned for one in counted)
    )
    yield CounterMetricFamily("hankwatch_sentinel_calls", "Model calls.", sum(one.calls for one in counted))
    tokens = CounterMetricFamily("hankwatch_tokens", "Tokens.", labels=["who", "direction"])
    for words, count in _sum(one.tokens for one in counted):
        tokens.add_metric(words.split(), count)
    yield tokens
    costs = (
        ("agent", sum(one.agent_cost_usd for one in counted)),
        ("sentinel", sum(one.sentinel_cost_usd for one in counted)),
    )
    yield _counter("cost_usd", "Known cost in US dollars.", "who", costs)
    yield _latencies(counted)
    yield _counter("watchdog_actions", "What the loop watchdog did.", "action", _sum(one.watchdog for one in counted))


def _latencies(counted: list[Counters]) -> HistogramMetricFamily:
    family = HistogramMetricFamily("hankwatch_sentinel_call_seconds", "From trigger to answer or failure.")
    buckets = [sum(counts) for counts in zip(*(one.latencies for one in counted), strict=True)]
    bounds = [*map(str, LATENCIES_S), "+Inf"]
    summed = list(accumulate(buckets)) or [0] * len(bounds)
    family.add_metric([], list(zip(bounds, summed, strict=True)), sum(one.latency_sum_s for one in counted))
    return family


def _of_watches(serving: Serving) -> Iterator[Metric]:
    noted = serving.watches.evaluator.metrics
    yield _counter("watch_fires", "Fires of watches.", "trigger", noted.fires.items())
    yield _counter("watch_flapping", "Episodes of flapping.", "trigger", noted.flapping.items())
    yield _counter("watch_checks", "Checks of watches.", "outcome", noted.checks.items())
    try:
        liveness = serving.watches.store.engines.liveness(serving.scope, serving.watches.evaluator.now())
    except StoreFailed:
        return
    yield GaugeMetricFamily("hankwatch_watch_lag_seconds", "How overdue the most overdue watch is.", liveness.lag_s)


def _sum(counters: Iterable[Counter[str]]) -> list[tuple[str, int]]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return sorted(total.items())
