"""What holds for all watches of the store, and can be set while it is in use."""

from datetime import datetime
from typing import Self

from fastapi import APIRouter
from pydantic import BaseModel

from hankwatch.serve.auth import Caller
from hankwatch.serve.context import Asking, Served
from hankwatch.watches.instance import Setting, SettingsEdit

router = APIRouter(prefix="/api", tags=["watches"])


class SettingView(BaseModel):
    """One setting, and where it comes from."""

    value: float | bool
    """As it holds."""
    configured: float | bool
    """What this server was started with, which holds when nothing is set."""
    is_set: bool
    """It was set here, for every process that works with the store."""
    set_by: str | None
    """Who set it; told to operators alone."""
    set_at: datetime | None

    @classmethod
    def of(cls, setting: Setting, caller: Caller) -> Self:
        set_by = setting.set_by if caller.principal.is_operator else None
        return cls(
            value=setting.value,
            configured=setting.configured,
            is_set=setting.set_at is not None,
            set_by=set_by,
            set_at=setting.set_at,
        )


class SettingsView(BaseModel):
    """Everything that can be set."""

    interval: SettingView
    """Seconds between two checks of a watch that names no interval."""
    enabled: SettingView
    """Agents are offered the watch tools."""
    keep_terminal_h: SettingView
    """Hours that ended watches are kept; 0 is for ever."""


@router.get("/watch-settings")
async def get_settings(serving: Served, caller: Asking) -> SettingsView:
    """What holds for all watches, and where it comes from."""
    caller.require("watches:read")
    return settings_view(await serving.watches.settings(), caller)


@router.patch("/watch-settings")
async def change_settings(edit: SettingsEdit, serving: Served, caller: Asking) -> SettingsView:
    """Set only what is given, for every process of the store; null goes back to what is configured. Operators only."""
    caller.require("watches:write")
    return settings_view(await serving.watches.change_settings(caller.principal, edit), caller)


def settings_view(settings: dict[str, Setting], caller: Caller) -> SettingsView:
    """What somebody is shown of the settings."""
    return SettingsView(**{name: SettingView.of(setting, caller) for name, setting in settings.items()})
