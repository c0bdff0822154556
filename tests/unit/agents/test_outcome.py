"""The table of what an ending means: success is never inferred from one field."""

import itertools

import pytest
from tests.support.agent_streams import NAMES, play, stream_lines

from hankwatch.agents.evidence import Evidence
from hankwatch.agents.outcome import Ending, Status, decide
from hankwatch.agents.signals import ContextExceeded, Reported, Result, Spoke, Started

GOOD = Result(success=True, subtype="success", terminal_reason="completed", text="Done.")


@pytest.mark.parametrize(
    ("subtype", "is_error", "exit_code", "reason", "text"),
    list(
        itertools.product(
            ("success", "error_during_execution"),
            (False, True),
            (0, 1),
            ("completed", "max_turns", ""),
            ("Done.", "API Error: 529 overloaded", "[API Error: quota]"),
        )
    ),
)
def test_only_agreement_of_every_field_is_a_success(
    subtype: str, is_error: bool, exit_code: int, reason: str, text: str
) -> None:
    success = subtype == "success"
    result = Result(success, is_error, text, subtype, reason)
    outcome = decide(Ending(result, exit_code))
    all_good = success and not is_error and exit_code == 0 and reason != "max_turns" and "API Error" not in text
    if not success or is_error:
        assert outcome.status == "failed"
    else:
        assert outcome.status == ("success" if all_good else "suspect")
    assert (outcome.reason is None) == all_good


def test_both_sides_of_a_contradiction_are_kept() -> None:
    outcome = decide(Ending(Result(success=True, is_error=True, subtype="success", text="Prompt is too long"), 0))
    assert outcome.status == "failed"
    assert outcome.facts == ("result success, error flag", "exit code 0", "the result carries an error flag")
    assert outcome.reason is not None
    assert outcome.reason.message == "Prompt is too long"


@pytest.mark.parametrize(
    ("ending", "doubt"),
    [
        (Ending(GOOD, 3), "the exit code is not 0 (exit code 3)"),
        (Ending(GOOD, None, signal=9), "a signal ended the process (signal 9)"),
    ],
)
def test_a_doubted_success_says_what_it_is_doubted_for(ending: Ending, doubt: str) -> None:
    reason = decide(ending).reason
    assert reason is not None
    assert reason.message == f"the agent's result says success, but {doubt}"


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        (Ending(GOOD, 0), "success"),
        (Ending(GOOD, 3), "suspect"),
        (Ending(GOOD, None, signal=15), "suspect"),
        (Ending(GOOD, 0, problem="Loop detected, stopping execution"), "suspect"),
        (Ending(None, 0), "failed"),
        (Ending(None, 0, states_result=False), "success"),
        (Ending(None, 1, states_result=False), "failed"),
        (Ending(None, None, signal=9, states_result=False), "failed"),
        (Ending(None, 0, states_result=False, problem="invalid key"), "failed"),
    ],
)
def test_exit_signal_and_last_word_speak_too(ending: Ending, status: Status) -> None:
    assert decide(ending).status == status


@pytest.mark.parametrize(
    ("name", "exit_code", "status"),
    [
        ("claude-success", 0, "success"),
        ("claude-api-error-fatal", 1, "failed"),
        ("claude-auth-error", 1, "failed"),
        ("claude-killed", 143, "failed"),
        ("claude-maxturns", 1, "failed"),
        ("claude-stdin-interrupt", 0, "success"),
        ("codex-success", 0, "success"),
        ("codex-auth-error", 1, "failed"),
        ("codex-killed", 143, "failed"),
        ("gemini-success", 0, "success"),
        ("gemini-loop", 0, "suspect"),
        ("gemini-api-error-fatal", 144, "failed"),
        ("opencode-success", 0, "success"),
        ("opencode-auth-error", 1, "failed"),
        ("opencode-killed", 0, "failed"),
        ("pi-success", 0, "success"),
        ("pi-auth-error", 0, "failed"),
        ("pi-api-error-fatal", 0, "failed"),
        ("pi-killed", 143, "failed"),
        ("qwen-success", 0, "success"),
        ("qwen-auth-error", 0, "suspect"),
        ("qwen-api-error-fatal", 0, "suspect"),
        ("qwen-killed", 143, "failed"),
        ("copilot-success", 0, "success"),
        ("copilot-auth-error", 1, "failed"),
        ("copilot-api-error-fatal", 1, "failed"),
        ("copilot-api-error-retry", 0, "success"),
        ("copilot-killed", 143, "failed"),
        ("vibe-success", 0, "success"),
        ("vibe-auth-error", 1, "failed"),
        ("vibe-api-error-fatal", 2, "failed"),
        ("vibe-killed", 3, "failed"),
        ("openhands-success", 0, "success"),
        ("openhands-bad-tool", 0, "success"),
        ("openhands-api-error-fatal", 0, "failed"),
        ("openhands-killed", 143, "failed"),
        ("cline-success", 0, "success"),
        ("cline-loop", 1, "failed"),
        ("cline-auth-error", 1, "failed"),
        ("cline-api-error-fatal", 1, "failed"),
        ("cline-killed", 143, "failed"),
    ],
)
def test_a_recorded_run_ends_as_it_really_did(name: str, exit_code: int, status: Status) -> None:
    assert play(stream_lines(name)).outcome(exit_code).status == status


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("-success")])
def test_an_exit_that_contradicts_a_success_makes_it_doubtful_at_least(name: str) -> None:
    played = play(stream_lines(name))
    assert played.outcome(0).status == "success"
    assert played.outcome(1).status == ("suspect" if played.states_result else "failed")


ENDINGS = ("-killed", "-auth-error", "-api-error-fatal")
EXIT_ALONE_TELLS = "vibe"
RAN_AWAY = "opencode-api-error-fatal"
"""Cut after a step that had gone well; the program would have gone on for ever."""
BROKEN = [
    name for name in NAMES if name.endswith(ENDINGS) and name != RAN_AWAY and not name.startswith(EXIT_ALONE_TELLS)
]


@pytest.mark.parametrize("name", BROKEN)
def test_no_exit_code_makes_a_success_of_a_broken_stream(name: str) -> None:
    assert play(stream_lines(name)).outcome(0).status != "success"


CONTEXT_FULL = {name for name in NAMES if name.endswith("-api-error-fatal")} - {"vibe-api-error-fatal"}


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_says_whether_the_context_was_full(name: str) -> None:
    assert play(stream_lines(name)).outcome(1).context_exceeded is (name in CONTEXT_FULL)


def test_a_full_context_is_noticed_in_stderr_when_the_stream_has_no_words() -> None:
    ending = Ending(None, 2, states_result=False, stderr="Error: 400: prompt is too long: 250000 tokens")
    assert decide(ending).context_exceeded


@pytest.mark.parametrize(
    ("result", "full"),
    [
        (Result(success=False, is_error=True, text="context_length_exceeded"), True),
        (Result(success=False, text="Claude's response exceeded the 32000 output token maximum"), True),
        (Result(success=False, text="API Error: terminated"), True),
        (Result(success=True, subtype="success", text="The article says that a prompt is too long."), False),
        (Result(success=False, text="429"), False),
    ],
)
def test_only_an_errors_text_says_that_the_context_was_full(result: Result, full: bool) -> None:
    assert decide(Ending(result, 0)).context_exceeded is full


def test_a_turn_that_went_on_after_its_context_was_full_succeeds_and_says_so() -> None:
    evidence = Evidence()
    for signal in (Started("s"), ContextExceeded("compacted"), Spoke("message", "going on"), GOOD):
        evidence.note(signal)
    outcome = decide(evidence.ending(exit_code=0))
    assert (outcome.status, outcome.context_exceeded) == ("success", True)


def test_the_reason_is_what_the_failure_said_before_what_the_process_said() -> None:
    failed = Result(success=False, is_error=True, text="429")
    assert decide(Ending(failed, 1, problem="socket closed", stderr="boom")).reason is not None
    reasons = [
        decide(Ending(failed, 1, problem="socket closed", stderr="boom")).reason,
        decide(Ending(GOOD, 1, problem="socket closed", stderr="boom")).reason,
        decide(Ending(GOOD, 1, stderr="boom")).reason,
    ]
    assert [reason and reason.message for reason in reasons] == ["429", "socket closed", "boom"]


@pytest.mark.parametrize("had_session", [True, False])
def test_silence_is_an_api_error_that_is_retriable_after_a_session(had_session: bool) -> None:
    reason = decide(Ending(None, 1, had_session=had_session)).reason
    assert reason is not None
    assert (reason.type, reason.retriable) == ("api-error", had_session)


def test_the_last_of_several_results_counts() -> None:
    evidence = Evidence()
    for signal in (Started("s"), Result(success=False, text="x"), Spoke("message", "again"), GOOD):
        evidence.note(signal)
    assert decide(evidence.ending(exit_code=0)).status == "success"


def test_a_failure_echoed_after_a_success_with_nothing_done_is_ignored() -> None:
    evidence = Evidence()
    echo = Result(success=False, is_error=True, subtype="error_during_execution")
    for signal in (Started("s"), Spoke("message", "done"), GOOD, echo):
        evidence.note(signal)
    assert evidence.result == GOOD


def test_a_problem_that_the_agent_went_on_after_is_no_evidence() -> None:
    evidence = Evidence()
    for signal in (Started("s"), Reported("hiccup"), Spoke("message", "going on"), GOOD):
        evidence.note(signal)
    assert decide(evidence.ending(exit_code=0)).status == "success"
