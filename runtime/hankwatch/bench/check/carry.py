"""A check carried out: its sentinels on its recording, or its expectations on a run that was."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from hankwatch.bench.attempt import Attempt
from hankwatch.bench.check.judge import Judge
from hankwatch.bench.check.load import LoadedCheck, check_id, load_check
from hankwatch.bench.check.result import CheckResult, told_fault, told_miss
from hankwatch.bench.check.seen import RESOURCE, Seen, SeenError, SeenFire, observe
from hankwatch.bench.check.update import update
from hankwatch.bench.replay import EVERYTHING, Progress, ReplayOptions, replay
from hankwatch.bench.sources import Source, open_source
from hankwatch.config.diagnostics import Diagnostic
from hankwatch.core.errors import ConfigError, InfrastructureError, PathRefused, UsageError
from hankwatch.core.redaction import Redactor
from hankwatch.events.envelope import format_stamp
from hankwatch.llm.builtin import BuiltinModels
from hankwatch.llm.cassette import CallLogClient
from hankwatch.sandbox.sandbox import Sandbox
from hankwatch.stream.reader import JournalReader

OnProgress = Callable[[Progress], None]
_BUILTIN = "builtin/"


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a recording."""

    seen: Mapping[str, Seen]
    journal: bytes | None = None
    """Of the replay, where it is compared."""
    notes: tuple[str, ...] = ()
    """What else people should know of it."""


async def carry_out(
    path: Path, sandbox: Sandbox, *, rewrite: bool = False, on_progress: OnProgress | None = None
) -> CheckResult:
    """Play the recording of the check at ``path`` and compare; with ``rewrite`` write what may be written anew.

    ``on_progress`` is told now and then how far the replay is. Depends on nothing but the files of the check: not on settings, the environment or the time.

    Raises:
        InfrastructureError: the replay could not be written.
    """
    return await _told(path, sandbox, None, rewrite=rewrite, on_progress=on_progress)


async def hold_against(path: Path, seen: Mapping[str, Seen], sandbox: Sandbox) -> CheckResult:
    """Compare what a run's sentinels did with what the check at ``path`` expects; nothing is played."""
    return await _told(path, sandbox, seen, rewrite=False)


async def _told(
    path: Path,
    sandbox: Sandbox,
    seen: Mapping[str, Seen] | None,
    *,
    rewrite: bool,
    on_progress: OnProgress | None = None,
) -> CheckResult:
    started = time.perf_counter()
    try:
        check = load_check(path)
        played = await _play(check, sandbox, on_progress) if seen is None else Played(seen)
        judge = Judge(check, played.seen, sandbox, played.journal)
        misses = await judge.misses()
        updated = update(path, misses) if rewrite else []
    except (ConfigError, UsageError, PathRefused) as error:
        faults = error.diagnostics if isinstance(error, ConfigError) else (_as_fault(path, error),)
        told = tuple(map(told_fault, faults))
        return CheckResult(check_id(path), path, "faulty", told, duration_s=time.perf_counter() - started)
    left = [miss for miss in misses if not rewrite or miss.rewrite is None]
    return CheckResult(
        check.id,
        path,
        "failed" if left else "passed",
        tuple(told_miss(miss, check.document.file, check.line(miss.pointer)) for miss in left),
        fires=sum(len(one.fires) for one in played.seen.values()),
        entries=sum(len(one.entries) for one in played.seen.values()),
        description=check.config.description,
        duration_s=time.perf_counter() - started,
        updated=tuple(updated),
        notes=played.notes,
    )


def _as_fault(path: Path, error: UsageError | PathRefused) -> Diagnostic:
    return Diagnostic(str(path), "", error.code, str(error), error.hint)


async def _play(check: LoadedCheck, sandbox: Sandbox, on_progress: OnProgress | None) -> Played:
    """Its sentinels on its recording.

    Raises:
        UsageError: it has no recording or sentinel, expects what it has no answers for, or cannot be read to its end.
    """
    _require_playable(check)
    source = _source(check)
    if not _is_answered(check):
        return Played(_fires_only(check, source), notes=_notes(check, source.bad_lines))
    with _temporary_folder() as folder:
        redactor = Redactor()
        log = CallLogClient(check.calls, redactor=redactor) if check.calls is not None else None
        options = ReplayOptions("live" if log is None else "cassette", deterministic=True)
        replayed = await replay(
            source,
            check.sentinels,
            Path(folder, "out"),
            client=BuiltinModels() if log is None else log,
            sandbox=sandbox,
            redactor=redactor,
            options=options,
            on_progress=on_progress,
        )
        journal = replayed.out.journal
        wanted = journal.read_bytes() if check.config.expect.journal is not None else None
        notes = _notes(check, replayed.bad_lines, 0 if log is None else log.bad_lines)
        return Played(observe(JournalReader(journal).read()), wanted, notes)


def _temporary_folder() -> TemporaryDirectory[str]:
    try:
        return TemporaryDirectory(prefix="hankwatch-check-")
    except OSError as error:
        raise InfrastructureError(f"there is no room for a temporary folder: {error}") from error


def _notes(check: LoadedCheck, bad_lines: int, bad_calls: int = 0) -> tuple[str, ...]:
    found = (
        (bad_lines, check.config.recording, "became no event"),
        (bad_calls, check.config.calls, "are no model call"),
    )
    return tuple(f"{count} line(s) of {name} {what}" for count, name, what in found if count)


def _require_playable(check: LoadedCheck) -> None:
    if check.recording is None:
        raise UsageError("it has no recording", hint="name one, or hold it against a run: `hankwatch check --run RUN`")
    if not check.sentinels:
        raise UsageError("it names nobody who watches", hint="add the key 'sentinel' or 'hank'")
    expect = check.config.expect
    beyond_fires = expect.reports or expect.errors or expect.journal is not None
    if not _is_answered(check) and (beyond_fires or not expect.fires):
        models = sorted(model for model in _models(check) if not model.startswith(_BUILTIN))
        raise UsageError(
            f"nobody answers for {', '.join(models)}, so only fires can be expected",
            hint="add a call log: a run and `hankwatch replay --sentinels live` write one, `check --from RUN` copies it",
        )


def _is_answered(check: LoadedCheck) -> bool:
    return check.calls is not None or all(model.startswith(_BUILTIN) for model in _models(check))


def _models(check: LoadedCheck) -> set[str]:
    sources = (source for of_codon in check.sentinels.values() for source in of_codon)
    return {source.config.model for source in sources if source.config is not None}


def _source(check: LoadedCheck, codon: str | None = None) -> Source:
    return open_source(
        str(check.recording),
        Path(),
        agent=check.config.agent,
        codon=codon or check.config.codon,
        redact=Redactor().text,
    )


def _fires_only(check: LoadedCheck, source: Source) -> dict[str, Seen]:
    """When those would fire of whom that is expected, as ``try`` tells it."""
    seen: dict[str, Seen] = {}
    for codon, sentinels in check.sentinels.items():
        for sentinel in sentinels:
            if sentinel.config is None or sentinel.id not in check.config.expect.fires:
                continue
            played = source if codon == EVERYTHING else _source(check, codon)
            one, attempt = seen.setdefault(sentinel.id, Seen()), Attempt(sentinel.config)
            for fire in attempt.fires(played, Redactor()):
                batch, codon_id = fire.batch, fire.scope.codon_id
                one.fires.append(SeenFire(str(batch.cause), format_stamp(batch.at_ms), len(batch.events), codon_id))
            if attempt.given_up is not None:
                one.errors.append(SeenError(RESOURCE, attempt.given_up))
    return seen
