"""Reading JSON with positions (spec sentinels 1, bugs A5)."""

import os
from pathlib import Path

import pytest

from hankwatch.config.source import Document

TEXT = '{\n  "a": [1, {"b/c": true}],\n  "n": 5.0\n}'


def _faults(text: str) -> list[tuple[int | None, int | None, str]]:
    return [(f.line, f.column, f.message) for f in Document.parse(text, "f.json").faults]


def test_every_value_and_key_has_its_line_and_column() -> None:
    document = Document.parse(TEXT, "f.json")
    assert document.locate("") == (1, 1)
    assert document.locate("/a/1/b~1c") == (2, 20)
    assert document.locate("/a/1/b~1c", key=True) == (2, 13)
    assert document.locate("/a/0", key=True) == (2, 9)


def test_something_missing_is_located_at_what_is_around_it() -> None:
    assert Document.parse(TEXT, "f.json").locate("/a/1/zzz/0") == (2, 12)


def test_a_bom_and_crlf_are_accepted_and_leave_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "hank.json"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    document = Document.load(path)
    assert document.faults == ()
    assert document.value == {"a": [1, {"b/c": True}], "n": 5}
    assert document.locate("/n") == (3, 8)


def test_a_number_without_a_fraction_is_an_integer() -> None:
    assert isinstance(Document.parse("[5.0]", "f").value[0], int)
    assert Document.parse("[0.5]", "f").value == [0.5]


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ('{"a": 1,\n}', 1, 8, "trailing comma"),
        ("[1, // no\n2]", 1, 5, "comments are not JSON"),
        ('{"a": 1,\n "a": 2}', 2, 2, "'a' is given twice"),
        ("[NaN]", 1, 2, "no JSON number"),
        ("[1e999]", 1, 2, "too large"),
        ('["\\ud800"]', 1, 2, "surrogate"),
        ('{"a": 1 "b": 2}', 1, 9, "expected ',' or '}'"),
        ('{"a" 1}', 1, 6, "expected ':'"),
        ("['a']", 1, 2, "double quotes"),
        ('["a\nb"]', 1, 4, "control character"),
        ("[tru]", 1, 2, "expected a value"),
        ("[1] x", 1, 5, "ends here"),
        ("[1", 1, 3, "expected ','"),
        ("", 1, 1, "too early"),
        ("[" * 200, 1, 101, "nested deeper"),
    ],
)
def test_what_is_not_json_is_a_fault_with_its_place(text: str, line: int, column: int, says: str) -> None:
    ((found_line, found_column, message),) = _faults(text)
    assert (found_line, found_column) == (line, column)
    assert says in message


def test_faults_of_plain_meaning_do_not_stop_the_reading() -> None:
    document = Document.parse('{"a": [1,], /* x */ "b": NaN, "b": 2,}', "f")
    assert len(document.faults) == 5
    assert document.readable
    assert document.value == {"a": [1], "b": 2}


def test_after_a_fault_of_no_plain_meaning_there_is_no_value() -> None:
    document = Document.parse('{"a": 1 "b": 2}', "f")
    assert not document.readable
    assert document.value is None


def test_a_missing_file_is_a_fault_without_a_line(tmp_path: Path) -> None:
    document = Document.load(tmp_path / "nope.json", "nope.json")
    (fault,) = document.faults
    assert (fault.file, fault.line, fault.code) == ("nope.json", None, "file-unreadable")
    assert "does not exist" in fault.message


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (fault,) = Document.load(tmp_path / "pipe.json").faults
    assert "not a regular file" in fault.message


def test_bytes_that_are_not_utf8_are_a_fault(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_bytes(b'{"a": "\xff"}')
    (fault,) = Document.load(tmp_path / "f.json").faults
    assert "not UTF-8" in fault.message


def test_a_value_without_a_file_has_no_lines() -> None:
    document = Document.from_value({"a": [float("nan")]})
    assert document.locate("/a") is None
    assert [(f.pointer, f.line) for f in document.faults] == [("/a/0", None)]


def test_a_pointer_finds_its_value() -> None:
    document = Document.parse(TEXT, "f.json")
    assert document.at("/a/1/b~1c") is True
    with pytest.raises(KeyError):
        document.at("/a/7")
