#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""No macro that the public headers bring in can be a name of a spec.

    macros.py COMPILER ROOT DETENT

A compiler would replace the name by the macro's text. The headers are read in each language that
the templates take; a state of each name must be refused by `detent check`.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

LANGUAGES = ("c11", "gnu11", "c17", "gnu17", "c2x", "gnu2x")
FEATURES = ((), ("-D_GNU_SOURCE",))
# The library and C keep these for themselves, whatever follows.
OURS = re.compile(r"DET_|DETENT_|__|_[A-Z]")
STATES_MAX = 32  # of one spec
SPEC = """#define FSM_NAME bell
#define FSM_PREFIX BELL

STATE(QUIET, quiet, INITIAL)
EVENT(RING, ring)
"""


def macros(compiler, root, flags):
    """Names of macros without parameters, after all public headers that C includes."""
    headers = sorted((root / "include/detent").glob("*.h"))
    text = "".join(f"#include <detent/{path.name}>\n" for path in headers
                   if path.name not in ("strict.h", "worker_test.h"))
    done = subprocess.run([compiler, *flags, f"-I{root / 'include'}", "-dM", "-E", "-xc", "-"],
                          input=text, capture_output=True, text=True, check=True)
    found = set(re.findall(r"^#define (\w+)(?: |$)", done.stdout, re.M))
    return {name for name in found if not OURS.match(name)}


def taken(detent, folder, names):
    """Those of the names that `detent check` does not refuse."""
    rows = "".join(f"STATE({name}, s{i})\nON(QUIET, RING, {name})\n"
                   for i, name in enumerate(names))
    path = folder / "bell.fsm"
    path.write_text(SPEC + rows, encoding="utf-8")
    done = subprocess.run([detent, "check", path], capture_output=True, text=True, check=False)
    refused = set(re.findall(r"error: (\w+) is .* cannot be the name of a state \[bad-name\]",
                             done.stdout + done.stderr))
    return [name for name in names if name not in refused]


def main():
    compiler, root, detent = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    found = set()
    for language in LANGUAGES:
        for feature in FEATURES:
            found |= macros(compiler, root, (f"-std={language}", *feature))
    names, left = sorted(found), []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(0, len(names), STATES_MAX):
            left += taken(detent, pathlib.Path(folder), names[i:i + STATES_MAX])
        control = taken(detent, pathlib.Path(folder), ["LOUD"])
    for name in left:
        print(f"{name} is a macro, and can be the name of a state: add it to rec/reserved.h")
    print(f"{compiler}: {len(names) - len(left)} of {len(names)} macros are refused")
    return 0 if not left and len(names) > 60 and control == ["LOUD"] else 1


if __name__ == "__main__":
    sys.exit(main())
