"""The public names of watches, as a program uses them (spec watches 5, "SDK")."""

from pathlib import Path
from typing import Any

import anyio
import pytest

import hankwatch
from hankwatch.core.errors import ConfigError, UsageError


def asked(**fields: object) -> "hankwatch.WatchRequest":
    verifier = {"type": "document", "path": str(fields.pop("path"))}
    return hankwatch.WatchRequest.model_validate({"condition": "it is done", "verifier": verifier, **fields})


async def test_a_program_arms_a_watch_and_hears_of_its_fire(tmp_path: Path) -> None:
    heard, told, me = list[str](), anyio.Event(), hankwatch.operator("a program")
    async with hankwatch.open_watches(environ={"HOME": str(tmp_path)}, check=True) as watches:

        async def on_met(delivery: Any) -> None:
            heard.append(delivery.watch_id)
            told.set()

        watches.register_watch_hook(on_met=on_met)
        armed = await watches.create_watch(me, asked(id="deploy", path=tmp_path / "done", interval_s=5))
        await watches.update_watch(me, "deploy", hankwatch.WatchEdit(stall_after=3))
        (tmp_path / "done").touch()
        await watches.evaluate_now(me, "deploy")
        await told.wait()
        (after,) = await watches.list_watches(me, "dep")

    assert armed.is_new
    assert heard == ["deploy"]
    assert (after.fire_count, after.stall_after) == (1, 3)


async def test_what_cannot_be_meant_is_said_at_once(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    async with hankwatch.open_watches(environ=home) as watches:
        with pytest.raises(UsageError, match="no watch signal"):
            watches.register_watch_hook(on_landed=print)
    with pytest.raises(ConfigError):
        async with hankwatch.open_watches(environ=home | {"HANKWATCH_WATCHES_INTERVAL": "soon"}):
            raise AssertionError
