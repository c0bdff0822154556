"""Rules over several fields of a hank, one function each (reference 2.1-2.4, 2.6)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from hankwatch.config.scanner import escape
from hankwatch.config.shapes import close_to
from hankwatch.hank.budget import ContainerBudget
from hankwatch.hank.budget_rules import BUDGET_RULES
from hankwatch.hank.continuation import CONTINUATION_RULES
from hankwatch.hank.fault import Fault, Rule
from hankwatch.hank.model import Hank, Loop, refs
from hankwatch.hank.rig import CommandOperation, CopyOperation, RigOperation

_DANGEROUS = re.compile(
    r"\brm\s+(?:-\w+\s+)*-\w*[rR]\w*\s+(?:-\w+\s+)*(?:/|~|\$HOME|/\*)(?:\s|$)|\bmkfs\b|\bdd\b.*\bof=/dev/|:\(\)\s*\{"
    r"|\bchmod\s+-R\s+777\s+/(?:\s|$)|>\s*/dev/sd[a-z]"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUM_TOLERANCE = 1e-9


def prompt_is_given(hank: Hank) -> Iterator[Fault]:
    """A codon needs a prompt; with a file and a text, the file wins."""
    for pointer, codon in hank.codons():
        files = refs(codon.prompt_file)
        if not files and codon.prompt_text is None:
            yield Fault(pointer, "prompt-missing", f"codon {codon.id!r} has no prompt", "add promptFile or promptText")
        elif files and codon.prompt_text is not None:
            yield Fault(
                f"{pointer}/promptText", "prompt-twice", "is not used: promptFile wins", "keep one of them", "warning"
            )


def system_prompt_is_given_once(hank: Hank) -> Iterator[Fault]:
    """System prompts come from files or from text, not from both."""
    if hank.global_system_prompt_file is not None and hank.global_system_prompt_text is not None:
        yield Fault(
            "/globalSystemPromptText", "prompt-twice", "stands beside globalSystemPromptFile", "keep one of them"
        )
    for pointer, codon in hank.codons():
        if codon.append_system_prompt_file is not None and codon.append_system_prompt_text is not None:
            yield Fault(
                f"{pointer}/appendSystemPromptText",
                "prompt-twice",
                "stands beside appendSystemPromptFile",
                "keep one of them",
            )


def ids_are_unique(hank: Hank) -> Iterator[Fault]:
    """No id occurs twice in the file, loops and their codons included; ``#`` marks iterations."""
    seen: dict[str, str] = {}
    for pointer, name in _named(hank, "id"):
        if name in seen:
            yield Fault(
                f"{pointer}/id", "duplicate-id", f"the id {name!r} is already that of {seen[name]}", "choose another"
            )
        seen.setdefault(name, pointer)
        if "#" in name:
            yield Fault(f"{pointer}/id", "reserved-id", "'#' marks the iterations of a loop", "leave it out", "warning")


def names_are_unique(hank: Hank) -> Iterator[Fault]:
    """Two things of one name cannot be told apart in a view."""
    counts = Counter(name for _, name in _named(hank, "name"))
    seen: set[str] = set()
    for pointer, name in _named(hank, "name"):
        if name in seen and counts[name] > 1:
            yield Fault(f"{pointer}/name", "duplicate-name", f"{name!r} is used twice", "choose another", "warning")
        seen.add(name)


def retry_config_has_its_policy(hank: Hank) -> Iterator[Fault]:
    """``retryConfig`` means something only with ``onFailure: retry``."""
    for pointer, codon in hank.codons():
        if codon.retry_config is not None and codon.on_failure != "retry":
            yield Fault(
                f"{pointer}/retryConfig",
                "retry-config",
                f"has no effect with onFailure {codon.on_failure!r}",
                "set onFailure to 'retry', or remove it",
            )


def globs_stay_inside(hank: Hank) -> Iterator[Fault]:
    """Globs and paths below the workspace are relative and never climb."""
    for pointer, codon in hank.codons():
        yield from _climbing(f"{pointer}/checkpointedFiles", codon.checkpointed_files)
        yield from _climbing(f"{pointer}/archiveOnSuccess", codon.archive_on_success)
        for index, group in enumerate(codon.output_files):
            yield from _climbing(f"{pointer}/outputFiles/{index}/copy", group.copy_)
    for index, item in enumerate(hank.hank):
        if isinstance(item, Loop):
            yield from _climbing(f"/hank/{index}/archiveOnSuccess", item.archive_on_success)


def rig_targets_stay_inside(hank: Hank) -> Iterator[Fault]:
    """A rig copies into the execution directory, whose workspace is one folder of it."""
    for pointer, operation in _rig_operations(hank):
        if isinstance(operation, CopyOperation) and _leaves(operation.copy_.to, depth=1):
            yield Fault(
                f"{pointer}/copy/to",
                "rig-target",
                "leaves the execution directory",
                "name a target relative to the workspace",
            )


def rig_commands_are_harmless(hank: Hank) -> Iterator[Fault]:
    """A command that would destroy more than a workspace deserves a second look."""
    for pointer, operation in _rig_operations(hank):
        if isinstance(operation, CommandOperation) and _DANGEROUS.search(operation.command.run):
            yield Fault(
                f"{pointer}/command/run",
                "rig-dangerous",
                "may destroy what is outside the workspace",
                "narrow it down to paths of the workspace",
                "warning",
            )


def environment_names_are_valid(hank: Hank) -> Iterator[Fault]:
    """A variable's name is letters, digits and underscores; its value has no NUL."""
    for pointer, codon in hank.codons():
        for name, value in codon.env.items():
            where = f"{pointer}/env/{escape(name)}"
            if not _VARIABLE.fullmatch(name):
                yield Fault(where, "env-name", f"{name!r} is no name of a variable", "use letters, digits and '_'")
            if "\0" in value:
                yield Fault(where, "env-value", "contains a NUL character", "remove it")


def loop_codons_survive_failures(hank: Hank) -> Iterator[Fault]:
    """One failure inside a loop ends the whole run unless its codon or operation says otherwise."""
    for index, item in enumerate(hank.hank):
        if not isinstance(item, Loop):
            continue
        for inner, codon in enumerate(item.codons):
            pointer = f"/hank/{index}/codons/{inner}"
            if codon.on_failure == "abort":
                yield Fault(
                    pointer,
                    "loop-abort",
                    f"a failure of {codon.id!r} in any iteration ends the run",
                    "set onFailure to 'retry' or 'ignore' if the loop should go on",
                    "warning",
                )
            for number, operation in enumerate(codon.rig_setup):
                if not operation.allow_failure:
                    yield Fault(
                        f"{pointer}/rigSetup/{number}",
                        "loop-rig",
                        "runs in every iteration, and its failure fails the codon",
                        "set allowFailure when it may fail the second time",
                        "warning",
                    )


def shares_fit(hank: Hank) -> Iterator[Fault]:
    """Shares are parts of a dollar limit among children that exist."""
    if hank.overrides and hank.overrides.budget:
        yield from _share_faults("/overrides/budget", hank.overrides.budget, [item.id for item in hank.hank])
    for index, item in enumerate(hank.hank):
        if isinstance(item, Loop) and item.budget:
            yield from _share_faults(f"/hank/{index}/budget", item.budget, [codon.id for codon in item.codons])


RULES: tuple[Rule, ...] = (
    prompt_is_given,
    system_prompt_is_given_once,
    ids_are_unique,
    names_are_unique,
    retry_config_has_its_policy,
    globs_stay_inside,
    rig_targets_stay_inside,
    rig_commands_are_harmless,
    environment_names_are_valid,
    loop_codons_survive_failures,
    shares_fit,
)
"""Rules about one codon, loop or budget, or about names."""
NEIGHBOUR_RULES: tuple[Rule, ...] = (*CONTINUATION_RULES, *BUDGET_RULES)
"""Rules about a codon and what stands around it."""


def _named(hank: Hank, field: str) -> Iterator[tuple[str, str]]:
    for index, item in enumerate(hank.hank):
        yield f"/hank/{index}", getattr(item, field)
        for inner, codon in enumerate(item.codons if isinstance(item, Loop) else ()):
            yield f"/hank/{index}/codons/{inner}", getattr(codon, field)


def _rig_operations(hank: Hank) -> Iterator[tuple[str, RigOperation]]:
    for pointer, codon in hank.codons():
        for index, operation in enumerate(codon.rig_setup):
            yield f"{pointer}/rigSetup/{index}", operation


def _climbing(pointer: str, globs: Sequence[str]) -> Iterator[Fault]:
    for index, glob in enumerate(globs):
        if ".." in PurePosixPath(glob).parts or glob.startswith("/"):
            yield Fault(
                f"{pointer}/{index}",
                "path-outside",
                f"{glob!r} leaves the workspace",
                "write it relative, without '..'",
            )


def _leaves(target: str, *, depth: int) -> bool:
    """Does a path seen from ``depth`` folders below a root leave that root at any step?"""
    if target.startswith("/") or "\\" in target or "\0" in target:
        return True
    for part in target.split("/"):
        depth += {"..": -1, ".": 0, "": 0}.get(part, 1)
        if depth < 0:
            return True
    return False


def _share_faults(pointer: str, budget: ContainerBudget, children: Sequence[str]) -> Iterator[Fault]:
    if budget.shares and not budget.proportional:
        yield Fault(
            f"{pointer}/shares",
            "shares-allocation",
            "have no effect with a shared pool",
            "set allocation to 'proportional' or 'proportional-strict'",
        )
    if budget.proportional and budget.max_dollars is None:
        yield Fault(pointer, "shares-limit", "a proportional allocation needs maxDollars", "add maxDollars")
    for name in budget.shares or {}:
        if name not in children:
            meant = close_to(name, children)
            yield Fault(
                f"{pointer}/shares/{escape(name)}",
                "shares-unknown",
                f"{name!r} is no child here",
                f"did you mean {meant!r}?" if meant else f"children: {', '.join(children)}",
            )
    total = sum((budget.shares or {}).values())
    if total > 1 + _SUM_TOLERANCE:
        yield Fault(f"{pointer}/shares", "shares-sum", f"add up to {total:g}", "let them add up to at most 1")
