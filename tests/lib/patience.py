# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Time for tests on a busy machine.

A test that measures or limits a duration reads `now()`, which counts the seconds of an idle
machine: while n programs are ready to run on each processor, an n-th of the time that passes
counts. Limits on calls that cannot be polled (the end of a process, a read from a socket) are
HANG: they catch what never ends, and nothing else. A span that a test gives to the program, such
as a timeout in detent.yaml, is that of an idle machine made longer by `stretch()`.
"""
import math
import os
import threading
import time

PATIENCE = 60  # seconds of an idle machine; anything that is waited for takes less
HANG = 600  # seconds on the wall; below the limits of CTest, so that the failure says what was seen
PERIOD = 0.02
STRETCH_MAX = 10  # so that a test which waits for such a span ends
CORES = len(os.sched_getaffinity(0))


def load():
    """How many programs are ready to run for each processor; at least 1."""
    with open("/proc/loadavg", encoding="ascii") as file:
        ready = int(file.read().split()[3].partition("/")[0])
    return max(1.0, (ready - 1) / CORES)


class Clock:
    """Samples the load from its first use on."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sampled = time.monotonic()
        self.factor = self.most = load()
        self.total = 0.0
        threading.Thread(target=self.sample, daemon=True).start()

    def sample(self):
        while True:
            time.sleep(PERIOD)
            factor = load()
            with self.lock:
                self.pass_until(time.monotonic())
                self.factor = factor
                self.most = max(self.most, factor)

    def pass_until(self, wall):
        self.total += (wall - self.sampled) / self.factor
        self.sampled = wall

    def read(self):
        with self.lock:
            self.pass_until(time.monotonic())
            return self.total


CLOCK = Clock()


def now():
    """Seconds of an idle machine, since any point in time."""
    return CLOCK.read()


def stretch(span):
    """A span of real time that a test gives to a program: longer by the highest load so far."""
    return math.ceil(span * min(max(CLOCK.most, load()), STRETCH_MAX))


def wait(condition, pause=0.005):
    """What the condition returned when it held; what it last returned when it did not in time."""
    end = now() + PATIENCE
    while not (found := condition()) and now() < end:
        time.sleep(pause)
    return found
