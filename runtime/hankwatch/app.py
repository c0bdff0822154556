"""Wires the rooms into a run; the only module that knows them all (design "Layout")."""

import logging
import os
import random
import string
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from hankwatch.agent import default_watchdog
from hankwatch.core.clock import Clock, StreamTime, SystemClock, Timers
from hankwatch.core.errors import (
    ConfigError,
    ExecutionUnusable,
    HankwatchError,
    InfrastructureError,
    JournalLocked,
    UsageError,
)
from hankwatch.core.redaction import Redactor
from hankwatch.core.tasks import task_group
from hankwatch.events.envelope import IdSource
from hankwatch.events.run import ErrorEvent
from hankwatch.hank.load import LoadedHank
from hankwatch.hank.model import Hank
from hankwatch.hank.templates import template_faults
from hankwatch.home_watches import HomeWatches, agent_variables
from hankwatch.llm.calls import CallLog
from hankwatch.llm.client import ModelClient
from hankwatch.llm.router import ModelRouter
from hankwatch.options import RunOptions, execution_dir, load_for_run, output_dir
from hankwatch.runner.archive import Archive
from hankwatch.runner.context import RunContext
from hankwatch.runner.control import Control
from hankwatch.runner.execution import Execution, open_execution, prepare, require_data
from hankwatch.runner.inbox import Inbox
from hankwatch.runner.jobs import CodonJob, codon_jobs
from hankwatch.runner.keeper import Keeper
from hankwatch.runner.layout import Layout
from hankwatch.runner.ledger import Ledger
from hankwatch.runner.orders import Orders
from hankwatch.runner.run import Run, RunResult
from hankwatch.runner.runlog import run_log
from hankwatch.runner.state import RunState, fold
from hankwatch.runner.wakes import WakeDesk, WatchJournal
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.manager import SentinelManager
from hankwatch.sentinels.retry import Retried, retry
from hankwatch.settings import Settings
from hankwatch.stream.journal import Journal
from hankwatch.stream.lock import holder, lock_path
from hankwatch.stream.reader import JournalReader
from hankwatch.stream.stream import EventStream
from hankwatch.watches.metrics import WatchMetrics

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class LiveRun:
    """A run that is open: started by ``carry_out``, steered by ``control`` and ``orders``, watched through ``stream``."""

    execution: Execution
    stream: EventStream
    control: Control
    orders: Orders
    """Takes what keys and connections ask for."""
    settings: Settings
    clock: Clock
    watch_metrics: WatchMetrics
    """Counts what the watches of its execution do."""
    name_port: Callable[[int], None]
    """Told where this process serves the run, which the lock file says then."""
    _run: Run
    _failure: "_Failure"

    @property
    def run_id(self) -> str:
        """Of the run it carries out now, another one after a rollback; markers of its children begin with it."""
        return self._run.context.ledger.run_id

    @property
    def hank(self) -> Hank:
        """What it carries out."""
        return self._run.context.hank

    @property
    def state(self) -> RunState:
        """What its execution has done so far, earlier runs included."""
        return self._run.context.ledger.state

    async def carry_out(self) -> RunResult:
        """The run, to its end.

        Raises:
            InfrastructureError: the journal failed; everything was ended.
        """
        with anyio.CancelScope() as scope:
            self._failure.watch(scope)
            result = await self._run.run()
            if self._failure.error is None:
                return result
        assert self._failure.error is not None  # nothing else cancels this scope
        raise self._failure.error

    def stop(self) -> None:
        """End the run within its stop budget; asking again changes nothing."""
        self.orders.stop()


class _Failure:
    """The journal's failure on its way from wherever it was met to the run."""

    def __init__(self) -> None:
        self.error: InfrastructureError | None = None
        self._scope: anyio.CancelScope | None = None

    def watch(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        if self.error is not None:
            scope.cancel()

    def tell(self, error: InfrastructureError) -> None:
        _LOG.error("the run ends: %s", error)
        self.error = error
        if self._scope is not None:
            self._scope.cancel()


async def run_hank(
    path: Path | str,
    *,
    data: Path | str | None = None,
    execution: Path | str | None = None,
    start_new: bool = False,
    model: str | None = None,
    config: Path | str | None = None,
    max_cost_usd: float | None = None,
    max_time_s: float | None = None,
    resume: bool = False,
    environ: Mapping[str, str] | None = None,
    model_client: ModelClient | None = None,
) -> RunResult:
    """Run a hank to its end, under its sentinels.

    Cancelling this ends its agents at once and leaves the run without an end, as a crash would. To stop a
    run in order, or to watch its events, use ``open_run``.

    Args:
        path: A hank.json, or the folder that holds one.
        data: What the agent may read; linked into its working directory.
        execution: The execution directory; None makes a new one under ``run.execution_base_dir``.
        start_new: Allow a further run in an execution that was used before.
        model: Model of all codons instead of their own.
        config: Settings file instead of the one found.
        max_cost_usd: Ceiling of the run instead of those of settings and hank, in US dollars.
        max_time_s: Ceiling of the run instead of those of settings and hank, in seconds of agents' work.
        resume: Go on with the latest run of ``execution``, which was killed, was stopped or failed.
        environ: Variables for settings, keys and agents; default: this process's.
        model_client: Answers the sentinels instead of builtin models and providers.

    Returns:
        How it ended; a failed codon is a result and raises nothing.

    Raises:
        ConfigError: the hank, its settings or a required sentinel have faults.
        UsageError: something that cannot be meant, or that this version does not carry out.
        InfrastructureError: the journal cannot be written, or another process runs in the execution.
    """
    options = RunOptions(
        Path(path),
        None if data is None else Path(data),
        None if execution is None else Path(execution),
        start_new,
        model,
        None if config is None else Path(config),
        max_cost_usd=max_cost_usd,
        max_time_s=max_time_s,
        resume=resume,
    )
    async with open_run(options, environ=environ, model_client=model_client) as live:
        return await live.carry_out()


@asynccontextmanager
async def open_run(
    options: RunOptions,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    model_client: ModelClient | None = None,
) -> AsyncIterator[LiveRun]:
    """Read and check everything, take the execution directory and its lock; leaving closes all of it.

    Nothing is written before all that can be checked was found in order.

    Args:
        options: What to run, and where.
        environ: Default: this process's environment.
        clock: Default: the machine's.
        model_client: Answers the sentinels instead of builtin models and providers.

    Raises:
        ConfigError: the hank, its settings or a required sentinel have faults.
        UsageError: something that cannot be meant, or that this version does not carry out.
        JournalLocked: another process runs in the execution directory.
        ExecutionUnusable: the execution directory cannot be read or written.
    """
    environ, clock = os.environ if environ is None else environ, clock or SystemClock()
    if options.wake:
        options = _of_wakes(options)
    hank, settings = load_for_run(options, environ)
    require_data(options.data)
    layout = Layout(execution_dir(options, hank, settings, environ, clock))
    jobs = codon_jobs(
        hank,
        run=settings.run,
        agents=settings.agents,
        environ=environ,
        layout=layout,
        default_watchdog=default_watchdog(),
        orientation=agent_variables(settings, environ),
    )
    redactor = settings.redaction.redactor(_all_variables(environ, jobs))
    run_id = _run_id(clock)
    failure, control = _Failure(), Control(autostart=settings.run.autostart)
    async with AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(Sandbox(clock=clock))
        if faults := await template_faults(hank, sandbox, required_only=True):
            raise ConfigError(faults)
        journal = _take(layout, run_id, settings, again=options.start_new or options.resume or options.wake)
        stack.callback(journal.close)
        execution = prepare(layout, hank=hank.path, data=options.data, now=clock.now())
        changed = options.resume and not execution.began_with(hank.path)
        stack.enter_context(run_log(layout.log, redactor))
        stream = _stream(journal, redactor, failure, clock)
        stack.callback(stream.close)
        state = fold(JournalReader(layout.journal).read(types={"state.transition"}))
        if options.resume:
            _require_resumable(layout, state)
        ledger = Ledger(stream, run_id, state)
        tasks = await stack.enter_async_context(task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(_until_journal_fails, partial(stream.run, clock))
        if model_client is None:
            router = _router(environ, settings, redactor, clock, layout)
            stack.push_async_callback(router.aclose)
            tasks.start_soon(router.warm_up, _models(hank))
            model_client = router
        manager = await stack.enter_async_context(
            SentinelManager(
                stream,
                model_client,
                sandbox,
                managed_dir=layout.managed,
                agent_root=layout.agent_root,
                clock=clock,
                persistence=settings.sentinel.persistence,
            )
        )

        desk = WakeDesk(ledger, jobs, layout.journal, only_wakes=options.wake)
        watches = HomeWatches(
            settings,
            environ,
            layout.root.resolve(),
            redactor,
            clock,
            WatchJournal(stream, layout.journal, str(layout.root.resolve())),
            desk,
            partial(_tell_no_watches, stream),
        )
        assert hank.config is not None
        context = RunContext(
            hank=hank.config,
            budget=settings.run.budget,
            ledger=ledger,
            stream=stream,
            manager=manager,
            control=control,
            redactor=redactor,
            layout=layout,
            clock=clock,
            archive=await _archive(layout),
            keeper=Keeper(hank.config, ledger, control, layout, environ, clock),
            hank_dir=hank.hank_dir.resolve(),
            drain_s=settings.sentinel.drain_s,
            output_dir=output_dir(settings),
            ignore_rig_failures=settings.run.ignore_rig_failures,
            watches=watches,
        )
        orders = Orders(control, clock, settings.run.stop_budget_s, context.keeper.list_all)
        tasks.start_soon(_until_journal_fails, Inbox(run_id, layout, ledger, orders, clock).run)
        run = Run(
            jobs,
            context,
            partial(_run_id, clock),
            journal.name_run,
            options.resume,
            changed,
            desk,
            options.wake,
        )
        metrics, name_port = watches.metrics, journal.name_port
        yield LiveRun(execution, stream, control, orders, settings, clock, metrics, name_port, run, failure)


async def retry_sentinels(
    execution: Execution,
    sentinel_id: str | None = None,
    *,
    run_id: str | None = None,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    model_client: ModelClient | None = None,
) -> list[Retried]:
    """Carry out once more the triggers of an ended run that failed, with the hank as it is now (spec sentinels 5).

    Args:
        execution: Where the run was.
        sentinel_id: Only this sentinel's triggers.
        run_id: The run whose triggers; None for the execution's latest.
        config: Settings file instead of the one found.
        environ: Default: this process's environment.
        clock: Default: the machine's.
        model_client: Answers instead of builtin models and providers.

    Raises:
        ConfigError: the hank or its settings have faults.
        UsageError: nothing ran there, or the hank is gone.
        JournalLocked: a run is live there.
        InfrastructureError: the journal cannot be written.
    """
    environ, clock = os.environ if environ is None else environ, clock or SystemClock()
    layout = execution.layout
    loaded, settings = load_for_run(RunOptions(_hank_of(execution), config=config), environ)
    sources = loaded.sentinels
    if sentinel_id is not None and all(s.id != sentinel_id for of_codon in sources.values() for s in of_codon):
        raise UsageError(f"the hank of {execution.name} has no sentinel {sentinel_id!r}")
    redactor = settings.redaction.redactor(environ)
    failure = _Failure()
    async with AsyncExitStack() as stack:
        sandbox = await stack.enter_async_context(Sandbox(clock=clock))
        journal = Journal.open(layout.journal, sync_interval_s=settings.journal.sync_interval_s)
        stack.callback(journal.close)
        stream = _stream(journal, redactor, failure, clock)
        stack.callback(stream.close)
        tasks = await stack.enter_async_context(task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(_until_journal_fails, partial(stream.run, clock))
        if model_client is None:
            model_client = router = _router(environ, settings, redactor, clock, layout)
            stack.push_async_callback(router.aclose)
            tasks.start_soon(router.warm_up, _models(loaded))
        return await retry(
            stream,
            model_client,
            sandbox,
            managed_dir=layout.managed,
            agent_root=layout.agent_root,
            clock=clock,
            sources=sources,
            sentinel_id=sentinel_id,
            run_id=run_id,
            persistence=settings.sentinel.persistence,
        )


def _stream(journal: Journal, redactor: Redactor, failure: _Failure, clock: Clock) -> EventStream:
    """A live stream over ``journal``, whose failure goes to ``failure``."""
    return EventStream(
        journal,
        time=StreamTime(clock),
        timers=Timers(),
        redactor=redactor,
        ids=IdSource(),
        on_failure=failure.tell,
    )


def _of_wakes(options: RunOptions) -> RunOptions:
    """Wakes are run with the hank that their execution was made from."""
    if options.execution is None:
        raise UsageError("wakes are those of an execution", hint="name it with --execution")
    return replace(options, hank=_hank_of(open_execution(options.execution.resolve())))


def _tell_no_watches(stream: EventStream, error: HankwatchError) -> None:
    message = f"Watches of this execution are not checked: {error}"
    stream.emit(ErrorEvent(message=message, fatal=False, severity="warning", code="watches-unavailable"))


def _hank_of(execution: Execution) -> Path:
    if not execution.layout.journal.is_file():
        raise UsageError(f"{execution.name} has no journal yet")
    hank = Path(str(execution.meta.get("hankPath", "")))
    if not hank.is_file():
        raise UsageError(f"the hank of {execution.name} is gone: {hank}", hint="put it back, its sentinels are needed")
    return hank


async def _archive(layout: Layout) -> Archive:
    try:
        return await anyio.to_thread.run_sync(Archive, layout)
    except OSError as error:
        raise ExecutionUnusable(layout.root, error) from error


async def _until_journal_fails(task: Callable[[], Awaitable[None]]) -> None:
    try:
        await task()
    except* InfrastructureError:
        pass  # told through on_failure; the run's own line raises it


def _take(layout: Layout, run_id: str, settings: Settings, *, again: bool) -> Journal:
    """The journal with its lock; refused when a run is live there, or one was and nobody asked for a further one."""
    try:
        was_used = layout.journal.exists()
        layout.managed.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExecutionUnusable(layout.root, error) from error
    if was_used and not again:
        if (live := holder(lock_path(layout.journal))) is not None:
            raise JournalLocked(layout.root, str(live))
        raise _used(layout)
    journal = Journal.open(layout.journal, run=run_id, sync_interval_s=settings.journal.sync_interval_s)
    if journal.size_bytes and not again:  # by a run that began and ended in this moment
        journal.close()
        raise _used(layout)
    return journal


def _require_resumable(layout: Layout, state: RunState) -> None:
    if (run := state.of_hank) is not None and run.status == "completed":
        hint = "--start-new begins a further run there"
        raise UsageError(f"the run in {layout.root} has completed; there is nothing to resume", hint=hint)


def _used(layout: Layout) -> UsageError:
    hint = "--resume goes on with its last run, --start-new begins a further one; or use another directory"
    return UsageError(f"{layout.root} was used before", hint=hint)


def _router(
    environ: Mapping[str, str], settings: Settings, redactor: Redactor, clock: Clock, layout: Layout
) -> ModelRouter:
    return ModelRouter(
        environ,
        redactor=redactor,
        clock=clock,
        call_log=CallLog(layout.calls, redactor=redactor, on_failure=_warn_of_call_log, root=layout.root),
        max_concurrent_calls=settings.sentinel.max_concurrent_calls,
    )


def _models(hank: LoadedHank) -> set[str]:
    """What the hank's sentinels ask."""
    sources = (source for of_codon in hank.sentinels.values() for source in of_codon)
    return {source.config.model for source in sources if source.config is not None}


def _all_variables(environ: Mapping[str, str], jobs: Mapping[str, CodonJob]) -> dict[str, str]:
    """Our variables and those that agents are given, so that the values of all their keys are known."""
    found = dict(environ)
    for number, job in enumerate(jobs.values(), 1):
        for name, value in {**job.env, **job.program.command(job.request).env}.items():
            if found.setdefault(name, value) != value:
                found[f"{name}_{number}"] = value
    return found


def _warn_of_call_log(error: OSError) -> None:
    _LOG.warning("a model call could not be logged: %s", error)


def _run_id(clock: Clock) -> str:
    salt = "".join(random.SystemRandom().choices(string.digits + string.ascii_lowercase, k=5))
    return f"{int(clock.now().timestamp() * 1000)}-{salt}"
