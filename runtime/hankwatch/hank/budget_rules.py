"""Warnings about budgets that can be met and still surprise (reference 2.4)."""

from collections.abc import Iterator

from hankwatch.hank.budget import ContainerBudget
from hankwatch.hank.fault import Fault, Rule
from hankwatch.hank.model import Codon, Hank, Loop


def caps_fit_their_pool(hank: Hank) -> Iterator[Fault]:
    """A codon's own limit above what its loop or hank allows is never reached."""
    for pointer, codon, pool in _in_pools(hank):
        own = codon.budget
        if own is None or pool is None:
            continue
        for key, limit, allowed in (
            ("maxDollars", own.max_dollars, _allowed(pool, codon.id)),
            ("maxTimeSeconds", own.max_time_seconds, pool.max_time_seconds),
        ):
            if limit is not None and allowed is not None and limit > allowed:
                message = f"{limit:g} is above the {allowed:g} that it can get"
                yield Fault(f"{pointer}/budget/{key}", "budget-cap", message, "lower it, or raise the pool", "warning")


def the_pool_is_allocated(hank: Hank) -> Iterator[Fault]:
    """When every child has a share and they add up to less than 1, the rest is never used."""
    for pointer, budget, children in _pools(hank):
        shares = budget.shares or {}
        total = sum(shares.values())
        if budget.proportional and set(children) <= shares.keys() and total < 1:
            message = f"add up to {total:g}, and every child has one: the rest is never used"
            yield Fault(f"{pointer}/shares", "budget-remainder", message, "let them add up to 1", "warning")


def every_child_has_something(hank: Hank) -> Iterator[Fault]:
    """When shares add up to 1, children without one get nothing."""
    for pointer, budget, children in _pools(hank):
        shares = budget.shares or {}
        rest = [name for name in children if name not in shares]
        if budget.proportional and shares and rest and sum(shares.values()) >= 1:
            message = f"leave nothing for {', '.join(rest)}"
            yield Fault(f"{pointer}/shares", "budget-zero-share", message, "let them add up to less than 1", "warning")


def exceeding_is_not_retried(hank: Hank) -> Iterator[Fault]:
    """A codon that fails on its budget is not tried again."""
    for pointer, codon in hank.codons():
        if codon.budget and codon.budget.on_exceeded == "fail" and codon.on_failure == "retry":
            message = "a codon that fails on its budget is not retried"
            hint = "use 'complete', or another onFailure"
            yield Fault(f"{pointer}/budget/onExceeded", "budget-fail-retry", message, hint, "warning")


def late_codons_are_not_starved(hank: Hank) -> Iterator[Fault]:
    """In a shared pool that fails when it is empty, late codons pay for early ones."""
    for pointer, budget, children in _pools(hank):
        if budget.on_exceeded == "fail" and not budget.proportional and budget.max_dollars and len(children) > 1:
            message = f"{children[-1]!r} may fail for what others spent before it"
            hint = "use 'complete', or a proportional allocation"
            yield Fault(f"{pointer}/onExceeded", "budget-fail-late", message, hint, "warning")


def extensions_have_time(hank: Hank) -> Iterator[Fault]:
    """Using up a context under a time limit ends at whichever comes first."""
    for pointer, codon in hank.codons():
        if codon.exhaust_with_prompt is not None and codon.budget and codon.budget.max_time_seconds is not None:
            message = "may end the codon before exhaustWithPrompt has used up the context"
            hint = "remove one of the two if that matters"
            yield Fault(f"{pointer}/budget/maxTimeSeconds", "budget-extensions", message, hint, "warning")


BUDGET_RULES: tuple[Rule, ...] = (
    caps_fit_their_pool,
    the_pool_is_allocated,
    every_child_has_something,
    exceeding_is_not_retried,
    late_codons_are_not_starved,
    extensions_have_time,
)


def _pools(hank: Hank) -> Iterator[tuple[str, ContainerBudget, list[str]]]:
    if hank.overrides and hank.overrides.budget:
        yield "/overrides/budget", hank.overrides.budget, [item.id for item in hank.hank]
    for index, item in enumerate(hank.hank):
        if isinstance(item, Loop) and item.budget:
            yield f"/hank/{index}/budget", item.budget, [codon.id for codon in item.codons]


def _in_pools(hank: Hank) -> Iterator[tuple[str, Codon, ContainerBudget | None]]:
    """Each codon with the nearest pool above it."""
    whole = hank.overrides.budget if hank.overrides else None
    for index, item in enumerate(hank.hank):
        if isinstance(item, Loop):
            for inner, codon in enumerate(item.codons):
                yield f"/hank/{index}/codons/{inner}", codon, item.budget
        else:
            yield f"/hank/{index}", item, whole


def _allowed(pool: ContainerBudget, child: str) -> float | None:
    if pool.max_dollars is None:
        return None
    return pool.max_dollars * (pool.shares or {}).get(child, 1.0) if pool.proportional else pool.max_dollars
