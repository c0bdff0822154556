"""What a run is asked for, and the hank, settings and folder that follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hankwatch.config.environment import is_present
from hankwatch.core.clock import Clock
from hankwatch.core.errors import ConfigError, UsageError
from hankwatch.hank.load import LoadedHank, load_hank
from hankwatch.runner.execution import executions, new_execution_dir
from hankwatch.settings import Flag, Settings, load_settings


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What to run, and where."""

    hank: Path
    """A hank.json, or the folder that holds one."""
    data: Path | None = None
    """What the agent may read."""
    execution: Path | None = None
    """The execution directory; None makes a new one under ``run.execution_base_dir``."""
    start_new: bool = False
    """Allow a further run in an execution that was used before."""
    model: str | None = None
    """Model of all codons instead of their own."""
    config: Path | None = None
    """Settings file instead of the one found."""
    max_cost_usd: float | None = None
    """Ceiling of the run instead of those of settings and hank, in US dollars."""
    max_time_s: float | None = None
    """Ceiling of the run instead of those of settings and hank, in seconds of agents' work."""
    resume: bool = False
    """Go on with the latest run of ``execution``, which was killed, was stopped or failed; None: where the hank ran last."""
    output: Path | None = None
    """Where output files of codons are copied to, instead of what settings say."""
    autostart: bool | None = None
    """Whether codons start by themselves; None leaves it to the settings."""
    wake: bool = False
    """Run only the turns that watches of ``execution`` ask for; ``hank`` is the one it was made from."""


def load_for_run(options: RunOptions, environ: Mapping[str, str]) -> tuple[LoadedHank, Settings]:
    """The hank and the settings that hold for it, refused with all their faults."""
    hank = load_hank(options.hank)
    if hank.config is None or hank.blocking:
        raise ConfigError(hank.blocking or hank.diagnostics.errors)
    flags = [
        Flag(name, value, flag)
        for name, value, flag in (
            ("run.model", options.model, "--model"),
            ("run.budget.max_dollars", options.max_cost_usd, "--max-cost"),
            ("run.budget.max_time_seconds", options.max_time_s, "--max-time"),
            ("run.output_dir", None if options.output is None else str(options.output), "--output"),
            ("run.autostart", options.autostart, "--no-autostart"),
        )
        if value is not None
    ]
    loaded = load_settings(
        environ=environ,
        cwd=Path.cwd(),
        hank_dir=hank.hank_dir,
        overrides=hank.config.overrides,
        config=options.config,
        flags=flags,
    )
    if not loaded.diagnostics.ok:
        raise ConfigError(loaded.diagnostics.errors)
    loaded.log_warnings()
    required = hank.config.requirements.env if hank.config.requirements else ()
    if missing := [name for name in required if not is_present(name, environ)]:
        raise UsageError(
            f"the hank needs the environment variables {', '.join(missing)}",
            hint=f"set each as it is, or as HANKWEAVE_{missing[0]}",
        )
    return hank, loaded.settings


def execution_dir(
    options: RunOptions, hank: LoadedHank, settings: Settings, environ: Mapping[str, str], clock: Clock
) -> Path:
    """Where the run happens: the directory that was named, the one to resume, or a new one; not made yet.

    Raises:
        UsageError: it is the hank's own folder, or there is nothing to resume.
    """
    if options.execution is not None:
        root = options.execution.resolve()
        if root == hank.hank_dir.resolve():
            raise UsageError(f"{root} is the hank's own folder, which no run writes to", hint="name another directory")
        return root
    base = base_dir(settings, environ)
    if not options.resume:
        return new_execution_dir(base, options.data, clock.now())
    path = str(hank.path.resolve())
    for execution in executions(base):
        if execution.meta.get("hankPath") == path:
            return execution.layout.root
    raise UsageError(f"nothing ran of {hank.path} under {base}", hint="--execution names where it ran")


def base_dir(settings: Settings, environ: Mapping[str, str]) -> Path:
    """The folder of all executions, ``~`` resolved against ``environ``.

    Raises:
        UsageError: there is no home directory.
    """
    configured = settings.run.execution_base_dir
    home = environ.get("HOME")
    if configured.startswith("~/") and home:
        return Path(home) / configured[2:]
    try:
        return Path(configured).expanduser()
    except RuntimeError as error:
        raise UsageError(
            f"run.execution_base_dir is {configured}: {error}", hint="set HOME, or write the path"
        ) from error


def output_dir(settings: Settings) -> Path | None:
    """Where output files of codons are copied; None when nowhere."""
    return Path(settings.run.output_dir).expanduser().resolve() if settings.run.output_dir else None
