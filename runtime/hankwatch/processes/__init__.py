"""Child processes as owned trees, their output as lines of any length."""

from hankwatch.processes.child import Child, Exit, spawn
from hankwatch.processes.lines import Line, LineSplitter, Stub
from hankwatch.processes.tree import MARKER, kill_marked, marked_pids

__all__ = ["MARKER", "Child", "Exit", "Line", "LineSplitter", "Stub", "kill_marked", "marked_pids", "spawn"]
