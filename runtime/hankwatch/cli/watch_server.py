"""``watch … --server URL``: the same commands over REST; the token comes from the environment or a file, never an argument."""

import json
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx
from pydantic import TypeAdapter, ValidationError

from hankwatch.cli.watch_desk import Desk
from hankwatch.config.source import Document
from hankwatch.core.errors import BadLine, ServerUnreachable, UsageError, WatchInvalid, WatchNotFound
from hankwatch.core.request_errors import ServerRefused
from hankwatch.watches.codec import decode
from hankwatch.watches.delivery import Delivery
from hankwatch.watches.evaluation import Evaluation
from hankwatch.watches.instance import Setting
from hankwatch.watches.requests import WatchEdit, WatchRequest
from hankwatch.watches.roll import Liveness
from hankwatch.watches.service import Applied, Armed
from hankwatch.watches.watch import Status, Watch

TOKEN: Final = "HANKWATCH_TOKEN"  # noqa: S105 - a name
"""Variable that holds the token."""
LIMIT_S: Final = 60.0
"""Longest that an answer may take; a check may take half of it."""
_PAGE: Final = 1_000
_DELIVERIES: Final = TypeAdapter(list[Delivery])
_EVALUATIONS: Final = TypeAdapter(list[Evaluation])
_SETTING: Final = TypeAdapter(Setting)
_APPLIED: Final = TypeAdapter(Applied)


@dataclass(frozen=True, slots=True)
class OnServer:
    """The watches that a server has."""

    address: str
    token_file: Path | None = None

    def is_empty(self) -> bool:
        """See ``Desks``."""
        return False

    @asynccontextmanager
    async def open(self, home: str | None = None) -> AsyncIterator[Desk]:
        """See ``Desks``; ``home`` is a run or an execution as the server names it.

        Raises:
            UsageError: the address or the token's file cannot be meant.
        """
        parts = urlsplit(self.address)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query:
            raise UsageError(
                f"--server wants an address such as http://127.0.0.1:8765, not {parts.scheme}://{parts.hostname or ''}",
                hint=f"a token belongs into {TOKEN}, or into a file named by --token-file",
            )
        token = _token(self.token_file)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(
            base_url=self.address, headers=headers, timeout=LIMIT_S, trust_env=False
        ) as client:
            yield There(client, home)


def _token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get(TOKEN) or None
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the token's file {file} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class There:
    """Asks a server, which says who may do what."""

    client: httpx.AsyncClient
    home: str | None

    def now(self) -> datetime:
        """See ``Desk``; a server's clock is taken to be right, and ours too."""
        return datetime.now(UTC)

    async def create(self, request: WatchRequest) -> Armed:
        """See ``Desk``; paths are those of the server."""
        query = {} if self.home is None else {"run": self.home}
        written = request.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude={"schema_url"})
        answer = await self._ask("POST", "/api/watches", query, written)
        return Armed(_watch(answer.json()), answer.status_code == httpx.codes.CREATED)

    async def find(
        self, prefix: str = "", *, session: str | None = None, statuses: Iterable[Status] = tuple(Status)
    ) -> list[Watch]:
        """See ``Desk``."""
        query: dict[str, Any] = {"prefix": prefix, "status": [status.value for status in statuses], "limit": _PAGE}
        query |= {} if session is None else {"session": session}
        found, after = list[Watch](), ""
        while True:
            page = (await self._ask("GET", "/api/watches", {**query, "after": after})).json()
            found += [_watch(view) for view in page["watches"]]
            if (after := page["next"]) is None:
                return found

    async def get(self, watch_id: str) -> Watch:
        """See ``Desk``."""
        return _watch((await self._ask("GET", _path(watch_id))).json())

    async def checks(self, watch_id: str, limit: int) -> list[Evaluation]:
        """See ``Desk``."""
        answer = await self._ask("GET", f"{_path(watch_id)}/evaluations", {"limit": limit})
        return _EVALUATIONS.validate_json(answer.content)

    async def told(self, watch_id: str | None = None) -> list[Delivery]:
        """See ``Desk``; of all watches the latest thousand."""
        query = {"limit": _PAGE} if watch_id is None else {"limit": 100, "watch": watch_id}
        return _DELIVERIES.validate_json((await self._ask("GET", "/api/deliveries", query)).content)

    async def notices(self, limit: int) -> list[Delivery]:
        """See ``Desk``."""
        query = {"limit": limit, "channel": "in_app"}
        return _DELIVERIES.validate_json((await self._ask("GET", "/api/deliveries", query)).content)

    async def liveness(self) -> Liveness:
        """See ``Desk``."""
        page = (await self._ask("GET", "/api/watches", {"limit": 1})).json()
        looked = page["last_loop_at"]
        return Liveness(None if looked is None else datetime.fromisoformat(looked), None, page["lag_s"])

    async def settings(self) -> dict[str, Setting]:
        """See ``Desk``."""
        said = (await self._ask("GET", "/api/watch-settings")).json()
        return {name: _SETTING.validate_python({"name": name, **one}) for name, one in said.items()}

    @property
    def warns(self) -> bool:
        """See ``Desk``; a server polls."""
        return False

    async def update(self, watch_id: str, edit: WatchEdit) -> Watch:
        """See ``Desk``."""
        written = edit.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return _watch((await self._ask("PATCH", _path(watch_id), {}, written)).json())

    async def cancel(self, watch_id: str) -> Watch:
        """See ``Desk``."""
        return await self._order(watch_id, "cancel")

    async def clear(self, watch_id: str) -> bool:
        """See ``Desk``."""
        await self._ask("DELETE", _path(watch_id))
        return True

    async def approve(self, watch_id: str) -> Watch:
        """See ``Desk``."""
        return await self._order(watch_id, "approve")

    async def reject(self, watch_id: str) -> Watch:
        """See ``Desk``."""
        return await self._order(watch_id, "reject")

    async def check(self, watch_id: str) -> Watch:
        """See ``Desk``."""
        return await self._order(watch_id, "check")

    async def apply(self, owner: str, source: Document) -> Applied:
        """See ``Desk``; the server reads the set."""
        answer = await self._ask("PUT", "/api/watches", {"owner": owner}, source.value)
        return _APPLIED.validate_json(answer.content)

    async def _order(self, watch_id: str, order: str) -> Watch:
        return _watch((await self._ask("POST", f"{_path(watch_id)}/{order}")).json())

    async def _ask(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: object = None
    ) -> httpx.Response:
        """The answer.

        Raises:
            ServerUnreachable: there is none.
            HankwatchError: what the server says went wrong.
        """
        content = {} if body is None else {"content": json.dumps(body), "headers": {"Content-Type": "application/json"}}
        try:
            answer = await self.client.request(method, path, params=dict(query or {}), **content)  # type: ignore[arg-type]  # either of the two
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ServerUnreachable(str(self.client.base_url), str(error) or type(error).__name__) from error
        if answer.is_success:
            return answer
        raise _refusal(answer, path)


def _path(watch_id: str) -> str:
    return f"/api/watches/{quote(watch_id, safe='')}"


def _watch(view: dict[str, Any]) -> Watch:
    """A watch as it is listed, read back."""
    record = {name: value for name, value in view.items() if name not in {"state", "is_new"}}
    try:
        return decode(json.dumps({**record, "cursor": 0}))
    except BadLine as error:
        raise ServerRefused(502, "bad-answer", f"the server's answer is not understood: {error}", None) from error


def _refusal(answer: httpx.Response, path: str) -> Exception:
    try:
        said = TypeAdapter(dict[str, Any]).validate_json(answer.content)
    except ValidationError:
        said = {}
    code, detail = str(said.get("code", "bad-answer")), str(said.get("detail", f"status {answer.status_code}"))
    if code == WatchNotFound.code:
        return WatchNotFound(path.removeprefix("/api/watches/").partition("/")[0])
    faults = said.get("faults")
    if code == WatchInvalid.code and isinstance(faults, list):
        return WatchInvalid([str(fault) for fault in faults])
    hint = said.get("hint")
    return ServerRefused(answer.status_code, code, detail, None if hint is None else str(hint))
