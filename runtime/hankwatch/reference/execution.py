"""The page of an execution directory, from its layout."""

import inspect
from collections.abc import Sequence
from pathlib import Path

from hankwatch.reference.markdown import code, prose, table
from hankwatch.runner.archive import FOLDER as ARCHIVE_FOLDER
from hankwatch.runner.execution import DATA_FOLDER
from hankwatch.runner.layout import Layout

_OTHERS = (
    (".hankweave/runtime.lock", "Held by the process that writes; says which."),
    (".hankweave/sentinels/outputs/<id>/", "Reports with a bare name; others lie in the agent's workspace."),
    (".hankweave/sentinels/history/", "Conversations of sentinels, one file per sentinel and codon."),
    (".hankweave/checkpoints/", "The shadow git repository that checkpoints are kept in."),
    (".hankweave/archive-manifest.json", "What was archived, from where."),
    (f"{ARCHIVE_FOLDER}/", "Files that a codon was done with (`archiveOnSuccess`)."),
    (f"agentRoot/{DATA_FOLDER}/", "The data that `run` was given, for agents to read."),
)


def page() -> str:
    """Every file that a run makes, and what may be done with it."""
    layout = Layout(Path())
    return (
        "# An execution directory\n\n"
        "A run works in one directory: `--execution DIR`, else a new one below `run.execution_base_dir` "
        "(`~/.hankweave-executions`). The journal is the only truth: state, reports and pages are made from it, and "
        "can be made again. Everything below `.hankweave/` belongs to hankwatch.\n\n"
        + table(
            ("path", "holds"),
            sorted([*_of_layout(layout), *((code(path), said) for path, said in _OTHERS)], key=_by_folder),
        )
        + "`hankwatch runs` lists execution directories, `hankwatch sentinel rebuild RUN` writes reports anew, "
        "`hankwatch report RUN` the page. Delete a directory to forget its runs.\n"
    )


def _of_layout(layout: Layout) -> list[tuple[str, str]]:
    rows = []
    for name, member in inspect.getmembers_static(Layout):
        if name.startswith("_") or name == "root":
            continue
        if isinstance(member, property):
            path = getattr(layout, name)
        elif inspect.isfunction(member):
            path = member(layout, *(f"<{each}>" for each in list(inspect.signature(member).parameters)[1:]))
        else:
            continue
        rows.append((code(str(path)), prose(member.__doc__)))
    return rows


def _by_folder(row: Sequence[str]) -> str:
    return row[0].strip("`/")
