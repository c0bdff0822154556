"""Conversations: what is remembered, what is trimmed, what is on disk (spec sentinels 7)."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from tests.support.sentinels import Desk, desk, scope, source

from hankwatch.sentinels import history as history_module
from hankwatch.sentinels.window import TOKENS_PER_MESSAGE, estimate_tokens
from hankwatch.testing import Answer, ScriptedModel, failure

LAST_TWO = {"type": "maxTurns", "maxTurns": 2}


def talker(limit: dict[str, Any] | None = None, **config: Any) -> Any:
    """A conversational sentinel whose question is the event's message."""
    conversational = {"trimmingStrategy": limit or LAST_TWO, "continueOnError": config.pop("continueOnError", False)}
    asks = {"systemPromptText": "You watch.", "userPromptText": "{{ events[0].data.message }}"}
    return source("talker", conversational=conversational, **asks, **config)


def history(root: Path, codon_id: str = "build") -> Path:
    return root / ".hankweave" / "sentinels" / "history" / f"talker-codon-{codon_id}.json"


def asked(d: Desk) -> list[list[str]]:
    """The messages of each request, as role initial and text."""
    assert isinstance(d.model, ScriptedModel)
    return [[f"{m.role[0]}:{m.content}" for m in request.messages] for request in d.model.requests]


async def say(d: Desk, *texts: str) -> None:
    for text in texts:
        d.info(text)
    await d.manager.settle()


def answering() -> Any:
    return lambda request: f"re {request.messages[-1].content}"


async def test_a_request_is_the_system_prompt_the_earlier_turns_and_the_new_question(tmp_path: Path) -> None:
    async with desk(tmp_path, answering()) as d, d.manager.attach(scope(), [talker()]):
        await say(d, "one", "two")
        assert asked(d) == [
            ["s:You watch.", "u:one"],
            ["s:You watch.", "u:one", "a:re one", "u:two"],
        ]


async def test_the_last_turns_are_kept_and_the_oldest_go(tmp_path: Path) -> None:
    async with desk(tmp_path, answering()) as d, d.manager.attach(scope(), [talker()]):
        await say(d, "one", "two", "three", "four")
        assert asked(d)[-1] == ["s:You watch.", "u:two", "a:re two", "u:three", "a:re three", "u:four"]


async def test_max_tokens_bounds_the_whole_request_and_drops_whole_turns(tmp_path: Path) -> None:
    most = sum(estimate_tokens(t) + TOKENS_PER_MESSAGE for t in ("You watch.", "three", "two", "re two"))
    for limit, kept in ((most, ["u:two", "a:re two"]), (most - 1, [])):
        root = tmp_path / str(limit)
        maximum = {"type": "maxTokens", "maxTokens": limit}
        async with desk(root, answering()) as d, d.manager.attach(scope(), [talker(maximum)]):
            await say(d, "one", "two", "three")
            assert asked(d)[-1] == ["s:You watch.", *kept, "u:three"]


async def test_a_question_that_fills_the_request_alone_does_not_end_the_memory(tmp_path: Path) -> None:
    maximum = {"type": "maxTokens", "maxTokens": 100}
    async with desk(tmp_path, lambda request: "ok") as d, d.manager.attach(scope(), [talker(maximum)]):
        await say(d, "one", "long " * 50, "three")
        assert asked(d)[1] == ["s:You watch.", "u:" + "long " * 50]
        assert asked(d)[2] == ["s:You watch.", "u:three"]
        await say(d, "four")
        assert asked(d)[3] == ["s:You watch.", "u:three", "a:ok", "u:four"]


async def test_the_file_is_a_list_of_messages_with_their_tokens(tmp_path: Path) -> None:
    async with desk(tmp_path, answering()) as d, d.manager.attach(scope("loop#1"), [talker()]):
        await say(d, "one")
        assert json.loads(history(tmp_path, "loop-1").read_text()) == [
            {"message": {"role": "user", "content": "one"}, "tokens": 1},
            {"message": {"role": "assistant", "content": "re one"}, "tokens": 2},
        ]
        assert [path.name for path in history(tmp_path).parent.iterdir()] == ["talker-codon-loop-1.json"]


async def test_a_turn_is_remembered_only_when_it_went_well(tmp_path: Path) -> None:
    answers: list[Answer] = ["re one", failure("overloaded"), "re three"]
    async with desk(tmp_path, answers) as d, d.manager.attach(scope(), [talker()]):
        await say(d, "one", "two", "three")
        assert asked(d)[-1] == ["s:You watch.", "u:one", "a:re one", "u:three"]


async def test_a_resumed_codon_goes_on_with_its_conversation_and_another_codon_has_its_own(tmp_path: Path) -> None:
    for codon_id in ("build", "build", "test"):
        async with desk(tmp_path, answering()) as d, d.manager.attach(scope(codon_id), [talker()]):
            await say(d, codon_id)
            remembered = asked(d)[0]
            if codon_id == "test":
                assert remembered == ["s:You watch.", "u:test"]
    assert len(json.loads(history(tmp_path).read_text())) == 4


async def test_without_persistence_it_is_kept_in_memory_alone(tmp_path: Path) -> None:
    async with desk(tmp_path, answering(), persistence=False) as d, d.manager.attach(scope(), [talker()]):
        await say(d, "one", "two")
        assert len(asked(d)[-1]) == 4
    assert not history(tmp_path).exists()


@pytest.mark.parametrize("continue_on_error", [True, False])
async def test_failures_of_the_model_unload_a_conversation_unless_it_goes_on_despite_them(
    tmp_path: Path, continue_on_error: bool
) -> None:
    made = talker(continueOnError=continue_on_error)
    async with desk(tmp_path, failure("overloaded")) as d, d.manager.attach(scope(), [made]):
        await say(d, *"abcde")
        counts = [data["consecutiveFailureCount"] for data in d.said("error")]
        if continue_on_error:
            assert (counts, d.said("unloaded")) == ([0] * 5, [])
        else:
            assert (counts[:3], d.said("unloaded")[0]["reason"]) == ([1, 2, 3], "consecutive-failures")


async def test_other_failures_count_even_when_a_conversation_goes_on_despite_the_models(tmp_path: Path) -> None:
    made = source(
        conversational={"trimmingStrategy": LAST_TWO, "continueOnError": True},
        systemPromptText="s",
        userPromptText="{{ events[0].data.nothing.there }}",
    )
    async with desk(tmp_path) as d, d.manager.attach(scope(), [made]):
        await say(d, *"abc")
        assert d.said("unloaded")[0]["reason"] == "consecutive-failures"


GOOD_PAIR = [
    {"message": {"role": "user", "content": "one"}, "tokens": 1},
    {"message": {"role": "assistant", "content": "re one"}, "tokens": 2},
]
DAMAGED = [
    "{not json",
    "",
    '{"message": 1}',
    json.dumps([*GOOD_PAIR, {"message": {"role": "user", "content": "half a turn"}, "tokens": 4}]),
    json.dumps([{"message": {"role": "assistant", "content": "lone"}}, *GOOD_PAIR]),
    json.dumps([*GOOD_PAIR, {"message": {"role": "user", "content": 5}}, 7]),
]


@pytest.mark.parametrize("text", DAMAGED)
async def test_a_damaged_history_is_set_aside_and_the_sentinel_is_not_loaded(tmp_path: Path, text: str) -> None:
    path = history(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(text)
    async with desk(tmp_path) as d, d.manager.attach(scope(), [talker()]) as attached:
        assert "talker-codon-build.json.damaged-" in attached.failures[0].reason
    (side,) = path.parent.glob("*.damaged-*")
    assert side.read_text() == text
    async with desk(tmp_path, answering()) as d, d.manager.attach(scope(), [talker()]) as attached:
        assert attached.failures == ()
        await say(d, "new")
        kept = ["u:one", "a:re one"] if "re one" in text else []
        assert asked(d) == [["s:You watch.", *kept, "u:new"]]


@pytest.mark.parametrize("config", [{"continueOnError": True}, {"errorHandling": {"unloadOnFatalError": False}}])
async def test_a_damaged_history_is_told_and_not_fatal_where_the_config_says_so(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    path = history(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(DAMAGED[3])
    listens = {"trigger": {"type": "event", "on": ["*"]}}
    async with (
        desk(tmp_path, answering()) as d,
        d.manager.attach(scope(), [talker(**config), source("all", **listens)]),
    ):
        await say(d, "new")
        assert asked(d)[0] == ["s:You watch.", "u:one", "a:re one", "u:new"]
        (told,) = [e.data for e in d.stream.of_type("info") if e.data.get("code") == "history-damaged"]
        assert told["details"]["sideFile"].startswith(".hankweave/sentinels/history/talker-codon-build.json.damaged-")
        assert len(d.triggers("all")) == 1  # what sentinels' own work causes reaches no sentinel


@pytest.mark.parametrize("tolerant", [True, False])
async def test_a_history_that_someone_changes_meanwhile_is_set_aside_and_not_overwritten(
    tmp_path: Path, tolerant: bool
) -> None:
    made = talker(errorHandling={"unloadOnFatalError": not tolerant})
    async with desk(tmp_path, answering()) as d, d.manager.attach(scope(), [made]):
        await say(d, "one")
        history(tmp_path).write_text("mine")
        await say(d, "two")
        (side,) = history(tmp_path).parent.glob("*.damaged-*")
        assert side.read_text() == "mine"
        assert len(json.loads(history(tmp_path).read_text())) == 4
        assert len(d.said("output")) == 2
        unloaded = [(data["reason"], data["errorType"]) for data in d.said("unloaded")]
        assert unloaded == ([] if tolerant else [("fatal-error", "corruption")])


async def test_a_history_that_was_deleted_is_written_anew(tmp_path: Path) -> None:
    async with desk(tmp_path, answering()) as d, d.manager.attach(scope(), [talker()]):
        await say(d, "one")
        history(tmp_path).unlink()
        await say(d, "two")
        assert len(json.loads(history(tmp_path).read_text())) == 4
        assert d.said("error", "unloaded") == []


async def test_a_history_behind_a_link_is_not_loaded(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text("[]")
    history(tmp_path).parent.mkdir(parents=True)
    history(tmp_path).symlink_to(elsewhere)
    async with desk(tmp_path) as d, d.manager.attach(scope(), [talker()]) as attached:
        assert "links are not followed" in attached.failures[0].reason


async def test_a_history_that_cannot_be_written_is_told_and_comes_with_the_next_turn(tmp_path: Path) -> None:
    async with desk(tmp_path, answering()) as d, d.manager.attach(scope(), [talker()]):
        elsewhere = tmp_path / "elsewhere.json"
        history(tmp_path).parent.mkdir(parents=True)
        history(tmp_path).symlink_to(elsewhere)
        await say(d, "one")
        (error,) = d.said("error")
        assert (error["errorType"], error["consecutiveFailureCount"]) == ("file-write-failed", 0)
        assert "history" in error["message"]
        history(tmp_path).unlink()
        await say(d, "two")
        assert len(json.loads(history(tmp_path).read_text())) == 4
        assert not elsewhere.exists()


async def test_a_disk_that_was_full_for_a_while_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with desk(tmp_path, answering()) as d, d.manager.attach(scope(), [talker()]):
        await say(d, "one")
        with monkeypatch.context() as full:
            full.setattr(history_module, "replace", Mock(side_effect=OSError("no space")))
            await say(d, "two")
        await say(d, "three")
        assert [data["errorType"] for data in d.said("error")] == ["file-write-failed"]
        assert d.stream.of_type("info")[-1].data["message"] == "three"
        assert len(json.loads(history(tmp_path).read_text())) == 4


async def test_a_structured_conversation_remembers_the_question_without_its_instructions(tmp_path: Path) -> None:
    made = talker(structuredOutput={"output": "object", "schemaStr": '{"type": "object"}'})
    async with desk(tmp_path, '```json\n{"a":  1}\n```') as d, d.manager.attach(scope(), [made]):
        await say(d, "one", "two")
        system, question, answer, new = asked(d)[1]
        assert (question, answer) == ("u:one", 'a:{"a":1}')
        assert new.startswith("u:two\n\nAnswer with")
        assert system == "s:You watch."


async def test_a_secret_in_a_prompt_is_not_kept(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    made = source(
        "talker",
        conversational={"trimmingStrategy": LAST_TWO},
        systemPromptText="You watch.",
        userPromptText=f"With {secret}: {{{{ events[0].data.message }}}}",
    )
    async with desk(tmp_path, "fine") as d, d.manager.attach(scope(), [made]):
        await say(d, "one")
    assert "With [redacted:" in history(tmp_path).read_text()
    assert secret not in history(tmp_path).read_text()
