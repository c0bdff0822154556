"""``python -m hankwatch.reference [--check]``."""

import sys

from hankwatch.reference.pages import stale, write


def main(arguments: list[str]) -> int:
    """Write the pages, or with ``--check`` say which are not fresh; the exit code."""
    if arguments == ["--check"]:
        old = stale()
        if old:
            print(f"not fresh: {', '.join(old)}; run `make docs`", file=sys.stderr)  # noqa: T201
        return 1 if old else 0
    for path in write():
        print(path)  # noqa: T201 - a tool for developers
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
