#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Checks that every file, folder and function() named in ARCHITECTURE.md and in the README of a
folder of src/ exists.

    names.py ROOT         checks the pages
    names.py --self-test  checks that a wrong name of each kind is found
"""
import os
import re
import sys
import tempfile
from pathlib import Path

SKIP = {".git", "build", "node_modules", "__pycache__"}
CODE = {".c", ".h", ".def", ".py", ".ts", ".tsx", ".mjs"}
FILE = re.compile(r"[\w./-]+\.(?:c|h|def|py|tsx?|mjs|md|ya?ml|cmake|fsm|worker|html|css|js|json)")
FOLDER = re.compile(r"(?:src|tests|include|docs|bench|examples|cmake|scripts|packaging)/[\w./-]*")
FUNCTION = re.compile(r"(\w+)\(\)")


def files_of(root):
    for folder, folders, names in os.walk(root):
        folders[:] = set(folders) - SKIP
        for name in names:
            yield (Path(folder) / name).relative_to(root)


def is_page(path):
    return path == Path("ARCHITECTURE.md") or (path.parts[0] == "src" and path.name == "README.md")


def check(root):
    """Returns the wrong names, each with its place."""
    files = set(files_of(root))
    ends = {"/".join(path.parts[-n:]) for path in files for n in range(1, len(path.parts) + 1)}
    folders = {str(parent) for path in files for parent in path.parents}
    code = "\n".join(
        (root / path).read_text(errors="replace") for path in files if path.suffix in CODE
    )
    functions = set(re.findall(r"\b\w+(?=\()", code))
    findings = []
    for page in sorted(filter(is_page, files)):
        for number, line in enumerate((root / page).read_text().splitlines(), 1):
            for word in re.findall(r"`([^`]+)`", line):
                function = FUNCTION.fullmatch(word)
                wrong = (
                    (function and function[1] not in functions)
                    or (FILE.fullmatch(word) and word not in ends)
                    or (
                        FOLDER.fullmatch(word)
                        and not FILE.fullmatch(word)
                        and word.rstrip("/") not in folders | ends
                        and str(page.parent / word.rstrip("/")) not in folders
                    )
                )
                if wrong:
                    findings.append(f"{page}:{number}: there is no {word}")
    return findings


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "src/base").mkdir(parents=True)
        (root / "src/base/map.c").write_text("int det_map_get(void);\n")
        good = "`src/base/map.c` `map.c` `src/base/` `det_map_get()`\n"
        (root / "src/base/README.md").write_text(good)
        (root / "ARCHITECTURE.md").write_text(good + "`src/base/list.c`\n`src/bse`\n`det_get()`\n")
        lines = [finding.split(":")[1] for finding in check(root)]
    if lines != ["2", "3", "4"]:
        print(f"names: the wrong names are in lines 2, 3 and 4, found were {lines}")
        return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    findings = check(Path(sys.argv[1]).resolve())
    print("\n".join(findings + [f"names: {len(findings)} findings"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
