"""A hank at a glance: its codons, their sentinels, limits and needs, as ``validate`` shows them."""

from collections.abc import Iterable, Iterator, Mapping

from hankwatch.config.environment import is_present
from hankwatch.hank.budget import CodonBudget, ContainerBudget
from hankwatch.hank.load import LoadedHank
from hankwatch.hank.model import Codon, Hank, Loop
from hankwatch.llm.catalog import ModelCatalog
from hankwatch.llm.facts import model_facts
from hankwatch.sentinels.source import SentinelSource


def structure(loaded: LoadedHank, environ: Mapping[str, str]) -> Iterator[str]:
    """Lines for people; none when hank.json itself has faults."""
    hank = loaded.config
    if hank is None:
        return
    for item in hank.hank:
        if isinstance(item, Loop):
            until = item.terminate_on
            times = f"{until.limit} times" if until.type == "iterationLimit" else "until the context is full"
            yield f"loop {item.id}: {times}{_budget(item.budget)}"
            for codon in item.codons:
                yield from _codon(codon, hank, loaded.sentinels.get(codon.id, ()), indent="  ")
        else:
            yield from _codon(item, hank, loaded.sentinels.get(item.id, ()))
    if hank.overrides is not None and (limits := _budget(hank.overrides.budget)):
        yield f"whole run{limits}"
    for name in hank.requirements.env if hank.requirements else ():
        yield f"needs {name}: {_masked(name, environ)}"


def models(sources: Iterable[SentinelSource], environ: Mapping[str, str]) -> Iterator[str]:
    """One line for each model that sentinels ask: is it known, has it a key, what does it cost."""
    catalog = ModelCatalog(environ)
    named = {source.config.model: None for source in sources if source.config is not None}
    for facts in (model_facts(model, catalog) for model in named):
        known = f"at {facts.base_url}" if facts.base_url else "known" if facts.known else "not known"
        key = f"key {facts.key}" if facts.key else f"no key ({' or '.join(facts.key_variables)})"
        price = facts.price
        cost = "price unknown" if price is None else f"${price.input_usd:g} in, ${price.output_usd:g} out per M tokens"
        window = f"window {facts.context_tokens:,} tokens" if facts.context_tokens is not None else None
        yield f"model {facts.model}: " + ", ".join(
            filter(None, (known, key if facts.key_variables else "needs no key", cost, window))
        )


def _codon(codon: Codon, hank: Hank, sentinels: tuple[SentinelSource, ...], indent: str = "") -> Iterator[str]:
    model = hank.overrides.model if hank.overrides and hank.overrides.model else codon.model
    agent = codon.agent.name if codon.agent is not None and not isinstance(codon.agent, str) else codon.agent
    yield f"{indent}codon {codon.id}: {model}{f' by {agent}' if agent else ''}{_budget(codon.budget)}"
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
