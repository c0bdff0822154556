"""What an agent's end means: the published table over its result line, its flags, and its exit.

No single field decides. ``failed`` is a failure that somebody states; ``suspect`` is a success that
something else contradicts, and is no success. The rows of ``TABLE`` are tried in order, the first that
holds gives the status, and every row that holds is kept in ``Outcome.facts``, so both sides of a
contradiction can be read.

What counts as the result line, and what the programs exit with (as seen with the real ones):

=========  ===================================  ==========================================  ========  =======
program    result line                          says success when                           API dead  SIGTERM
=========  ===================================  ==========================================  ========  =======
claude     ``result``                           subtype success, no ``is_error``            1         143
codex      ``turn.completed``, ``turn.failed``  it is the first                             1         signal
gemini     ``result``                           status success, no ``error``                144, 145  **0**
qwen       ``result``                           always; its text then is an API error       **0**     signal
opencode   a ``step_finish`` without calls      there is one                                1         killed
pi         ``agent_end``                        the last stop reason is no error            **0**     143
copilot    ``result``                           its ``exitCode`` is 0, after SIGTERM too    1         signal
vibe       none                                 the exit is 0                               1, 2      3
openhands  the line ``Agent finished``          the agent had the last word                 **0**     signal
cline      ``run_result``                       finishReason completed                      1         killed
=========  ===================================  ==========================================  ========  =======

Besides vibe only our own envelope may lack one (a journal cut before ``codon.completed``); then the exit and
the last word decide. Bold is an exit that lies; killed are those that do not end within 5 s.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from hankwatch.agents import errors
from hankwatch.agents.signals import Result
from hankwatch.events.shapes import FailureReason

Status = Literal["success", "failed", "suspect"]

_API_ERROR = re.compile(r"\W{0,3}API Error\b")
_GOOD_ENDS = frozenset({"", "completed", "success", "stop", "end_turn"})


@dataclass(frozen=True, slots=True)
class Ending:
    """Everything known about how a turn ended."""

    result: Result | None
    """The last result line that counts."""
    exit_code: int | None
    """None when a signal ended the process."""
    signal: int | None = None
    """Its number."""
    states_result: bool = True
    """Whether the program has a result line at all (``Dialect.states_result``)."""
    problem: str = ""
    """A problem reported that nothing but the end came after."""
    had_session: bool = True
    context_exceeded: bool = False
    """The stream said that the context was full."""
    stderr: str = ""
    """The end of it; asked for a reason only when the stream has none."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended."""

    status: Status
    reason: FailureReason | None
    """None with ``success``."""
    facts: tuple[str, ...]
    """What the result and the exit said, then every row of the table that holds."""
    context_exceeded: bool = False
    """The context was full: what a loop may end on, and a codon with ``exhaustWithPrompt`` (reference 3.4)."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table."""

    fact: str
    """What holds, in words."""
    status: Status
    """What the turn then is, if no row above holds."""
    holds: Callable[[Ending], bool]


TABLE: tuple[Row, ...] = (
    Row("the result's word is not success", "failed", lambda e: e.result is not None and not e.result.success),
    Row("the result carries an error flag", "failed", lambda e: e.result is not None and e.result.is_error),
    Row("the result line is missing", "failed", lambda e: e.result is None and e.states_result),
    Row("only the exit tells, and it is not 0", "failed", lambda e: _is_mute(e) and e.exit_code != 0),
    Row("only the last word tells, and it is a problem", "failed", lambda e: _is_mute(e) and bool(e.problem)),
    Row("a signal ended the process", "suspect", lambda e: e.signal is not None),
    Row("the exit code is not 0", "suspect", lambda e: e.exit_code not in (0, None)),
    Row("the result's text is an API error", "suspect", lambda e: _is_api_error(e.result)),
    Row("the turn ended for another reason", "suspect", lambda e: _terminal_reason(e) not in _GOOD_ENDS),
    Row("the last word is a problem", "suspect", lambda e: e.result is not None and bool(e.problem)),
)
"""The table; a turn for which no row holds is a ``success``."""


def decide(ending: Ending) -> Outcome:
    """The table's verdict, with the facts of both sides and the reason of a failure."""
    rows = [row for row in TABLE if row.holds(ending)]
    facts = (_result_fact(ending.result), _exit_fact(ending), *(row.fact for row in rows))
    if not rows:
        return Outcome("success", None, facts, ending.context_exceeded)
    text = _failure_text(ending)
    reason = errors.classify(text, had_session=ending.had_session) if text else _unexplained(ending, rows)
    return Outcome(rows[0].status, reason, facts, ending.context_exceeded or errors.is_context_exceeded(text))


def _is_mute(ending: Ending) -> bool:
    return ending.result is None and not ending.states_result


def _is_api_error(result: Result | None) -> bool:
    return result is not None and _API_ERROR.match(result.text) is not None


def _terminal_reason(ending: Ending) -> str:
    return ending.result.terminal_reason if ending.result is not None else ""


def _result_fact(result: Result | None) -> str:
    if result is None:
        return "no result"
    flag = ", error flag" if result.is_error else ""
    reason = f", ended by {result.terminal_reason}" if result.terminal_reason else ""
    return f"result {result.subtype or ('success' if result.success else 'failure')}{flag}{reason}"


def _exit_fact(ending: Ending) -> str:
    return f"exit code {ending.exit_code}" if ending.signal is None else f"signal {ending.signal}"


def _failure_text(ending: Ending) -> str:
    result = ending.result
    # The answer of a successful result says nothing about why the turn is doubted.
    spoke = result is not None and (not result.success or result.is_error or _is_api_error(result))
    return (result.text if result is not None and spoke else "") or ending.problem or ending.stderr.strip()


def _unexplained(ending: Ending, rows: Sequence[Row]) -> FailureReason:
    """The reason where nobody gives one: that, or what the agent's word of success is doubted for."""
    if rows[0].status == "suspect" and ending.result is not None:
        doubt = f"the agent's result says success, but {'; '.join(row.fact for row in rows)} ({_exit_fact(ending)})"
        return errors.no_evidence(had_session=ending.had_session, message=doubt)
    return errors.no_evidence(had_session=ending.had_session)
