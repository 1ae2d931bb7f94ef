#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""kill.py VICTIM - kills a process that runs flows, again and again, at random moments.

In the end the log of each run that has completed is that of an undisturbed run, row for row, and
its sinks have received each row at least once, with one value for each position. FLOW_KILLS in the
environment is the number of kills, FLOW_SEED makes other moments.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

KILLS = int(os.environ.get("FLOW_KILLS", "30"))
SEED = int(os.environ.get("FLOW_SEED", "1"))
ROWS = "2000"
# A kill loses no data that the kernel has, so the disk is not needed.
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None


def ask(victim, *arguments):
    """What it prints; None: there is no such run."""
    found = subprocess.run((victim, *arguments), capture_output=True, text=True, check=False)
    if found.returncode == 3:
        return None
    if found.returncode != 0:
        sys.exit(f"{arguments}: exit code {found.returncode}: {found.stderr}")
    return found.stdout


def run_until(victim, folder, condition):
    """Runs the victim until the condition holds, then kills it."""
    process = subprocess.Popen((victim, "run", folder, ROWS), stderr=subprocess.PIPE, text=True)
    while not condition():
        if process.poll() is not None:
            sys.exit(f"the victim has ended: {process.stderr.read()}")
        time.sleep(0.002)
    process.kill()
    process.communicate()


def latest(folder):
    try:
        with open(f"{folder}/latest", encoding="ascii") as file:
            return int(file.read())
    except FileNotFoundError:
        return 0


def check_run(victim, folder, run, expected, received):
    name = f"{run:06}"
    log = ask(victim, "print", folder, name)
    if log is None:
        return False
    if log != expected:
        sys.exit(f"run {run} differs from an undisturbed one:\n{log}\ninstead of\n{expected}")
    rows = set(ask(victim, "sink", folder, name).split("\n")[:-1])
    # Runs are told apart by their identity: it is the one that has received a row of this log.
    for lines in received.values():
        if rows == set(lines):
            return True
    sys.exit(f"the sinks of run {run} have not received what its log has")


def main():
    victim = sys.argv[1]
    place = tempfile.mkdtemp(dir=SCRATCH)
    random.seed(SEED)
    try:
        quiet, folder = f"{place}/quiet", f"{place}/killed"
        run_until(victim, quiet, lambda: latest(quiet) >= 2)
        expected = ask(victim, "print", quiet, "000001")
        for _ in range(KILLS):
            end = time.monotonic() + random.uniform(0.004, 0.05)
            run_until(victim, folder, lambda end=end: time.monotonic() >= end)
        first_open = latest(folder)
        run_until(victim, folder, lambda: latest(folder) > first_open)
        received = {}
        with open(f"{folder}.received", encoding="ascii") as file:
            for line in file:
                run, row = line.rstrip("\n").split(" ", 1)
                received.setdefault(run, []).append(row)
        checked = sum(
            check_run(victim, folder, run, expected, received)
            for run in range(1, latest(folder))
        )
        if checked == 0:
            sys.exit("no run has completed")
        repeated = sum(len(lines) - len(set(lines)) for lines in received.values())
        print(f"{KILLS} kills, {checked} complete runs, {repeated} rows received again")
    finally:
        shutil.rmtree(place)


main()
