"""What was set for a store while it is in use: it goes before what each process was configured with."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Final

import orjson
from pydantic import ConfigDict, Field
from sqlalchemy import delete, insert, select

from hankwatch.config.validation import ConfigModel
from hankwatch.watches.database import Database
from hankwatch.watches.outbox import instant, millis
from hankwatch.watches.tables import settings

Value = float | bool


class SettingsEdit(ConfigModel):
    """Only what is given changes; null goes back to what is configured."""

    model_config = ConfigDict(alias_generator=None, defer_build=False)
    NULLABLE: ClassVar[frozenset[str]] = frozenset({"interval", "enabled", "keep_terminal_h"})

    interval: Annotated[float, Field(ge=5, le=86_400)] | None = None
    """Seconds between two checks of a watch that names no interval; for watches armed from then on."""
    enabled: bool | None = None
    """Offer agents the watch tools; the engine runs in any case."""
    keep_terminal_h: Annotated[float, Field(ge=0, le=87_600)] | None = None
    """Hours that ended watches are kept; 0 is for ever."""


NAMES: Final = tuple(SettingsEdit.model_fields)


@dataclass(frozen=True, slots=True)
class Configured:
    """What a process was started with."""

    interval: float
    enabled: bool
    keep_terminal_h: float


@dataclass(frozen=True, slots=True)
class Set:
    """One value that was set for the store."""

    value: Value
    set_by: str
    set_at: datetime


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting as it holds, and where that comes from."""

    name: str
    value: Value
    configured: Value
    """What holds when nothing is set for the store; each process may have been started with another."""
    set_by: str | None = None
    """Who set it; None: it is configured."""
    set_at: datetime | None = None


class InstanceSettings:
    """The values that were set for a store; methods block for the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self) -> dict[str, Set]:
        """Those that are set, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(select(settings)).all()
        return {row.name: Set(orjson.loads(row.value), row.set_by, instant(row.set_ms)) for row in rows}

    def holding(self, configured: Configured) -> dict[str, Setting]:
        """Every setting as it holds now."""
        found, holding = self.read(), dict[str, Setting]()
        for name in NAMES:
            usual: Value = getattr(configured, name)
            mine = found.get(name)
            holding[name] = (
                Setting(name, usual, usual)
                if mine is None
                else Setting(name, mine.value, usual, mine.set_by, mine.set_at)
            )
        return holding

    def write(self, changes: Mapping[str, Value | None], by: str, now: datetime) -> None:
        """Set some; None forgets what was set."""
        with self._database.writing() as connection:
            for name, value in changes.items():
                connection.execute(delete(settings).where(settings.c.name == name))
                if value is not None:
                    row = {"value": orjson.dumps(value).decode(), "set_by": by, "set_ms": millis(now)}
                    connection.execute(insert(settings).values(name=name, **row))
