"""``hankwatch report`` as a reviewer uses it."""

import json
import os
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.support.cli import Cli
from tests.support.stories import Story, eventful_story

from hankwatch.stream.lock import OwnerLock, lock_path


class Page(HTMLParser):
    """The ids of a page, where its links lead, what it loads, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.links: set[str] = set()
        self.tags: set[str] = set()
        self.policy = ""
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        values = {name: value or "" for name, value in attrs}
        if "id" in values:
            self.ids[values["id"]] += 1
        if tag == "a":
            self.links.add(values["href"])
        if values.get("http-equiv") == "Content-Security-Policy":
            self.policy = values["content"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_demos_report_lies_with_its_run_and_loads_nothing(cli: Cli) -> None:
    root = cli.demo()
    done = cli("report")
    assert done.code == 0, done.err
    (path,) = (root / ".hankweave" / "runs").glob("*/report.html")
    assert f"Report: {path}" in done.out
    page = Page(path)
    assert page.policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert page.tags.isdisjoint({"script", "img", "iframe", "object", "embed", "form", "base"})
    assert not re.search(r"url\((?!#)|@import|https?://", path.read_text(encoding="utf-8"))
    assert {"narrator", "error-streak", "tool-tally", "cost-window"} <= set(page.text.split())
    assert "Nothing needs attention" in page.text


def test_every_link_of_a_report_leads_somewhere_and_entries_and_events_are_linked_both_ways(
    looker: Cli, tmp_path: Path
) -> None:
    assert looker("report", "--out", tmp_path / "r.html").code == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(tmp_path / "r.html")
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert page.ids.most_common(1)[0][1] == 1
    shown = re.findall(r'<article class="(?:fire|event)[^"]*" id="([^"]+)">(.*?)</article>', text, re.DOTALL)
    links = {(here, there) for here, body in shown for there in re.findall(r'href="#((?:fire|event)-\d+)"', body)}
    between = {(here, there) for here, there in links if here.partition("-")[0] != there.partition("-")[0]}
    assert between
    assert between == {(there, here) for here, there in between}


def test_a_prompt_and_its_cost_stand_with_the_entry(cli: Cli, tmp_path: Path) -> None:
    story, calls = eventful_story()
    story.write(tmp_path / "run", calls)
    assert cli("report", tmp_path / "run", "--out", tmp_path / "r.html").code == 0
    text = Page(tmp_path / "r.html").text
    assert "These calls failed: make: *** [test] Error" in text
    assert "210 tokens in, 42 out" in text
    assert "overloaded (529)" in text


def test_markdown_goes_to_stdout_and_fits_a_comment(cli: Cli, tmp_path: Path) -> None:
    story, calls = eventful_story()
    story.write(tmp_path / "run", calls)
    done = cli("report", tmp_path / "run", "--markdown")
    assert done.code == 0
    assert done.err == ""
    assert done.out.startswith("### ❌ ")
    assert "| `build#1` | failed |" in done.out
    assert list((tmp_path / "run" / ".hankweave").glob("runs/*")) == []


def test_a_long_runs_markdown_still_fits(cli: Cli, tmp_path: Path) -> None:
    story = Story()
    story.begin()
    for n in range(70):
        for k in range(15):
            story.fire("build", f"sentinel-{n}", [story.say("build", "x" * 500)], f"entry {k} " + "y" * 3_000)
    story.write(tmp_path / "run")
    done = cli("report", tmp_path / "run", "--markdown")
    assert len(done.out) <= 60_001
    assert "further fires: `hankwatch report" in done.out
    assert done.out.rstrip().endswith("</sub>")


def test_json_says_what_programs_need(cli: Cli, tmp_path: Path) -> None:
    story, calls = eventful_story()
    story.write(tmp_path / "run", calls)
    said = cli("report", tmp_path / "run", "--json").json
    assert (said["outcome"], said["nudges"], said["interrupts"], said["unpricedCalls"]) == ("failed", 1, 1, 3)
    assert said["agentCost"] == {"usd": pytest.approx(0.1912), "complete": False}
    assert Path(said["report"]).exists()


def test_a_live_runs_report_says_that_it_still_runs(cli: Cli, tmp_path: Path) -> None:
    story = Story()
    story.begin()
    story.start_codon("build")
    root = story.write(tmp_path / "run")
    lock = OwnerLock.acquire(lock_path(root / ".hankweave" / "events" / "events.jsonl"))
    done = cli("report", root, "--out", tmp_path / "r.html")
    lock.release()
    assert "still running" in done.out
    assert "still running" in Page(tmp_path / "r.html").text


def test_a_journal_alone_gets_its_report_beside_the_reader(cli: Cli, fixtures: Path) -> None:
    done = cli("report", fixtures / "journals" / "recorded-0.10.events.jsonl")
    assert done.code == 0, done.err
    assert "Report: recorded-0.report.html" in done.out or "Report: recorded-0.10.report.html" in done.out


def test_an_agents_stream_is_refused_with_the_command_that_makes_a_journal(cli: Cli, fixtures: Path) -> None:
    done = cli.refused("report", fixtures / "agent-streams" / "claude-success.jsonl", code="usage")
    assert "hankwatch journal import" in done.err


def test_a_journal_without_a_readable_event_gets_no_report(cli: Cli, tmp_path: Path) -> None:
    Story().write(tmp_path / "run")
    (tmp_path / "run" / ".hankweave" / "events" / "events.jsonl").write_text('{"type": "info"\n' * 3)
    cli.refused("report", tmp_path / "run", code="usage")


def test_a_place_that_takes_no_file_is_named(looker: Cli, tmp_path: Path) -> None:
    done = looker.refused("report", "--out", tmp_path / "missing" / "r.html", code="usage")
    assert "missing/r.html cannot be written" in done.err


def test_what_is_no_file_is_not_replaced_by_one(looker: Cli, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path):
        done = looker.refused("report", "--out", place, code="usage")
        assert f"{place} is not a regular file" in done.err
    assert (tmp_path / "pipe").is_fifo()


def test_a_folder_that_the_agent_linked_elsewhere_is_not_written_to(cli: Cli, tmp_path: Path) -> None:
    story = Story()
    story.begin()
    root = story.write(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (root / ".hankweave" / "runs").symlink_to(tmp_path / "elsewhere")
    cli.refused("report", root, code="usage")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_call_log_that_is_no_file_costs_the_prompts_only(cli: Cli, tmp_path: Path) -> None:
    story, _ = eventful_story()
    root = story.write(tmp_path / "run")
    (root / ".hankweave" / "sentinels").mkdir()
    os.mkfifo(root / ".hankweave" / "sentinels" / "calls.jsonl")
    assert cli("report", root, "--out", tmp_path / "r.html").code == 0
    text = Page(tmp_path / "r.html").text
    assert "The call log could not be read" in text
    assert "The agent reads the tree, part by part." in text


def test_a_run_with_the_name_of_a_path_is_no_path(cli: Cli, tmp_path: Path) -> None:
    story = Story("../../../escaped")
    story.begin()
    root = story.write(tmp_path / "run")
    done = cli("report", root)
    assert done.code == 0, done.err
    assert [path.parent for path in tmp_path.rglob("*.html")] == [cli.cwd]


@pytest.mark.slow
def test_lines_that_are_too_deep_too_long_or_too_large_do_no_harm(cli: Cli, tmp_path: Path) -> None:
    story = Story()
    story.begin()
    large = story.call("build", "Bash", "\x1b[2J<script>alert(1)</script>\n" * 350_000)
    causes = [large]
    root = story.write(tmp_path / "run")
    journal = root / ".hankweave" / "events" / "events.jsonl"
    envelope = '{"id":"%s","timestamp":"2000-01-01T00:00:00.000Z","type":"info","data":{"message":%s}}\n'
    deep, long_number = "[" * 5_000 + "]" * 5_000, "9" * 5_000
    tail = Story()
    tail.fire("build", "narrator", causes, "\x1b]8;;https://example.com\x07click\x1b]8;;\x07")
    from hankwatch.events.codec import encode_line

    with journal.open("ab") as file:
        for name, value in (("deep", deep), ("number", long_number)):
            file.write((envelope % (name, value)).encode())
        ids = json.dumps(["deep", "number", large.id])
        file.write(
            b'{"id":"t","timestamp":"2000-01-01T00:00:01.000Z","type":"sentinel.triggered","data":{"codonId":"build",'
            b'"sentinelId":"odd","triggerNumber":1,"strategy":"count","eventCount":3,"queueSize":0,"eventIds":'
            + ids.encode()
            + b"}}\n"
        )
        file.writelines(map(encode_line, tail.events))
    for arguments, path in (
        (("--out", tmp_path / "r.html"), tmp_path / "r.html"),
        (("--markdown", "--out", tmp_path / "r.md"), tmp_path / "r.md"),
    ):
        done = cli("report", root, *arguments)
        assert done.code == 0, done.err
        text = path.read_text(encoding="utf-8")
        assert len(text) < 200_000
        assert "\x1b" not in text
        assert "\x9b" not in text
    html = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script" not in html
    assert "⟨ESC⟩]8;;" in html
    assert "999999" in html
