"""Files that end before they should, or that the system will not give."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hankwatch.core.errors import UsageError


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Reading ``path`` inside fails only with an error that people understand.

    Raises:
        UsageError: it cannot be read to its end: refused, gone, or a damaged gzip.
    """
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{path} cannot be read: {reason}", hint="record or copy it again") from error
