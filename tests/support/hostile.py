"""Text that tries to be more than text, in every place a journal and a call log have for one."""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from tests.support.stories import Story, call_line

from hankwatch.llm.recorded import RecordedCalls
from hankwatch.pages.facts import RunFacts
from hankwatch.pages.fold import RunFold
from hankwatch.pages.gather import add_calls, cite

NASTIES = [
    "<script>alert(1)</script>",
    "</title></style></script><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)><a href='javascript:alert(1)'>",
    "' onmouseover='alert(1)",
    "]]></svg><iframe src=https://example.com></iframe>",
    "<!-- --><![CDATA[ ]]>&lt;b&gt;&#60;b&#62;",
    "{{ 7*7 }}{% include 'x' %}{# x #}",
    "\x1b]0;owned\x07\x1b[2J\x9b31m\x00\r",
    "\u202etxt.exe\u2066\u200b\ufeff\U000e0041",
    "```\n</details>\n# Heading @someone #1 ![x](https://example.com/x.png)",
    "`` ` @someone ` https://example.com www.example.com",
    "| a | b |\n|---|---|\n\\| \\` <b>",
    "$(touch x); rm -rf / `id` 'quoted'",
    "\n\n---\n\n> quote\n- item\n<details open><summary>x",
    "9" * 5_000,
    "漢" * 300,
]
DEEP: Any = "end"
for _ in range(90):
    DEEP = [DEEP]


def hostile_story(text: str) -> tuple[Story, list[dict[str, Any]]]:
    """A run whose every text is ``text``."""
    story = Story(text)
    story.begin()
    story.move("CodonStarted", text, codonName=text, baseCodonId=text)
    story.start_codon(text, codonName=text)
    story.load(text, text, sourcePath=text)
    said = story.say(text, text)
    failed = story.call(text, text, text, error=True)
    story.add("file.updated", path=text, filename=text, action="modified", source={"kind": "watcher"})
    story.add(text or "x", message=text, **{text or "x": text})
    foreign = story.add("info", message=text, details={text: [text, DEEP]})
    call_id = story.fire(text, text, [said, failed, foreign], text)
    story.fire(text, text, [said], {text: [text, DEEP]}, None)
    story.trigger(text, text, [said], text)
    story.fail(text, text, text, triggerNumber=3)
    story.fail(text, text, text, "load-failed")
    story.fail(text, text, text, text)
    told = {"codonId": text, "round": 1, "trigger": text, "detail": {text: text}}
    story.add("watchdog.nudge", **told, kind=text, text=text, nudgesThisTurn=1, delivered=False)
    story.add("watchdog.interrupt", **told)
    for kind in ("watch.met", "loop.iteration.completed", "archive.partial", "rollback.started"):
        story.add(kind, watchId=text, loopId=text, codonId=text, reason=text, **{text: text})
    story.add("error", message=text, codon=text, fatal=True)
    row = {
        "codonId": text,
        "status": text,
        "budget": {"maxDollars": text},
        "actual": {"dollars": text},
        "loopContext": {"loopId": text},
    }
    story.add("budget.summary", rows=[row], totals={"actualDollars": text}, ceiling=text)
    reason = {"type": text, "message": text}
    story.end_codon(text, "failed", None, failureReason=reason, budgetExceeded={"currency": text, "used": text})
    story.unload(text, text, reason=text)
    story.end("RunFailed", text)
    failed_call: dict[str, Any] = {"sentinelId": text, "codonId": text, "triggerNumber": 3, "reply": None}
    error = {"reason": text, "retriable": False, "status": 500}
    return story, [
        call_line(call_id, text, cost=None, model=text),
        call_line(text or "x", text, model=text, error=error, **failed_call),
    ]


def facts_of(story: Story, lines: list[dict[str, Any]], name: str) -> RunFacts:
    """As the command makes them, without its files."""
    fold = RunFold()
    for event in story.events:
        fold.take(event)
    facts = fold.facts(live=False)
    facts.name = facts.hank = name
    cite(facts, lambda ids: (event for event in story.events if event.id in ids))
    with TemporaryDirectory() as folder:
        log = Path(folder) / "calls.jsonl"
        log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        calls = RecordedCalls(log)
        add_calls(facts, calls)
    assert calls.bad_lines == 0
    return facts


def assert_stays_code(comment: str, mark: str) -> None:
    """Nothing of the texts that hold ``mark`` is markup of a Markdown page, or text outside of code."""
    own_tags = {"<details>", "</details>", "<summary>", "</summary>", "<sub>", "</sub>"}
    for token in _flattened(MarkdownIt("commonmark").enable("table").parse(comment)):
        if token.type in {"code_inline", "fence"}:
            continue
        assert token.type not in {"link_open", "image", "blockquote_open", "code_block"}, token
        if token.type in {"html_block", "html_inline"}:
            tags = re.sub(r"<code>[^<>]*</code>", "", token.content)
            assert mark not in tags
            assert set(re.findall(r"<[^>]*>?", tags)) <= own_tags
        elif token.type == "text":
            assert mark not in token.content


def _flattened(tokens: list[Token]) -> list[Token]:
    return [inner for token in tokens for inner in ([token] if token.children is None else _flattened(token.children))]
