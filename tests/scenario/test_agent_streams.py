"""Every recorded stream of the real programs becomes the events it should: goldens, laws, and an independent count."""

import functools
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.support.agent_streams import GOLDEN, NAMES, Played, golden_text, play, raw_records, stream_lines

from hankwatch.agents.detect import program_of

TOKEN_KEYS = ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")


@functools.cache
def played(name: str) -> Played:
    return play(stream_lines(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_becomes_its_golden_events(name: str) -> None:
    assert golden_text(played(name)) == (GOLDEN / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_program_is_recognised_by_its_lines_alone(name: str) -> None:
    assert played(name).program == name.split("-", maxsplit=1)[0]


@pytest.mark.parametrize("name", NAMES)
def test_no_line_is_taken_for_another_programs(name: str) -> None:
    program = name.split("-", maxsplit=1)[0]
    seen = {program_of(line) for line in stream_lines(name)}
    # What qwen calls a user's line is exactly Claude's; its first line is not.
    assert seen - {None, program} <= ({"claude"} if program == "qwen" else set())


@pytest.mark.parametrize("name", NAMES)
def test_every_result_follows_its_call_and_answers_it_once(name: str) -> None:
    open_calls: set[str] = set()
    for kind, data in played(name).events:
        if kind == "tool.result":
            open_calls.remove(data["toolUseId"])
        elif kind == "assistant.action" and data["action"] == "tool_use":
            assert data["toolUseId"] not in open_calls
            open_calls.add(data["toolUseId"])
    assert len(open_calls) == played(name).counts["calls_without_result"]


@pytest.mark.parametrize("name", NAMES)
def test_the_usage_increments_sum_to_the_final_one(name: str) -> None:
    usages = played(name).of("token.usage")
    if not usages:
        return  # the program stated none
    *increments, final = usages
    assert final["isFinal"] is True
    assert not any("isFinal" in usage for usage in increments)
    for key in TOKEN_KEYS:
        assert sum(usage[key] for usage in increments) == final[key]
    costs = [usage["totalCost"] for usage in increments if usage["totalCost"] is not None]
    assert final["totalCost"] == (pytest.approx(sum(costs)) if costs else None)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("claude", "gemini"))])
def test_the_parts_of_the_models_sum_to_the_final_usage(name: str) -> None:
    usages = played(name).of("token.usage")
    if not any(record["type"] == "result" for record in raw_records(name)) or not usages:
        return  # it was killed, or stated none
    final = usages[-1]
    parts = final["modelUsage"].values()
    keys = ("inputTokens", "outputTokens", "cacheCreationInputTokens", "cacheReadInputTokens")
    assert [sum(part[key] for part in parts) for key in keys] == [final[key] for key in TOKEN_KEYS]
    costs = [part["costUSD"] for part in parts if part["costUSD"] is not None]
    assert final["totalCost"] == (pytest.approx(sum(costs)) if costs else None)


@dataclass
class Truth:
    """What a stream holds, counted without any code of the project."""

    messages: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    errors: int = 0
    retries: int = 0
    tokens: tuple[int, int, int, int] = (0, 0, 0, 0)
    cost_usd: float | None = None


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def total(counts: list[tuple[int, int, int, int]]) -> tuple[int, int, int, int]:
    a, b, c, d = (sum(column) for column in zip((0, 0, 0, 0), *counts, strict=True))
    return a, b, c, d


def claude_truth(records: list[dict[str, Any]]) -> Truth:
    truth, usages, per_message = Truth(), [], {}
    for record in records:
        if record["type"] == "system":
            truth.retries += record["subtype"] == "api_retry"
        if record["type"] == "assistant":
            usage = record["message"]["usage"]
            per_message[record["message"]["id"]] = (
                usage["input_tokens"],
                usage["output_tokens"],
                usage["cache_creation_input_tokens"],
                usage["cache_read_input_tokens"],
            )
        if record["type"] in ("assistant", "user"):
            for block in record["message"]["content"]:
                match block["type"]:
                    case "text" if record["type"] == "assistant":
                        truth.messages.append(block["text"])
                    case "thinking":
                        truth.thoughts.append(block["thinking"])
                    case "tool_use":
                        truth.calls.append(block["name"])
                    case "tool_result":
                        truth.results.append(text_of(block["content"]))
                        truth.errors += block.get("is_error", False)
        if record["type"] == "result":
            truth.cost_usd = record["total_cost_usd"]
            usages += [
                (m["inputTokens"], m["outputTokens"], m["cacheCreationInputTokens"], m["cacheReadInputTokens"])
                for m in record["model_usage_since_last_result"].values()
            ]
    truth.tokens = total(usages or list(per_message.values()))
    return truth


def codex_truth(records: list[dict[str, Any]]) -> Truth:
    truth = Truth()
    for record in records:
        item = record.get("item", {})
        match record["type"], item.get("type"):
            case "item.completed", "agent_message":
                truth.messages.append(item["text"])
            case "item.completed", "reasoning":
                truth.thoughts.append(item["text"])
            case "item.started", kind:
                truth.calls.append(kind)
            case "item.completed", "command_execution":
                truth.results.append(item["aggregated_output"])
                truth.errors += item["exit_code"] != 0
            case "item.completed", "file_change":
                truth.results.append("\n".join(f"{change['kind']} {change['path']}" for change in item["changes"]))
            case "turn.completed", _:
                usage = record["usage"]
                cached = usage["cached_input_tokens"]
                truth.tokens = (usage["input_tokens"] - cached, usage["output_tokens"], 0, cached)
            case "error", _:
                truth.retries += "Reconnecting" in record["message"]
            case _:
                pass
    return truth


def gemini_truth(records: list[dict[str, Any]]) -> Truth:
    truth = Truth()
    for spoken, group in itertools.groupby(records, lambda record: record.get("role") == "assistant"):
        if spoken:
            truth.messages.append("".join(record["content"] for record in group))
            continue
        for record in group:
            match record["type"]:
                case "tool_use":
                    truth.calls.append(record["tool_name"])
                case "tool_result":
                    truth.results.append(record.get("output", ""))
                    truth.errors += record["status"] != "success"
                case "result":
                    stats = record["stats"]
                    truth.tokens = (stats["input"], stats["output_tokens"], 0, stats["cached"])
                case _:
                    pass
    return truth


def opencode_truth(records: list[dict[str, Any]]) -> Truth:
    truth, usages = Truth(), []
    for record in records:
        part = record.get("part", {})
        match record["type"]:
            case "text" if not part.get("synthetic"):
                truth.messages.append(part["text"])
            case "reasoning":
                truth.thoughts.append(part["text"])
            case "tool_use":
                state = part["state"]
                truth.calls.append(part["tool"])
                truth.results.append(state["output"] if state["status"] == "completed" else state["error"])
                failed = state["status"] == "error" or state["metadata"].get("exit", 0) != 0
                truth.errors += failed or part["tool"] == "invalid"
            case "step_finish":
                tokens = part["tokens"]
                cache = tokens["cache"]
                usages.append((tokens["input"], tokens["output"] + tokens["reasoning"], cache["write"], cache["read"]))
                truth.cost_usd = (truth.cost_usd or 0) + part["cost"]
            case _:
                pass
    truth.tokens = total(usages)
    return truth


def pi_truth(records: list[dict[str, Any]]) -> Truth:
    truth, usages = Truth(), []
    names = {"read": "Read", "bash": "Bash", "edit": "Edit", "write": "Write"}
    for record in records:
        message = record.get("message", {})
        if record["type"] == "message_end" and message["role"] == "assistant":
            truth.messages += [block["text"] for block in message["content"] if block["type"] == "text"]
            truth.thoughts += [block["thinking"] for block in message["content"] if block["type"] == "thinking"]
            usage = message["usage"]
            usages.append((usage["input"], usage["output"], usage["cacheWrite"], usage["cacheRead"]))
            truth.cost_usd = (truth.cost_usd or 0) + usage["cost"]["total"]
        if record["type"] == "tool_execution_start":
            truth.calls.append(names.get(record["toolName"], record["toolName"]))
        if record["type"] == "tool_execution_end":
            truth.results.append(text_of(record["result"]["content"]))
            truth.errors += record["isError"]
    truth.tokens = total(usages)
    return truth


def qwen_truth(records: list[dict[str, Any]]) -> Truth:
    truth, usages = Truth(), []
    for record in records:
        for block in record.get("message", {}).get("content", []):
            match block["type"]:
                case "text" if record["type"] == "assistant":
                    truth.messages.append(block["text"])
                case "thinking":
                    truth.thoughts.append(block["thinking"])
                case "tool_use":
                    truth.calls.append(block["name"])
                case "tool_result":
                    truth.results.append(text_of(block["content"]))
                    truth.errors += block["is_error"]
        usage = record.get("usage") or record.get("message", {}).get("usage")
        if usage is not None:
            cached = usage.get("cache_read_input_tokens", 0)
            usages.append((usage["input_tokens"] - cached, usage["output_tokens"], 0, cached))
    has_result = records[-1]["type"] == "result"
    truth.tokens = usages[-1] if has_result else total(usages)
    return truth


def copilot_truth(records: list[dict[str, Any]]) -> Truth:
    truth = Truth()
    for record in records:
        data = record.get("data", {})
        match record["type"]:
            case "assistant.message":
                truth.messages += [data["content"]] if data["content"] else []
            case "assistant.reasoning":
                truth.thoughts.append(data["content"])
            case "tool.execution_start":
                truth.calls.append(data["toolName"])
            case "tool.execution_complete":
                text = data["result"]["content"] if "result" in data else data["error"]["message"]
                truth.results.append(re.sub(r"\n?<shellId: .*>$", "", text))
                exit_code = data.get("shellExecution", {}).get("exitCode", 0)
                truth.errors += not data["success"] or exit_code != 0
            case "assistant.turn_retry":
                truth.retries += 1
            case _:
                pass
    return truth


def vibe_truth(records: list[dict[str, Any]]) -> Truth:
    truth = Truth()
    for record in records:
        match record["type"], record.get("role"):
            case "message", "assistant":
                truth.messages.append(text_of(record["content"]))
            case "reasoning", _:
                truth.thoughts.append(record["text"])
            case "effect", _:
                detail, state = record["detail"], record["state"]
                truth.calls.append(detail["toolName"])
                truth.errors += not state["display"]["success"]
                said = state["outputText"] or state.get("error", {}).get("message")
                if detail["kind"] == "file_read":
                    said = said or state["output"]["content"]
                shown = state["display"]
                truth.results.append(said or f"{shown['verb']} {shown['message']}".strip())
            case _:
                pass
    return truth


def openhands_truth(records: list[dict[str, Any]]) -> Truth:
    truth = Truth()
    for record in records:
        match record["kind"]:
            case "MessageEvent" if record["source"] == "agent":
                truth.messages.append(text_of(record["llm_message"]["content"]))
            case "ActionEvent":
                truth.messages += [part["text"] for part in record["thought"]]
                truth.calls.append(record["tool_name"])
            case "ObservationEvent":
                observation = record["observation"]
                truth.results.append(text_of(observation["content"]))
                truth.errors += observation["is_error"] or observation.get("exit_code", 0) != 0
            case "AgentErrorEvent":
                truth.results.append(record["error"])
                truth.errors += 1
            case _:
                pass
    return truth


def cline_truth(records: list[dict[str, Any]]) -> Truth:
    truth, usages = Truth(), []
    for record in records:
        event = record.get("event", {})
        match event.get("type"), event.get("contentType"):
            case "content_end", "text":
                truth.messages.append(event["text"])
            case "content_end", "reasoning":
                truth.thoughts.append(event["reasoning"])
            case "content_start", "tool":
                truth.calls.append(event["toolName"])
            case "content_end", "tool":
                output = event["output"]
                parts = output if isinstance(output, list) else [output]
                said = [part.get("result") or part.get("text") or part.get("error", "") for part in parts]
                truth.results.append("\n".join(said))
                truth.errors += any("error" in part for part in parts)
            case "usage", _:
                cached = event["cacheReadTokens"]
                usages.append((event["inputTokens"] - cached, event["outputTokens"], 0, cached))
            case _:
                pass
    truth.tokens = total(usages)
    return truth


TRUTHS: dict[str, Callable[[list[dict[str, Any]]], Truth]] = {
    "claude": claude_truth,
    "codex": codex_truth,
    "gemini": gemini_truth,
    "opencode": opencode_truth,
    "pi": pi_truth,
    "qwen": qwen_truth,
    "copilot": copilot_truth,
    "vibe": vibe_truth,
    "openhands": openhands_truth,
    "cline": cline_truth,
}


@pytest.mark.parametrize("name", NAMES)
def test_counts_texts_and_tokens_equal_an_independent_count(name: str) -> None:
    truth = TRUTHS[name.split("-", maxsplit=1)[0]](raw_records(name))
    seen = played(name)
    actions = seen.of("assistant.action")
    results = seen.of("tool.result")
    assert [a["content"] for a in actions if a["action"] == "message"] == truth.messages
    assert [a["content"] for a in actions if a["action"] == "thinking"] == truth.thoughts
    assert [a["toolName"] for a in actions if a["action"] == "tool_use"] == truth.calls
    assert [r["result"][:2500] for r in results] == [text[:2500] for text in truth.results]
    assert [r["originalLength"] for r in results] == [len(text) for text in truth.results]
    assert sum(r["isError"] for r in results) == truth.errors
    assert len([i for i in seen.of("info") if i["code"] == "transport-retry"]) == truth.retries
    usages = seen.of("token.usage")
    if any(truth.tokens):
        assert tuple(usages[-1][key] for key in TOKEN_KEYS) == truth.tokens
        assert usages[-1]["totalCost"] == (None if truth.cost_usd is None else pytest.approx(truth.cost_usd))
    else:
        assert usages == []


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.startswith(("claude", "opencode", "qwen", "copilot", "vibe", "openhands"))]
)
def test_a_stream_copied_whole_counts_once(name: str) -> None:
    once = played(name)
    twice = play([*stream_lines(name), *stream_lines(name)])
    for kind in ("assistant.action", "tool.result", "token.usage"):
        assert twice.of(kind) == once.of(kind)
    assert twice.counts["replayed"] >= len(once.of("assistant.action"))


def test_a_resumed_transcript_counts_its_copied_history_once() -> None:
    lines = [line for line in stream_lines("claude-loop") if line]
    copied = [json.loads(line) for line in lines[:30]]
    history = [json.dumps({**record, "uuid": f"new-{number}"}).encode() for number, record in enumerate(copied)]
    once, resumed = play(lines), play([*lines[:30], *history, *lines[30:]])
    assert resumed.events == once.events
    assert resumed.counts["replayed"] > 20
