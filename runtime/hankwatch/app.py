"""Wires the rooms into a run; the only module that knows them all (design "Layout")."""

import logging
import os
import random
import string
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from hankwatch.config.environment import is_present
from hankwatch.core.clock import Clock, StreamTime, SystemClock, Timers
from hankwatch.core.errors import ConfigError, InfrastructureError, NotYetSupported, UsageError
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import IdSource
from hankwatch.hank.load import LoadedHank, load_hank
from hankwatch.hank.support import unsupported
from hankwatch.llm.calls import CallLog
from hankwatch.llm.client import ModelClient
from hankwatch.llm.router import ModelRouter
from hankwatch.runner.codon import CodonRun
from hankwatch.runner.control import Control
from hankwatch.runner.execution import Execution, new_execution_dir, prepare
from hankwatch.runner.jobs import CodonJob, codon_jobs
from hankwatch.runner.layout import Layout
from hankwatch.runner.ledger import Ledger
from hankwatch.runner.run import Run, RunResult
from hankwatch.runner.state import RunState, fold
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.manager import SentinelManager
from hankwatch.settings import Flag, Settings, load_settings
from hankwatch.stream.journal import Journal
from hankwatch.stream.reader import JournalReader
from hankwatch.stream.stream import EventStream

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to run, and where."""

    hank: Path
    """A hank.json, or the folder that holds one."""
    data: Path | None = None
    """What the agent may read."""
    execution: Path | None = None
    """The execution directory; None makes a new one under ``run.execution_base_dir``."""
    start_new: bool = False
    """Allow a further run in an execution that was used before."""
    model: str | None = None
    """Model of all codons instead of their own."""
    config: Path | None = None
    """Settings file instead of the one found."""


@dataclass(slots=True)
class LiveRun:
    """A run that is open: started by ``carry_out``, steered by ``control``, watched through ``stream``."""

    execution: Execution
    stream: EventStream
    control: Control
    settings: Settings
    clock: Clock
    _run: Run
    _failure: "_Failure"

    async def carry_out(self) -> RunResult:
        """The run, to its end.

        Raises:
            InfrastructureError: the journal failed; everything was ended.
        """
        with anyio.CancelScope() as scope:
            self._failure.watch(scope)
            result = await self._run.run()
        if self._failure.error is not None:
            raise self._failure.error
        if scope.cancelled_caught:
            raise UsageError("the run was cancelled")
        return result

    def stop(self) -> None:
        """End the run within its stop budget; asking again changes nothing."""
        self.control.stop(by_s=self.clock.monotonic() + self.settings.run.stop_budget_s)


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
        self.error = error
        if self._scope is not None:
            self._scope.cancel()


@asynccontextmanager
async def open_run(
    options: RunOptions,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    model_client: ModelClient | None = None,
) -> AsyncIterator[LiveRun]:
    """Read and check everything, make the execution directory, take its lock; leaving closes all of it.

    Args:
        options: What to run, and where.
        environ: Default: this process's environment.
        clock: Default: the machine's.
        model_client: Answers the sentinels instead of builtin models and providers.

    Raises:
        ConfigError: the hank, its settings or a required sentinel have faults.
        UsageError: something that cannot be meant, or that this version does not carry out.
        JournalLocked: another process runs in the execution directory.
    """
    environ, clock = os.environ if environ is None else environ, clock or SystemClock()
    hank, settings = load_for_run(options, environ)
    layout = Layout(_execution_dir(options, settings, environ, clock))
    if JournalReader(layout.journal).path.exists() and not options.start_new:
        raise UsageError(
            f"{layout.root} was used before", hint="--start-new begins a further run there; or use another directory"
        )
    execution = prepare(layout, hank=hank.path, data=options.data, now=clock.now())
    jobs = codon_jobs(hank, run=settings.run, agents=settings.agents, environ=environ, layout=layout)
    redactor = Redactor.from_environment(environ, enabled=settings.redaction.enabled)
    run_id = _run_id(clock)
    failure = _Failure()
    async with AsyncExitStack() as stack:
        journal = Journal.open(layout.journal, run=run_id, sync_interval_s=settings.journal.sync_interval_s)
        stream = EventStream(
            journal,
            time=StreamTime(clock),
            timers=Timers(),
            redactor=redactor,
            ids=IdSource(),
            on_failure=failure.tell,
        )
        stack.callback(stream.close)
        state = fold(JournalReader(layout.journal).read(types={"state.transition"}), RunState())
        sandbox = await stack.enter_async_context(Sandbox(clock=clock))
        router = None
        if model_client is None:
            model_client = router = ModelRouter(
                environ,
                redactor=redactor,
                clock=clock,
                call_log=CallLog(layout.calls, redactor=redactor, on_failure=_warn_of_call_log),
                max_concurrent_calls=settings.sentinel.max_concurrent_calls,
            )
            stack.push_async_callback(router.aclose)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(stream.run, clock)
        if router is not None:
            # A provider's library takes seconds to import; that must not fall on a sentinel's first call.
            models = {source.config.model for job in jobs for source in job.sentinels if source.config}
            tasks.start_soon(router.warm_up, models)
        manager = await stack.enter_async_context(
            SentinelManager(
                stream,
                model_client,
                sandbox,
                managed_dir=layout.managed,
                agent_root=layout.agent_root,
                clock=clock,
            )
        )
        control = Control()
        ledger = Ledger(stream, run_id, state)

        def start_codon(job: CodonJob) -> CodonRun:
            return CodonRun(
                job=job,
                ledger=ledger,
                stream=stream,
                manager=manager,
                control=control,
                redactor=redactor,
                layout=layout,
                clock=clock,
                drain_s=settings.sentinel.drain_s,
            )

        run = Run(jobs, ledger, control, start_codon)
        yield LiveRun(execution, stream, control, settings, clock, run, failure)


def load_for_run(options: RunOptions, environ: Mapping[str, str]) -> tuple[LoadedHank, Settings]:
    """The hank and the settings that hold for it, refused with all their faults."""
    hank = load_hank(options.hank)
    if hank.config is None or hank.blocking:
        raise ConfigError(hank.blocking or hank.diagnostics.errors)
    flags = [Flag("run.model", options.model, "--model")] if options.model else []
    loaded = load_settings(
        environ=environ,
        cwd=Path.cwd(),
        hank_dir=hank.hank_dir,
        overrides=hank.config.overrides,
        config=options.config,
        flags=flags,
    )
    if not loaded.diagnostics.ok:
        raise ConfigError(loaded.diagnostics.errors)
    if uses := unsupported(hank.config):
        raise NotYetSupported(" and ".join(f"{use.feature} ({use.pointer})" for use in uses))
    required = hank.config.requirements.env if hank.config.requirements else ()
    if missing := [name for name in required if not is_present(name, environ)]:
        raise UsageError(
            f"the hank needs the environment variables {', '.join(missing)}",
            hint=f"set each as it is, or as HANKWEAVE_{missing[0]}",
        )
    return hank, loaded.settings


def _execution_dir(options: RunOptions, settings: Settings, environ: Mapping[str, str], clock: Clock) -> Path:
    if options.execution is not None:
        return options.execution.resolve()
    return new_execution_dir(base_dir(settings, environ), options.data, clock.now())


def base_dir(settings: Settings, environ: Mapping[str, str]) -> Path:
    """The folder of all executions, ``~`` resolved against ``environ``."""
    configured = settings.run.execution_base_dir
    home = environ.get("HOME")
    if configured.startswith("~/") and home:
        return Path(home) / configured[2:]
    return Path(configured).expanduser()


def _warn_of_call_log(error: OSError) -> None:
    _LOG.warning("a model call could not be logged: %s", error)


def _run_id(clock: Clock) -> str:
    salt = "".join(random.SystemRandom().choices(string.digits + string.ascii_lowercase, k=5))
    return f"{int(clock.now().timestamp() * 1000)}-{salt}"
