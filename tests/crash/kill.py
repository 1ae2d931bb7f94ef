#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Kills a process that writes to a store, and makes its system calls fail; then checks the store.

kill.py syscalls VICTIM   kill -9 at the n-th call of every system call that changes something, for
                          every n; and again while the remaining store is opened
kill.py errors VICTIM     every such call fails with EIO or ENOSPC, once, and from then on
kill.py random VICTIM     kill -9 at random moments, hundreds of times, one store after the other
kill.py self VICTIM       a run with forged acknowledgements must be detected

The oracle is here: the output of the victim (victim.c) before it died. CRASH_KILLS and
CRASH_STEPS in the environment make the runs longer.
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# Calls that change a file, a folder, or write to the pipe.
CALLS = (
    "write pwrite64 writev pwritev fsync fdatasync sync_file_range ftruncate fallocate unlink "
    "unlinkat rename renameat renameat2 openat mkdir mkdirat link linkat flock"
).split()
# Not the pipe itself, and not openat: a victim that cannot open files tests nothing.
FAILING = [c for c in CALLS if c not in ("write", "openat", "flock")]
SYNCS = ("fsync", "fdatasync")
SEED = int(os.environ.get("CRASH_SEED", "1"))
WORKERS = 2
# A kill loses no data that the kernel has, so the disk is not needed.
SCRATCH = "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None


class Outcome:
    """The output of a run before it ended."""

    def __init__(self, text, code):
        self.begun = self.answered = 0
        self.failed = False
        self.late = 0
        self.code = code
        for line in text.decode().splitlines():
            word, number = line.split()
            if word == "b":
                self.begun = int(number)
            elif word == "f":
                self.failed = True
            elif word == "a":
                self.answered = int(number)
                self.late += self.failed


class Rig:
    """One victim program and the counts of faults and findings."""

    def __init__(self, victim, steps):
        self.victim = victim
        self.steps = int(os.environ.get("CRASH_STEPS", steps))
        self.lock = threading.Lock()
        names = "kills errors noticed lost doubled other late".split()
        self.counts = {name: 0 for name in names}

    def add(self, what, text=""):
        with self.lock:
            self.counts[what] += 1
            if text and self.counts[what] <= 5:
                print(f"{what}: {text}", flush=True)

    def command(self, verb, file, *numbers, seed=SEED, steps=None):
        return [self.victim, verb, file, str(seed), str(steps or self.steps), *map(str, numbers)]

    def trace(self, options, command):
        """Runs a command under strace, which counts the calls of each kind by itself."""
        full = ["strace", "-f", "-qq", "-o", "/dev/null", *options, *command]
        return subprocess.run(full, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)

    def count_calls(self, command):
        """Counts the calls of CALLS that the command makes."""
        with tempfile.NamedTemporaryFile() as log:
            full = ["strace", "-f", "-qq", "-o", log.name]
            full += ["-e", "trace=" + ",".join(CALLS), *command]
            done = subprocess.run(full, capture_output=True, check=False)
            counts = {}
            for line in Path(log.name).read_text().splitlines():
                words = line.split(None, 1)
                name = words[1].split("(")[0] if len(words) > 1 else ""
                if name in CALLS:
                    counts[name] = counts.get(name, 0) + 1
        if not counts:
            sys.exit(f"strace traced nothing: {done.stderr.decode()}")
        return counts

    def check(self, file, outcome, what, seed=SEED, steps=None):
        """Opens the remaining store; returns its step, or None."""
        command = self.command(
            "check", file, outcome.begun, outcome.answered, seed=seed, steps=steps
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        words = done.stdout.split()
        if done.returncode == 0 and words[0] == "at":
            return int(words[1])
        kind = words[0].strip(":") if words else ""
        self.add(kind if kind in ("lost", "doubled") else "other", f"{what}: {done.stdout.strip()}")
        return None

    def finish(self, name, minimum, counted):
        """Prints the figures; returns the exit code."""
        line = ", ".join(f"{key} {value}" for key, value in self.counts.items())
        print(f"{name}: {line}", flush=True)
        bad = sum(self.counts[key] for key in ("lost", "doubled", "other", "late"))
        if self.counts[counted] < minimum:
            print(f"only {self.counts[counted]} {counted}, expected at least {minimum}")
            return 1
        return 1 if bad else 0


def need_strace():
    """Fails without strace: it is required for all modes."""
    probe = ["strace", "-f", "-qq", "-o", "/dev/null"]
    probe += ["-e", "trace=getpid", "-e", "inject=getpid:error=EIO", "true"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit("strace is not installed: apt-get install strace")
    if done.returncode != 0:
        sys.exit(
            f"strace does not work here: {done.stderr.strip()}\n"
            "A container needs the capability SYS_PTRACE for it."
        )


def each(jobs, work):
    """Runs all jobs, a few at a time; raises the first exception."""
    with ThreadPoolExecutor(WORKERS) as pool:
        for result in pool.map(work, jobs):
            del result


def kill_at(rig, folder, call, number, keep=None):
    """Kills the victim at the n-th call, checks the store, and repeats that for each `keep`-th."""
    place = Path(folder, f"{call}-{number}")
    place.mkdir()
    file = str(place / "store.db")
    options = ["-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={number}"]
    done = rig.trace(options, rig.command("run", file, 0))
    outcome = Outcome(done.stdout, done.returncode)
    if done.returncode == 0:
        shutil.rmtree(place)
        return
    rig.add("kills")
    if keep is not None and number % keep == 0:
        kill_again(rig, place, outcome)
    rig.check(file, outcome, f"{call} {number}")
    shutil.rmtree(place)


def kill_again(rig, place, outcome):
    """Kills the process that opens the store after a kill, at each of its calls; every other time
    without a fresh copy, so that several die one after the other on the same store."""
    command = rig.command("check", str(place / "copy/store.db"), outcome.begun, outcome.answered)
    shutil.copytree(place, place / "copy")
    counts = rig.count_calls(command)
    for call, count in counts.items():
        if call in ("write", "openat"):
            continue
        for number in range(1, count + 1):
            options = ["-e", f"trace={call}", "-e", f"inject={call}:signal=SIGKILL:when={number}"]
            if number % 2 == 0:
                shutil.rmtree(place / "copy")
                shutil.copytree(place, place / "copy", ignore=shutil.ignore_patterns("copy"))
            if rig.trace(options, command).returncode != 0:
                rig.add("kills")
            rig.check(str(place / "copy/store.db"), outcome, f"{place.name}, then {call} {number}")


def syscalls(rig):
    """kill -9 at every call."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        counts = rig.count_calls(rig.command("run", folder + "/store.db", 0))
        print("calls:", ", ".join(f"{name} {count}" for name, count in counts.items()))
        jobs = [(c, n) for c, count in counts.items() for n in range(1, count + 1)]
        each(jobs, lambda job: kill_at(rig, folder, *job, keep=97))
    return rig.finish("kill -9 at the n-th call", 400, "kills")


def fail_at(rig, folder, call, error, when):
    """Makes a call fail; then another process opens the store."""
    place = Path(folder, f"{call}-{error}-{when}")
    place.mkdir()
    file = str(place / "store.db")
    options = ["-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={when}"]
    done = rig.trace(options, rig.command("run", file, 0))
    outcome = Outcome(done.stdout, done.returncode)
    rig.add("errors")
    if outcome.failed or outcome.code == 3:
        rig.add("noticed")
    if call in SYNCS and outcome.late:
        rig.add("late", f"{call} {error} {when}: answered after it")
    if done.returncode not in (0, 3):
        rig.add("other", f"{call} {error} {when}: ended with {done.returncode}")
    rig.check(file, outcome, f"{call} {error} {when}")
    shutil.rmtree(place)


def errors(rig):
    """EIO and ENOSPC at every call, once and permanently."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        counts = rig.count_calls(rig.command("run", folder + "/store.db", 0))
        jobs = []
        for call, count in counts.items():
            if call not in FAILING:
                continue
            for number in range(1, count + 1):
                jobs.append((call, "EIO", f"{number}"))
                if call not in SYNCS:
                    jobs.append((call, "ENOSPC", f"{number}" if number % 2 else f"{number}+"))
                elif number % 2:
                    jobs.append((call, "EIO", f"{number}+"))
        each(jobs, lambda job: fail_at(rig, folder, *job))
    return rig.finish("failing calls", 400, "noticed")


def kill_after(rig, command, seconds):
    """Runs the victim for at most this many seconds."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        text, _ = process.communicate()
        timer.cancel()
    if process.returncode == -9:
        rig.add("kills")
    return Outcome(text, process.returncode)


def random_kills(rig):
    """Kills at random moments; the same store continues from its step until its plan ends."""
    wanted = int(os.environ.get("CRASH_KILLS", "300"))
    chance = random.Random(SEED)
    longest = 0.1
    seed = SEED
    while rig.counts["kills"] < wanted:
        seed += 1
        with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
            file = folder + "/store.db"
            at = 0
            while at is not None and at < rig.steps and rig.counts["kills"] < wanted:
                command = rig.command("run", file, at, seed=seed)
                outcome = kill_after(rig, command, chance.random() * longest)
                outcome.begun = max(outcome.begun, at)
                outcome.answered = max(outcome.answered, at)
                if outcome.code not in (0, -9):
                    rig.add("other", f"seed {seed}: ended with {outcome.code}")
                at = rig.check(file, outcome, f"seed {seed}", seed=seed)
    return rig.finish("kill -9 at random moments", wanted, "kills")


def self_test(rig):
    """Forged acknowledgements, and a store with more steps than begun: both must be detected."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        file = folder + "/store.db"
        command = rig.command("run", file, 0, steps=20)
        done = subprocess.run(command, capture_output=True, check=False)
        outcome = Outcome(done.stdout, done.returncode)
        if outcome.code != 0 or rig.check(file, outcome, "a run to its end", steps=20) != 20:
            return 1
        outcome.begun = outcome.answered = 25
        forged = rig.check(file, outcome, "forged")
        outcome.begun = outcome.answered = 3
        early = rig.check(file, outcome, "forged")
        found = forged is None and early is None and rig.counts["lost"] == 1
        found = found and rig.counts["doubled"] == 1
    print("forged answers are detected" if found else "forged answers are not detected")
    return 0 if found else 1


def main():
    modes = {
        "syscalls": (syscalls, 20),
        "errors": (errors, 15),
        "random": (random_kills, 400),
        "self": (self_test, 60),
    }
    if len(sys.argv) != 3 or sys.argv[1] not in modes:
        sys.exit(__doc__)
    mode, steps = modes[sys.argv[1]]
    if sys.argv[1] in ("syscalls", "errors"):
        need_strace()
    sys.exit(mode(Rig(sys.argv[2], steps)))


main()
