"""Results as a JUnit file, which every CI reads: one suite, a test case for each check."""

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET  # only written here, never parsed

from hankwatch.bench.check.result import CheckResult

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold, not even escaped."""


def junit(results: Sequence[CheckResult]) -> bytes:
    """The document, UTF-8 with its declaration."""
    totals = {
        "tests": str(len(results)),
        "failures": str(sum(result.outcome == "failed" for result in results)),
        "errors": str(sum(result.outcome == "faulty" for result in results)),
        "skipped": "0",
        "time": f"{sum(result.duration_s for result in results):.3f}",
    }
    root = ET.Element("testsuites", {"name": "hankwatch check", **totals})
    suite = ET.SubElement(root, "testsuite", {"name": "hankwatch check", **totals})
    for result in results:
        _add(suite, result)
    ET.indent(root)
    return b'<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode").encode() + b"\n"


def _add(suite: ET.Element, result: CheckResult) -> None:
    folder, _, name = result.id.rpartition("/")
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": _clean(folder.replace("/", ".") or "checks"),
            "name": _clean(name),
            "file": _clean(str(result.path)),
            "time": f"{result.duration_s:.3f}",
        },
    )
    if result.outcome == "passed":
        return
    first = result.told[0] if result.told else None
    if first is not None and first.line is not None:
        case.set("line", str(first.line))
    tag = "failure" if result.outcome == "failed" else "error"
    message = first.message if first is not None else result.outcome
    wrong = ET.SubElement(case, tag, {"message": _clean(message), "type": result.outcome})
    wrong.text = _clean("\n".join(result.lines()))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
