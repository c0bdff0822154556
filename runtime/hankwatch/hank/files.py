"""Everything on disk that a codon names: prompts, rig sources, recorded agents (reference 2.6)."""

import posixpath
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from hankwatch.config.refs import read_ref, resolve_ref
from hankwatch.core.errors import PathRefused
from hankwatch.hank.fault import Fault
from hankwatch.hank.model import Codon, Refs
from hankwatch.hank.rig import CopyOperation

RECORDED = "recorded:"
_LARGE_PROMPT_BYTES = 1024 * 1024


def codon_files(codon: Codon, pointer: str, hank_dir: Path) -> Iterator[Fault]:
    """Faults of the files that one codon names; sentinels have their own loader."""
    yield from prompt_files(codon.prompt_file, f"{pointer}/promptFile", hank_dir)
    yield from prompt_files(codon.append_system_prompt_file, f"{pointer}/appendSystemPromptFile", hank_dir)
    if not codon.prompt_file and codon.prompt_text is not None:
        yield from _weigh(codon.prompt_text, f"{pointer}/promptText")
    for index, operation in enumerate(codon.rig_setup):
        if isinstance(operation, CopyOperation):
            yield from _rig_source(operation.copy_.source, f"{pointer}/rigSetup/{index}/copy/from", hank_dir)
    if isinstance(codon.agent, str) and codon.agent.startswith(RECORDED):
        yield from _recording(codon.agent.removeprefix(RECORDED), f"{pointer}/agent", hank_dir)


def prompt_files(files: Refs | None, pointer: str, hank_dir: Path) -> Iterator[Fault]:
    """Faults of one field that names prompt files."""
    named = [(pointer, files)] if isinstance(files, str) else enumerate_refs(pointer, files)
    for where, ref in named:
        try:
            text = read_ref(ref, base=hank_dir, root=hank_dir)
        except PathRefused as refused:
            yield _unreadable(where, refused)
        else:
            yield from _weigh(text, where)


def enumerate_refs(pointer: str, files: tuple[str, ...] | None) -> list[tuple[str, str]]:
    """Each ref of a list with its own pointer."""
    return [(f"{pointer}/{index}", ref) for index, ref in enumerate(files or ())]


def recording(agent: str, hank_dir: Path) -> Path:
    """The file or folder that ``recorded:PATH`` names: an absolute path as it is, else a ref below the hank directory.

    Raises ``PathRefused`` for a ref that the path rules do not allow.
    """
    named = agent.removeprefix(RECORDED)
    return Path(named) if named.startswith("/") else resolve_ref(named, base=hank_dir, root=hank_dir)


def recorded_turns(folder: Path) -> tuple[Path, ...]:
    """The files of a recorded session, one for each turn: ``1.jsonl``, ``2.jsonl`` …; names without a number are none.

    Raises ``PathRefused`` for a folder with a turn missing or twice, without any, or that cannot be read.
    """
    try:
        numbered = [(path.name.partition(".")[0], path) for path in folder.iterdir() if path.is_file()]
    except OSError as error:
        raise PathRefused(str(folder), f"cannot be read: {error.strerror}") from error
    turns = sorted((int(number), path) for number, path in numbered if re.fullmatch(r"[0-9]{1,6}", number))
    if not turns or [number for number, _ in turns] != list(range(1, len(turns) + 1)):
        raise PathRefused(str(folder), "is no recorded session: one file for each turn is wanted, 1.jsonl, 2.jsonl …")
    return tuple(path for _, path in turns)


def _weigh(text: str, pointer: str) -> Iterator[Fault]:
    if not text.strip():
        yield Fault(pointer, "prompt-empty", "the prompt is empty", "write what the agent should do", "warning")
    elif len(text.encode(errors="replace")) > _LARGE_PROMPT_BYTES:
        yield Fault(
            pointer,
            "prompt-large",
            "the prompt is larger than 1 MiB, more than most models read",
            "let the agent read the data as files",
            "warning",
        )


def _recording(named: str, pointer: str, hank_dir: Path) -> Iterator[Fault]:
    try:
        path = recording(named, hank_dir)
        if path.is_dir():
            recorded_turns(path)
        elif not path.is_file():
            yield _unreadable(pointer, PathRefused(named, "is neither a file nor a folder that exists"))
    except PathRefused as refused:
        yield _unreadable(pointer, refused)


def _rig_source(ref: str, pointer: str, hank_dir: Path) -> Iterator[Fault]:
    try:
        if posixpath.normpath(ref) == ".":
            raise PathRefused(ref, "is the hank directory itself; name a folder or file in it")  # noqa: TRY301
        source = resolve_ref(ref.rstrip("/"), base=hank_dir, root=hank_dir)
        for path in (source, *(source.rglob("*") if source.is_dir() else ())):
            _require_copyable(ref, path)
    except PathRefused as refused:
        yield _unreadable(pointer, refused)
    except OSError as error:
        yield _unreadable(pointer, PathRefused(ref, f"cannot be read: {error.strerror}"))


def _require_copyable(ref: str, path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        raise PathRefused(ref, "does not exist") from None
    if stat.S_ISLNK(mode):
        raise PathRefused(ref, f"holds the symbolic link {path.name!r}; links are not copied")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise PathRefused(ref, f"holds {path.name!r}, which is neither a file nor a folder")


def _unreadable(pointer: str, refused: PathRefused) -> Fault:
    return Fault(pointer, "file-unreadable", str(refused).replace("': ", "' ", 1))
