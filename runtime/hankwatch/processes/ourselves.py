"""How this runtime starts another process of itself."""

import sys
from typing import Final

OURSELVES: Final = (sys.executable, "-P", "-c", "from hankwatch.cli.main import main; main()")
"""``hankwatch``, whatever is on PATH; its arguments follow. No module is taken from the folder it is started in, which
is an agent's."""
