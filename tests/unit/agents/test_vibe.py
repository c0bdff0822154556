"""What the recorded streams of vibe do not show."""

from typing import Any

import pytest
from tests.support.dialects import fed, results

from hankwatch.agents.vibe import VibeDialect


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        ({"status": "completed", "display": {"success": True}}, "ok"),
        ({"status": "completed", "display": {"success": False}}, "error"),
        ({"status": "failed", "display": {"success": False}}, "error"),
        ({"status": "cancelled", "display": {"success": False}}, "cancelled"),
        ({"status": "skipped", "display": {"success": False}}, "denied"),
    ],
)
def test_vibe_outcome_comes_from_state_and_display(state: dict[str, Any], outcome: str) -> None:
    line = {"type": "effect", "id": "e", "detail": {"toolName": "bash", "kind": "shell"}, "state": state}
    [result] = results(fed(VibeDialect(), line))
    assert (result.outcome, result.is_error) == (outcome, outcome != "ok")
