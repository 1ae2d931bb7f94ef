#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs every bench a little, so that none rots: quick.py DETENT_BENCH

Nothing is said about speed, but no case may fail and every line must be an object with its fields.
"""
import json
import subprocess
import sys


def faults_of(line):
    """What is wrong with one line of output."""
    result = json.loads(line)
    for name in ("bench", "case", "role", "operation"):
        if not isinstance(result.get(name), str):
            yield f"no {name}"
    if "failed" in result:
        yield f"{result['case']}: {result['failed']}"
    elif "skipped" not in result and not (
            result["p10_ns"] <= result["median_ns"] <= result["p90_ns"]):
        yield f"{result['case']}: the median is outside of the spread"
    if result["role"] == "ours" and "skipped" in result:
        yield f"{result['case']}: ours is skipped: {result['skipped']}"


def main():
    run = subprocess.run([sys.argv[1], "--quick", "--json"], stdout=subprocess.PIPE, text=True)
    lines = run.stdout.splitlines()
    faults = [fault for line in lines for fault in faults_of(line)]
    if run.returncode != 0:
        faults.append(f"exit code {run.returncode}")
    if not lines:
        faults.append("nothing was measured")
    for fault in faults:
        print(fault)
    print(f"bench: {len(lines)} cases, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
