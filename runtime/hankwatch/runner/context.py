"""What every part of a run works with."""

from dataclasses import dataclass, field
from pathlib import Path

from hankwatch.core.clock import Clock
from hankwatch.core.redaction import Redactor
from hankwatch.hank.model import Hank
from hankwatch.runner.archive import Archive
from hankwatch.runner.control import Control
from hankwatch.runner.keeper import Keeper
from hankwatch.runner.layout import Layout
from hankwatch.runner.ledger import Ledger
from hankwatch.runner.sessions import LastSession
from hankwatch.runner.settings import RunBudget
from hankwatch.runner.wakes import Watches
from hankwatch.sentinels.manager import SentinelManager
from hankwatch.stream.stream import EventStream


@dataclass(frozen=True, slots=True)
class RunContext:
    """The run's surroundings, made once by ``app``."""

    hank: Hank
    budget: RunBudget
    """Ceilings of the whole run, the hank's own among them."""
    ledger: Ledger
    stream: EventStream
    manager: SentinelManager
    control: Control
    redactor: Redactor
    layout: Layout
    clock: Clock
    archive: Archive
    keeper: Keeper
    hank_dir: Path
    """Where what the hank names stands; resolved."""
    drain_s: float
    """What each sentinel has per attempt to finish, in seconds."""
    output_dir: Path | None = None
    """Where output files of codons are copied to; None for nowhere."""
    ignore_rig_failures: bool = False
    """As if every rig operation had ``allowFailure``."""
    watches: Watches | None = None
    """Of the execution."""
    last_session: LastSession = field(default_factory=LastSession)
    """Of the attempt before."""
