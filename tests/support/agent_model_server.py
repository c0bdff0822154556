"""A scripted model on loopback for real agent programs: four wire formats, one script.

How often the model has spoken in a request's history says which step is next; nothing else is kept. A request
that offers no tools is a side errand (a title, a summary) and gets a word in answer.
"""

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Sse = Iterator[tuple[str, Any]]
"""Events as name (empty for none) and data."""
SEARCH = "tool_search"
"""How a program is asked for the tools of servers that it does not show at first."""


@dataclass(frozen=True, slots=True)
class Step:
    """What the model does when it is its turn."""

    text: str = ""
    shell: str = ""
    """A command for the program's shell tool."""
    tool: str = ""
    """Or a tool of an MCP server, by how its name ends; called with ``arguments``."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
    """Anything else is an error with ``text`` as its message."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, whichever its format."""

    spoken: tuple[bool, ...]
    """Of each item of the history, whether it is the model's."""
    tools: Mapping[str, Json]
    """JSON Schema of the arguments by name; one of a namespace as ``NAMESPACE/NAME``."""
    stream: bool
    searches: bool = False
    """Tools of servers have to be searched for before they are there."""

    @property
    def turn(self) -> int:
        """How often the model has spoken."""
        return sum(spoken for spoken, _ in itertools.groupby(self.spoken))


@dataclass(frozen=True, slots=True)
class Reply:
    """What is sent back, whichever the format."""

    id: str
    text: str
    call: tuple[str, Json] | None


def _by_name(tools: Sequence[Json], schema: str) -> dict[str, Json]:
    return {tool["name"]: tool[schema] for tool in tools if "name" in tool and schema in tool}


# What the program asked, per format.


def _anthropic_request(body: Json) -> Request:
    spoken = tuple(message["role"] == "assistant" for message in body["messages"])
    return Request(spoken, _by_name(body.get("tools", []), "input_schema"), body.get("stream", False))


def _chat_request(body: Json) -> Request:
    searches = [call["id"] for message in body["messages"] for call in _calls(message, SEARCH)]
    said = [m for m in body["messages"] if not _calls(m, SEARCH) and m.get("tool_call_id") not in searches]
    spoken = tuple(message["role"] == "assistant" for message in said)
    tools = [tool["function"] for tool in body.get("tools") or [] if tool["type"] == "function"]
    named = _by_name(tools, "parameters")
    return Request(spoken, named, body.get("stream", False), SEARCH in named)


def _calls(message: Json, name: str) -> list[Json]:
    return [call for call in message.get("tool_calls") or [] if call["function"]["name"] == name]


def _responses_request(body: Json) -> Request:
    theirs = ("function_call", "custom_tool_call", "reasoning")
    said = [item for item in body["input"] if not str(item.get("type")).startswith("tool_search")]
    spoken = tuple(item.get("role") == "assistant" or item.get("type") in theirs for item in said)
    tools = [*body.get("tools", []), *(tool for item in body["input"] for tool in item.get("tools", []))]
    named = _by_name(tools, "parameters")
    for group in (tool for tool in tools if tool["type"] == "namespace"):
        named |= {f"{group['name']}/{name}": schema for name, schema in _by_name(group["tools"], "parameters").items()}
    searches = any(tool["type"] == "tool_search" for tool in tools)
    return Request(spoken, named, body.get("stream", False), searches)


def _gemini_request(body: Json) -> Request:
    spoken = tuple(content["role"] == "model" for content in body["contents"])
    tools = [tool for group in body.get("tools", []) for tool in group.get("functionDeclarations", [])]
    return Request(spoken, _by_name(tools, "parametersJsonSchema") or _by_name(tools, "parameters"), stream=True)


# What it gets, per format.


def _anthropic_reply(reply: Reply) -> tuple[Json, Sse]:
    blocks: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
    if reply.call:
        blocks.append({"type": "tool_use", "id": f"toolu_{reply.id}", "name": reply.call[0], "input": reply.call[1]})
    head: Json = {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": "fake", "content": []}
    end = {"stop_reason": "tool_use" if reply.call else "end_turn", "stop_sequence": None}
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1}

    def events() -> Sse:
        yield "message_start", {"type": "message_start", "message": {**head, "stop_reason": None, "usage": usage}}
        for index, block in enumerate(blocks):
            is_text = block["type"] == "text"
            empty = {**block, "text": ""} if is_text else {**block, "input": {}}
            delta = (
                {"type": "text_delta", "text": block["text"]}
                if is_text
                else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            )
            for kind, more in (("start", {"content_block": empty}), ("delta", {"delta": delta}), ("stop", {})):
                yield f"content_block_{kind}", {"type": f"content_block_{kind}", "index": index, **more}
        yield "message_delta", {"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}}
        yield "message_stop", {"type": "message_stop"}

    return {**head, **end, "content": blocks, "usage": usage}, events()


def _chat_reply(reply: Reply) -> tuple[Json, Sse]:
    message: Json = {"role": "assistant", "content": reply.text}
    if reply.call:
        function = {"name": reply.call[0], "arguments": json.dumps(reply.call[1])}
        message["tool_calls"] = [{"index": 0, "id": f"call_{reply.id}", "type": "function", "function": function}]
    head: Json = {"id": f"chatcmpl-{reply.id}", "created": 1, "model": "fake"}
    reason = "tool_calls" if reply.call else "stop"
    cached = {"prompt_tokens_details": {"cached_tokens": 2}}
    usage = {"prompt_tokens": 13, "completion_tokens": 5, "total_tokens": 18, **cached}

    def events() -> Sse:
        chunk: Json = {**head, "object": "chat.completion.chunk"}
        yield "", {**chunk, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
        yield "", {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
        yield "", {**chunk, "choices": [], "usage": usage}
        yield "", None

    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {**head, "object": "chat.completion", "choices": [choice], "usage": usage}, events()


def _responses_reply(reply: Reply) -> tuple[Json, Sse]:
    items: list[Json] = []
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        items.append({"type": "message", "id": f"msg_{reply.id}", "role": "assistant", "content": content})
    if reply.call:
        namespace, _, name = reply.call[0].rpartition("/")
        call: Json = {"id": f"fc_{reply.id}", "call_id": f"call_{reply.id}"}
        if name == SEARCH:
            call |= {"type": "tool_search_call", "execution": "client", "arguments": reply.call[1]}
        else:
            call |= {"type": "function_call", "name": name, "arguments": json.dumps(reply.call[1])}
        items.append({**call, **({"namespace": namespace} if namespace else {})})
    items = [{**item, "status": "completed"} for item in items]
    usage = {"input_tokens": 13, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 5, "total_tokens": 18}
    whole = {"id": f"resp_{reply.id}", "object": "response", "status": "completed", "output": items, "usage": usage}

    def events() -> Sse:
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        yield "response.created", {"type": "response.created", "response": begun}
        for index, item in enumerate(items):
            for kind in ("added", "done"):
                name = f"response.output_item.{kind}"
                yield name, {"type": name, "output_index": index, "item": item}
        yield "response.completed", {"type": "response.completed", "response": whole}

    return whole, events()


def _gemini_reply(reply: Reply) -> tuple[Json, Sse]:
    parts: list[Json] = [{"text": reply.text}] if reply.text else []
    if reply.call:
        parts.append({"functionCall": {"name": reply.call[0], "args": reply.call[1]}})
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    tokens = {"promptTokenCount": 13, "candidatesTokenCount": 5, "totalTokenCount": 18, "cachedContentTokenCount": 2}
    whole: Json = {"candidates": [candidate], "usageMetadata": tokens, "modelVersion": "fake"}
    return whole, iter([("", whole)])


@dataclass(frozen=True, slots=True)
class _Format:
    request: Callable[[Json], Request]
    reply: Callable[[Reply], tuple[Json, Sse]]


_FORMATS: tuple[tuple[str, _Format], ...] = (
    ("/messages", _Format(_anthropic_request, _anthropic_reply)),
    ("/chat/completions", _Format(_chat_request, _chat_reply)),
    ("/responses", _Format(_responses_request, _responses_reply)),
    (":streamGenerateContent", _Format(_gemini_request, _gemini_reply)),
)
_SHELLS = ("Bash", "bash", "run_shell_command", "exec_command", "shell_command", "terminal", "run_commands")
_COMMANDS = ("command", "cmd", "commands")
_ASKED_FOR: Mapping[str, Any] = {"description": "Run it", "security_risk": "LOW", "summary": "next step"}


def shell_call(tools: Mapping[str, Json], command: str) -> tuple[str, Json]:
    """A call of the shell tool among those that a program offers, with the arguments it asks for."""
    name = next(name for name in (*_SHELLS, *tools) if name in tools and (name in _SHELLS or name.endswith("bash")))
    properties = tools[name]["properties"]
    key = next(key for key in _COMMANDS if key in properties)
    is_list = str(properties[key].get("type")).lower() == "array" or "anyOf" in properties[key]
    asked = {key: value for key, value in _ASKED_FOR.items() if key in tools[name].get("required", [])}
    return name, {**asked, key: [command] if is_list else command}


@dataclass(slots=True)
class AgentModelServer:
    """Says the steps of ``script`` in turn; keeps the body of every request."""

    script: Sequence[Step] = ()
    reactions: Mapping[str, Step] = field(default_factory=dict)
    """What it says instead as soon as a request holds this text."""
    bodies: list[str] = field(default_factory=list)
    unknown_paths: list[str] = field(default_factory=list)
    port: int = 0
    spoken_before: int | None = None
    """How often the model has spoken where the first request begins: some programs make up an answer."""

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self.port}"

    def answer(self, form: _Format, body: Json) -> tuple[int, Json, Sse | None]:
        """Status, whole answer, and the same as a stream when one was asked for."""
        request = form.request(body)
        if request.tools and self.spoken_before is None:
            self.spoken_before = request.turn
        turn = min(request.turn - (self.spoken_before or 0), len(self.script) - 1)
        reaction = next((step for text, step in self.reactions.items() if text in json.dumps(body)), None)
        step = (reaction or self.script[turn]) if request.tools else Step("A title")
        if step.status != 200:
            kind = "authentication_error" if step.status == 401 else "invalid_request_error"
            return step.status, {"type": "error", "error": {"type": kind, "message": step.text}}, None
        call = shell_call(request.tools, step.shell) if step.shell else None
        if step.tool:
            call = next((name for name in request.tools if name.endswith(step.tool)), SEARCH), dict(step.arguments)
            if call[0] == SEARCH:
                assert request.searches, f"{step.tool} is none of {', '.join(request.tools)}"
                call, step = (SEARCH, {"query": step.tool}), Step()
        whole, events = form.reply(Reply(f"{len(self.bodies):020}", step.text, call))
        return 200, whole, events if request.stream else None


@contextmanager
def agent_model_server() -> Iterator[AgentModelServer]:
    """A running server, to be given its script; it is closed at the end."""
    server = AgentModelServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, {"object": "list", "data": []})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            path = self.path.partition("?")[0]
            form = next((form for end, form in _FORMATS if path.endswith(end)), None)
            if form is None:
                server.unknown_paths.append(path)
                self._send(200, {"input_tokens": 1, "totalTokens": 1})
                return
            server.bodies.append(body)
            status, whole, events = server.answer(form, json.loads(body))
            if events is None:
                self._send(status, whole)
                return
            self._head(200, "text/event-stream")
            for name, data in events:
                line = "[DONE]" if data is None else json.dumps(data)
                self.wfile.write((f"event: {name}\n" if name else "").encode() + f"data: {line}\n\n".encode())
                self.wfile.flush()

        def _send(self, status: int, value: Json) -> None:
            data = json.dumps(value).encode()
            self._head(status, "application/json")
            self.wfile.write(data)

        def _head(self, status: int, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Connection", "close")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    server.port = httpd.server_address[1]
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join(5)
