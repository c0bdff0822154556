"""Near misses in words: which condition kept events from matching, and how far a sequence got."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping

from rich.text import Text

from hankwatch.bench.near_misses import by_count
from hankwatch.matching.conditions import Condition
from hankwatch.matching.near_misses import ConditionMisses, NearMisses, StepMisses, TypeMisses
from hankwatch.matching.triggers import EventTrigger, SequenceTrigger
from hankwatch.pages.words import duration, plural

_TYPES = 8
"""Types that are named of those that occur."""
_VALUES = 3


def near_misses(misses: NearMisses) -> Iterator[Text]:
    """What to print: the types that never came, then step for step the conditions that failed most."""
    yield Text("Near misses", style="bold")
    yield from _unseen(misses)
    trigger = misses.trigger
    if isinstance(trigger, EventTrigger):
        yield from _by_type(misses.steps[0])
        return
    before: StepMisses | None = None
    for number, step in enumerate(misses.steps, 1):
        yield from _step(number, step, before, trigger)
        before = step
    yield from _limits(misses, trigger)


def _unseen(misses: NearMisses) -> Iterator[Text]:
    if not misses.unseen:
        return
    occurring = _counted(misses.types, _TYPES) or "nothing that triggers see"
    names = " and ".join(misses.unseen)
    never = f" never {'occur' if len(misses.unseen) > 1 else 'occurs'} here; what does: "
    yield Text.assemble("  ", (names, "bold yellow"), never, occurring)


def _by_type(step: StepMisses, indent: str = "  ") -> Iterator[Text]:
    for seen in sorted(step.by_type.values(), key=lambda seen: -seen.asked):
        yield Text.assemble(indent, (seen.type, "cyan"), f" × {seen.asked:,}: {seen.fitted:,} met every condition")
        yield from _failed(seen, indent + "  ")


def _failed(seen: TypeMisses, indent: str) -> Iterator[Text]:
    for one in by_count(seen):
        alone = "" if one.alone == one.count or len(seen.conditions) == 1 else f"; {one.alone:,} failed this alone"
        yield Text.assemble(
            f"{indent}{one.count:,} failed ", (_said(one.condition), "bold"), f": found {_found(one)}{alone}"
        )
        yield Text(f"{indent}  first: event {one.examples[0]}", style="dim")


def _said(condition: Condition) -> str:
    return f"{condition.path} {condition.operator} {json.dumps(condition.value, ensure_ascii=False)}"


def _found(one: ConditionMisses) -> str:
    return _counted(one.found, _VALUES, one.other)


def _counted(counts: Counter[str], limit: int, more: int = 0) -> str:
    """``false × 38, "x" × 2, 5 others``."""
    named = counts.most_common(limit)
    more += counts.total() - sum(count for _, count in named)
    return ", ".join([*(f"{name} × {count:,}" for name, count in named), *([f"{more:,} others"] if more else [])])


def _step(number: int, step: StepMisses, before: StepMisses | None, trigger: SequenceTrigger) -> Iterator[Text]:
    wanted = " or ".join(step.wanted)
    head = Text.assemble(f"  step {number} ", (wanted, "cyan"), ": ")
    if not step.asked:
        yield head.append(_never_asked(before, trigger), style="yellow")
        return
    taken = f"taken {step.fitted:,} ×" if step.fitted else "never taken"
    yield head.append(f"{plural(step.asked, 'event')} came when it was waited for, ").append(
        taken, style="green" if step.fitted else "bold yellow"
    )
    if step.others:
        between = " (steps must follow at once: consecutive)" if number > 1 and trigger.options.consecutive else ""
        yield Text(f"    {step.others.total():,} of another type: {_counted(step.others, _TYPES)}{between}")
    for seen in sorted(step.by_type.values(), key=lambda seen: -seen.asked):
        yield from _failed(seen, "    ")


def _never_asked(before: StepMisses | None, trigger: SequenceTrigger) -> str:
    if before is None:
        return "no event was considered"
    if not before.fitted:
        return "not reached, the step before it was never taken"
    path = trigger.options.correlate_by
    return "nothing that is considered came after the step before it" + (f" with the same {path}" if path else "")


def _limits(misses: NearMisses, trigger: SequenceTrigger) -> Iterator[Text]:
    options, steps = trigger.options, len(misses.steps)
    if misses.unrelated:
        yield Text(f"  {plural(misses.unrelated, 'event')} had no value at {options.correlate_by} to be correlated by")
    if misses.late and options.within_milliseconds is not None:
        limit = duration(options.within_milliseconds)
        yield Text(f"  the limit of {limit} ended {_beginnings(misses.late, steps)}")
        if misses.shortest_late_ms is not None:
            yield Text(f"    the quickest with all steps took {duration(misses.shortest_late_ms)}")
    if misses.pending:
        yield Text(f"  at the end {misses.pending} of {steps} steps were taken")


def _beginnings(late: Mapping[int, int], steps: int) -> str:
    return ", ".join(f"{count:,} with {taken} of {steps} steps" for taken, count in sorted(late.items(), reverse=True))
