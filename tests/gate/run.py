#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Counts the instructions of the gates with callgrind and compares them with baseline.json.

run.py [PROGRAM [GATE...]]   fails when a count is more than 5 % above its baseline
run.py --update [PROGRAM]    writes the counts of all gates to baseline.json
run.py --self-test           checks that a gate can fail

PROGRAM is build/release/tests/gate/gate when it is not given. A count is for one operation of the
gate. Counts belong to a compiler: where another one made the program, or valgrind is missing, the
gates are skipped (exit code 77).
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent.parent
BASELINE = HERE / "baseline.json"
UPDATE = "tests/gate/run.py --update"
TOLERANCE = 0.05
SKIP = 77


def count(program, name):
    """Instructions inside gate_measured() in one run of a gate."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--toggle-collect=gate_measured",
             f"--callgrind-out-file={folder}/out", program, name],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"gate {name} ended with {run.returncode}:\n{run.stdout}")
        text = Path(folder, "out").read_text()
    return int(re.search(r"^(?:totals|summary): (\d+)", text, re.M).group(1))


def judge(name, baseline, instructions):
    """Whether the gate is passed, and what there is to say about it."""
    if baseline is None:
        return False, f"{name}: not in baseline.json; {UPDATE} adds it"
    change = instructions / baseline - 1
    text = f"{name}: {instructions:.2f} instructions, baseline {baseline:.2f}, {change:+.1%}"
    if instructions > baseline * (1 + TOLERANCE):
        return False, f"{text}: too many; if that is meant: {UPDATE}"
    if instructions < baseline * (1 - TOLERANCE):
        return True, f"{text}: better; keep it with {UPDATE}"
    return True, text


def self_test():
    """A gate must fail when it should, and only then."""
    cases = [(100, 106, False), (100, 105, True), (100, 100, True), (100, 50, True),
             (None, 100, False)]
    faults = [case for case in cases if judge("gate", *case[:2])[0] != case[2]]
    if "--update" not in judge("gate", 100, 90)[1]:
        faults.append("a better count does not say how to keep it")
    for fault in faults:
        print(f"wrong: {fault}")
    print(f"gate: {len(cases) + 1} cases tried, {len(faults)} faults")
    return 1 if faults else 0


def update(program, about):
    counts = {name: round(count(program, name) / operations, 2)
              for name, operations in about["operations"].items()}
    BASELINE.write_text(json.dumps({"compiler": about["compiler"], "instructions": counts},
                                   indent=4) + "\n")
    print(f"wrote {BASELINE.relative_to(TREE)}: {counts}")
    return 0


def compare(program, about, names):
    baseline = json.loads(BASELINE.read_text())
    if baseline["compiler"] != about["compiler"]:
        print(f"skipped: the baseline is for {baseline['compiler']}, this is {about['compiler']}")
        return SKIP
    passed = True
    for name in names or about["operations"]:
        instructions = count(program, name) / about["operations"][name]
        is_passed, text = judge(name, baseline["instructions"].get(name), instructions)
        print(text)
        passed = passed and is_passed
    return 0 if passed else 1


def main():
    words = sys.argv[1:]
    if words == ["--self-test"]:
        return self_test()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return SKIP
    is_update = words[:1] == ["--update"]
    words = words[1:] if is_update else words
    program = words[0] if words else str(TREE / "build/release/tests/gate/gate")
    about = json.loads(subprocess.run([program], stdout=subprocess.PIPE, check=True).stdout)
    return update(program, about) if is_update else compare(program, about, words[1:])


if __name__ == "__main__":
    sys.exit(main())
