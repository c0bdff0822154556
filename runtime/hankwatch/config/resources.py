"""The files that ship with the package: stock sentinels, JSON Schemas, the demo."""

from functools import lru_cache
from pathlib import Path

PACKAGE = Path(__file__).parent.parent


def resource(*parts: str) -> Path:
    """The path of a shipped file or folder, as ``resource("fixtures", "demo", "hank.json")``.

    ``parts`` begin with ``sentinels``, ``schemas`` or ``fixtures``. Works from a wheel (which holds them under
    ``hankwatch/_data``) and from a checkout. Raises FileNotFoundError when it is not there.
    """
    path = _data_root().joinpath(*parts)
    if not path.exists():
        raise FileNotFoundError(f"{'/'.join(parts)} is not among the files that ship with hankwatch ({path})")
    return path


@lru_cache(maxsize=1)
def _data_root() -> Path:
    packed = PACKAGE / "_data"
    return packed if packed.is_dir() else PACKAGE.parent.parent
