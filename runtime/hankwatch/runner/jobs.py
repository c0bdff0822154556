"""What is decided about each codon before the run starts: program, prompt, environment, limits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from hankwatch.agents.program import AgentProgram, TurnRequest
from hankwatch.agents.settings import AgentSettings
from hankwatch.config.environment import child_environment
from hankwatch.events.run import PromptMetadata
from hankwatch.hank.assembly import fill, system_prompt, user_prompt
from hankwatch.hank.load import LoadedHank
from hankwatch.hank.model import Codon, ContextExceeded, Hank, Loop, watchdog_of
from hankwatch.runner.compaction import compaction_env
from hankwatch.runner.layout import Layout
from hankwatch.runner.sessions import SESSION_CODON, require_resuming
from hankwatch.runner.settings import RunSettings
from hankwatch.sentinels.loader import SentinelSource
from hankwatch.watchdog import WatchdogPolicy

DEFAULT_IDLE_S = 180.0
"""Longest silence of an agent when nobody says otherwise (reference 2.2)."""


@dataclass(frozen=True, slots=True)
class CodonJob:
    """Everything that is decided about a codon before it starts."""

    codon: Codon
    """As authored."""
    codon_id: str
    """Runtime id."""
    program: AgentProgram
    """What runs it."""
    request: TurnRequest
    """Prompt and model."""
    env: Mapping[str, str]
    """The agent's whole environment, without what its command adds."""
    rig_env: Mapping[str, str]
    """Of rig commands: our own environment, with the codon's over it."""
    sentinels: tuple[SentinelSource, ...]
    """Its observers, in file order."""
    idle_s: float
    """Longest silence of the agent, in seconds."""
    tool_result_chars: int
    """Longer tool results are cut in their event."""
    extension_prompt: str | None = None
    """Sent again after each success, until the context is full."""
    ends_when_full: bool = False
    """A full context is the end this codon, or the loop around it, is meant to have."""
    prompt_metadata: PromptMetadata | None = None
    """Front matter of the prompt."""
    watchdog: WatchdogPolicy | None = None
    """How its loop watchdog judges; None for no watchdog."""
    depth: int = 0
    """At which its first turn arms watches."""

    @property
    def base_codon_id(self) -> str:
        """Its id as authored."""
        return self.codon.id

    @property
    def session(self) -> str:
        """Name of the session of its turns; a watch that has it wakes that one."""
        return self.codon_id.removeprefix(SESSION_CODON)

    @property
    def name(self) -> str:
        """For people."""
        return self.codon.name

    @property
    def description(self) -> str | None:
        """For people."""
        return self.codon.description


def codon_jobs(
    hank: LoadedHank,
    *,
    run: RunSettings,
    agents: Mapping[str, AgentSettings],
    environ: Mapping[str, str],
    layout: Layout,
    default_watchdog: WatchdogPolicy | None,
    orientation: Mapping[str, str],
) -> dict[str, CodonJob]:
    """Each codon of a hank that has a config, by its authored id, in order.

    ``default_watchdog`` is what ``"watchdog": "default"`` stands for; ``orientation`` is what every agent is given so
    that commands of its own find what this run works with.

    Raises:
        UsageError: an agent that does not exist, or that cannot continue sessions where a codon wants it.
        PathRefused: a prompt file changed for the worse since it was checked.
    """
    assert hank.config is not None
    make = partial(
        _job,
        config=hank.config,
        hank=hank,
        run=run,
        agents=agents,
        environ=environ,
        layout=layout,
        default_watchdog=default_watchdog,
        orientation=orientation,
    )
    return {codon.id: make(codon, ends_when_full=ends) for codon, ends in _ends_when_full(hank.config)}


def _ends_when_full(hank: Hank) -> Iterator[tuple[Codon, bool]]:
    for item in hank.hank:
        if isinstance(item, Loop):
            yield from ((codon, isinstance(item.terminate_on, ContextExceeded)) for codon in item.codons)
        else:
            yield item, False


def _job(
    codon: Codon,
    *,
    ends_when_full: bool,
    config: Hank,
    hank: LoadedHank,
    run: RunSettings,
    agents: Mapping[str, AgentSettings],
    environ: Mapping[str, str],
    layout: Layout,
    default_watchdog: WatchdogPolicy | None,
    orientation: Mapping[str, str],
) -> CodonJob:
    model = run.model or codon.model
    from hankwatch.agents.catalogue import agent_for  # every program's dialect, which only a run needs

    program = agent_for(codon.agent, model, hank_dir=hank.hank_dir.resolve(), settings=agents)
    require_resuming(codon, program)
    prompt = user_prompt(codon, hank_dir=hank.hank_dir, agent_root=layout.agent_root)
    system = system_prompt(codon, config, hank_dir=hank.hank_dir, agent_root=layout.agent_root)
    metadata = prompt.metadata.as_data()
    required = config.requirements.env if config.requirements else ()
    here = agents.get(program.name, AgentSettings())
    return CodonJob(
        codon=codon,
        codon_id=codon.id,
        program=program,
        request=TurnRequest(prompt.text, model, system),
        env={
            **compaction_env(codon, program),
            **child_environment(environ, codon.env, keep=(*program.env_names, *required)),
            **orientation,
        },
        rig_env=child_environment(environ, codon.env, keep=("*",)),
        sentinels=hank.sentinels.get(codon.id, ()),
        idle_s=codon.shim_idle_timeout or here.idle_limit_s or run.idle_limit_s or DEFAULT_IDLE_S,
        tool_result_chars=run.tool_result_chars,
        extension_prompt=fill(codon.exhaust_with_prompt, layout.agent_root) if codon.exhaust_with_prompt else None,
        ends_when_full=ends_when_full or codon.exhaust_with_prompt is not None,
        prompt_metadata=PromptMetadata.model_validate(metadata) if metadata else None,
        watchdog=watchdog_of(codon, config, default_watchdog),
    )
