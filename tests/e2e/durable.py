#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A durable slot under `detent up`, which is killed with SIGKILL again and again.

    durable.py DETENT [KILLS]

Jobs are submitted by name, and again when it is not known whether they were taken. Each holds a
lock while it runs, which only the end of its process gives up: who finds it taken has found an
overlap.
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "lib"))
import patience  # noqa: E402  pylint: disable=wrong-import-position
from patience import HANG as PATIENCE  # noqa: E402  pylint: disable=wrong-import-position

DETENT = str(Path(sys.argv[1]).resolve())
KILLS = int(next(iter(sys.argv[2:]), "24"))
# A job that was begun and killed 20 times has failed. On a busy machine each kill may hit the same
# one, so that all have to be done after so many.
KILLS_IN_A_ROW = 15

CONFIG = """version: 1
store: sqlite:queue.db
slots:
  batch: {durable: yes}
"""
JOB = """
import fcntl, os, sys, time
number = sys.argv[1]
def say(what):
    ledger = os.open("ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(ledger, f"{what} {number} {os.environ['DETENT_JOB_ATTEMPT']}\\n".encode())
    os.close(ledger)
lock = open(f"lock-{number}", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    say("X")
say("B")
# Long enough that one that goes on without its detent is still there when the next one runs it.
time.sleep(2 if int(number) % 4 == 0 and os.environ["DETENT_JOB_ATTEMPT"] == "1" else 0.02)
say("E")
"""


def environment():
    return {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}


def ask(*words):
    return subprocess.run(
        [DETENT, *words], capture_output=True, text=True, timeout=PATIENCE, env=environment())


def wait_until(condition, what):
    if not patience.wait(condition, 0.01):
        sys.exit(f"this did not come: {what}\n{Path('up.log').read_text()[-4000:]}")


def start():
    with open("up.log", "a", encoding="utf-8") as log:
        up = subprocess.Popen([DETENT, "up"], stdout=log, stderr=log, env=environment())
    wait_until(lambda: up.poll() is not None or ask("tasks").returncode == 0, "detent is up")
    if up.poll() is not None:
        sys.exit(f"up has ended:\n{Path('up.log').read_text()[-4000:]}")
    return up


def submit(number):
    run = ["submit", "batch", "--name", f"job-{number}", "--", sys.executable, "job.py"]
    return ask(*run, str(number)).returncode == 0


def ledger():
    path = Path("ledger")
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def ended():
    return {int(line[1]) for line in ledger() if line[0] == "E"}


def are_done():
    states = [ask("jobs", "--json", "--state", state) for state in ("queued", "delayed", "running")]
    return all(said.returncode == 0 and not said.stdout for said in states)


def main():
    chance = random.Random(4)
    submitted = 0
    Path("detent.yaml").write_text(CONFIG)
    Path("job.py").write_text(JOB)
    for kill in range(KILLS):
        up = start()
        if kill % KILLS_IN_A_ROW == KILLS_IN_A_ROW - 1:
            wait_until(are_done, f"all are done before kill {kill}")
        for _ in range(chance.randrange(1, 5)):
            submitted += submit(submitted)
        time.sleep(chance.random() / 20)
        up.send_signal(signal.SIGKILL)
        up.wait()
    up = start()
    # One after the other, each in its time.
    for count in range(1, submitted + 1):
        wait_until(lambda: len(ended()) >= count, f"{count} have run")
    for option in "--replace", "--drop":
        said = ask("submit", "batch", option, "--", "true").stderr
        if "is durable" not in said or option not in said:
            sys.exit(f"{option} is not refused by name: {said}")
    up.send_signal(signal.SIGTERM)
    code = up.wait(PATIENCE)
    lines = ledger()
    begun = [int(line[1]) for line in lines if line[0] == "B"]
    again = sum(int(line[2]) > 1 for line in lines if line[0] == "B")
    if any(line[0] == "X" for line in lines):
        sys.exit(f"done twice at the same time: {lines}")
    if begun != sorted(begun):
        sys.exit(f"out of order: {begun}")
    if code != 0:
        sys.exit(f"up ended with {code}:\n{Path('up.log').read_text()[-4000:]}")
    print(f"{KILLS} kills, {submitted} submitted, all of them run, {again} begun again")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    main()
    os.chdir("/")
