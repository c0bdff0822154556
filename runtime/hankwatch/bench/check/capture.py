"""``--from RUN``: a finished run as a check in a folder of its own."""

import gzip
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from hankwatch.bench.check.judge import expected_fires
from hankwatch.bench.check.load import FOLDER_FORM
from hankwatch.bench.check.seen import Seen, observe
from hankwatch.bench.check.update import listed
from hankwatch.bench.journal_view import Part
from hankwatch.bench.lines import journal_events
from hankwatch.bench.sources import Source
from hankwatch.config.refs import check_ref, read_ref
from hankwatch.core.errors import PathRefused, UsageError, not_written
from hankwatch.core.files import reading
from hankwatch.core.redaction import Redactor
from hankwatch.events.codec import encode_line
from hankwatch.events.envelope import Event
from hankwatch.hank.load import LoadedHank, load_hank
from hankwatch.hank.model import refs
from hankwatch.runner.execution import Execution
from hankwatch.sentinels.prompts import prompt_refs
from hankwatch.sentinels.report_files import safe_name
from hankwatch.stream.lock import holder, lock_path

_PLAIN_BYTES = 256 * 1024
"""A recording that is larger is gzipped."""
_BUILTIN = "builtin/"
_STOCK = "stock:"
_SAID = frozenset({"sentinel.triggered", "sentinel.output", "sentinel.error"})
"""What sentinels said is expected of them, not recorded; their loads and unloads mark when they watched."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A check that was made of a run."""

    path: Path
    """Its file."""
    events: int
    calls: int
    warnings: tuple[str, ...]
    """Why it may not pass as it is."""


def run_events(source: Source) -> Iterator[Event]:
    """The events of the run that a journal was opened for; lines that are none are left out.

    Raises:
        UsageError: it cannot be read to its end.
    """
    part = Part(source.run, None)
    for event in journal_events(source.path):
        if event is not None and part.covers(event):
            yield event


def capture(execution: Execution, source: Source, out: Path, redactor: Redactor) -> Captured:
    """Make the folder ``out``: recording, hank, sentinels, prompts, call log, and what was fired and reported.

    Args:
        execution: Where the run was.
        source: Its journal, opened for the run.
        out: Is made, with the folders above it.
        redactor: Takes out what is secret on this machine.

    Raises:
        UsageError: the run is live or its hank is gone, or ``out`` is not empty or cannot be written.
        InfrastructureError: there is no room for it. Nothing is left of it then.
    """
    if (live := holder(lock_path(execution.layout.journal))) is not None:
        raise UsageError(f"{execution.name} is live ({live})", hint="wait until it has ended, or stop it")
    hank, warnings = _hank(execution)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise UsageError(f"{out} is not empty", hint="name a folder that is new")
        with ExitStack() as undo:
            # It was empty, so all that is in it now is of this capture.
            undo.callback(shutil.rmtree, out, ignore_errors=True)
            recorded, span = _write_recording(source, out, redactor)
            warnings += _copy_files(hank, out, redactor)
            calls = _write_calls(execution, hank, out, span, redactor)
            seen = observe(run_events(source))
            known = {sentinel.id for of_codon in hank.sentinels.values() for sentinel in of_codon}
            warnings += [
                f"the hank has no sentinel {name!r}, which the run had" for name in sorted(seen.keys() - known)
            ]
            watched = {name: one for name, one in seen.items() if name in known}
            path = _write_check(out, watched, source.run or execution.name)
            undo.pop_all()
    except OSError as error:
        raise not_written(out, error, hint="--out DIR makes it elsewhere") from error
    return Captured(path, recorded, calls, tuple(warnings))


def _hank(execution: Execution) -> tuple[LoadedHank, list[str]]:
    path = Path(str(execution.meta.get("hankPath", "")))
    if not path.is_file():
        raise UsageError(f"the hank of {execution.name} is gone: {path}", hint="put it back, its sentinels are needed")
    hank = load_hank(path)
    if hank.config is None:
        raise UsageError(f"the hank of {execution.name} has faults now: {path}", hint="`hankwatch validate` shows them")
    if hashlib.sha256(path.read_bytes()).hexdigest() == execution.meta.get("hankHash"):
        return hank, []
    return hank, [f"{path} has changed since the run began"]


def _write_recording(source: Source, out: Path, redactor: Redactor) -> tuple[int, tuple[str, str]]:
    """How many events were written, and the first and last stamp of the run."""
    lines, first, last = list[bytes](), "", ""
    for event in run_events(source):
        first, last = first or event.timestamp, event.timestamp
        if event.type not in _SAID and event.data.get("transitionType") != "SentinelStatesUpdated":
            data = redactor.data(event.data)
            lines.append(encode_line(Event(event.id, event.timestamp, event.type, data, event.at_ms)))
    whole = b"".join(lines)
    if len(whole) > _PLAIN_BYTES:
        (out / "recording.jsonl.gz").write_bytes(gzip.compress(whole, mtime=0))
    else:
        (out / "recording.jsonl").write_bytes(whole)
    return len(lines), (first, last)


def _copy_files(hank: LoadedHank, out: Path, redactor: Redactor) -> list[str]:
    """The hank, its sentinels and all prompts, at their places relative to the hank; why one could not be."""
    (out / "hank.json").write_text(redactor.text(hank.document.text or ""), encoding="utf-8")
    warnings = []
    for base, ref in _refs(hank):
        try:
            if check_ref(ref) is None:
                text = read_ref(ref, base=base, root=hank.hank_dir)
                copy = out / (base / ref).resolve().relative_to(hank.hank_dir.resolve())
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(redactor.text(text), encoding="utf-8")
        except PathRefused as refused:
            warnings.append(f"{ref} was not copied: it {refused.reason}")
    return warnings


def _refs(hank: LoadedHank) -> Iterator[tuple[Path, str]]:
    """Every file that the hank and its sentinels are made of, with the folder that its ref is relative to."""
    assert hank.config is not None
    here = hank.hank_dir
    yield from ((here, ref) for ref in refs(hank.config.global_system_prompt_file))
    for _, codon in hank.config.codons():
        yield from ((here, ref) for ref in (*refs(codon.prompt_file), *refs(codon.append_system_prompt_file)))
        for entry in codon.sentinels:
            named = entry.sentinel_config
            if isinstance(named, str) and not named.startswith(_STOCK):
                yield here, named
    for of_codon in hank.sentinels.values():
        for source in of_codon:
            if source.config is not None and source.source != "stock":
                yield from ((source.base_dir, ref) for _, ref in prompt_refs(source.config))
                wanted = source.config.structured_output
                if wanted is not None and wanted.schema_file is not None:
                    yield source.base_dir, wanted.schema_file


def _write_calls(execution: Execution, hank: LoadedHank, out: Path, span: tuple[str, str], redactor: Redactor) -> int:
    """The calls of the run's time, as they were; those of builtin models are worked out anew."""
    sources = [source for of_codon in hank.sentinels.values() for source in of_codon]
    if all(source.config is None or source.config.model.startswith(_BUILTIN) for source in sources):
        return 0
    lines = [redactor.data(call) for call in _calls(execution.layout.calls, span)]
    (out / "calls.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return len(lines)


def _calls(log: Path, span: tuple[str, str]) -> Iterator[dict[str, Any]]:
    if not log.is_file():
        return
    with reading(log) as file:
        for line in file:
            try:
                call = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue  # damaged; the replay tells which call is missing
            if not isinstance(call, dict) or str(call.get("model")).startswith(_BUILTIN):
                continue
            if span[0] <= str(call.get("startedAt")) <= span[1]:
                yield call


def _write_check(out: Path, seen: Mapping[str, Seen], run: str) -> Path:
    expected = out / "expected"
    fires, errors, reports = {}, {}, {}
    for name, one in seen.items():
        fires[name] = expected_fires(one.fires)
        if one.errors:
            errors[name] = [error.type for error in one.errors]
        if one.chunks:
            file = expected / f"{safe_name(name)}.{'md' if one.is_text else 'jsonl'}"
            expected.mkdir(exist_ok=True)
            file.write_bytes(one.report)
            reports[name] = [{"equalsFile": f"expected/{file.name}"}]
    path = out / FOLDER_FORM
    path.write_text(_text(f"Made of the run {run}.", fires, errors, reports), encoding="utf-8")
    return path


def _text(description: str, fires: Mapping[str, Any], errors: Mapping[str, Any], reports: Mapping[str, Any]) -> str:
    """The check's file, written as ``--update`` would leave it."""
    parts = [
        f'    "{key}": {{\n'
        + ",\n".join(f"      {json.dumps(name)}: {write(value)}" for name, value in of.items())
        + "\n    }"
        for key, of, write in (
            ("fires", fires, lambda items: listed(items, "      ")),
            ("errors", errors, json.dumps),
            ("reports", reports, lambda items: listed(items, "      ")),
        )
        if of
    ]
    expect = "{\n" + ",\n".join(parts) + "\n  }" if parts else "{}"
    return f'{{\n  "description": {json.dumps(description)},\n  "expect": {expect}\n}}\n'
