"""What CI is told: JUnit, GitHub's commands and summary; text from events does no harm in any of them."""

import re
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from tests.support.checks import failed, held, texts

from hankwatch.bench.check.github import Commands, annotations, job_summary
from hankwatch.bench.check.judge import Miss
from hankwatch.bench.check.junit import junit
from hankwatch.bench.check.result import CheckResult, exit_code, summary, told_miss

HOSTILE = "\x1b]0;owned\x07\x1b[2J ]]> <script>&amp; ::error::x\n::set-env name=A::b\r##[add-mask]c %0A%0D ``` | \u202e \x00\ufffe"
CONTROLS = ("\x1b", "\x07", "\x00", "\u202e", "\ufffe")


def result(message: str = "it is wrong", *details: str, name: str = "fixtures/narrator") -> CheckResult:
    told = told_miss(Miss("/expect", message, details), f"{name}/check.json", 7)
    return CheckResult(name, Path(name, "check.json"), "failed", (told,), duration_s=1.25)


PASSED = CheckResult("fixtures/sweep", Path("fixtures/sweep/check.json"), "passed", fires=1, entries=1)
FAULTY = CheckResult("bad", Path("bad.check.json"), "faulty", result().told)


def test_junit_has_a_case_for_each_check_with_its_place_and_text() -> None:
    root = ET.fromstring(junit([PASSED, result("it is wrong", "| + a"), FAULTY]))
    (suite,) = root
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
    }
    passed, bad, faulty = suite
    assert (passed.get("classname"), passed.get("name"), list(passed)) == ("fixtures", "sweep", [])
    assert (bad.get("file"), bad.get("line"), bad.get("time")) == ("fixtures/narrator/check.json", "7", "1.250")
    assert (bad[0].tag, bad[0].get("message")) == ("failure", "it is wrong")
    assert bad[0].text == "  fixtures/narrator/check.json:7: it is wrong\n    | + a"
    assert faulty[0].tag == "error"


@given(st.text(st.characters(codec=None), max_size=40) | st.just(HOSTILE))
def test_junit_is_xml_whatever_the_text(text: str) -> None:
    shown = result(text, text, name="x")
    (case,) = ET.fromstring(junit([shown]))[0]
    assert case[0].text == "\n".join(shown.lines())


@given(st.text(st.characters(codec=None), max_size=40) | st.just(HOSTILE))
def test_an_annotation_is_one_line_that_says_the_same(text: str) -> None:
    shown = result(text, f"| {text}", name="a,b:c%")
    (line,) = annotations([shown], {})
    assert not re.search(r"[\r\n]", line)
    command, _, said = line.removeprefix("::").partition("::")
    assert unquote(said, errors="strict") == "\n".join((shown.told[0].message, *shown.told[0].details))
    kind, _, properties = command.partition(" ")
    values = {name: unquote(value) for name, value in (one.split("=") for one in properties.split(","))}
    assert (kind, values) == ("error", {"file": "a,b:c%/check.json", "line": "7", "title": "check a,b:c%"})


def test_an_annotation_names_the_file_as_the_checkout_does(tmp_path: Path) -> None:
    here = result(name=str(tmp_path / "repo" / "a"))
    (line,) = annotations([here], {"GITHUB_WORKSPACE": str(tmp_path / "repo")})
    assert line.startswith("::error file=a/check.json,line=7,")
    (line,) = annotations([here], {"GITHUB_WORKSPACE": "/elsewhere"})
    assert f"file={tmp_path}/repo/a/check.json," in line


def test_an_annotation_of_many_lines_is_cut() -> None:
    (line,) = annotations([result("wrong", *map(str, range(50)))], {})
    assert line.endswith("%0A19%0A… 30 more lines")


def test_commands_are_stopped_with_a_word_that_no_text_can_know() -> None:
    one, other = Commands(), Commands()
    assert one.stop == f"::stop-commands::{one.resume.strip(':')}"
    assert one.stop != other.stop


def test_the_summary_is_a_table_and_what_is_wrong() -> None:
    page = job_summary([PASSED, result("it is wrong", "| + ````"), FAULTY])
    assert page.startswith("### 3 checks: 1 passed, 1 failed, 1 faulty\n")
    assert "| ✅ | fixtures/sweep | 1 | 1 | 0.0 s |" in page
    assert "`````text\n  fixtures/narrator/check.json:7: it is wrong\n    | + ````\n`````" in page
    assert len(job_summary([result("x" * 3_000_000)])) <= 900_000


def test_a_name_is_no_markup_of_the_summary() -> None:
    page = job_summary([result(name="a|b<script>`x`\nc")])
    assert "| ❌ | a\\|b\\<script\\>\\`x\\` c |" in page


async def test_nothing_that_a_terminal_or_a_runner_obeys_gets_through(tmp_path: Path) -> None:
    expect = {"reports": {"it": [{"equals": "x", "entry": 1}, {"equalsFile": "golden"}]}}
    (tmp_path / "golden").write_text("expected")
    shown = await held(tmp_path, expect, it=texts(HOSTILE), **{HOSTILE: failed(HOSTILE)})
    lines = list(shown.lines())
    assert len(shown.told) == 3
    for control in (*CONTROLS, "\r", "\n"):
        assert not any(control in line for line in lines)
    assert not any(line.strip().startswith("::") for line in lines)


def test_the_exit_code_is_that_of_the_worst() -> None:
    assert [exit_code(some) for some in ([PASSED], [PASSED, result()], [result(), FAULTY, PASSED])] == [0, 1, 2]
    assert summary([PASSED]) == "1 check: 1 passed"
