"""Warnings about budgets that can be met and still surprise (reference 2.4)."""

from collections.abc import Iterator
from dataclasses import dataclass

from hankwatch.hank.budget import CodonBudget, ContainerBudget
from hankwatch.hank.fault import Fault, Rule
from hankwatch.hank.model import Codon, Hank, Loop

_TOLERANCE = 1e-9


def caps_fit_their_pool(hank: Hank) -> Iterator[Fault]:
    """A limit above what the loop or hank around it allows is never reached."""
    for pointer, child, own, pool in _limits_in_pools(hank):
        for key, limit, allowed in (
            ("maxDollars", own.max_dollars, _allowed(pool, child)),
            ("maxTimeSeconds", own.max_time_seconds, pool.budget.max_time_seconds),
        ):
            if limit is not None and allowed is not None and limit > allowed + _TOLERANCE:
                message = f"{limit:g} is above the {allowed:g} that it can get"
                yield Fault(f"{pointer}/budget/{key}", "budget-cap", message, "lower it, or raise the pool", "warning")


def strict_shares_are_used(hank: Hank) -> Iterator[Fault]:
    """With a strict allocation, what lies between a child's own limit and its share is nobody's."""
    for pointer, child, own, pool in _limits_in_pools(hank):
        allowed = _allowed(pool, child)
        if pool.budget.allocation != "proportional-strict" or own.max_dollars is None or allowed is None:
            continue
        if own.max_dollars < allowed - _TOLERANCE:
            message = f"is below its share of {allowed:g}; the difference is never used"
            hint = "raise it, lower the share, or use allocation 'proportional'"
            yield Fault(f"{pointer}/budget/maxDollars", "budget-strict-waste", message, hint, "warning")


def the_pool_is_allocated(hank: Hank) -> Iterator[Fault]:
    """When every child has a share and they add up to less than 1, the rest is never used."""
    for pool in _pools(hank):
        pointer, budget, children = pool.pointer, pool.budget, pool.children
        shares = budget.shares or {}
        total = sum(shares.values())
        if budget.proportional and set(children) <= shares.keys() and total < 1:
            message = f"add up to {total:g}, and every child has one: the rest is never used"
            yield Fault(f"{pointer}/shares", "budget-remainder", message, "let them add up to 1", "warning")


def every_child_has_something(hank: Hank) -> Iterator[Fault]:
    """When shares add up to 1, children without one get nothing."""
    for pool in _pools(hank):
        pointer, budget, children = pool.pointer, pool.budget, pool.children
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
    for pool in _pools(hank):
        pointer, budget, children = pool.pointer, pool.budget, pool.children
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
    strict_shares_are_used,
    the_pool_is_allocated,
    every_child_has_something,
    exceeding_is_not_retried,
    late_codons_are_not_starved,
    extensions_have_time,
)


@dataclass(frozen=True, slots=True)
class Pool:
    """A budget that several codons or loops share."""

    pointer: str
    budget: ContainerBudget
    items: tuple[tuple[str, Codon | Loop], ...]
    """Each with its pointer."""

    @property
    def children(self) -> tuple[str, ...]:
        """Their ids."""
        return tuple(item.id for _, item in self.items)


def in_pools(hank: Hank) -> Iterator[tuple[str, Codon, list[ContainerBudget]]]:
    """Each codon with its pointer and the budgets above it: its loop's, then the hank's."""
    whole = [hank.overrides.budget] if hank.overrides and hank.overrides.budget else []
    for index, item in enumerate(hank.hank):
        if isinstance(item, Loop):
            for inner, codon in enumerate(item.codons):
                yield f"/hank/{index}/codons/{inner}", codon, [*([item.budget] if item.budget else []), *whole]
        else:
            yield f"/hank/{index}", item, whole


def _pools(hank: Hank) -> Iterator[Pool]:
    items = tuple((f"/hank/{index}", item) for index, item in enumerate(hank.hank))
    if hank.overrides and hank.overrides.budget:
        yield Pool("/overrides/budget", hank.overrides.budget, items)
    for pointer, item in items:
        if isinstance(item, Loop) and item.budget:
            codons = tuple((f"{pointer}/codons/{inner}", codon) for inner, codon in enumerate(item.codons))
            yield Pool(f"{pointer}/budget", item.budget, codons)


def _limits_in_pools(hank: Hank) -> Iterator[tuple[str, str, CodonBudget | ContainerBudget, Pool]]:
    """(pointer, id, its own budget, the pool that it draws from) of every codon and loop that has both."""
    for pool in _pools(hank):
        for pointer, item in pool.items:
            if item.budget is not None:
                yield pointer, item.id, item.budget, pool


def _allowed(pool: Pool, child: str) -> float | None:
    """The most dollars that a child can get; without a share of its own, an even part of what shares leave."""
    whole, shares = pool.budget.max_dollars, pool.budget.shares or {}
    if whole is None or not pool.budget.proportional:
        return whole
    if child in shares:
        return whole * shares[child]
    without = [name for name in pool.children if name not in shares]
    return whole * max(0.0, 1 - sum(shares.values())) / max(1, len(without))
