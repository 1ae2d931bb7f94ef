#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs a little of every bench, so that each keeps working: quick.py DETENT_BENCH

Speed is not checked, but every bench must print results, no case may fail or take no time,
and every line must be an object with its fields.
"""
import json
import subprocess
import sys


def faults_of(result):
    """Yields the faults of one line of output."""
    for name in ("bench", "title", "case", "role", "operation"):
        if not isinstance(result.get(name), str):
            yield f"no {name}"
    if "failed" in result:
        yield f"{result['case']}: {result['failed']}"
    elif "skipped" not in result and not result["median_ns"] > 0:
        yield f"{result['case']}: it took no time"
    if result["role"] == "ours" and "skipped" in result:
        yield f"{result['case']}: ours is skipped: {result['skipped']}"


def main():
    benches = subprocess.check_output([sys.argv[1], "--list"], text=True).split()
    run = subprocess.run([sys.argv[1], "--quick", "--json"], stdout=subprocess.PIPE, text=True)
    results = [json.loads(line) for line in run.stdout.splitlines()]
    faults = [fault for result in results for fault in faults_of(result)]
    if run.returncode != 0:
        faults.append(f"exit code {run.returncode}")
    for bench in benches:
        if all(result["bench"] != bench for result in results):
            faults.append(f"{bench}: nothing was measured")
    for fault in faults:
        print(fault)
    print(f"bench: {len(benches)} benches, {len(results)} cases, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
