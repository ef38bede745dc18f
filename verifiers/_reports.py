"""What test runners report, as test name -> passed.

>>> tap("1..2\\nok 1 - adds\\nnot ok 2 - subtracts\\n")
{'adds': True, 'subtracts': False}
"""

import re
from xml.etree import ElementTree

MAX_BYTES = 8 << 20

_TAP = re.compile(r"^(not )?ok\b[ \t]*(\d+)?[ \t]*(?:-[ \t]*)?([^#\n]*?)[ \t]*(?:#[ \t]*(\w+).*)?$")


class ReportError(ValueError):
    """The report is missing its end, or is none."""


class OutOfTime(ReportError):
    """The session was ended by its time limit."""


def tap(text: str) -> dict[str, bool]:
    """Test Anything Protocol, versions 12 to 14. A skipped test has not passed, one marked TODO may fail."""
    found: dict[str, bool] = {}
    planned: int | None = None
    count = 0
    for line in text.splitlines():
        if line.startswith("Bail out!"):
            raise ReportError(line)
        if plan := re.match(r"^1\.\.(\d+)", line):
            planned = int(plan[1])
        elif match := _TAP.match(line):
            count += 1
            directive = (match[4] or "").upper()
            name = match[3].strip() or f"test {match[2] or count}"
            good = (match[1] is None or directive == "TODO") and directive != "SKIP"
            found[name] = good and found.get(name, True)
    if planned is None or planned != count:
        raise ReportError(f"{count} tests reported, {planned} planned")
    return found


def junit(xml: bytes) -> dict[str, bool]:
    """JUnit XML: `classname::name`, or the name alone. A skipped test has not passed; where a suite counts its tests, all must be there."""
    if len(xml) > MAX_BYTES or b"<!DOCTYPE" in xml or b"<!ENTITY" in xml:
        raise ReportError("the report is too large, or declares a document type")
    try:
        root = ElementTree.fromstring(xml)
    except ElementTree.ParseError as error:
        raise ReportError(f"not XML: {error}") from error
    found: dict[str, bool] = {}
    for suite in root.iter("testsuite"):
        count, cases = suite.get("tests", ""), len(list(suite.iter("testcase")))
        if count.isdecimal() and int(count) > cases:
            raise ReportError(f"{cases} tests reported, {count} counted")
    for case in root.iter("testcase"):
        prefix = case.get("classname") or ""
        name = f"{prefix}::{case.get('name', '')}" if prefix else case.get("name", "")
        good = all(case.find(kind) is None for kind in ("failure", "error", "skipped"))
        found[name] = good and found.get(name, True)
    return found
