"""The checks that come with hankwatch (spec watches 4)."""

from hankwatch.watches.shipped.ci import ci
from hankwatch.watches.shipped.judge import Judge, Purse, judge
from hankwatch.watches.shipped.states import RunFound, Runs, SessionStates, run_status, session_state

__all__ = ["Judge", "Purse", "RunFound", "Runs", "SessionStates", "ci", "judge", "run_status", "session_state"]
