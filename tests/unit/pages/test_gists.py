"""What events say in one line."""

import pytest

from hankwatch.pages.gist import gist
from hankwatch.testing import make_event

ROW = {"codonId": "build", "status": "exceeded", "budget": {}, "actual": {}}
TOTALS = {"actualDollars": 0.5, "actualTimeSeconds": 12.5}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([ROW, {**ROW, "codonId": "test"}], "$0.5000 and 12.5 s of agents; limit reached: build, test"),
        ([{**ROW, "status": "completed"}], "$0.5000 and 12.5 s of agents; no limit reached"),
    ],
)
def test_a_budget_says_what_was_spent_and_which_limits_were_reached(rows: list[object], said: str) -> None:
    assert gist(make_event("budget.summary", ceiling={}, allocation="shared", rows=rows, totals=TOTALS)) == said


def test_checkpoints_are_counted() -> None:
    assert gist(make_event("checkpoint.list", runId="r", checkpoints=[{}, {}])) == "2 checkpoint(s) of run r"


@pytest.mark.parametrize(("count", "said"), [(1, "1 call"), (0, "0 calls"), (3, "3 calls")])
def test_one_is_not_many(count: int, said: str) -> None:
    unloaded = make_event("sentinel.unloaded", sentinelId="s", reason="codon-complete", llmCallCount=count)
    assert gist(unloaded) == f"s codon-complete, {said}"
    fired = make_event("sentinel.triggered", sentinelId="s", triggerNumber=2, eventCount=count, cause="match")
    assert gist(fired) == f"s #2 on {said.replace('call', 'event')} (match)"


def test_a_cost_that_nobody_knows_is_said_to_be_one() -> None:
    assert gist(make_event("token.usage", inputTokens=7, outputTokens=1)) == "7 in, 1 out, cost unknown"


@pytest.mark.parametrize("event_type", ["budget.summary", "checkpoint.list", "codon.completed"])
@pytest.mark.parametrize("strange", [None, 7, "text", [None], {"a": 1}])
def test_a_foreign_payload_is_no_fault(event_type: str, strange: object) -> None:
    fields = ("rows", "totals", "checkpoints", "failureReason", "cost")
    assert gist(make_event(event_type, **dict.fromkeys(fields, strange)))
