"""Portable paths: what an author may write for a file, and reading it without surprises.

Rules (reference 2.6 "Strict refs", spec sentinels 1 "Files"): relative POSIX spelling, never above the hank
directory at any step, no symlink in any component below it, regular files only. The rules are checked when a
ref is resolved and again, on open descriptors, when it is read.
"""

import os
import re
import stat
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote

from hankwatch.core.errors import PathRefused

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Larger files are refused: no config or prompt is that large, and a device could be endless."""
_MAX_COMPONENT_BYTES = 255
_MAX_REF_BYTES = 4_096
_DRIVE = re.compile(r"[A-Za-z]:")


def check_ref(ref: str) -> str | None:
    """Why this spelling is refused, or None when it is a portable relative POSIX path.

    Says nothing about whether the path exists or climbs out of a folder; ``resolve_ref`` does.
    """
    spelling = (
        ("is empty", not ref.strip()),
        ("contains a NUL or another control character", any(ord(c) < 0x20 or ord(c) == 0x7F for c in ref)),
        ("contains a backslash; separators are '/'", "\\" in ref),
        ("is absolute; write it relative to the file it stands in", ref.startswith("/")),
        ("starts with a drive letter; write it relative to the file it stands in", bool(_DRIVE.match(ref))),
        ("starts with '~', which is not expanded; write it relative", ref.startswith("~")),
        ("contains characters that cannot be written as UTF-8", any(0xD800 <= ord(c) <= 0xDFFF for c in ref)),
    )
    for reason, refused in spelling:
        if refused:
            return reason
    parts = ref.split("/")
    if any("%" in part and unquote(part) in {".", ".."} for part in parts):
        return "hides '..' behind percent signs"
    if len(ref.encode()) > _MAX_REF_BYTES or any(len(part.encode()) > _MAX_COMPONENT_BYTES for part in parts):
        return f"is too long (a name has at most {_MAX_COMPONENT_BYTES} bytes)"
    return None


def resolve_ref(ref: str, *, base: Path, root: Path) -> Path:
    """The path that ``ref`` names, seen from ``base``; inside ``root``, free of symlinks below it.

    ``base`` is the directory of the file that holds the ref and must lie in ``root`` (the hank directory).
    The target need not exist. Raises ``PathRefused`` with the rule that was broken.
    """
    parts = _parts_below_root(ref, base=base, root=root)
    path = root
    for part in parts:
        path /= part
        if path.is_symlink():
            raise PathRefused(ref, f"goes through the symbolic link {part!r}; links are not followed")
    return path


def read_ref(ref: str, *, base: Path, root: Path) -> str:
    """The text of the regular file that ``ref`` names; BOM removed, line ends as a bare newline.

    Opens component by component without following links, and never waits for a FIFO or device. Raises
    ``PathRefused`` for a broken rule, a missing or unreadable file, one that is not UTF-8 or too large.
    """
    parts = _parts_below_root(ref, base=base, root=root)
    with ExitStack() as open_descriptors:
        fd = _open(ref, str(root), os.O_DIRECTORY, None, open_descriptors)
        for part in parts[:-1]:
            fd = _open(ref, part, os.O_DIRECTORY | os.O_NOFOLLOW, fd, open_descriptors)
        fd = _open(ref, parts[-1], os.O_NOFOLLOW | os.O_NONBLOCK, fd, open_descriptors)
        return _read_text(ref, fd)


def read_file(path: Path, *, shown_as: str | None = None) -> str:
    """Like ``read_ref`` for a file that the user named on the command line: links are followed.

    Raises ``PathRefused`` naming ``shown_as`` (default: the path).
    """
    name = shown_as or str(path)
    with ExitStack() as open_descriptors:
        return _read_text(name, _open(name, str(path), os.O_NONBLOCK, None, open_descriptors))


def _parts_below_root(ref: str, *, base: Path, root: Path) -> list[str]:
    fault = check_ref(ref)
    if fault is not None:
        raise PathRefused(ref, fault)
    parts = list(base.relative_to(root).parts)
    for part in ref.split("/"):
        if part == "..":
            if not parts:
                raise PathRefused(ref, "climbs above the hank directory; keep the file inside it")
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    if ref.endswith(("/", "/.", "/..")) or ref in {".", ".."} or not parts:
        raise PathRefused(ref, "names a directory, not a file")
    return parts


def _open(ref: str, name: str, flags: int, dir_fd: int | None, open_descriptors: ExitStack) -> int:
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | flags, dir_fd=dir_fd)
    except FileNotFoundError:
        raise PathRefused(ref, "does not exist") from None
    except (OSError, ValueError) as error:
        raise PathRefused(ref, _why_not_opened(name, dir_fd, error)) from None
    open_descriptors.callback(os.close, fd)
    return fd


def _why_not_opened(name: str, dir_fd: int | None, error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return str(error)
    try:
        mode = os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
    except OSError:
        mode = 0
    if stat.S_ISLNK(mode):
        return f"goes through the symbolic link {name!r}; links are not followed"
    return f"cannot be read: {error.strerror}"


def _read_text(ref: str, fd: int) -> str:
    facts = os.fstat(fd)
    if not stat.S_ISREG(facts.st_mode):
        raise PathRefused(ref, "is a directory" if stat.S_ISDIR(facts.st_mode) else "is not a regular file")
    if facts.st_size > MAX_FILE_BYTES:
        raise PathRefused(ref, f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
    try:
        with os.fdopen(os.dup(fd), encoding="utf-8-sig") as file:
            return file.read(MAX_FILE_BYTES)
    except UnicodeDecodeError as error:
        raise PathRefused(ref, f"is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise PathRefused(ref, f"cannot be read: {error.strerror}") from None
