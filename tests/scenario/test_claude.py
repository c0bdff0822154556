"""The real command line of ``claude``, and what its output, exit and silence come to (spec hank 2, bugs A3 A4 A6 A23)."""

import json
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.hanks import codon, sentinel
from tests.support.runs import Ran, Standin, is_alive, run_here, stand_in, until, write_hank

from hankwatch.testing import ScriptedModel

SUCCESS = "claude-success.jsonl"
INIT = {"type": "system", "subtype": "init", "session_id": "s-1", "model": "claude-haiku-4-5"}
RESULT = {"type": "result", "subtype": "success", "is_error": False, "result": "Done.", "total_cost_usd": 0.25}


def said(text: str) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"id": f"msg-{hash(text)}", "content": content}}


async def play(tmp_path: Path, *score: Sequence[Any], model: ScriptedModel | None = None, **fields: Any) -> Ran:
    program = stand_in(tmp_path / "agent", *score)
    return await play_on(program, tmp_path, model=model, **fields)


async def play_on(program: Standin, tmp_path: Path, *, model: ScriptedModel | None = None, **fields: Any) -> Ran:
    observer = sentinel(trigger={"type": "event", "on": ["assistant.action"]}, userPromptText="{{ it.events }}")
    path = write_hank(tmp_path / "hank", codon(**{"sentinels": [{"sentinelConfig": observer}], **fields}))
    return await run_here(path, tmp_path / "run", environ=program.environ, model=model or ScriptedModel("Seen."))


def messages(ran: Ran) -> list[str]:
    return [event.data["content"] for event in ran.of("assistant.action") if event.data["action"] == "message"]


async def test_a_recorded_stream_makes_a_successful_codon(fixtures: Path, tmp_path: Path) -> None:
    program = stand_in(tmp_path / "agent", ["play", str(fixtures / "agent-streams" / SUCCESS)], ["until_eof"])
    ran = await play_on(program, tmp_path, appendSystemPromptText="Be brief.")
    assert ran.completed()["success"] is True
    assert ran.completed()["exitStatus"] == {"type": "success"}
    assert [event.data["toolName"] for event in ran.of("tool.result")] == ["Write", "Bash", "Read"]
    seen = program.seen()
    assert seen["stdin"]["message"]["content"] == [{"type": "text", "text": "Do it."}]
    assert seen["cwd"] == str(tmp_path / "run" / "agentRoot")
    assert seen["argv"][seen["argv"].index("--model") + 1] == "claude-haiku-4-5"
    assert seen["argv"][seen["argv"].index("--append-system-prompt") + 1] == "Be brief."
    assert seen["env"]["HANKWATCH_PROCESS"].endswith("/one/1")


async def test_stdin_stays_open_until_the_result_and_is_closed_then(tmp_path: Path) -> None:
    ran = await play(tmp_path, ["line", INIT], ["line", RESULT], ["until_eof"], ["exit", 0])
    assert ran.completed()["success"] is True


FAILURES: dict[str, tuple[list[list[Any]], dict[str, Any], str]] = {
    "a success with an error flag": (
        [["line", INIT], ["line", {**RESULT, "is_error": True, "result": "API Error: 529 overloaded"}]],
        {"type": "error", "code": -1},
        "529",
    ),
    "a success that exits with 7": ([["line", INIT], ["line", RESULT], ["exit", 7]], {"type": "error", "code": 7}, ""),
    "killed in mid-stream": (
        [["line", INIT], ["line", said("half")], ["kill", signal.SIGKILL]],
        {"type": "killed", "signal": "SIGKILL"},
        "",
    ),
    "an exit without a result": ([["line", INIT], ["exit", 0]], {"type": "error", "code": -1}, ""),
    "an exit without any output": (
        [["stderr_text", "no licence"], ["exit", 1]],
        {"type": "error", "code": 1},
        "licence",
    ),
    "a truncated last line": (
        [["line", INIT], ["raw", json.dumps(RESULT)[:-20]]],
        {"type": "error", "code": -1},
        "",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
async def test_what_contradicts_success_fails_the_codon(tmp_path: Path, case: str) -> None:
    score, exit_status, reason = FAILURES[case]
    ran = await play(tmp_path, *score)
    completed = ran.completed()
    assert completed["success"] is False
    assert completed["exitStatus"] == exit_status
    assert reason in completed["failureReason"]["message"]
    assert ran.result is not None
    assert ran.result.reason == "codon failure: one"
    assert ran.of("error"), "people are told"


async def test_both_sides_of_a_contradiction_are_told(tmp_path: Path) -> None:
    """Neither the result nor the exit decides alone (bugs A21)."""
    ran = await play(tmp_path, ["line", INIT], ["line", RESULT], ["exit", 7])
    (error,) = ran.of("error")
    assert error.data["context"]["facts"][:2] == ["result success", "exit code 7"]


async def test_an_agent_that_says_nothing_never_starts_its_codon(tmp_path: Path) -> None:
    ran = await play(tmp_path, ["raw", "Welcome!\n\nnot json\n"], ["exit", 0])
    assert ran.of("codon.started") == []
    assert ran.completed()["success"] is False


async def test_a_complete_last_line_without_its_newline_counts(tmp_path: Path) -> None:
    ran = await play(tmp_path, ["line", INIT], ["raw", json.dumps(RESULT)])
    assert ran.completed()["success"] is True


async def test_banner_lines_are_counted_and_kept_in_the_raw_log(tmp_path: Path) -> None:
    ran = await play(tmp_path, ["raw", "Welcome!\r\n{broken\n"], ["line", INIT], ["line", RESULT], ["until_eof"])
    assert ran.completed()["success"] is True
    (left_out,) = [event for event in ran.of("info") if event.data.get("code") == "left-out"]
    assert left_out.data["details"]["junk"] == 2
    assert ran.raw_log().startswith(b"Welcome!\n{broken\n")


async def test_the_codon_starts_at_the_first_well_formed_line(tmp_path: Path) -> None:
    hook = {"type": "system", "subtype": "hook_started"}
    ran = await play(tmp_path, ["raw", "banner\n"], ["line", hook], ["line", INIT], ["line", RESULT], ["until_eof"])
    (started,) = ran.of("codon.started")
    assert started.data["sessionId"] == ""
    assert any("s-1" in event.data["message"] for event in ran.of("info"))


async def test_five_megabytes_of_stderr_do_not_stop_the_stream(tmp_path: Path) -> None:
    score: Sequence[Any] = [
        ["line", INIT],
        ["line", said("before")],
        ["stderr", 5_000_000],
        ["line", said("after")],
        ["exit", 3],
    ]
    ran = await play(tmp_path, *score)
    assert messages(ran) == ["before", "after"]
    (error,) = ran.of("error")
    assert 1_000 < len(error.data["context"]["stderr"]) <= 64 * 1024


async def test_a_line_of_ten_megabytes_arrives_in_order(tmp_path: Path) -> None:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "x" * 10_000_000}
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {}}
    score: Sequence[Any] = [
        ["line", INIT],
        ["line", {"type": "assistant", "message": {"id": "m1", "content": [call]}}],
        ["line", {"type": "user", "message": {"content": [result]}}],
        ["line", said("after")],
        ["line", RESULT],
        ["until_eof"],
    ]
    ran = await play(tmp_path, *score)
    (finished,) = ran.of("tool.result")
    assert finished.data["originalLength"] == 10_000_000
    assert messages(ran) == ["after"]


async def test_characters_split_over_writes_come_out_whole(tmp_path: Path) -> None:
    text = "합 🎉 é"
    line = json.dumps(said(text), ensure_ascii=False)
    ran = await play(tmp_path, ["line", INIT], ["bytes", line], ["line", RESULT], ["until_eof"])
    assert messages(ran) == [text]


async def test_lone_surrogates_reach_prompt_report_and_journal_as_replacements(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: f"Saw: {request.messages[-1].content}")
    broken = json.dumps(said("ok \udcb2 end"))
    assert "\\udcb2" in broken
    ran = await play(tmp_path, ["line", INIT], ["raw", broken + "\n"], ["line", RESULT], ["until_eof"], model=model)
    assert messages(ran) == ["ok \ufffd end"]
    assert "ok \ufffd end" in model.requests[0].messages[-1].content
    assert "ok \ufffd end" in ran.report()
    ran.journal.read_bytes().decode("utf-8")


@pytest.mark.slow
async def test_a_silent_agent_is_ended_at_its_idle_limit(tmp_path: Path) -> None:
    ran = await play(tmp_path, ["line", INIT], ["hang"], shimIdleTimeout=1)
    completed = ran.completed()
    assert completed["failureReason"]["type"] == "timeout"
    assert completed["failureReason"]["message"] == "no output for 1 s"
    assert completed["exitStatus"] == {"type": "killed", "signal": "SIGTERM"}


@pytest.mark.slow
async def test_an_agent_that_closes_its_output_and_stays_is_ended_too(tmp_path: Path) -> None:
    ran = await play(tmp_path, ["line", INIT], ["close_stdout"], ["hang"], shimIdleTimeout=1)
    assert ran.completed()["failureReason"]["message"] == "no output for 1 s"


@pytest.mark.slow
async def test_the_whole_tree_of_a_stubborn_agent_is_gone_after_it(tmp_path: Path) -> None:
    pid_file = tmp_path / "grandchild"
    score: Sequence[Any] = [["ignore", "SIGTERM"], ["children", str(pid_file)], ["line", INIT], ["hang"]]
    ran = await play(tmp_path, *score, shimIdleTimeout=1)
    assert ran.completed()["exitStatus"] == {"type": "killed", "signal": "SIGKILL"}
    until(lambda: not is_alive(int(pid_file.read_text())))


async def test_a_missing_program_is_a_clear_failure(tmp_path: Path) -> None:
    program = Standin(tmp_path, {})
    ran = await play_on(program, tmp_path)
    completed = ran.completed()
    assert completed["success"] is False
    assert completed["exitStatus"] == {"type": "error", "code": -1}
    (error,) = ran.of("error")
    assert "claude cannot be started" in error.data["message"]
    assert "PATH" in error.data["message"]


async def test_hankweave_variables_reach_the_agent_without_their_prefix(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "agent", ["line", INIT], ["say_env", "MY_SETTING"], ["line", RESULT], ["until_eof"])
    program.environ.update({"HANKWEAVE_MY_SETTING": "passed on", "HANKWEAVE_HOME": "unset", "NOT_OURS": "stays"})
    ran = await play_on(program, tmp_path)
    assert messages(ran) == ["passed on"]
    env = program.seen()["env"]
    assert "HOME" not in env
    assert "NOT_OURS" not in env


async def test_secrets_of_agents_are_redacted_wherever_they_would_be_kept(tmp_path: Path) -> None:
    given, own = "codon-secret-0123456789", "runtime-secret-0123456789"
    echo = ScriptedModel(lambda request: request.messages[-1].content)
    program = stand_in(
        tmp_path / "agent",
        ["line", INIT],
        ["say_env", "MY_API_KEY"],
        ["line", said(f"also {own}")],
        ["stderr_text", f"failed with {given} and {own}"],
        ["exit", 1],
    )
    program.environ["OTHER_API_KEY"] = own
    ran = await play_on(program, tmp_path, model=echo, env={"MY_API_KEY": given})
    assert len(messages(ran)) == 2
    assert "[redacted:" in ran.report()
    assert given.encode() not in ran.everything()
    assert own.encode() not in ran.everything()
