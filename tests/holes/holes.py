#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Holds docs/holes.md to the tests that it names.

    holes.py ROOT           every row has tests that exist and are run; every test that is named
                            after a hole stands in its row
    holes.py --self-test    what is wrong is found

A row is | number | what goes wrong | what is done here | [name](file)<br>[name](file) |.
"""
import pathlib
import re
import sys
import tempfile

PAGE = "docs/holes.md"
HOLES = 23
NAMED = re.compile(r"^(?:static void|def) ((?:hole|mistake)_0*(\d+)_\w+)\(", re.M)


def rows(text):
    """Number, the three texts and the tests of each row."""
    for line in text.splitlines():
        cells = [c.strip() for c in line.strip().strip("|").split(" | ")]
        if line.startswith("|") and cells[0].isdigit():
            tests = re.findall(r"\[(\w+)\]\(([^)]+)\)", cells[-1])
            yield int(cells[0]), cells[1:], tests


def is_run(text, name):
    """Whether a suite defines a test and lists it; of a script, whether it has it in its list."""
    defined = re.search(rf"^(?:static void|def) {name}\(", text, re.M)
    return bool(defined) and len(re.findall(rf"\b{name}\b", text)) > 1


def wrong_tests(root, number, tests):
    if not tests:
        yield f"hole {number} has no test"
    for name, link in tests:
        path = (root / PAGE).parent / link
        if not path.is_file():
            yield f"hole {number}: there is no {link}"
        elif not is_run(path.read_text(encoding="utf-8"), name):
            yield f"hole {number}: {link} runs no {name}"


def not_listed(root, listed):
    """Tests that say that they are of a hole, in whose row they do not stand."""
    for folder in ("src", "tests"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".c", ".py") or path == pathlib.Path(__file__).resolve():
                continue
            for name, number in NAMED.findall(path.read_text(encoding="utf-8")):
                if name not in listed.get(int(number), ()):
                    yield f"{path.relative_to(root)}: {name} is not in its row of {PAGE}"


def findings(root):
    found, listed = [], {}
    for number, cells, tests in rows((root / PAGE).read_text(encoding="utf-8")):
        if len(cells) != 3 or not all(cells):
            found.append(f"hole {number} has an empty cell, or not four of them")
        if number in listed:
            found.append(f"hole {number} stands there twice")
        listed[number] = {name for name, _ in tests}
        found += wrong_tests(root, number, tests)
    if list(listed) != list(range(1, HOLES + 1)):
        found.append(f"the rows are {list(listed)}, not 1 to {HOLES}")
    return found + list(not_listed(root, listed))


def tried(change=lambda lines: lines, suite=""):
    """The findings of a small tree whose page is changed."""
    lines = [f"| {i} | bad | good | [it_{i}](../src/x_test.c) |" for i in range(1, HOLES + 1)]
    text = "".join(f"static void it_{i}(void **s)\nCASE(it_{i}),\n" for i in range(1, HOLES + 1))
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        (root / "src").mkdir()
        (root / PAGE).write_text("\n".join(change(lines)), encoding="utf-8")
        (root / "src/x_test.c").write_text(text + suite, encoding="utf-8")
        return "\n".join(findings(root))


def self_test():
    def third(new):
        return lambda lines: lines[:2] + new + lines[3:]
    assert tried() == "", tried()
    cases = [
        (tried(third([])), "the rows are"),
        (tried(lambda lines: lines + lines[-1:]), "hole 23 stands there twice"),
        (tried(third(["| 3 | bad | good | none |"])), "hole 3 has no test"),
        (tried(third(["| 3 | bad | [it_3](../src/x_test.c) |"])), "or not four of them"),
        (tried(third(["| 3 | bad | good | [it_3](../src/y_test.c) |"])), "there is no ../src/y"),
        (tried(third(["| 3 | bad | good | [it_99](../src/x_test.c) |"])), "runs no it_99"),
        (tried(third(["| 3 | bad | good | [only](../src/x_test.c) |"]),
               "static void only(void **s)\n"), "runs no only"),
        (tried(suite="static void hole_04_new(void **s)\n"), "hole_04_new is not in its row"),
    ]
    for found, wanted in cases:
        assert wanted in found, f"'{wanted}' is not in '{found}'"
    print(f"holes: {len(cases)} of {len(cases)} mistakes found")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    found = findings(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(found + [f"holes: {len(found)} findings"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
