"""The results of tests as JUnit XML, which build servers read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from streamlog.app.ruletest import Results, Suite
from streamlog.app.verdicts import render_problems, render_refusal

# What XML 1.0 has no way to write.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(path: Path, results: Sequence[Results]) -> None:
    root = Element("testsuites", name="streamlog")
    for found in results:
        suite = found.suite
        tests = SubElement(root, "testsuite", name=_clean(suite.path))
        for verdict in found.verdicts:
            case = _case(tests, suite, verdict.test.name, verdict.seconds)
            if not verdict.passed:
                message = "; ".join(p.message for p in verdict.problems)
                failure = SubElement(case, "failure", message=_clean(message))
                failure.text = _clean(render_problems(verdict).plain)
        if found.refusal:
            case = _case(tests, suite, "the program compiles", 0)
            message = "; ".join(d.message for d in found.refusal)
            error = SubElement(case, "error", message=_clean(message))
            error.text = _clean(render_refusal(found.refusal).plain)
        _count(tests, sum(v.seconds for v in found.verdicts))
    _count(root, sum(v.seconds for found in results for v in found.verdicts))
    indent(root)
    ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _case(tests: Element, suite: Suite, name: str, seconds: float) -> Element:
    place = {"classname": _clean(suite.path), "name": _clean(name), "time": f"{seconds:.3f}"}
    return SubElement(tests, "testcase", place)


def _count(element: Element, seconds: float) -> None:
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        element.set(name, str(sum(1 for _ in element.iter(tag))))
    element.set("time", f"{seconds:.3f}")


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
