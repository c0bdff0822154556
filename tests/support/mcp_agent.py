"""An agent program that is an MCP client: plays a list of tool calls, and speaks Claude's dialect. Run by path.

The file ``$MCP_SCORE`` holds a list for each turn of the session; a turn calls each ``[tool, arguments]`` of its list
and ends. What the tools answer is printed as results of its calls, and its prompt as its last word.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SESSION = "mcp-session"


def say(kind: str, **content: Any) -> None:
    print(json.dumps({"type": kind, "session_id": SESSION, **content}), flush=True)


def block(role: str, number: int, **content: Any) -> None:
    say(role, message={"id": f"msg_{os.environ['HANKWATCH_TURN']}_{number}", "role": role, "content": [content]})


class Server:
    """The server that the configuration names, with nothing of this program's environment but what it is given."""

    def __init__(self) -> None:
        entry = json.loads(Path(os.environ["HANKWATCH_MCP_CONFIG"]).read_bytes())["mcpServers"]["hankwatch"]
        self.child = subprocess.Popen(
            [entry["command"], *entry["args"]],
            env={"PATH": os.environ["PATH"], **entry["env"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.asked = 0
        client = {"name": "scripted", "version": "1"}
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        self.send(method="notifications/initialized")

    def send(self, **message: Any) -> None:
        assert self.child.stdin is not None
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.child.stdin.flush()

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self.asked += 1
        self.send(id=self.asked, method=method, params=params)
        assert self.child.stdout is not None
        answer: dict[str, Any] = json.loads(self.child.stdout.readline())
        assert answer["id"] == self.asked
        result: dict[str, Any] = answer["result"]
        return result

    def close(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        assert self.child.wait(10) == 0


def main() -> None:
    prompt, turn = sys.stdin.read().strip(), int(os.environ["HANKWATCH_TURN"])
    say("system", subtype="init")
    score = json.loads(Path(os.environ["MCP_SCORE"]).read_bytes())
    if calls := score[turn - 1] if turn <= len(score) else []:
        server = Server()
        for number, (tool, arguments) in enumerate(calls):
            call = f"call_{turn}_{number}"
            block("assistant", number, type="tool_use", id=call, name=f"mcp__hankwatch__{tool}", input=arguments)
            answer = server.ask("tools/call", name=tool, arguments=arguments)
            text, failed = json.dumps(answer["structuredContent"]), bool(answer.get("isError"))
            block("user", number, type="tool_result", tool_use_id=call, content=text, is_error=failed)
        server.close()
    block("assistant", len(calls), type="text", text=prompt)
    say("result", subtype="success", is_error=False, result="Done.")


main()
