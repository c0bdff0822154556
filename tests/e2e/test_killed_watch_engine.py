"""kill -9 of ``hankwatch watch engine`` on PostgreSQL: another one goes on, and the session is woken once (spec watches 8, 2)."""

import json
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.hanks import codon
from tests.support.runs import stand_in, until, write_hank
from tests.support.watch_stores import store_url

from hankwatch.watches.database import Database
from hankwatch.watches.delivery import Channel
from hankwatch.watches.outbox import Outbox
from hankwatch.watches.store import WatchStore

GOOD = (
    ["line", {"type": "system", "subtype": "init", "session_id": "s-1"}],
    ["line", {"type": "result", "subtype": "success", "is_error": False, "result": "Done."}],
    ["until_eof"],
)


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_an_engine_that_is_killed_at_a_fire_is_followed_by_one_that_wakes_the_session_once(
    cli: Cli, tmp_path: Path
) -> None:
    agent, root = stand_in(cli.home / "agent", *GOOD), cli.home / "execution"
    env = {name: value for name, value in agent.environ.items() if name not in {"HOME", "LANG"}}
    assert cli("run", write_hank(cli.cwd / "hank", codon()), "-e", root, "--headless", env=env).code == 0
    with store_url("postgresql", tmp_path) as url:
        env["HANKWATCH_WATCHES_STORE"] = url
        woken = ("--session", "one", "--prompt", "Run the smoke test.", "--home", root, "--id", "deploy")
        done = ("--condition", "the deploy is done", "--command", "echo v1.2.3")
        assert cli("watch", "create", *done, *woken, env=env).code == 0
        database = Database(url)
        try:
            with cli.start("watch", "engine", "--json", root, env=env) as killed:
                until(lambda: bool(Outbox(database).find(watch_id="deploy", channel=Channel.WAKE)))
                killed.kill()
            with cli.start("watch", "engine", "--json", root, env=env) as engine:
                try:
                    wakes = Outbox(database).find
                    until(lambda: [one.status for one in wakes(channel=Channel.WAKE)] == ["delivered"])
                    until(lambda: told(root).count("codon.completed session:one") == 1)
                finally:
                    engine.terminate()
                    engine.communicate(timeout=15)
            ended = WatchStore(database).get("deploy")
        finally:
            database.close()

    assert ended is not None
    assert (ended.end_reason, ended.fire_count, ended.check_count) == ("satisfied", 1, 1)
    assert told(root).count("info wake") == 1
    assert told(root).count("watch.met") == 1
    assert len(agent.calls()) == 2


def told(root: Path) -> list[str]:
    """The journal's events, as their type and what tells those of interest apart."""
    events = map(json.loads, (root / ".hankweave/events/events.jsonl").read_text(encoding="utf-8").splitlines())
    detail = {"codon.completed": "codonId", "info": "code"}
    return [f"{one['type']} {one['data'].get(detail.get(one['type'], ''), '')}".strip() for one in events]
