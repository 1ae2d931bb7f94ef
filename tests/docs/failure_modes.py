#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Checks that the tests in docs/internals/failure_modes.md exist and run.

    failure_modes.py ROOT           prints the findings
    failure_modes.py --self-test    checks that invalid pages have findings

A row is | number | failure | prevention | [name](file)<br>[name](file) |.
"""
import pathlib
import re
import sys
import tempfile

PAGE = "docs/internals/failure_modes.md"


def rows(text):
    """The number, the cells and the tests of each row."""
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split(" | ")]
        if line.startswith("|") and cells[0].isdigit():
            yield int(cells[0]), cells, re.findall(r"\[(\w+)\]\(([^)]+)\)", cells[-1])


def is_run(text, name):
    """Whether a file defines a test and also lists it."""
    defined = re.search(rf"^(?:static void|def) {name}\(", text, re.M)
    return bool(defined) and len(re.findall(rf"\b{name}\b", text)) > 1


def invalid_tests(root, number, tests):
    if not tests:
        yield f"row {number}: no test"
    for name, link in tests:
        path = (root / PAGE).parent / link
        if not path.is_file():
            yield f"row {number}: no such file: {link}"
        elif not is_run(path.read_text(encoding="utf-8"), name):
            yield f"row {number}: {link} does not run {name}"


def findings(root):
    found, numbers = [], []
    for number, cells, tests in rows((root / PAGE).read_text(encoding="utf-8")):
        if len(cells) != 4 or not all(cells):
            found.append(f"row {number}: expected 4 cells with text")
        numbers.append(number)
        found += invalid_tests(root, number, tests)
    if not numbers or numbers != list(range(1, len(numbers) + 1)):
        found.append(f"the rows are numbered {numbers}")
    return found


def findings_in(*lines):
    """The findings in a page with these lines, beside a suite that runs one of its two tests."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / PAGE).parent.mkdir(parents=True)
        (root / PAGE).write_text("\n".join(lines), encoding="utf-8")
        (root / "x_test.c").write_text(
            "static void listed(void **s)\nstatic void unlisted(void **s)\nCASE(listed),\n",
            encoding="utf-8")
        return "\n".join(findings(root))


def self_test():
    first = "| 1 | failure | prevention | [listed](../../x_test.c) |"
    assert findings_in(first) == "", findings_in(first)
    cases = [
        ([], "the rows are numbered []"),
        ([first, first], "the rows are numbered [1, 1]"),
        (["| 1 | failure | prevention | none |"], "row 1: no test"),
        (["| 1 | failure | [listed](../../x_test.c) |"], "row 1: expected 4 cells"),
        (["| 1 | a | b | [listed](../../y_test.c) |"], "row 1: no such file: ../../y_test.c"),
        (["| 1 | a | b | [missing](../../x_test.c) |"], "x_test.c does not run missing"),
        (["| 1 | a | b | [unlisted](../../x_test.c) |"], "x_test.c does not run unlisted"),
    ]
    for lines, expected in cases:
        assert expected in findings_in(*lines), f"'{expected}' is not in '{findings_in(*lines)}'"
    print(f"failure_modes: {len(cases)} of {len(cases)} invalid pages found")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found = findings(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(found + [f"failure_modes: {len(found)} findings"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
