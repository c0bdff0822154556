"""What follows a codon's failure: the end of the run, another attempt, or nothing (reference 3.5)."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, sentinel
from tests.support.laws import FINAL, moved_to, transition
from tests.support.runs import Ran, environment, killed_after, run_here, stand_in, write_hank

from hankwatch.app import LiveRun, open_run
from hankwatch.events.envelope import Event
from hankwatch.options import RunOptions
from hankwatch.testing import ScriptedModel

INIT = ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}]
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "total_cost_usd": 0.25}
SPENT = {**RESULT, "subtype": "error_during_execution", "is_error": True}
GOOD = [INIT, ["line", RESULT], ["until_eof"]]
OVERLOADED = [INIT, ["line", {**SPENT, "result": "API Error: 529 overloaded"}], ["until_eof"]]
NO_CREDIT = [INIT, ["line", {**SPENT, "result": "Your credit balance is too low"}], ["until_eof"]]
RETRY: dict[str, Any] = {"onFailure": "retry", "retryConfig": {"maxAttempts": 3, "delayMs": 0}}


async def play(tmp_path: Path, *calls: list[Any], codons: tuple[dict[str, Any], ...]) -> Ran:
    agent = stand_in(tmp_path / "agent", ["calls", *calls])
    path = write_hank(tmp_path / "hank", *codons)
    return await run_here(path, tmp_path / "run", environ=agent.environ, model=ScriptedModel("Seen."))


def infos(ran: Ran, words: str) -> list[str]:
    return [event.data["message"] for event in ran.of("info") if words in event.data["message"]]


def watched(**fields: Any) -> dict[str, Any]:
    observer = sentinel(trigger={"type": "event", "on": ["codon.completed"]}, userPromptText="{{ it.events }}")
    return codon(sentinels=[{"sentinelConfig": observer}], **fields)


async def test_a_codon_is_tried_again_under_the_same_sentinels(tmp_path: Path) -> None:
    ran = await play(tmp_path, OVERLOADED, OVERLOADED, GOOD, codons=(watched(**RETRY),))
    assert ran.result is not None
    assert ran.result.success
    assert [event.data["success"] for event in ran.of("codon.completed")] == [False, False, True]
    assert infos(ran, "Retrying") == ["Retrying codon one (attempt 2/3)", "Retrying codon one (attempt 3/3)"]
    assert len(ran.of("sentinel.loaded")) == len(ran.of("sentinel.unloaded")) == 1
    assert len(ran.of("sentinel.output")) == 3, "it saw the end of each attempt"
    assert len(list((ran.root / ".hankweave" / "runs").glob("*/one-*-claude.log"))) == 3


async def test_the_record_of_each_attempt_has_its_sentinels(tmp_path: Path) -> None:
    ran = await play(tmp_path, OVERLOADED, GOOD, codons=(watched(**RETRY),))
    attempts = ran.of("state.snapshot")[-1].data["completedCodons"]
    assert [[s["id"] for s in attempt["sentinels"]["executed"]] for attempt in attempts] == [["observer"], ["observer"]]


async def test_what_sentinels_cost_counts_in_its_own_attempt_alone_after_a_kill_too(tmp_path: Path) -> None:
    observer = sentinel(trigger={"type": "event", "on": ["codon.started"]})
    hank = codon(sentinels=[{"sentinelConfig": observer}], **RETRY)
    whole = await play(tmp_path, OVERLOADED, GOOD, codons=(hank,))
    costs = [event.data["cost"] for event in whole.of("codon.completed")]
    assert costs == pytest.approx([0.251, 0.251])
    (ended,) = (event for event in whole.events if moved_to(event) == "completed")
    killed = killed_after(whole, tmp_path / "killed", ended)
    model = ScriptedModel("Seen.")
    resumed = await run_here(tmp_path / "hank", killed.root, environ=environment(), model=model, resume=True)
    assert [event.data["cost"] for event in resumed.of("codon.completed")] == pytest.approx(costs)


async def test_the_cost_of_every_attempt_counts(tmp_path: Path) -> None:
    ran = await play(tmp_path, OVERLOADED, GOOD, codons=(codon(**RETRY),))
    assert [event.data["cost"] for event in ran.of("codon.completed")] == [0.25, 0.25]
    assert ran.of("state.snapshot")[-1].data["totalCost"] == 0.5
    assert ran.result is not None
    assert [(c.attempt, c.status) for c in ran.result.record.codons] == [(1, "failed"), (2, "completed")]


async def test_attempts_end_with_the_last_one_allowed(tmp_path: Path) -> None:
    ran = await play(tmp_path, OVERLOADED, codons=(codon(**RETRY), codon("two")))
    assert len(ran.of("codon.completed")) == 3
    assert ran.result is not None
    assert ran.result.reason == "codon failure: one"


async def test_what_cannot_be_helped_is_not_tried_again(tmp_path: Path) -> None:
    ran = await play(tmp_path, NO_CREDIT, codons=(codon(**RETRY),))
    assert len(ran.of("codon.completed")) == 1


async def test_what_the_agent_says_of_its_failure_is_not_said_again(tmp_path: Path) -> None:
    ran = await play(tmp_path, NO_CREDIT, codons=(codon(),))
    assert [event.data["message"] for event in ran.of("error")] == ["Your credit balance is too low"]


async def test_an_ignored_failure_is_said_and_the_run_goes_on(tmp_path: Path) -> None:
    ran = await play(tmp_path, NO_CREDIT, GOOD, codons=(codon(onFailure="ignore"), codon("two")))
    first, second = ran.of("codon.completed")
    assert (first.data["success"], first.data["failureIgnored"]) == (False, True)
    assert second.data["success"] is True
    assert "failureIgnored" not in second.data
    assert infos(ran, "goes on")
    assert ran.result is not None
    assert ran.result.success


async def test_an_agent_that_cannot_start_is_ignored_as_well(tmp_path: Path) -> None:
    path = write_hank(tmp_path / "hank", codon(agent="exec:/nonexistent/agent", onFailure="ignore"))
    ran = await run_here(path, tmp_path / "run")
    assert ran.completed()["failureIgnored"] is True
    assert [event.data["fatal"] for event in ran.of("error")] == [False]


@pytest.mark.parametrize("ask", ["stop", "skip"])
async def test_a_request_ends_the_wait_for_the_next_attempt(tmp_path: Path, ask: str) -> None:
    agent = stand_in(tmp_path / "agent", ["calls", OVERLOADED])
    slow = {"onFailure": "retry", "retryConfig": {"delayMs": 60_000}}
    path = write_hank(tmp_path / "hank", codon(**slow), codon("two", onFailure="ignore"))
    async with open_run(RunOptions(path, execution=tmp_path / "run"), environ=agent.environ) as live:
        live.stream.subscribe(lambda event: _at_the_wait(event, live, ask), name="test")
        result = await live.carry_out()
    ran = Ran(tmp_path / "run", result)
    statuses = [(codon.codon_id, codon.status) for codon in result.record.codons]
    if ask == "stop":
        assert statuses == [("one", "failed")]
        assert transition(ran.events[-1]) == "RunFailed"
    else:
        assert statuses == [("one", "failed"), ("one", "skipped"), ("two", "failed")]


def _at_the_wait(event: Event, live: LiveRun, ask: str) -> None:
    if event.data.get("message", "").startswith("Retrying"):
        if ask == "stop":
            live.stop()
        else:
            live.control.skip()


async def test_a_failure_by_a_stop_is_not_ignored_and_is_done_again_by_a_resume(tmp_path: Path) -> None:
    agent = stand_in(tmp_path / "agent", ["calls", [INIT, ["hang"]], GOOD])
    path = write_hank(tmp_path / "hank", codon("one", onFailure="ignore"), codon("two"))
    async with open_run(RunOptions(path, execution=tmp_path / "run"), environ=agent.environ) as live:
        live.stream.subscribe(lambda event: live.stop() if event.type == "codon.started" else None, name="test")
        result = await live.carry_out()
    assert not result.success
    assert "failureIgnored" not in Ran(tmp_path / "run").completed()
    ran = await run_here(path, tmp_path / "run", environ=agent.environ, resume=True)
    assert ran.result is not None
    assert [(c.codon_id, c.status) for c in ran.result.record.codons] == [("one", "completed"), ("two", "completed")]


@pytest.mark.parametrize("policy", ["abort", "retry", "ignore"])
async def test_a_codon_that_was_stopped_by_itself_is_not_tried_again(tmp_path: Path, policy: str) -> None:
    agent = stand_in(tmp_path / "agent", ["calls", [INIT, ["hang"]], GOOD])
    path = write_hank(tmp_path / "hank", codon("one", onFailure=policy), codon("two"))
    async with open_run(RunOptions(path, execution=tmp_path / "run"), environ=agent.environ) as live:

        def end_the_first(event: Event) -> None:
            if event.type == "codon.started" and event.data["codonId"] == "one":
                live.control.fail_codon()

        live.stream.subscribe(end_the_first, name="test")
        result = await live.carry_out()
    assert result.success is (policy == "ignore")
    assert [c.codon_id for c in result.record.codons] == (["one", "two"] if policy == "ignore" else ["one"])


async def test_the_end_of_an_attempt_says_what_its_agent_did(tmp_path: Path) -> None:
    ran = await play(tmp_path, NO_CREDIT, GOOD, codons=(codon(onFailure="ignore"), codon("two")))
    ends = [event.data["transition"]["data"]["metadata"] for event in ran.events if moved_to(event) in FINAL]
    failed, completed = ends
    assert (failed["exitCode"], failed["resultMessageReceived"], failed["failedDuring"]) == (0, True, "running")
    assert failed["failureReason"]["type"] == "api-error"
    assert (completed["claudeSessionId"], completed["contextExceeded"], completed["extensionCount"]) == (
        "s-1",
        False,
        0,
    )
    record, _ = ran.of("state.snapshot")[-1].data["completedCodons"]
    assert record["exitStatus"] == {"type": "success"}
    assert record["duration"] > 0
