"""Laws of every dialect: no input raises, damage stays local, and usage adds up."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.agent_streams import NAMES, play, stream_lines

from hankwatch.agents.account import Account
from hankwatch.agents.detect import DIALECTS
from hankwatch.agents.signals import Junk, Tokens, Used

SMALL = tuple(name for name in NAMES if sum(map(len, stream_lines(name))) < 20_000)

KEYS = """
    type subtype message content id name input item error usage tokens part state result status data stats text
    tool_use_id tool_id toolCallId callID session_id thread_id sessionID role delta cost total_cost_usd modelUsage
    metadata exit exit_code changes timestamp model_usage_since_last_result inputTokens total kind source observation
    action llm_message tool_call_id tool_name tool_call arguments thought event hookEventName contentType toolName
    output success display outputText detail sessionId turnId generationStatus ts updatedAt shellExecution exitCode
    agentId parentAgentId taskId finishReason aggregateUsage compact_metadata trigger costUSD models qwen_code_version
"""
TYPES = """
    system assistant user result thread.started item.started item.completed turn.completed turn.failed error init
    message tool_use tool_result text reasoning step_finish session message_end tool_execution_start
    tool_execution_end agent_end assistant.action tool.result token.usage codon.completed info init text thinking
    command_execution mcp_tool_call file_change success failed effect assistant.message tool.execution_start
    tool.execution_complete assistant.turn_retry session.error agent_event hook_event run_result content_start
    content_end usage notice tool agent_start agent_end compaction_start compact_boundary
"""
KINDS = """
    MessageEvent ActionEvent ObservationEvent AgentErrorEvent UserRejectObservation ConversationErrorEvent Condensation
"""
keys = st.sampled_from(KEYS.split())
types = st.sampled_from(TYPES.split())
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | types
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=6),
    max_leaves=8,
)
records = st.builds(
    lambda kind, event, rest: {**rest, "type": kind, "kind": event},
    types,
    st.sampled_from(KINDS.split()),
    st.dictionaries(keys, values, max_size=6),
)


@pytest.mark.parametrize("program", DIALECTS)
@given(lines=st.lists(records.map(lambda record: json.dumps(record).encode()) | st.binary(max_size=60), max_size=6))
@settings(max_examples=60)
def test_no_line_of_any_shape_raises(program: str, lines: list[bytes]) -> None:
    played = play(lines, DIALECTS[program]())
    for payload in played.payloads:
        payload.dump()
    played.outcome()


@given(data=st.data())
def test_a_torn_or_foreign_line_leaves_the_others_as_they_were(data: st.DataObject) -> None:
    lines = [line for line in stream_lines(data.draw(st.sampled_from(SMALL))) if line]
    at = data.draw(st.integers(0, len(lines)))
    whole = data.draw(st.sampled_from(lines))
    junk = data.draw(st.sampled_from([b"npm warn deprecated", b"\x1b[2K", whole[: len(whole) // 2]]))
    clean, dirty = play(lines), play([*lines[:at], junk, *lines[at:]])
    assert [dict(event, executionTimeMs=0) for _, event in dirty.events] == [
        dict(event, executionTimeMs=0) for _, event in clean.events
    ]
    assert dirty.counts["junk"] == clean.counts["junk"] + 1


@given(data=st.data())
def test_a_stream_cut_anywhere_is_a_prefix_and_no_success(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([name for name in SMALL if name.endswith("-success")]))
    text = b"\n".join(stream_lines(name))
    cut = data.draw(st.integers(0, len(text) // 2))
    part, full = play(text[:cut].split(b"\n")), play(text.split(b"\n"))
    prefix = [event for kind, event in part.events if kind != "token.usage"]
    whole = [event for kind, event in full.events if kind != "token.usage"]
    if full.program == "gemini":
        prefix = [event for event in prefix if event.get("action") != "message"]
        whole = [event for event in whole if event.get("action") != "message"]
    assert prefix == whole[: len(prefix)]
    if full.states_result:
        assert part.outcome().status != "success"


counts = st.integers(0, 1_000)
tokens = st.builds(Tokens, counts, counts, counts, counts)
statements = st.builds(
    Used,
    tokens,
    st.sampled_from(["", "a", "b", "c"]),
    cost_usd=st.none() | st.floats(0, 10),
    total=st.booleans(),
)


@given(stated=st.lists(statements, max_size=20))
def test_increments_sum_to_the_totals(stated: list[Used]) -> None:
    account = Account()
    increments = [increment for used in stated if (increment := account.add(used)) is not None]
    assert sum((increment.tokens for increment in increments), Tokens()) == account.tokens
    costs = [increment.cost_usd for increment in increments if increment.cost_usd is not None]
    assert account.cost_usd == (pytest.approx(sum(costs)) if costs else None)


@given(stated=st.lists(statements, max_size=20))
def test_seen_again_nothing_adds_up(stated: list[Used]) -> None:
    named = [used for used in stated if used.message_id and not used.total]
    account = Account()
    for used in named:
        account.add(used)
    before = account.tokens
    for used in named:
        account.add(used)
    assert account.tokens == before


@given(line=st.binary(max_size=200))
def test_any_bytes_are_at_worst_junk(line: bytes) -> None:
    for dialect in DIALECTS.values():
        assert all(isinstance(signal, Junk) for signal in dialect().feed(line))
