"""``python -m hankwatch.reference [--check]``."""

import sys

from hankwatch.reference.pages import stale, write
from hankwatch.schemas import keep_fresh

if __name__ == "__main__":
    sys.exit(keep_fresh(sys.argv[1:], stale, write, "make docs"))
