"""Orders: what a live run is asked for is done, or refused with a reason."""

import pytest

from hankwatch.core.clock import VirtualClock
from hankwatch.core.errors import OrderRefused
from hankwatch.runner.control import CodonStop, Control, StopReason
from hankwatch.runner.orders import Order, Orders


@pytest.fixture
def orders() -> Orders:
    return Orders(Control(), VirtualClock(), stop_budget_s=10.0)


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


@pytest.mark.parametrize("order", [Order.ROLLBACK, Order.CHECKPOINTS])
async def test_what_this_version_cannot_do_says_so(orders: Orders, order: Order) -> None:
    with pytest.raises(OrderRefused, match="not supported by this version yet"):
        await orders.carry_out(order)
