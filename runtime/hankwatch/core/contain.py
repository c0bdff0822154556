"""The one boundary between an observer's failure and the run (design rule 3)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hankwatch.core.errors import InfrastructureError


@contextmanager
def contain(report: Callable[[Exception], None]) -> Iterator[None]:
    """Run the body; hand any failure of it to ``report`` instead of letting it out.

    Infrastructure failures and cancellation (a ``BaseException``) pass: the first ends the run, the
    second must never be swallowed. ``report`` may be called at most once and must not raise.
    """
    try:
        yield
    except InfrastructureError:
        raise
    except Exception as error:  # noqa: BLE001 - the single place where any failure of an observer ends
        report(error)
