"""Rules about codons that go on in the session of the codon before (reference 2.6)."""

from collections.abc import Iterator
from dataclasses import dataclass

from hankwatch.hank.fault import Fault, Rule
from hankwatch.hank.model import Codon, ContextExceeded, Hank, Loop


@dataclass(frozen=True, slots=True)
class _Continued:
    """A codon that continues, and what it continues."""

    pointer: str
    codon: Codon
    item_before: Codon | Loop | None
    """None for the first codon of the file."""
    before: Codon | None
    """The codon whose session it is: the item before, or that loop's last codon."""
    top_level: bool


def context_loops_continue(hank: Hank) -> Iterator[Fault]:
    """A loop that ends when the context is full never ends if a codon starts afresh."""
    for index, item in enumerate(hank.hank):
        if isinstance(item, Loop) and isinstance(item.terminate_on, ContextExceeded):
            for inner, codon in enumerate(item.codons):
                if codon.continuation_mode == "fresh":
                    yield Fault(
                        f"/hank/{index}/codons/{inner}/continuationMode",
                        "loop-fresh",
                        f"{codon.id!r} starts afresh, so the context of loop {item.id!r} is never used up",
                        "set it to 'continue-previous', or end the loop by iterationLimit",
                    )


def no_session_is_continued_when_full(hank: Hank) -> Iterator[Fault]:
    """After a loop or codon that uses its context up, there is no room to continue."""
    for continued in _continued(hank):
        before, codon = continued.item_before, continued.before
        if isinstance(before, Loop) and isinstance(before.terminate_on, ContextExceeded):
            full = f"loop {before.id!r} ends when the context is full"
        elif codon is not None and codon.exhaust_with_prompt is not None:
            full = f"{codon.id!r} uses its context up (exhaustWithPrompt)"
        else:
            continue
        yield Fault(
            f"{continued.pointer}/continuationMode",
            "continue-exhausted",
            f"cannot continue: {full}",
            "set it to 'fresh'",
        )


def the_model_stays(hank: Hank) -> Iterator[Fault]:
    """A session belongs to one model."""
    for continued in _continued(hank):
        if continued.before is not None and continued.codon.model != continued.before.model:
            yield Fault(
                f"{continued.pointer}/model",
                "continue-model",
                f"continues a session of {continued.before.id!r}, whose model is {continued.before.model!r}",
                "use the same model, or set continuationMode to 'fresh'",
            )


def the_first_codon_starts_afresh(hank: Hank) -> Iterator[Fault]:
    """There is no session before the first codon; a run of it fails."""
    for continued in _continued(hank):
        if continued.item_before is None:
            yield Fault(
                f"{continued.pointer}/continuationMode",
                "continue-first",
                "the first codon has no session to continue and will fail",
                "set it to 'fresh'",
                "warning",
            )


def what_is_continued_has_succeeded(hank: Hank) -> Iterator[Fault]:
    """After an ignored failure the session may be missing."""
    for continued in _continued(hank):
        before = continued.item_before
        if continued.top_level and isinstance(before, Codon) and before.on_failure == "ignore":
            yield Fault(
                f"{continued.pointer}/continuationMode",
                "continue-ignored",
                f"{before.id!r} may fail and be ignored; then there is no session to continue",
                "set it to 'fresh', or let that codon abort or retry",
                "warning",
            )


def what_is_continued_is_checkpointed(hank: Hank) -> Iterator[Fault]:
    """A rollback restores files only where some are checkpointed."""
    for continued in _continued(hank):
        if continued.before is not None and not continued.before.checkpointed_files:
            yield Fault(
                f"{continued.pointer}/continuationMode",
                "continue-checkpoint",
                f"{continued.before.id!r} checkpoints no files, so a rollback to it restores none",
                "give that codon checkpointedFiles",
                "warning",
            )


CONTINUATION_RULES: tuple[Rule, ...] = (
    context_loops_continue,
    no_session_is_continued_when_full,
    the_model_stays,
    the_first_codon_starts_afresh,
    what_is_continued_has_succeeded,
    what_is_continued_is_checkpointed,
)


def _continued(hank: Hank) -> Iterator[_Continued]:
    item_before: Codon | Loop | None = None
    for index, item in enumerate(hank.hank):
        if isinstance(item, Loop):
            inner_before: Codon | Loop | None = item_before
            for inner, codon in enumerate(item.codons):
                if codon.continuation_mode == "continue-previous":
                    pointer = f"/hank/{index}/codons/{inner}"
                    yield _Continued(pointer, codon, inner_before, _last(inner_before), top_level=False)
                inner_before = codon
        elif item.continuation_mode == "continue-previous":
            yield _Continued(f"/hank/{index}", item, item_before, _last(item_before), top_level=True)
        item_before = item


def _last(item: Codon | Loop | None) -> Codon | None:
    return item.codons[-1] if isinstance(item, Loop) else item
