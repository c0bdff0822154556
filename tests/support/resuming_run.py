"""Goes on with the run of an execution directory, or starts one there. Run by path: HANK ROOT."""

import os
import sys
from pathlib import Path

import anyio

from hankwatch.app import open_run
from hankwatch.options import RunOptions


async def main(hank: Path, root: Path) -> bool:
    async with open_run(RunOptions(hank, execution=root, resume=True), environ=os.environ) as live:
        return (await live.carry_out()).success


if __name__ == "__main__":
    sys.exit(0 if anyio.run(main, Path(sys.argv[1]), Path(sys.argv[2])) else 1)
