"""Orders: what a live run is asked for is done, or refused with a reason."""

import pytest

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import OrderRefused
from hankwatch.runner.control import CodonStop, Control, StopReason
from hankwatch.runner.orders import Order, Orders
from hankwatch.runner.rollback_plan import To, read_target


@pytest.fixture
def orders() -> Orders:
    async def listing() -> str:
        return "none"

    return Orders(Control(), VirtualClock(), stop_budget_s=10.0, list_checkpoints=listing)


@pytest.mark.parametrize("order", [Order.NEXT, Order.SKIP, Order.FORCE_STOP])
async def test_what_needs_a_codon_or_a_pause_is_refused_without_one(orders: Orders, order: Order) -> None:
    with pytest.raises(OrderRefused):
        await orders.carry_out(order)


@pytest.mark.parametrize(
    ("order", "reason"), [(Order.SKIP, StopReason.SKIP), (Order.FORCE_STOP, StopReason.FORCE_STOP)]
)
async def test_ending_a_codon_leaves_the_run_going(orders: Orders, order: Order, reason: StopReason) -> None:
    codon = CodonStop()
    orders.control.enter(codon)
    await orders.carry_out(order)
    assert codon.reason is reason
    assert not orders.control.stopping


async def test_stopping_has_the_whole_stop_budget_and_can_be_asked_twice(orders: Orders) -> None:
    assert await orders.carry_out(Order.STOP) == await orders.carry_out(Order.STOP)
    assert orders.control.stop_by_s == 10.0


@pytest.mark.parametrize("target", [None, "", "last-success"])
async def test_only_a_waiting_run_is_rolled_back_and_only_to_something(orders: Orders, target: str | None) -> None:
    with pytest.raises(OrderRefused):
        await orders.carry_out(Order.ROLLBACK, target)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("last-success", To(last_success=True)),
        ("build", To(codon="build")),
        ("build#2:start", To(codon="build#2", kind="start")),
        ("a:b", To(codon="a:b")),
        ("ABCDEF0", To(checkpoint="abcdef0")),
        ("abcdef", To(codon="abcdef")),
        ("abcdef0:end", To(codon="abcdef0", kind="end")),
    ],
)
def test_a_target_is_a_checkpoint_a_codon_or_the_last_success(text: str, meant: To) -> None:
    assert read_target(text) == meant
