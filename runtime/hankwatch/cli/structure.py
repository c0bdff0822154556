"""A hank at a glance: its codons, their agents, sentinels, limits and needs, as ``validate`` shows them."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hankwatch.agents.catalogue import agent_for
from hankwatch.agents.program import AgentProgram, TurnRequest
from hankwatch.config.environment import is_present
from hankwatch.core.errors import UsageError
from hankwatch.hank.budget import CodonBudget, ContainerBudget
from hankwatch.hank.load import LoadedHank
from hankwatch.hank.model import Codon, Loop
from hankwatch.hank.prices import is_short_name, registry_id
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.facts import model_facts
from hankwatch.llm.registry import Price
from hankwatch.sentinels.source import SentinelSource
from hankwatch.settings import Settings


@dataclass(frozen=True, slots=True)
class _Part:
    """A codon, and what would run it."""

    codon: Codon
    model: str
    program: AgentProgram | None
    """None when it names none that exists."""

    @property
    def agent(self) -> str:
        """As its author named it; else the program for its model."""
        said = self.codon.agent
        named = said if said is None or isinstance(said, str) else said.name
        return named or (self.program.name if self.program else "an unknown agent")


def at_a_glance(loaded: LoadedHank, settings: Settings, environ: Mapping[str, str]) -> Iterator[str]:
    """Lines for people: structure, what agents and models are there, what is needed; none for a faulty hank.json.

    Args:
        loaded: The hank.
        settings: Those that hold for it.
        environ: The environment that a run would have.
    """
    hank = loaded.config
    if hank is None:
        return
    parts = {codon.id: _part(codon, loaded, settings) for _, codon in hank.codons()}
    for item in hank.hank:
        if isinstance(item, Loop):
            until = item.terminate_on
            times = f"{until.limit} times" if until.type == "iterationLimit" else "until the context is full"
            yield f"loop {item.id}: {times}{_budget(item.budget)}"
            for codon in item.codons:
                yield from _codon(parts[codon.id], loaded.sentinels.get(codon.id, ()), indent="  ")
        else:
            yield from _codon(parts[item.id], loaded.sentinels.get(item.id, ()))
    if hank.overrides is not None and (limits := _budget(hank.overrides.budget)):
        yield f"whole run{limits}"
    for name in hank.requirements.env if hank.requirements else ():
        yield f"needs {name}: {_masked(name, environ)}"
    yield from _agents(list(parts.values()), environ)
    yield from _models_of_agents(parts.values())
    yield from _models_of_sentinels((one for of_codon in loaded.sentinels.values() for one in of_codon), environ)


def _part(codon: Codon, loaded: LoadedHank, settings: Settings) -> _Part:
    model = settings.run.model or codon.model
    try:
        program = agent_for(codon.agent, model, hank_dir=loaded.hank_dir.resolve(), settings=settings.agents)
    except UsageError:  # a fault, told as such
        program = None
    return _Part(codon, model, program)


def _agents(parts: Sequence[_Part], environ: Mapping[str, str]) -> Iterator[str]:
    """One line for each real program: where it is."""
    for name, word in dict(filter(None, map(_started_by, parts))).items():
        found = shutil.which(word, path=environ.get("PATH"))
        yield f"agent {name}: {found or f'not found ({word} is not on the PATH)'}"


def _started_by(part: _Part) -> tuple[str, str] | None:
    """The program's name and how it is started; None for what is not looked for on the PATH."""
    if part.program is None or part.program.name == "recorded":
        return None
    try:
        word = part.program.command(TurnRequest("", part.model)).argv[0]
    except UsageError:
        return None
    relative = "/" in word and not word.startswith("/")  # in the workspace, which is not there yet
    return None if relative else (f"{part.program.name} ({word})" if part.program.name == "exec" else part.agent, word)


def _models_of_agents(parts: Iterable[_Part]) -> Iterator[str]:
    """One line for each model that agents run: is it known, what does it cost. Its key is the program's affair."""
    catalog = ModelCatalog({})
    named = {(part.model, part.program.name): None for part in parts if part.program is not None}
    for model, program in named:
        if program == "recorded":
            continue
        if is_short_name(model):
            yield f"model {model} of {program}: the newest of its family"
            continue
        known = registry_id(model)
        window = catalog.info(known).context_tokens
        words = ("known" if catalog.knows(known) else "not known", _cost(catalog.price(known)), _window(window))
        yield f"model {model} of {program}: " + ", ".join(filter(None, words))


def _models_of_sentinels(sources: Iterable[SentinelSource], environ: Mapping[str, str]) -> Iterator[str]:
    """One line for each model that sentinels ask: is it known, has it a key, what does it cost."""
    catalog = ModelCatalog(environ)
    named = {source.config.model: None for source in sources if source.config is not None}
    for facts in (model_facts(model, catalog) for model in named):
        known = f"at {facts.base_url}" if facts.base_url else "known" if facts.known else "not known"
        key = f"key {facts.key}" if facts.key else f"no key ({' or '.join(facts.key_variables)})"
        words = (
            known,
            key if facts.key_variables else "needs no key",
            _cost(facts.price),
            _window(facts.context_tokens),
        )
        yield f"model {facts.model} of sentinels: " + ", ".join(filter(None, words))


def _cost(price: Price | None) -> str:
    return "price unknown" if price is None else f"${price.input_usd:g} in, ${price.output_usd:g} out per M tokens"


def _window(tokens: int | None) -> str:
    return "" if tokens is None else f"window {tokens:,} tokens"


def _codon(part: _Part, sentinels: tuple[SentinelSource, ...], indent: str = "") -> Iterator[str]:
    yield f"{indent}codon {part.codon.id}: {part.model} by {part.agent}{_budget(part.codon.budget)}"
    for source in sentinels:
        if (config := source.config) is None:
            yield f"{indent}  sentinel {source.id}: has faults"
        else:
            yield f"{indent}  sentinel {config.id}: {config.trigger.type}, {config.execution.strategy}, {config.model}"


def _masked(name: str, environ: Mapping[str, str]) -> str:
    """Enough to see which value it is likely to be, nothing of the value."""
    if not is_present(name, environ):
        return "not set"
    by = f"HANKWEAVE_{name}"
    given = environ.get(by)
    value = given or environ[name]
    return f"set (**** of length {len(value)}{f', by {by}' if given else ''})"


def _budget(budget: CodonBudget | ContainerBudget | None) -> str:
    given = budget.model_dump(exclude_none=True, by_alias=True) if budget is not None else {}
    shown = ", ".join(f"{name} {value}" for name, value in given.items())
    return f" (budget: {shown})" if shown else ""
