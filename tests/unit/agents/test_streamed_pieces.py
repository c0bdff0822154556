"""Programs that print a message while it is written: the pieces, and the whole that repeats them."""

import pytest
from tests.support.agent_streams import NAMES, stream_lines

from hankwatch.agents.detect import DIALECTS, detect
from hankwatch.agents.signals import Spoke, Streamed

STREAMING = ("claude-partial", "copilot", "gemini", "pi")
RECORDED = tuple(name for name in NAMES if name.startswith(STREAMING))


@pytest.mark.parametrize("name", RECORDED)
def test_the_pieces_of_a_message_come_before_it_and_are_it(name: str) -> None:
    lines = list(stream_lines(name))
    program = detect(iter(lines))
    assert program is not None
    dialect = DIALECTS[program]()
    pieces = {"message": "", "thinking": ""}
    for signal in [signal for line in lines for signal in dialect.feed(line)] + dialect.finish():
        if isinstance(signal, Streamed):
            pieces[signal.kind] += signal.text
        elif isinstance(signal, Spoke) and signal.text and signal.parent is None:
            assert pieces[signal.kind] in ("", signal.text)
            pieces[signal.kind] = ""


def test_there_are_pieces_of_each_kind() -> None:
    kinds = set()
    for name in RECORDED:
        lines = list(stream_lines(name))
        dialect = DIALECTS[detect(iter(lines)) or ""]()
        kinds |= {
            (name.partition("-")[0], s.kind) for line in lines for s in dialect.feed(line) if isinstance(s, Streamed)
        }
    assert kinds == {
        *((program, "message") for program in ("claude", "copilot", "gemini", "pi")),
        *((program, "thinking") for program in ("claude", "copilot", "pi")),
    }
