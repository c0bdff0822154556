"""Runs a command for whom modes of files hold, whoever runs the tests. Run by path: PROGRAM ARGUMENT…

Root may read and enter everything by two capabilities. They are taken out of the set that a new program can have, so
the command is still the same user and owns the same files; for anybody else nothing changes.
"""

import ctypes
import os
import sys

_DROP_FROM_BOUNDING_SET = 24
_DAC_OVERRIDE, _DAC_READ_SEARCH = 1, 2

if __name__ == "__main__":
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
        if prctl(_DROP_FROM_BOUNDING_SET, capability, 0, 0, 0) and os.geteuid() == 0:
            sys.exit(f"modes cannot be made to hold for root: {os.strerror(ctypes.get_errno())}")
    os.execv(sys.argv[1], sys.argv[1:])
