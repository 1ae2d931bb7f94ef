#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""The reference of the C API is current, and each fault that scripts/reference looks for is found.

    reference.py ROOT WORK
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()


def check(root):
    return subprocess.run([ROOT / "scripts/reference", "--check", root], capture_output=True,
                          text=True, check=False)


def change(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text, f"{path}: {old}"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def add_function(header):
    """A function without a contract, in a block of its own."""
    change(header, "\nDET_END", "\nDET_API void det_nobody_knows(void);\n\nDET_END")


def forget_function(page):
    change(page, "det_version()", "det_vision()")


def leave_page(page):
    page.with_name("gone.md").write_text("# gone.h\n")


def missing_functions():
    """Functions of the front headers that no page and no example names."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (
        *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.[ch]"), ROOT / "README.md"))
    known = set(re.findall(r"\bdet_\w+", text))
    found = []
    for header in sorted((ROOT / "include/detent").glob("*.h")):
        text = header.read_text(encoding="utf-8")
        names = re.findall(r"^DET_API[^;{]*?\b(det_\w+)\(", text, re.M)
        found += [f"{header.name}: {name}() is in no page and no example" for name in names
                  if name not in known]
    return found


def main():
    faults = missing_functions()
    done = check(ROOT)
    if done.returncode:
        faults.append(done.stdout + done.stderr)
    for fault, path, wanted in (
            (add_function, "include/detent/base.h", "det_nobody_knows() has no contract"),
            (forget_function, "docs/reference/base.md", "base.md is not current"),
            (leave_page, "docs/reference/base.md", "gone.md has no header")):
        shutil.rmtree(WORK, ignore_errors=True)
        for folder in ("include", "docs/reference"):
            shutil.copytree(ROOT / folder, WORK / folder)
        fault(WORK / path)
        done = check(WORK)
        if done.returncode == 0 or wanted not in done.stdout:
            faults.append(f"{fault.__name__}: the check says '{done.stdout}'")
    shutil.rmtree(WORK, ignore_errors=True)
    print("\n".join(faults) or "reference: current; all faults are found")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
