"""Wires a recording, a hank's sentinels and what answers them into a replay (spec hank 5)."""

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from hankwatch import __version__
from hankwatch.agent import default_watchdog
from hankwatch.agents.detect import ENVELOPE
from hankwatch.bench.journal_view import base_id
from hankwatch.bench.replay import Progress, Replayed, ReplayOptions
from hankwatch.bench.replay import replay as play
from hankwatch.bench.sources import Source, open_source
from hankwatch.core.clock import Clock, StreamTime, SystemClock
from hankwatch.core.errors import ConfigError, UsageError
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import IdSource
from hankwatch.hank.load import LoadedHank, load_hank
from hankwatch.hank.model import watchdog_of
from hankwatch.llm.calls import CallLog
from hankwatch.llm.cassette import CallLogClient
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.client import ModelClient
from hankwatch.llm.litellm import LitellmClient
from hankwatch.llm.router import ModelRouter
from hankwatch.options import base_dir
from hankwatch.runner.execution import Execution, new_execution_dir, open_execution
from hankwatch.runner.layout import Layout
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.sentinels.source import SentinelSource
from hankwatch.settings import Settings, load_settings
from hankwatch.watchdog import WatchdogPolicy

REPLAYS = "replays"
"""Folder of replays beside the executions, so that ``latest`` and ``hankwatch runs`` mean runs."""
_LOG = logging.getLogger(__name__)
_CALL_SEED = 1
"""Of the ids of calls, where they are the same each time; those of events have their own."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What to replay, and how."""

    source: str
    """A run, a journal or a recorded agent stream."""
    sentinels: Literal["skip", "cassette", "live"] = "skip"
    """What answers the sentinels: nothing, since they are left out; a call log; the models."""
    calls: Path | None = None
    """The call log; None: that of the execution, or ``calls.jsonl`` beside the recording."""
    hank: Path | None = None
    """Whose sentinels; None: the hank of the execution that is replayed."""
    codon: str | None = None
    """A journal: only this codon's events. An agent's stream: the codon it stands for."""
    agent: str | None = None
    """Which program wrote the stream; None: detected."""
    speed: Literal["max", "real"] = "max"
    """``real``: as long between two events as when they were recorded."""
    deterministic: bool = False
    """The same replay again gives the same bytes."""
    out: Path | None = None
    """The execution directory to make; None makes one under ``run.execution_base_dir``, in ``REPLAYS``."""
    config: Path | None = None
    """Settings file instead of the one found."""


async def replay(
    source: Path | str,
    *,
    sentinels: Literal["skip", "cassette", "live"] = "skip",
    calls: Path | str | None = None,
    hank: Path | str | None = None,
    codon: str | None = None,
    agent: str | None = None,
    speed: Literal["max", "real"] = "max",
    deterministic: bool = False,
    out: Path | str | None = None,
    config: Path | str | None = None,
    environ: Mapping[str, str] | None = None,
    model_client: ModelClient | None = None,
) -> Replayed:
    """Play a recording once more in virtual time, into an execution directory of its own.

    Cancelling this leaves a journal that says so.

    Args:
        source: An execution directory, the id of a run, a journal, or a recorded agent stream; gzipped or not.
        sentinels: ``skip`` leaves them out, with ``cassette`` a call log answers them, with ``live`` the models,
            whose answers are logged, so that the log is the next cassette.
        calls: The call log; default: that of the execution, or ``calls.jsonl`` beside the recording.
        hank: Whose sentinels; default: the hank of the execution.
        codon: A journal: only this codon's events. An agent's stream: the codon it stands for.
        agent: Which program wrote the stream; default: detected.
        speed: ``real`` takes as long between two events as when they were recorded.
        deterministic: The same replay again gives the same journal and reports, byte by byte.
        out: The execution directory to make; default: one under ``run.execution_base_dir``, in ``replays``.
        config: Settings file instead of the one found.
        environ: Variables for settings and keys; default: this process's.
        model_client: Answers the sentinels instead of call log and models.

    Returns:
        Where it went, what fired, what failed.

    Raises:
        ConfigError: the hank or its settings have faults.
        UsageError: something that cannot be meant, or a recording that cannot be read to its end.
        InfrastructureError: the journal cannot be written.
    """
    request = ReplayRequest(
        str(source),
        sentinels,
        None if calls is None else Path(calls),
        None if hank is None else Path(hank),
        codon,
        agent,
        speed,
        deterministic,
        None if out is None else Path(out),
        None if config is None else Path(config),
    )
    return await carry_out(request, environ=environ, model_client=model_client)


async def carry_out(
    request: ReplayRequest,
    *,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
    model_client: ModelClient | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Replayed:
    """``replay`` for a caller with a request, who wants to see how far it is."""
    environ, clock = os.environ if environ is None else environ, clock or SystemClock()
    settings = _settings(request, environ, None)
    redactor = settings.redaction.redactor(environ)
    source = open_source(
        request.source,
        base_dir(settings, environ),
        agent=request.agent,
        codon=request.codon,
        tool_result_chars=settings.run.tool_result_chars,
        redact=redactor.text,
    )
    execution = _execution_of(source.path)
    hank = None if request.sentinels == "skip" else _hank(request, execution)
    attached: Mapping[str, Sequence[SentinelSource]] = {}
    if hank is not None:
        settings = _settings(request, environ, hank)
        attached = _attached(source, hank)
    out = request.out or new_execution_dir(base_dir(settings, environ) / REPLAYS, None, clock.now())
    time = StreamTime()
    async with AsyncExitStack() as stack:
        sandbox = None if hank is None else await stack.enter_async_context(Sandbox(clock=clock))
        if model_client is None and request.sentinels == "cassette":
            model_client = CallLogClient(_calls(request, execution, source), redactor=redactor)
        elif model_client is None and request.sentinels == "live":
            router = _router(
                Layout(out).calls,
                settings,
                redactor,
                clock=clock,
                environ=environ,
                stamped_by=time if request.deterministic else None,
            )
            stack.push_async_callback(router.aclose)
            await router.warm_up({s.config.model for group in attached.values() for s in group if s.config is not None})
            model_client = router
        result = await play(
            source,
            attached,
            out,
            client=model_client,
            sandbox=sandbox,
            redactor=redactor,
            options=ReplayOptions(
                request.sentinels,
                request.speed,
                request.deterministic,
                drain_s=settings.sentinel.drain_s,
                watchdog=_watchdog(source, hank),
            ),
            on_progress=on_progress,
            clock=clock,
            time=time,
            meta=_meta(source, execution, hank, clock),
        )
    if hank is not None:
        result.notes += _notes(result, hank, execution)
    return result


def _settings(request: ReplayRequest, environ: Mapping[str, str], hank: LoadedHank | None) -> Settings:
    loaded = load_settings(
        environ=environ,
        cwd=Path.cwd(),
        hank_dir=None if hank is None else hank.hank_dir,
        overrides=None if hank is None or hank.config is None else hank.config.overrides,
        config=request.config,
    )
    if not loaded.diagnostics.ok:
        raise ConfigError(loaded.diagnostics.errors)
    if hank is None:  # what is read again for the hank's overrides has told its warnings
        loaded.log_warnings()
    return loaded.settings


def _execution_of(journal: Path) -> Execution | None:
    """The execution directory that a journal lies in; None for any other file."""
    root = journal.resolve().parent.parent.parent
    return open_execution(root) if Layout(root).journal == journal.resolve() else None


def _hank(request: ReplayRequest, execution: Execution | None) -> LoadedHank:
    path = request.hank
    if path is None and execution is not None and execution.meta.get("hankPath"):
        path = Path(str(execution.meta["hankPath"]))
    if path is None:
        raise UsageError(
            f"{request.source} does not say whose sentinels to run", hint="--hank PATH names a hank that has them"
        )
    if not path.exists():
        hint = "put it back, its sentinels are needed; or --hank PATH names another"
        raise UsageError(f"the hank {path} does not exist", hint=hint)
    hank = load_hank(path)
    if hank.config is None or hank.blocking:
        raise ConfigError(hank.blocking or hank.diagnostics.errors)
    return hank


def _attached(source: Source, hank: LoadedHank) -> Mapping[str, Sequence[SentinelSource]]:
    """The sentinels of each codon; an agent's stream gets the codon that it stands for."""
    with_sentinels = {codon: found for codon, found in hank.sentinels.items() if found}
    if not with_sentinels:
        raise UsageError(f"no codon of {hank.path} has sentinels", hint="--sentinels skip replays without any")
    if source.program == ENVELOPE:
        return with_sentinels
    if source.codon is None and len(with_sentinels) == 1:
        (source.codon,) = with_sentinels
    if source.codon is None or base_id(source.codon) not in with_sentinels:
        named = "it is not told which codon" if source.codon is None else f"there are no sentinels of {source.codon!r}"
        raise UsageError(
            f"{source.path} is one codon's stream, and {named}",
            hint=f"--codon names one of {', '.join(with_sentinels)}",
        )
    return with_sentinels


def _watchdog(source: Source, hank: LoadedHank | None) -> WatchdogPolicy | None:
    """That of the codon which an agent's stream stands for."""
    if hank is None or hank.config is None or source.codon is None:
        return None
    own = next((codon for _, codon in hank.config.codons() if codon.id == base_id(source.codon)), None)
    return watchdog_of(own, hank.config, default_watchdog()) if own is not None else None


def _calls(request: ReplayRequest, execution: Execution | None, source: Source) -> Path:
    path = request.calls
    if path is None:
        path = source.path.with_name("calls.jsonl") if execution is None else execution.layout.calls
    if not path.is_file():
        raise UsageError(
            f"there is no call log {path}",
            hint="--calls FILE names one; --sentinels live makes real calls and logs them, so that its log is one",
        )
    return path


class _DatedByStream(SystemClock):
    """Real time, except that what is logged is dated by the stream: the same in every replay."""

    def __init__(self, time: StreamTime) -> None:
        self._time = time

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._time.now_ms() / 1000, UTC)


def _router(
    calls: Path,
    settings: Settings,
    redactor: Redactor,
    *,
    clock: Clock,
    environ: Mapping[str, str],
    stamped_by: StreamTime | None,
) -> ModelRouter:
    """Asks the models and logs it; with ``stamped_by`` ids and stamps of the log are the same each time."""
    return ModelRouter(
        environ,
        redactor=redactor,
        clock=clock if stamped_by is None else _DatedByStream(stamped_by),
        call_log=CallLog(calls, redactor=redactor, on_failure=_warn_of_call_log),
        max_concurrent_calls=settings.sentinel.max_concurrent_calls,
        ids=None if stamped_by is None else IdSource(_CALL_SEED),
        remote=LitellmClient(ModelCatalog(environ), clock=clock),
    )


def _warn_of_call_log(error: OSError) -> None:
    _LOG.warning("a model call could not be logged: %s", error)


def _meta(source: Source, execution: Execution | None, hank: LoadedHank | None, clock: Clock) -> dict[str, Any]:
    """What the directory is made from, so that commands that take a run take a replay too."""
    hank_path = None if execution is None else execution.meta.get("hankPath")
    if hank is not None:
        hank_path = str(hank.path.resolve())
    return {
        "version": "1.1.0",
        **({"hankPath": hank_path} if hank_path else {}),
        "replayOf": str(source.path.resolve()),
        "createdAt": clock.now().isoformat().replace("+00:00", "Z"),
        "hankwatchVersion": __version__,
    }


def _notes(result: Replayed, hank: LoadedHank, execution: Execution | None) -> Iterator[str]:
    recorded = None if execution is None else execution.meta.get("hankHash")
    if recorded is not None and recorded != hashlib.sha256(hank.path.read_bytes()).hexdigest():
        yield f"{hank.path} is not as it was when this ran"
    if not any(base_id(codon) in hank.sentinels for codon in result.codons):
        met = ", ".join(result.codons) or "none"
        yield f"no sentinel was attached: codons of the recording ({met}) are not those of {hank.path}"
