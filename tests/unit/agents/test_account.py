"""Usage is counted once, however often it is stated."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hankwatch.agents.account import Account
from hankwatch.agents.limits import MAX_COST_USD, MAX_TOKENS, could_be_used
from hankwatch.agents.signals import ModelUse, Tokens, Used


def test_a_message_on_three_lines_counts_once_and_the_last_wins() -> None:
    account = Account()
    increments = [account.add(Used(Tokens(7, out, 0, 900), "m1")) for out in (1, 1, 40)]
    assert [used and used.tokens for used in increments] == [Tokens(7, 1, 0, 900), None, Tokens(0, 39, 0, 0)]
    assert account.tokens == Tokens(7, 40, 0, 900)


def test_a_program_total_adds_what_the_messages_left_out() -> None:
    account = Account()
    account.add(Used(Tokens(7, 1, 900, 20), "m1"))
    account.add(Used(Tokens(7, 1, 900, 30), "m2"))
    correction = account.add(Used(Tokens(14, 207, 1800, 50), cost_usd=0.5, total=True))
    assert correction is not None
    assert correction.tokens == Tokens(0, 205, 0, 0)
    assert account.tokens == Tokens(14, 207, 1800, 50)
    assert account.cost_usd == 0.5


def test_each_total_covers_what_came_since_the_one_before() -> None:
    account = Account()
    for number in (1, 2):
        account.add(Used(Tokens(10, 1), f"m{number}"))
        account.add(Used(Tokens(10, 5), f"total{number}", cost_usd=0.1, total=True))
    assert account.tokens == Tokens(20, 10)
    assert account.cost_usd == pytest.approx(0.2)


def test_a_copied_total_adds_nothing() -> None:
    account = Account()
    total = Used(Tokens(10, 5), "result-1", cost_usd=0.1, total=True)
    assert account.add(total) is not None
    assert account.add(total) is None


def test_messages_that_claim_more_than_the_total_stand() -> None:
    account = Account()
    account.add(Used(Tokens(10, 9), "m1"))
    assert account.add(Used(Tokens(10, 5), total=True)) is None
    assert account.tokens == Tokens(10, 9)


def test_an_unknown_price_is_none_and_a_stated_zero_is_unknown() -> None:
    account = Account()
    account.add(Used(Tokens(10, 5), "a"))
    account.add(Used(Tokens(10, 5), "b", cost_usd=0.0))
    assert account.cost_usd is None
    account.add(Used(Tokens(10, 5), "c", cost_usd=0.25))
    assert account.cost_usd == 0.25


def test_messages_without_an_id_all_count() -> None:
    account = Account()
    account.add(Used(Tokens(1, 1)))
    account.add(Used(Tokens(1, 1)))
    assert account.tokens == Tokens(2, 2)


def running(output: int, cost_usd: float, uuid: str) -> Used:
    tokens = Tokens(10, output)
    return Used(tokens, uuid, cost_usd=cost_usd, total=True, by_model={"m": ModelUse(tokens, cost_usd)}, session="s")


def test_of_a_total_that_runs_over_the_session_only_the_growth_counts() -> None:
    account = Account()
    increments = [account.add(running(*each)) for each in ((5, 0.25, "a"), (5, 0.25, "a"), (9, 0.75, "b"))]
    assert [used and (used.tokens, used.cost_usd) for used in increments] == [
        (Tokens(10, 5), 0.25),
        None,
        (Tokens(0, 4), 0.5),
    ]
    assert account.by_model == {"m": ModelUse(Tokens(10, 9), 0.75)}


def test_what_earlier_codons_of_the_session_used_is_not_counted_again() -> None:
    account = Account()
    account.carry("s", Tokens(10, 5), 0.25)
    account.add(running(9, 0.75, "b"))
    assert (account.tokens, account.cost_usd) == (Tokens(0, 4), 0.5)


def test_the_parts_of_the_models_add_up_and_a_copy_adds_nothing() -> None:
    account = Account()
    part = {"m": ModelUse(Tokens(1, 2), 0.0), "n": ModelUse(Tokens(3, 4), 0.5)}
    for uuid in ("a", "b", "b"):
        account.add(Used(Tokens(4, 6), uuid, total=True, by_model=part))
    assert account.by_model == {"m": ModelUse(Tokens(2, 4)), "n": ModelUse(Tokens(6, 8), 1.0)}


@pytest.mark.parametrize("cost_usd", [-0.01, math.inf, math.nan, 1.1e9])
def test_a_cost_that_nothing_can_have_is_not_counted(cost_usd: float) -> None:
    account = Account()
    assert account.add(Used(Tokens(1, 1), cost_usd=cost_usd)) is None
    assert (account.tokens, account.cost_usd, account.refused) == (Tokens(), None, 1)


@pytest.mark.parametrize("count", [-1, MAX_TOKENS + 1, int(1e300)])
@pytest.mark.parametrize("kind", ["input", "output", "cache_creation", "cache_read"])
def test_a_count_of_tokens_that_nothing_can_have_is_not_counted(kind: str, count: int) -> None:
    account = Account()
    assert account.add(Used(Tokens(**{kind: count}), cost_usd=0.5)) is None
    assert account.add(Used(Tokens(1, 1), total=True, by_model={"m": ModelUse(Tokens(**{kind: count}))})) is None
    assert (account.tokens, account.by_model, account.refused) == (Tokens(), {}, 2)


def test_a_refused_statement_does_not_disturb_what_is_counted_after_it() -> None:
    account = Account()
    account.add(running(5, 0.25, "a"))
    account.add(running(6, 1e308, "b"))
    account.add(running(9, 0.75, "c"))
    assert (account.tokens, account.cost_usd, account.refused) == (Tokens(10, 9), 0.75, 1)


amounts = st.sampled_from([0, 1, MAX_TOKENS // 2, MAX_TOKENS]) | st.integers(-(2**70), 2**70)
costs = st.none() | st.sampled_from([MAX_COST_USD, 1e308]) | st.floats()
statements = st.builds(
    Used,
    st.builds(Tokens, amounts, amounts, amounts, amounts),
    st.sampled_from(["", "a", "b"]),
    cost_usd=costs,
    total=st.booleans(),
    by_model=st.dictionaries(st.just("m"), st.builds(ModelUse, st.builds(Tokens, amounts, amounts), costs)),
    session=st.sampled_from(["", "s"]),
)


@given(st.lists(statements, max_size=12))
def test_whatever_is_stated_the_sums_stay_possible_and_no_increment_is_negative(stated: list[Used]) -> None:
    account = Account()
    increments = [added for used in stated if (added := account.add(used)) is not None]
    sums = [ModelUse(account.tokens, account.cost_usd), *account.by_model.values()]
    assert all(map(could_be_used, sums))
    assert all(could_be_used(ModelUse(added.tokens, added.cost_usd)) for added in increments)
    assert sum((added.tokens for added in increments), Tokens()) == account.tokens


def test_a_process_that_was_ended_is_not_covered_by_the_total_of_the_next() -> None:
    account = Account()
    account.add(Used(Tokens(10, 5), "m1", cost_usd=0.1))
    account.cut_short()
    account.add(Used(Tokens(20, 1), "m2", cost_usd=0.1))
    account.add(Used(Tokens(20, 9), cost_usd=0.25, total=True))
    assert account.tokens == Tokens(30, 14)
    assert account.whole_cost_usd == pytest.approx(0.35)


def test_a_process_that_was_ended_is_covered_by_a_total_over_the_session() -> None:
    account = Account()
    account.add(Used(Tokens(10, 5), "m1"))
    account.cut_short()
    account.add(Used(Tokens(30, 14), cost_usd=0.5, total=True, session="s"))
    assert account.tokens == Tokens(30, 14)
    assert account.whole_cost_usd == 0.5


def test_what_a_process_cost_that_was_ended_before_it_said_so_is_unknown() -> None:
    account = Account()
    account.add(Used(Tokens(10, 5), "m1"))
    account.cut_short()
    account.add(Used(Tokens(20, 9), cost_usd=0.25, total=True))
    assert account.tokens == Tokens(30, 14)
    assert account.whole_cost_usd is None


def test_a_process_that_used_nothing_before_it_was_ended_changes_nothing() -> None:
    account = Account()
    account.cut_short()
    account.add(Used(Tokens(20, 9), cost_usd=0.25, total=True))
    assert account.whole_cost_usd == 0.25
