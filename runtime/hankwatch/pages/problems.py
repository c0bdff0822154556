"""What a reviewer must not overlook: everything about a run that is not as it should be, worst first."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hankwatch.pages.facts import RunFacts
from hankwatch.pages.words import plural

Severity = Literal["failure", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One of them."""

    severity: Severity
    title: str
    """In our words."""
    text: str = ""
    """In those of whoever reported it."""
    at_ms: int | None = None
    target: str = ""
    """The anchor on the page that says more."""
    command: str = ""
    """What to type to see more."""


def problems(facts: RunFacts) -> list[Problem]:
    """All of a run, worst first; empty for one that went well."""
    found = [*_of_run(facts), *_of_sentinels(facts), *_of_records(facts)]
    return sorted(found, key=lambda problem: problem.severity != "failure")


def command(facts: RunFacts, *words: str) -> str:
    """A ``hankwatch`` command about this run, fit for a shell."""
    return shlex.join(["hankwatch", *(facts.name if word == "RUN" else word for word in words)])


def _of_run(facts: RunFacts) -> Iterator[Problem]:
    tail = command(facts, "tail", "RUN")
    if facts.status == "crashed":
        yield Problem("failure", "The run's process ended without a word", "", facts.ended_ms, command=tail)
    elif facts.status == "failed":
        yield Problem("failure", "The run failed", facts.reason, facts.ended_ms)
    for codon in facts.codons:
        if codon.failed and not codon.earlier:
            retried = any(c.codon_id == codon.codon_id and c.attempt > codon.attempt for c in facts.codons)
            note = ", and was tried again" if retried else ", and the run went on" if codon.ignored else ""
            severity: Severity = "warning" if retried or codon.ignored else "failure"
            which = f" (attempt {codon.attempt})" if codon.attempt > 1 or retried else ""
            title = f"Codon {codon.codon_id}{which} failed{note}"
            yield Problem(severity, title, codon.reason, codon.ended_ms, facts.anchor_of(codon))
        elif codon.reason and not codon.earlier:
            title = f"Codon {codon.codon_id} reached a limit"
            yield Problem("warning", title, codon.reason, codon.ended_ms, facts.anchor_of(codon))
    for failure in facts.failures:
        title = "Fatal error" if failure.fatal else "Error"
        where = f" in codon {failure.codon_id}" if failure.codon_id else ""
        severity = "failure" if failure.fatal else "warning"
        yield Problem(severity, title + where, failure.message.text, failure.at_ms)
    if facts.failures.left_out:
        more = command(facts, "tail", "RUN", "--type", "error")
        yield Problem("warning", f"{plural(facts.failures.left_out, 'further error')}", command=more)
    if facts.interrupts:
        title = _acted("interrupted", facts.interrupts, facts.observed["interrupt"])
        yield Problem("warning", title, target="watchdog")
    if facts.nudges:
        note = f", {facts.undelivered} of them not delivered" if facts.undelivered else ""
        yield Problem("warning", _acted("nudged", facts.nudges, facts.observed["nudge"]) + note, target="watchdog")


def _acted(done: str, count: int, observed: int) -> str:
    if observed == count:
        return f"The watchdog only observes: it would have {done} the agent {_times(count)}"
    note = f", {observed} of them only observed" if observed else ""
    return f"The watchdog {done} the agent {_times(count)}{note}"


def _of_sentinels(facts: RunFacts) -> Iterator[Problem]:
    for number, sentinel in enumerate(facts.sentinels, 1):
        target = f"sentinel-{number}"
        if sentinel.failed:
            title = f"{sentinel.id}: {plural(sentinel.failed, 'fire')} failed"
            yield Problem("warning", title, target=target, command=command(facts, "sentinel", "retry", "RUN"))
        if sentinel.dropped_triggers:
            events = f" with {plural(sentinel.dropped_events, 'event')}" if sentinel.dropped_events else ""
            title = f"{sentinel.id}: {plural(sentinel.dropped_triggers, 'fire')}{events} dropped, its queue was full"
            yield Problem("warning", title, target=target)
        if sentinel.abandoned:
            title = f"{sentinel.id}: {plural(sentinel.abandoned, 'fire')} abandoned, time was up"
            yield Problem("warning", title, target=target, command=command(facts, "sentinel", "retry", "RUN"))
        if sentinel.ended in {"fatal-error", "consecutive-failures"}:
            yield Problem("warning", f"{sentinel.id} was unloaded early", sentinel.ended, target=target)
    for trouble in facts.troubles:
        if trouble.kind in {"load-failed", "file-write-failed"}:
            yield Problem("warning", f"{trouble.sentinel_id}: {trouble.kind}", trouble.message, trouble.at_ms)
    if facts.unpriced_calls:
        title = (
            f"{plural(facts.unpriced_calls, 'model call')} of sentinels without a known price: costs are lower bounds"
        )
        yield Problem("warning", title)
    if facts.unlisted_sentinel_events:
        title = f"{plural(facts.unlisted_sentinel_events, 'event')} of sentinels that are not listed here"
        yield Problem("warning", title, command=command(facts, "tail", "RUN", "--type", "sentinel.output"))


def _of_records(facts: RunFacts) -> Iterator[Problem]:
    stats = command(facts, "journal", "stats", "RUN")
    if facts.agent_cost.unpriced:
        yield Problem("warning", "The cost of agents is not wholly known", target="codons")
    if facts.bad_lines:
        yield Problem("warning", f"{plural(facts.bad_lines, 'journal line')} could not be read", command=stats)
    if facts.misfits:
        title = f"{plural(facts.misfits, 'event')} not as the contract has them"
        yield Problem("warning", title, command=stats)
    if facts.call_log_fault:
        yield Problem("warning", "The call log could not be read: prompts and prices are missing", facts.call_log_fault)
    if facts.unread_calls:
        yield Problem("warning", f"{plural(facts.unread_calls, 'line')} of the call log could not be read")
    if facts.uncited:
        title = f"{plural(facts.uncited, 'event')} that caused fires not shown here"
        yield Problem("warning", title, command=command(facts, "tail", "RUN", "--json"))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
