"""The facts of one run, in bounded memory; report and console share them."""

from collections import Counter
from dataclasses import dataclass, field, replace

from hankwatch.pages.bins import Bins
from hankwatch.pages.budget import BudgetFacts
from hankwatch.pages.codons import CodonFacts
from hankwatch.pages.fires import CitedEvent, SentinelFacts, Trouble
from hankwatch.pages.kept import Kept, Tally
from hankwatch.pages.limits import Limits
from hankwatch.pages.visible import Excerpt
from hankwatch.pages.words import NOTHING, Cost

OTHER_LANE, BOOKKEEPING_LANE = "other events", "bookkeeping"
AGENT_SPENDING, SENTINEL_SPENDING = "spent by agents", "spent by sentinels"
"""Lanes of ``bins`` that count money, in parts of ``NANO`` a dollar."""
NANO = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened, worth a line."""

    at_ms: int
    type: str
    text: Excerpt


@dataclass(frozen=True, slots=True)
class Intervention:
    """The loop watchdog acted."""

    anchor: int
    at_ms: int
    codon_id: str
    kind: str
    """``nudge`` or ``interrupt``."""
    trigger: str
    round: int
    text: Excerpt
    """What the agent was told; empty for an interrupt."""
    detail: Excerpt
    delivered: bool
    observed: bool
    """It was only told, and nothing was done."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An ``error`` event, or one of the runtime's own that concerns no sentinel."""

    at_ms: int
    codon_id: str
    fatal: bool
    message: Excerpt


@dataclass(slots=True)
class RunFacts:
    """All that a page says of a run."""

    limits: Limits
    run_id: str = ""
    """Empty for a recording that was no run of ours."""
    hank: str = ""
    """What people call it."""
    status: str = "recorded"
    """``running``, ``completed``, ``failed``, ``crashed``; ``recorded`` for what was no run of ours."""
    reason: str = ""
    """Why it ended so."""
    continues: str = ""
    """The run it goes on from."""
    other_runs: int = 0
    """Of the same journal."""
    began_ms: int = 0
    ended_ms: int = 0
    """Its end, or its last event so far."""
    agent_cost: Cost = NOTHING
    sentinel_cost: Cost = NOTHING
    codons: list[CodonFacts] = field(default_factory=list)
    sentinels: list[SentinelFacts] = field(default_factory=list)
    unlisted_sentinel_events: int = 0
    events: list[CitedEvent] = field(default_factory=list)
    """Those that caused the fires shown, in journal order."""
    event_count: int = 0
    types: Tally = field(default_factory=lambda: Tally(0))
    tools: Tally = field(default_factory=lambda: Tally(0))
    """By name; counted by their results."""
    files: Tally = field(default_factory=lambda: Tally(0))
    """Changes by path."""
    bins: Bins = field(default_factory=lambda: Bins(0))
    lanes: Tally = field(default_factory=lambda: Tally(0))
    troubles: Kept[Trouble] = field(default_factory=lambda: Kept(0, 0))
    failures: Kept[Failure] = field(default_factory=lambda: Kept(0, 0))
    interventions: Kept[Intervention] = field(default_factory=lambda: Kept(0, 0))
    moments: Kept[Moment] = field(default_factory=lambda: Kept(0, 0))
    nudges: int = 0
    interrupts: int = 0
    undelivered: int = 0
    """Nudges that the agent could not take."""
    observed: Counter[str] = field(default_factory=Counter)
    """How many were only told, of each kind: ``nudge``, ``interrupt``."""
    checkpoints: int = 0
    budget: BudgetFacts | None = None
    """As the run told it last; None without limits."""
    bad_lines: int = 0
    misfits: int = 0
    """Events whose payload is not as the contract has it."""
    uncited: int = 0
    """Events named as causes that the journal does not have, or that are beyond the page's limit."""
    unpriced_calls: int = 0
    """Model calls of sentinels without a known price."""
    call_log: bool = False
    """Prompts come from the call log; false when there is none."""
    call_log_fault: str = ""
    """Why the call log could not be read to its end."""
    unread_calls: int = 0
    """Lines of the call log that are no calls."""
    name: str = ""
    """What a reader calls it on the command line: an id, or a path."""

    def copy(self) -> "RunFacts":
        """The same as of now; what is counted later changes nothing in it."""
        made = replace(self, bins=self.bins.copy(), observed=self.observed.copy())
        made.types, made.tools, made.files = self.types.copy(), self.tools.copy(), self.files.copy()
        made.lanes, made.failures = self.lanes.copy(), self.failures.copy()
        made.interventions, made.moments = self.interventions.copy(), self.moments.copy()
        return made

    @property
    def shown_codons(self) -> Kept[CodonFacts]:
        """The first and the last of them."""
        kept: Kept[CodonFacts] = Kept(self.limits.codons // 2, self.limits.codons // 2)
        for codon in self.codons:
            kept.add(codon)
        return kept

    def anchor_of(self, codon: CodonFacts) -> str:
        """Where the page shows it; empty when it does not."""
        half = self.limits.codons // 2
        shown = codon.anchor <= half or codon.anchor > len(self.codons) - half
        return f"codon-{codon.anchor}" if shown else ""

    @property
    def live(self) -> bool:
        """It still goes on."""
        return self.status == "running"

    @property
    def cost(self) -> Cost:
        """Agents and sentinels."""
        return self.agent_cost + self.sentinel_cost

    @property
    def fired(self) -> int:
        """All triggers of all sentinels listed."""
        return sum(sentinel.fired for sentinel in self.sentinels)

    @property
    def failed_fires(self) -> int:
        """Triggers without an answer."""
        return sum(sentinel.failed for sentinel in self.sentinels)

    @property
    def dropped(self) -> int:
        """Triggers lost to full queues."""
        return sum(sentinel.dropped_triggers for sentinel in self.sentinels)

    @property
    def abandoned(self) -> int:
        """Triggers given up at an end."""
        return sum(sentinel.abandoned for sentinel in self.sentinels)
