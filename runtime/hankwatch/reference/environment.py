"""The page of the environment variables, from the settings and what agents are given."""

from hankwatch.config.environment import COMMON_NAMES, COMMON_PREFIXES
from hankwatch.reference.markdown import code, prose, table
from hankwatch.settings import NOT_SETTINGS, variables

_OTHERS = (
    ("HANKWEAVE_SENTINEL_<KEY>", "A key for the sentinels' models alone; wins over `<KEY>`."),
    ("<PROVIDER>_API_KEY", "A provider's key, under the name the provider itself uses: `ANTHROPIC_API_KEY`, …"),
    (
        "HANKWEAVE_SENTINEL_<PROVIDER>_API_BASE",
        "Where that provider's models are called; wins over `<PROVIDER>_API_BASE`.",
    ),
    (
        "<PROVIDER>_API_BASE",
        "The same; the model registry and the price table are then not asked, and no key is needed.",
    ),
    ("HANKWEAVE_X", "Reaches agents, rig commands and `beforeCopy` as `X`; the value `unset` removes `X` there."),
    ("NO_COLOR", "No colours."),
    ("XDG_CONFIG_HOME", "Where the user's `hankwatch/hankwatch.toml` lies; else `~/.config`."),
    ("GITHUB_STEP_SUMMARY", "Where `check --github` writes its table; GitHub sets it."),
)


def page() -> str:
    """Every variable that is read, and every one that children are given."""
    rows = [(code(name), code(".".join(setting))) for name, setting in sorted(variables().items())]
    ours = [row for row in rows if row[0].startswith("`HANKWATCH_")]
    old = [row for row in rows if not row[0].startswith("`HANKWATCH_")]
    names = ", ".join(code(name) for name in sorted(COMMON_NAMES))
    prefixes = " and ".join(code(f"{prefix}*") for prefix in COMMON_PREFIXES)
    return (
        "# Environment variables\n\n## Settings\n\n"
        "Each [setting](settings.md) has a variable. Its value is text, JSON, or one of `yes`, `no`, `on`, `off`.\n\n"
        + table(("variable", "setting"), ours)
        + "Those of 0.10 are read too; ours win.\n\n"
        + table(("variable", "setting"), old)
        + "## Keys, addresses, surroundings\n\n"
        + table(("variable", "meaning"), [(code(name), said) for name, said in _OTHERS])
        + "## What programs are given\n\n"
        + "These begin with `HANKWATCH_` too and set nothing.\n\n"
        + table(("variable", "meaning"), [(code(name), prose(said)) for name, said in sorted(NOT_SETTINGS.items())])
        + f"Of your environment a program gets {names}, what begins with {prefixes}, the variables of its own "
        "provider, and every `HANKWEAVE_X` as `X`; then the codon's `env`. Nothing else.\n"
    )
