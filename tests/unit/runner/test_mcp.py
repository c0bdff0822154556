"""``mcp`` where the agent program can be given no server."""

import json
from pathlib import Path

from tests.support.hanks import codon, hank

from hankwatch.hank.model import Hank
from hankwatch.runner.program_faults import program_faults


def test_a_program_that_takes_no_server_is_warned_of_and_others_are_not() -> None:
    agents = {"pi": "pi", "claude": "claude", "script": "exec:agent"}
    content = hank(*(codon(name, agent=agent, mcp=True) for name, agent in agents.items()), codon("plain", agent="pi"))
    faults = program_faults(Hank.model_validate_json(json.dumps(content)), hank_dir=Path("/"), model=None, agents={})
    assert [(fault.pointer, fault.code, fault.severity) for fault in faults] == [("/hank/0/mcp", "no-mcp", "warning")]
