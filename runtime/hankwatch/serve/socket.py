"""``/ws``: clients of the 0.10 protocol (reference 5). Events are those of one execution's journal."""

import uuid
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import orjson
from fastapi import APIRouter, WebSocket
from starlette.responses import Response
from starlette.websockets import WebSocketDisconnect

from hankwatch import __version__
from hankwatch.core.errors import HankwatchError, OrderRefused, UsageError
from hankwatch.core.limits import within
from hankwatch.core.tasks import task_group
from hankwatch.events.envelope import Event, IdSource, format_stamp
from hankwatch.runner.aiming import aimed
from hankwatch.runner.execution import Found
from hankwatch.runner.inbox import Command, post
from hankwatch.serve.auth import Caller
from hankwatch.serve.context import Serving
from hankwatch.serve.events import Wanted, page
from hankwatch.serve.gate import require_welcome
from hankwatch.serve.live import Note
from hankwatch.serve.problems import problem_of
from hankwatch.serve.protocol import (
    HANDSHAKE_REQUIRED,
    HISTORY_LIMIT,
    INSUFFICIENT_PERMISSIONS,
    READ_ONLY_TOO,
    HandshakeData,
    Request,
    handshake,
    order_of,
    request,
)
from hankwatch.serve.shelf import Named, Span
from hankwatch.stream.reader import JournalReader

HANDSHAKE_S: Final = 10.0
"""Longest that a client may take to say what it wants."""
SEND_S: Final = 20.0
"""Longest that it may take to accept a message."""
_PROTOCOL: Final = "websocket"
_BATCH: Final = 200
_GOING_AWAY, _POLICY, _TRY_AGAIN = 1001, 1008, 1013
_CODES: Final = {"shutdown": _GOING_AWAY, "revoked": _POLICY}
router = APIRouter(tags=["runs"])


@router.get("/ws", include_in_schema=False)
def plain() -> Response:
    """For whoever comes without an upgrade."""
    return problem_of(
        UsageError("this is a WebSocket", hint="connect to it with ws://, or read /api/runs/latest/stream")
    )


@router.websocket("/ws")
async def socket(websocket: WebSocket, run: str = "latest") -> None:
    """One client, from its handshake to its end."""
    serving: Serving = websocket.app.state.serving
    try:
        require_welcome(serving.door, websocket.headers, "WEBSOCKET", websocket.scope["query_string"])
        caller = serving.door.caller(websocket.headers)
        named = await anyio.to_thread.run_sync(serving.run, caller, run)
        serving.streams.require_room()
    except HankwatchError as error:
        await websocket.send_denial_response(problem_of(error))
        return
    await websocket.accept()
    client = _Client(websocket, serving, caller, named)
    with suppress(WebSocketDisconnect, TimeoutError):
        await client.attend()


@dataclass(slots=True, eq=False)
class _Client:
    """One connection; messages go out one after the other."""

    websocket: WebSocket
    serving: Serving
    caller: Caller
    named: Named
    writes: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    _ids: IdSource = field(default_factory=IdSource)
    _turn: anyio.Lock = field(default_factory=anyio.Lock)

    @property
    def journal(self) -> Path:
        return self.named.followed.journal

    async def attend(self) -> None:
        """From the handshake to the end."""
        await self._shake_hands()
        self.serving.sockets.add(self)
        try:
            async with task_group() as tasks:
                tasks.start_soon(self._tell)
                try:
                    while True:
                        await self._answer(await self._heard())
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            self.serving.sockets.discard(self)

    async def say(self, type_name: str, data: Mapping[str, Any]) -> None:
        """One message of the connection's own, which no journal has."""
        now_ms = int(self.serving.clock.now().timestamp() * 1000)
        stamp = format_stamp(now_ms)
        await self._send([{"id": self._ids.next(now_ms), "timestamp": stamp, "type": type_name, "data": data}])

    async def _send(self, messages: Sequence[Mapping[str, Any]]) -> None:
        async def send() -> None:
            for message in messages:
                await self.websocket.send_text(orjson.dumps(message).decode())

        async with self._turn:
            try:
                await within(self.serving.clock, SEND_S, send)
            except TimeoutError:
                self.serving.streams.slow[_PROTOCOL] += 1
                raise

    async def _complain(self, message: str, code: str, command_id: str | None = None) -> None:
        said = {"message": message, "fatal": False, "severity": "operation", "code": code, "commandId": command_id}
        await self.say("error", {name: value for name, value in said.items() if value is not None})

    async def _heard(self) -> str:
        """The next message; one of bytes is none of the protocol, as an empty one."""
        message = await self.websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code", 1005))
        return message.get("text") or ""

    async def _wanted(self) -> HandshakeData:
        while (wanted := handshake(await self._heard())) is None:
            await self._complain("a handshake comes first", HANDSHAKE_REQUIRED)
        return wanted

    async def _shake_hands(self) -> None:
        wanted = await within(self.serving.clock, HANDSHAKE_S, self._wanted)
        self.writes = wanted.mode == "readandwrite" and self.caller.steers
        followed = self.named.followed
        latest = await anyio.to_thread.run_sync(_last, self.journal) if wanted.send_previous_events else []
        await self.say(
            "handshake.response",
            {
                "clientId": self.id,
                "mode": "readandwrite" if self.writes else "readonly",
                "eventHistory": [event.envelope() for event in latest if followed.told.copy()(event)],
                "totalEvents": followed.counters.events.total(),
            },
        )
        layout = followed.execution.layout
        ready = {
            "serverVersion": __version__,
            "executionPath": str(layout.root),
            "agentRootPath": str(layout.agent_root),
            "dataPath": followed.execution.meta.get("dataPath"),
            "port": (self.websocket.scope.get("server") or (None, 0))[1],
        }
        await self.say("server.ready", ready)

    async def _tell(self) -> None:
        """What the journal gets from now on."""
        followed = self.named.followed
        wanted = followed.told.copy()
        batches = self.serving.streams.follow(followed.journal, followed.cursor, wanted, _PROTOCOL)
        async with aclosing(batches):
            async for batch in batches:
                if not self._may_read():
                    await self._end("revoked", 0)
                    return
                await self._send([item.envelope() for item in batch if isinstance(item, Event)])
                for note in batch:
                    if isinstance(note, Note) and note.kind == "closed":
                        await self._end(note.reason, note.cursor)
                        return

    async def _end(self, reason: str, cursor: int) -> None:
        await self.websocket.close(_CODES.get(reason, _TRY_AGAIN), f"{reason}; cursor {cursor}")

    async def _answer(self, text: str) -> None:
        asked = request(text)
        if asked is None:
            await self._complain("this is no command", "INVALID_COMMAND")
        elif not self.writes and asked.type not in READ_ONLY_TOO:
            await self._complain(f"{asked.type} needs the mode readandwrite", INSUFFICIENT_PERMISSIONS, asked.id)
        elif asked.type == "ping":
            await self.say("pong", self._pong())
        elif asked.type == "ping.broadcast":
            for client in tuple(self.serving.sockets):
                with suppress(TimeoutError, WebSocketDisconnect, RuntimeError):  # it is just leaving
                    await client.say("pong", {**self._pong(), "clientId": self.id})
        elif asked.type == "history.sync":
            await self._sync()
        else:
            await self._order(asked)

    def _pong(self) -> dict[str, Any]:
        return {"message": "pong", "timestamp": format_stamp(int(self.serving.clock.now().timestamp() * 1000))}

    async def _sync(self) -> None:
        """The whole journal, oldest first."""
        reader, everything, after, more = JournalReader(self.journal), Span("", 0), 0, True
        while more:
            found = await anyio.to_thread.run_sync(page, reader, everything, after, Wanted(), _BATCH)
            after, more = found.next, found.more
            await self.say("history.batch", {"events": [e.envelope() for e in found.events], "hasMore": more})

    async def _order(self, asked: Request) -> None:
        try:
            self.caller.require_steering()
            asks = order_of(asked)
            found = Found(self.named.followed.execution, self.named.run)
            aim = partial(aimed, found, asks.order, asks.target, self.serving.clock, go_on=asks.go_on)
            command = await anyio.to_thread.run_sync(aim)
            await anyio.to_thread.run_sync(post, found.execution.layout, _under(command, asked.id))
        except HankwatchError as error:
            code = "COMMAND_REFUSED" if isinstance(error, OrderRefused | UsageError) else INSUFFICIENT_PERMISSIONS
            await self._complain(str(error), code, asked.id)

    def _may_read(self) -> bool:
        caller = self.serving.door.known(self.websocket.headers)
        self.caller = caller or self.caller
        return caller is not None and caller.reads_runs


def _under(command: Command, asked_id: str | None) -> Command:
    """With the client's own id, which the run's answer carries; one that is no name of a file stays out."""
    try:
        return (
            command
            if asked_id is None or asked_id.startswith(".")
            else Command.model_validate({**dict(command), "id": asked_id})
        )
    except ValueError:
        return command


def _last(journal: Path) -> list[Event]:
    """The newest events, the newest first."""
    try:
        return JournalReader(journal).last(HISTORY_LIMIT)[::-1]
    except FileNotFoundError:
        return []
