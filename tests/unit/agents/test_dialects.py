"""What the recorded streams do not show: refusals, older versions, junk, several processes in one stream."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.dialects import fed, results

from hankwatch.agents.account import Account
from hankwatch.agents.claude import ClaudeDialect
from hankwatch.agents.codex import CodexDialect
from hankwatch.agents.detect import DIALECTS, DetectingDialect, detect
from hankwatch.agents.envelope import EnvelopeDialect
from hankwatch.agents.gemini import GeminiDialect
from hankwatch.agents.opencode import OpencodeDialect
from hankwatch.agents.pi import PiDialect
from hankwatch.agents.program import Dialect
from hankwatch.agents.qwen import QwenDialect
from hankwatch.agents.signals import (
    ContextExceeded,
    Junk,
    LeftOut,
    ModelUse,
    Recorded,
    Result,
    Retried,
    Spoke,
    Started,
    Tokens,
    ToolFinished,
    ToolUsed,
    Used,
)
from hankwatch.agents.translate import Translator
from hankwatch.events.catalogue import KNOWN_TYPES


@pytest.mark.parametrize("dialect", [*DIALECTS.values(), DetectingDialect])
@pytest.mark.parametrize("line", [b"Welcome to the agent", b'{"type":"assis', b"[1,2]", b"null", b"{}", b"\xff\xfe"])
def test_a_line_that_is_none_of_the_program_is_junk(dialect: type[Dialect], line: bytes) -> None:
    [signal] = dialect().feed(line)
    assert isinstance(signal, Junk)


@pytest.mark.parametrize("dialect", DIALECTS.values())
@pytest.mark.parametrize("line", [b"", b"  ", b"\r", b'{"type":"something_new","kind":"NewEvent","x":1}'])
def test_blank_lines_and_new_types_mean_nothing(dialect: type[Dialect], line: bytes) -> None:
    assert not any(isinstance(signal, Junk) for signal in dialect().feed(line))


def test_separators_that_are_not_newlines_stay_inside_a_text() -> None:
    text = "a\u2028b\u2029c\u0085d\x1b[31m\x00\x07\ufffd"
    record = {"type": "message_end", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}
    line = json.dumps(record, ensure_ascii=False).encode()
    assert Spoke("message", text) in PiDialect().feed(line)


def test_a_bom_and_a_carriage_return_are_taken_off() -> None:
    assert CodexDialect().feed(b'\xef\xbb\xbf{"type":"thread.started","thread_id":"t"}\r') == [
        Started("t", numbers_anew=True)
    ]


def test_a_lone_surrogate_becomes_valid_text() -> None:
    line = rb'{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"\ud800!"}}'
    [spoke] = CodexDialect().feed(line)
    assert isinstance(spoke, Spoke)
    assert spoke.text == "\ufffd!"


def test_a_line_bears_its_stamp() -> None:
    dialect = ClaudeDialect()
    dialect.feed(b'{"type":"system","subtype":"status","timestamp":"2026-11-30T15:18:34.958Z"}')
    assert dialect.stamp_ms == 1796051914958
    dialect.feed(b'{"type":"system","subtype":"status"}')
    assert dialect.stamp_ms is None


# claude


def claude_result(call: str, text: str, *, is_error: bool = True, **extra: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, **extra}


@pytest.mark.parametrize(
    ("text", "extra", "outcome"),
    [
        ("Exit code 1\nboom", {}, "error"),
        ("<tool_use_error>No such tool available: X</tool_use_error>", {}, "error"),
        ("Claude requested permissions to use Bash, but you haven't granted it yet.", {}, "denied"),
        ("no", {"tool_result_meta": [{"id": "t", "non_execution_kind": "permission-rule"}]}, "denied"),
        ("no", {"tool_result_meta": [{"id": "t", "non_execution_kind": "user-rejected"}]}, "cancelled"),
        ("[Request interrupted by user for tool use]", {}, "cancelled"),
    ],
)
def test_claude_tells_failure_refusal_and_interruption_apart(text: str, extra: dict[str, Any], outcome: str) -> None:
    [result] = results(fed(ClaudeDialect(), claude_result("t", text, **extra)))
    assert (result.outcome, result.is_error) == (outcome, True)


def test_claude_remembers_a_refusal_that_the_system_line_stated() -> None:
    refused = {"type": "system", "subtype": "permission_denied", "tool_use_id": "t"}
    [result] = results(fed(ClaudeDialect(), refused, claude_result("t", "No.")))
    assert result.outcome == "denied"


def test_claude_content_may_be_a_plain_string() -> None:
    line = {"type": "assistant", "message": {"id": "m", "content": "Hello."}}
    assert fed(ClaudeDialect(), line) == [Spoke("message", "Hello.", message_id="m")]


def model_usage(output: int) -> dict[str, Any]:
    return {"m": {"inputTokens": 10, "outputTokens": output, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0}}


def test_an_older_claude_states_totals_that_run_over_the_session() -> None:
    line = {"type": "result", "session_id": "s", "total_cost_usd": 0.25, "modelUsage": model_usage(5)}
    used = fed(ClaudeDialect(), line)[0]
    assert used == Used(Tokens(10, 5), "", "m", 0.25, total=True, by_model={"m": ModelUse(Tokens(10, 5))}, session="s")


def test_claude_says_by_itself_that_the_context_was_full() -> None:
    compacted = {"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "auto"}}
    asked_for = {"type": "system", "subtype": "compact_boundary", "compact_metadata": {"trigger": "manual"}}
    content = [{"type": "text", "text": "API Error: terminated"}]
    synthetic = {"type": "assistant", "message": {"id": "m", "model": "<synthetic>", "content": content}}
    spoken = {"type": "assistant", "message": {"id": "m", "model": "claude", "content": content}}
    full = [sum(isinstance(s, ContextExceeded) for s in fed(ClaudeDialect(), line)) for line in (compacted, synthetic)]
    assert full == [1, 1]
    assert not any(isinstance(s, ContextExceeded) for s in fed(ClaudeDialect(), asked_for, spoken))


def test_a_look_alike_without_model_usage_states_plain_usage() -> None:
    line = {"type": "result", "subtype": "success", "usage": {"input_tokens": 3, "output_tokens": 4}}
    assert fed(ClaudeDialect(), line)[0] == Used(Tokens(3, 4), total=True)


# codex


def codex_item(event: str, **item: Any) -> dict[str, Any]:
    return {"type": f"item.{event}", "item": {"id": "item_0", **item}}


def test_codex_items_of_a_resumed_thread_are_told_apart_by_process() -> None:
    lines = [
        {"type": "thread.started", "thread_id": "t"},
        codex_item("started", type="command_execution", command="ls"),
        codex_item("completed", type="command_execution", aggregated_output="a", exit_code=0),
        codex_item("completed", type="agent_message", text="Done."),
        {"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 1}},
    ]
    translator = Translator("c")
    first, second = (
        [payload.dump() for signal in fed(CodexDialect(), *lines) for payload in translator.translate(signal, 0)]
        for _ in range(2)
    )
    assert [event.get("toolUseId") for event in first] == ["t:item_0", "t:item_0", None, None]
    assert [event.get("toolUseId") for event in second] == ["t:item_0#2", "t:item_0#2", None]


@pytest.mark.parametrize(
    ("item", "outcome"),
    [
        ({"status": "completed", "exit_code": 0}, "ok"),
        ({"status": "completed", "exit_code": 3}, "error"),
        ({"status": "failed"}, "error"),
        ({"status": "declined"}, "denied"),
    ],
)
def test_codex_outcome_comes_from_status_and_exit_code(item: dict[str, Any], outcome: str) -> None:
    done = codex_item("completed", type="command_execution", aggregated_output="x", **item)
    [result] = results(fed(CodexDialect(), done))
    assert result.outcome == outcome


def test_a_codex_item_that_only_ends_is_a_call_too() -> None:
    search = codex_item("completed", type="web_search", query="wind")
    call, result = fed(CodexDialect(), codex_item("started", type="web_search", query=""), search)
    assert call == ToolUsed(":item_0", "web_search", {"query": "wind"})
    assert isinstance(result, ToolFinished)


def test_a_codex_mcp_call_is_named_by_server_and_tool() -> None:
    begun = codex_item("started", type="mcp_tool_call", server="db", tool="query", arguments={"q": 1})
    done = codex_item("completed", type="mcp_tool_call", server="db", tool="query", error={"message": "down"})
    call, result = fed(CodexDialect(), begun, done)
    assert call == ToolUsed(":item_0", "mcp__db__query", {"q": 1})
    assert result == ToolFinished(":item_0", "down", "error", is_error=True)


def test_codex_usage_runs_over_the_thread_and_cached_input_is_no_fresh_input() -> None:
    thread = {"type": "thread.started", "thread_id": "t"}
    turns = [{"type": "turn.completed", "usage": {"input_tokens": n, "cached_input_tokens": 4}} for n in (10, 30)]
    usages = [signal for signal in fed(CodexDialect(), thread, *turns) if isinstance(signal, Used)]
    assert [(used.session, used.tokens) for used in usages] == [
        ("t", Tokens(6, 0, 0, 4)),
        ("t", Tokens(26, 0, 0, 4)),
    ]


# gemini


def said(text: str, **extra: Any) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": text, **extra}


def test_gemini_pieces_are_joined_until_another_type() -> None:
    call = {"type": "tool_use", "tool_id": "t", "tool_name": "ls", "parameters": {}}
    signals = fed(GeminiDialect(), said("a", delta=True), said("b", delta=True), call, said("c", delta=True))
    assert [signal.text for signal in signals if isinstance(signal, Spoke)] == ["ab", "c"]


def test_a_gemini_message_that_repeats_its_pieces_counts_once() -> None:
    signals = fed(GeminiDialect(), said("a", delta=True), said("b", delta=True), said("ab"))
    assert [signal for signal in signals if isinstance(signal, Spoke)] == [Spoke("message", "ab")]


def test_a_gemini_policy_refusal_is_denied() -> None:
    line = {"type": "tool_result", "tool_id": "t", "status": "error", "error": {"type": "policy_violation"}}
    [result] = results(fed(GeminiDialect(), line))
    assert (result.outcome, result.is_error) == ("denied", True)


# opencode


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ({"status": "completed", "metadata": {"exit": 0}}, "ok"),
        ({"status": "completed", "metadata": {"exit": 2}}, "error"),
        ({"status": "error", "error": "File not found"}, "error"),
        ({"status": "error", "error": "The user rejected permission to use this specific tool call."}, "denied"),
        ({"status": "error", "error": "Tool execution aborted"}, "cancelled"),
    ],
)
def test_opencode_outcome_comes_from_state_and_exit(state: dict[str, Any], outcome: str) -> None:
    line = {"type": "tool_use", "sessionID": "ses_1", "part": {"callID": "c", "tool": "bash", "state": state}}
    started, call, result = fed(OpencodeDialect(), line)
    assert started == Started("ses_1")
    assert isinstance(call, ToolUsed)
    assert isinstance(result, ToolFinished)
    assert (result.outcome, result.is_error) == (outcome, outcome != "ok")


# pi


def test_pi_inputs_take_the_keys_hank_authors_know() -> None:
    line = {"type": "tool_execution_start", "toolCallId": "c", "toolName": "edit", "args": {"path": "a", "dryRun": 1}}
    assert fed(PiDialect(), line) == [ToolUsed("c", "Edit", {"file_path": "a", "dry_run": 1})]


def test_the_last_stop_reason_decides_how_pi_ended() -> None:
    def end(reason: str) -> dict[str, Any]:
        return {"type": "message_end", "message": {"role": "assistant", "content": [], "stopReason": reason}}

    ended = {"type": "agent_end", "messages": []}
    first, last = (s for s in fed(PiDialect(), end("error"), ended, end("stop"), ended) if isinstance(s, Result))
    assert (first.success, last.success) == (False, True)


def test_pi_compacts_when_the_context_is_full() -> None:
    [signal] = fed(PiDialect(), {"type": "compaction_start", "reason": "overflow"})
    assert isinstance(signal, ContextExceeded)
    assert fed(PiDialect(), {"type": "compaction_start", "reason": "manual"}) == []


# qwen


def test_qwen_takes_what_the_cache_gave_out_of_the_input_and_adds_up_over_the_session() -> None:
    usage = {"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 4}
    line = {"type": "result", "subtype": "success", "session_id": "s", "uuid": "u", "usage": usage}
    assert fed(QwenDialect(), line)[0] == Used(Tokens(6, 3, 0, 4), "u", total=True, session="s")


def test_a_tool_that_qwen_was_stopped_in_is_cancelled() -> None:
    [result] = results(fed(QwenDialect(), claude_result("t", "[Operation Cancelled] Reason: User cancelled.")))
    assert result.outcome == "cancelled"


# our envelope


def test_a_journal_repeats_what_the_agent_did_and_not_what_watched_it() -> None:
    def event(kind: str, **data: Any) -> dict[str, Any]:
        return {"id": f"id-{kind}", "timestamp": "2026-11-30T15:18:34.958Z", "type": kind, "data": data}

    signals = fed(
        EnvelopeDialect(),
        event("codon.started", codonId="a", sessionId="s"),
        event("assistant.action", action="message", content="hi"),
        event("sentinel.output", content="report"),
        event("state.transition"),
        event("info", message="529", code="transport-retry"),
        event("token.usage", inputTokens=1, outputTokens=2, totalCost=None, isFinal=True),
        event("codon.completed", success=False, failureReason={"type": "timeout", "message": "too slow"}),
    )
    told = [signal for signal in signals if not isinstance(signal, LeftOut)]
    assert [type(signal) for signal in told] == [Started, Recorded, Retried, Used, Result]
    assert isinstance(signals[-1], Result)
    assert (signals[-1].success, signals[-1].text) == (False, "too slow")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("info", "infos"),
        ("state.transition", "runtime_events"),
        ("checkpoint.list", "runtime_events"),
        ("sentinel.output", "observer_events"),
        ("watch.armed", "observer_events"),
        ("journal.repaired", "observer_events"),
        ("made.up", "unknown_types"),
    ],
)
def test_what_is_not_for_a_program_to_tell_is_left_out_under_its_reason(kind: str, reason: str) -> None:
    assert fed(EnvelopeDialect(), {"type": kind, "data": {"message": "forged"}}) == [LeftOut(reason)]


@given(st.sampled_from(sorted(KNOWN_TYPES)) | st.text(min_size=1))
def test_no_line_of_the_envelope_disappears_without_a_signal(kind: str) -> None:
    assert fed(EnvelopeDialect(), {"type": kind, "data": {}})


@pytest.mark.parametrize(
    ("dialect", "line"),
    [
        (CodexDialect(), {"type": "turn.completed", "usage": {"input_tokens": -1, "cached_input_tokens": 5}}),
        (GeminiDialect(), {"type": "result", "status": "success", "stats": {"input_tokens": -1, "cached": 5}}),
        (EnvelopeDialect(), {"type": "token.usage", "data": {"inputTokens": 1, "totalCost": -0.5}}),
        (ClaudeDialect(), {"type": "result", "usage": {"input_tokens": 1}, "total_cost_usd": -0.5}),
        (ClaudeDialect(), {"type": "assistant", "message": {"id": "m", "usage": {"input_tokens": 1e300}}}),
    ],
)
def test_usage_that_cannot_be_reaches_the_account_as_it_was_stated(dialect: Dialect, line: dict[str, Any]) -> None:
    account = Account()
    for signal in fed(dialect, line):
        if isinstance(signal, Used):
            account.add(signal)
    assert (account.refused, account.tokens, account.cost_usd) == (1, Tokens(), None)


# detection


def test_the_first_line_that_says_so_decides() -> None:
    lines = [b"Loading...", b'{"progress": 1}', b'{"type":"thread.started","thread_id":"t"}', b'{"type":"init"}']
    assert detect(lines) == "codex"
    assert detect([b"nothing", b"{}"]) is None


def test_a_detecting_dialect_keeps_to_its_candidates() -> None:
    dialect = DetectingDialect(("journal", "claude"))
    [signal] = dialect.feed(b'{"type":"thread.started","thread_id":"t"}')
    assert isinstance(signal, Junk)
    assert dialect.states_result is True


def test_another_programs_events_are_not_taken_for_ours() -> None:
    line = b'{"type":"assistant.message","data":{"content":"x"},"id":"1","timestamp":"2026-11-30T15:18:34Z"}'
    assert detect([line]) is None


def test_retries_say_which_and_why() -> None:
    line = {"type": "system", "subtype": "api_retry", "attempt": 2, "max_retries": 10, "error": "overloaded"}
    assert fed(ClaudeDialect(), line) == [
        Retried("attempt 2 of 10: overloaded (status None), next in 0 ms"),
    ]
