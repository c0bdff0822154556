"""Journals of runs made by hand: what a page is folded from."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hankwatch.events.codec import encode_line
from hankwatch.events.envelope import Event, format_stamp
from hankwatch.testing import EPOCH_MS, make_event

RUN = "946684800000-story"


class Story:
    """Events of one run, in order; ``at_ms`` counts from its start and stands for all that follows."""

    def __init__(self, run: str = RUN) -> None:
        self.run = run
        self.events: list[Event] = []
        self.at_ms = 0
        self._triggers: dict[tuple[str, str], int] = {}

    def at(self, at_ms: int) -> "Story":
        """What follows happens then."""
        self.at_ms = at_ms
        return self

    def add(self, type_name: str, **data: Any) -> Event:
        event = make_event(type_name, EPOCH_MS + self.at_ms, **data)
        self.events.append(event)
        return event

    def move(self, kind: str, codon: str | None = None, **data: Any) -> Event:
        inner = {"runId": self.run, **({"codonId": codon} if codon else {}), **data}
        told = {"currentRunId": self.run, "runCount": 1, "totalCost": 0.0, "currentRunCost": 0.0}
        named = {"codonId": codon} if codon else {}
        transition = {"type": kind, "data": inner}
        return self.add(
            "state.transition", transitionType=kind, runId=self.run, **named, transition=transition, resultingState=told
        )

    def begin(self, **data: Any) -> None:
        self.move("RunStarted", startingConditions={"type": "fresh"}, **data)

    def end(self, kind: str = "RunCompleted", reason: str = "all codons completed") -> None:
        self.move(kind, reason=reason)

    def start_codon(self, codon: str, **data: Any) -> None:
        self.move("CodonStarted", codon, **data)
        for before, after in (("preparing", "starting"), ("starting", "initializing"), ("initializing", "running")):
            self.move("CodonTransitioned", codon, **{"from": before, "to": after, "metadata": {"agent": "claude"}})

    def end_codon(self, codon: str, status: str = "completed", cost: float | None = 0.25, **verdict: Any) -> None:
        tokens = {"inputTokens": 1200, "outputTokens": 340, "cacheCreationTokens": 0, "cacheReadTokens": 56_000}
        self.move("CodonFinalCostSet", codon, finalCost=cost, finalTokens=tokens)
        self.move("CodonTransitioned", codon, **{"from": "running", "to": status, "metadata": verdict})
        exit_status = {"type": "success"} if status == "completed" else {"type": "error", "code": 1}
        success = status == "completed"
        self.add("codon.completed", codonId=codon, success=success, cost=cost, duration=1, exitStatus=exit_status)

    def say(self, codon: str, text: str, action: str = "message") -> Event:
        return self.add("assistant.action", codonId=codon, action=action, content=text)

    def call(self, codon: str, tool: str, result: str, *, error: bool = False) -> Event:
        use = f"use-{len(self.events)}"
        tool_input = {"command": "make test"}
        self.add(
            "assistant.action",
            codonId=codon,
            action="tool_use",
            content="",
            toolName=tool,
            toolInput=tool_input,
            toolUseId=use,
        )
        length = len(result)
        return self.add(
            "tool.result",
            codonId=codon,
            toolUseId=use,
            toolName=tool,
            result=result,
            truncated=False,
            originalLength=length,
            executionTimeMs=3,
            isError=error,
        )

    def load(self, codon: str, sentinel: str, **data: Any) -> None:
        report = {"logFile": f".hankweave/sentinels/outputs/{sentinel}/{sentinel}.md", "lastValueFile": None}
        plan = {**report, "format": "text", "joinString": "\n---\n", "startBytes": 0}
        told = {"model": "anthropic/claude-haiku-4-5", "triggerType": "event", "executionStrategy": "count"}
        self.add(
            "sentinel.loaded",
            codonId=codon,
            sentinelId=sentinel,
            **told,
            conversational=False,
            report=plan,
            **{"source": "file"} | data,
        )

    def trigger(self, codon: str, sentinel: str, causes: Sequence[Event], cause: str = "threshold") -> int:
        """It fires; the number of its trigger."""
        number = self._triggers[codon, sentinel] = self._triggers.get((codon, sentinel), 0) + 1
        ids = [event.id for event in causes]
        told = {"strategy": "count", "eventCount": len(ids), "queueSize": 0, "cause": cause, "eventIds": ids}
        stamp = format_stamp(EPOCH_MS + self.at_ms)
        self.add("sentinel.triggered", codonId=codon, sentinelId=sentinel, triggerNumber=number, **told, at=stamp)
        return number

    def fire(self, codon: str, sentinel: str, causes: Sequence[Event], content: Any, cost: float | None = 0.001) -> str:
        """It fires and answers; the id of its call."""
        number = self.trigger(codon, sentinel, causes)
        kind = "text" if isinstance(content, str) else "structured"
        call_id = f"call-{codon}-{sentinel}-{number}"
        self.add(
            "sentinel.output",
            codonId=codon,
            sentinelId=sentinel,
            triggerNumber=number,
            outputType=kind,
            content=content,
            cost=cost,
            tokens={"input": 210, "output": 42},
            eventCount=len(causes),
            callId=call_id,
        )
        return call_id

    def fail(self, codon: str, sentinel: str, message: str, kind: str = "llm-call-failed", **data: Any) -> None:
        told = {"errorType": kind, "message": message, "retriable": True, "consecutiveFailureCount": 1}
        self.add("sentinel.error", codonId=codon, sentinelId=sentinel, **told, **data)

    def unload(self, codon: str, sentinel: str, cost: float | None = 0.001, calls: int = 1, **data: Any) -> None:
        told = {"reason": "codon-complete", "finalCost": cost, "llmCallCount": calls, **data}
        self.add("sentinel.unloaded", codonId=codon, sentinelId=sentinel, **told)

    def write(self, root: Path, calls: Sequence[dict[str, Any]] = ()) -> Path:
        """An execution directory that holds it."""
        journal = root / ".hankweave" / "events" / "events.jsonl"
        journal.parent.mkdir(parents=True)
        journal.write_bytes(b"".join(map(encode_line, self.events)))
        if calls:
            log = root / ".hankweave" / "sentinels" / "calls.jsonl"
            log.parent.mkdir()
            log.write_text("".join(json.dumps(call) + "\n" for call in calls))
        return root


def call_line(call_id: str, prompt: str, *, cost: float | None = 0.001, at_ms: int = 0, **more: Any) -> dict[str, Any]:
    """A line of the call log."""
    messages = [{"role": "system", "content": "You watch."}, {"role": "user", "content": prompt}]
    return {
        "callId": call_id,
        "digest": "0" * 64,
        "model": "anthropic/claude-haiku-4-5",
        "request": {"messages": messages, "temperature": 0.0, "maxOutputTokens": 8192},
        "reply": {"text": "…", "finishReason": "stop"},
        "tokens": {"input": 210, "output": 42},
        "costUsd": cost,
        "startedAt": format_stamp(EPOCH_MS + at_ms),
        "durationMs": 830,
        **more,
    }


def eventful_story() -> tuple[Story, list[dict[str, Any]]]:
    """A run in which everything a page knows went wrong once, and its call log."""
    story, calls = Story(), []
    story.begin()
    story.at(100).start_codon("plan", codonName="Make a plan")
    story.load("plan", "narrator")
    said = [story.at(300 + 90 * n).say("plan", f"I look at part {n} of the tree.") for n in range(6)]
    calls.append(
        call_line(
            story.at(1_000).fire("plan", "narrator", said, "The agent reads the tree, part by part."),
            "What did it do?",
            at_ms=1_000,
        )
    )
    story.at(1_400).unload("plan", "narrator")
    story.end_codon("plan", cost=0.0312)
    for n in range(3):
        codon, start = f"build#{n}", 2_000 + 4_000 * n
        story.at(start).start_codon(codon, codonName="Build it", baseCodonId="build")
        story.load(codon, "narrator")
        story.load(codon, "error-streak")
        errors = [
            story.at(start + 300 * k).call(codon, "Bash", f"Exit code 2\nmake: *** [test] Error {k}", error=k % 2 == 0)
            for k in range(1, 6)
        ]
        story.add(
            "file.updated",
            path="src/app.py",
            filename="app.py",
            action="modified",
            source={"kind": "watcher"},
            codonId=codon,
        )
        calls.append(
            call_line(
                story.at(start + 1_900).fire(
                    codon,
                    "error-streak",
                    errors[:4],
                    {"verdict": "stuck", "confidence": 0.9, "why": "the same target fails again"},
                    None,
                ),
                "These calls failed: " + "make: *** [test] Error\n" * 30,
                cost=None,
                at_ms=start + 1_900,
            )
        )
        if n == 1:
            number = story.at(start + 2_200).trigger(codon, "narrator", errors, "quiet")
            labels = {"sentinelId": "narrator", "codonId": codon, "triggerNumber": number}
            error = {"reason": "overloaded (529)", "retriable": True, "status": 529}
            calls.append(
                call_line(
                    "call-failed", "What did it do?", cost=0.0, at_ms=start + 2_250, reply=None, error=error, **labels
                )
            )
            story.at(start + 2_400).fail(codon, "narrator", "overloaded (529) after 3 attempts", triggerNumber=number)
            story.fail(codon, "narrator", "the queue was full", "queue-overflow", count=4)
            detail = {"count": 5, "tools": ["Bash"]}
            text = "You have run the same failing command 5 times. Read the error before trying again."
            told = {"codonId": codon, "round": 7, "trigger": "error_streak", "detail": detail}
            story.at(start + 2_600).add(
                "watchdog.nudge", **told, kind="escalation", text=text, nudgesThisTurn=1, delivered=True
            )
            story.at(start + 3_000).add("watchdog.interrupt", **told | {"round": 12, "trigger": "call_repetition"})
        reason = {"type": "unknown", "retriable": False, "message": "the agent was interrupted: it repeated itself"}
        verdict: dict[str, Any] = {"failureReason": reason} if n == 1 else {}
        story.at(start + 3_300).end_codon(codon, "failed" if n == 1 else "completed", 0.08 if n else None, **verdict)
        for sentinel in ("narrator", "error-streak"):
            story.unload(
                codon,
                sentinel,
                0.0021 if sentinel == "narrator" else None,
                droppedTriggers=4 if n == 1 and sentinel == "narrator" else 0,
                droppedEvents=11 if n == 1 and sentinel == "narrator" else 0,
            )
        story.add(
            "loop.iteration.completed",
            loopId="build",
            iteration=n,
            durationMs=3_300,
            costUsd=0.08,
            tokensUsed=1_500,
            isFinal=n == 2,
            terminationReason="iteration_limit",
        )
    story.at(14_000).add(
        "error",
        message="The output file dist/app.tar could not be copied: no space left on device",
        codon="build#2",
        fatal=True,
    )
    row = {
        "codonId": "plan",
        "status": "completed",
        "budget": {"maxDollars": 0.5},
        "actual": {"dollars": 0.0312, "timeSeconds": 1.3, "outputTokens": 340},
    }
    over = {
        "codonId": "build#1",
        "status": "exceeded",
        "budget": {"maxDollars": 0.05},
        "actual": {"dollars": 0.08, "timeSeconds": 3.3, "outputTokens": 340},
    }
    story.add(
        "budget.summary",
        ceiling={"maxDollars": 1.0},
        allocation="shared",
        rows=[row, over],
        totals={"actualDollars": 0.19, "actualTimeSeconds": 11.4},
    )
    story.end("RunFailed", "an output could not be copied")
    return story, calls
