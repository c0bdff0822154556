"""All report files of one execution: who writes which, and how far each one is (spec sentinels 9)."""

import os

from hankwatch.core.errors import PathRefused
from hankwatch.events.envelope import Event, EventData
from hankwatch.sentinels.config import Output, OutputPaths, SentinelConfig, SentinelSettings
from hankwatch.sentinels.prompts import CodonScope
from hankwatch.sentinels.report_files import (
    ReportPath,
    ReportPlaces,
    default_name,
    opened,
    opened_to_read,
    recorded_path,
    replace,
)
from hankwatch.sentinels.reports import (
    DEFAULT_JOIN,
    REPORT_TYPES,
    ReadJournal,
    ReportFile,
    ReportFold,
    ReportWriter,
    unescape_join,
)

_SUFFIXES = {"text": ".md", "jsonl": ".jsonl"}


class ReportBook:
    """Hands out report writers. Starts from what the journal says of earlier runs of the execution."""

    def __init__(self, places: ReportPlaces, read: ReadJournal) -> None:
        self._places = places
        self._read = read
        self._files: dict[str, ReportFile] = {}
        self._values: dict[str, bytes] = {}
        """Last values that earlier runs emitted, by file."""
        self._resumable: dict[tuple[str, str], EventData] = {}
        """Reports of loads that a crash or a shutdown ended: their codon goes on in the same file."""
        self._latest: dict[tuple[str, str], EventData] = {}
        """Reports of the last loads, however they ended."""
        self._owners: dict[str, tuple[str, str]] = {}
        """File to (sentinel, codon)."""
        self._recall()

    def open(
        self,
        config: SentinelConfig,
        settings: SentinelSettings,
        scope: CodonScope,
        at_ms: int,
        *,
        same_file: bool = False,
    ) -> ReportWriter:
        """The writer of a new load, its file made and openable.

        ``same_file`` goes on in the file of the last load, also when that one had ended in order.

        Raises ``PathRefused`` (a rule broken, or a file that another loaded sentinel writes) or ``OSError``.
        """
        wanted, output = settings.output_paths or OutputPaths(), config.output or Output()
        report_format = "jsonl" if config.structured_output is not None else output.format or "text"
        log_name = wanted.log_file or output.file
        last_name = wanted.last_value_file or output.last_value_file
        before = (self._latest if same_file else self._resumable).get((config.id, scope.codon_id))
        if log_name is None and before is not None:
            log_name = before["logFile"].rpartition("/")[2]
        log = self._places.resolve(
            log_name or default_name(config.id, scope.codon_id, at_ms, _SUFFIXES[report_format]), config.id
        )
        last = self._places.resolve(last_name, config.id) if last_name else None
        self._claim(config.id, scope.codon_id, log, last)
        file = self._file(log)
        if last is not None:
            with opened_to_read(last):
                pass  # refused here rather than at the first output
        join_string = DEFAULT_JOIN if config.join_string is None else unescape_join(config.join_string)
        return ReportWriter(file, last, report_format, join_string)

    def catch_up(self, log_file: str, last_value_file: str | None) -> None:
        """Complete files of an earlier run, as the journal has them. Raises ``OSError`` or ``PathRefused``."""
        if log_file in self._files:
            self._files[log_file].catch_up()
        if last_value_file is not None and last_value_file in self._values:
            replace(recorded_path(self._places.execution_dir, last_value_file), self._values[last_value_file])

    def release(self, codon_id: str) -> None:
        """The codon's sentinels are unloaded; their files are free for others."""
        self._owners = {path: owner for path, owner in self._owners.items() if owner[1] != codon_id}

    def _claim(self, sentinel_id: str, codon_id: str, log: ReportPath, last: ReportPath | None) -> None:
        shown = [log.shown, *([last.shown] if last else [])]
        for name in shown:
            if shown.count(name) > 1:
                raise PathRefused(name, "is both the report and its last value; give them two files")
            if name in self._owners:
                raise PathRefused(name, f"is written by the sentinel {self._owners[name][0]!r} already")
        self._owners.update(dict.fromkeys(shown, (sentinel_id, codon_id)))

    def _file(self, path: ReportPath) -> ReportFile:
        with opened(path, create=True) as fd:
            assert fd is not None
            size = os.fstat(fd).st_size
        return self._files.setdefault(path.shown, ReportFile(path, self._read, size))

    def _recall(self) -> None:
        fold = ReportFold()
        for event in self._read(0, REPORT_TYPES):
            entry = fold.feed(event)
            if entry is not None and entry.log_file in self._files:
                self._files[entry.log_file].projected += len(entry.data)
                if entry.last_value_file is not None:
                    self._values[entry.last_value_file] = entry.value
            elif event.type == "sentinel.loaded" and "report" in event.data:
                self._recall_load(event)
            elif event.type == "sentinel.unloaded" and event.data["reason"] != "shutdown":
                self._resumable.pop((event.data["sentinelId"], event.data["codonId"]), None)

    def _recall_load(self, event: Event) -> None:
        report = event.data["report"]
        self._latest[event.data["sentinelId"], event.data["codonId"]] = report
        self._resumable[event.data["sentinelId"], event.data["codonId"]] = report
        try:
            path = recorded_path(self._places.execution_dir, report["logFile"])
        except PathRefused:
            return  # a journal that names such a file was not written by this runtime
        since = event.cursor - event.size_bytes
        self._files.setdefault(path.shown, ReportFile(path, self._read, report["startBytes"], since))
