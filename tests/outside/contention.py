#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Sixteen senders and a hundred waiters on one instance of a PostgreSQL server.

    contention.py DETENT NASTY_CHILD [PART_OF_A_NAME]

Two nodes of `detent up` and some `detent send` share one store on a cluster of our own. Whoever
sends without a condition is never told of a conflict, what is acknowledged is there once, and the
product of an effect is taken. lock_waiters, which is built beside NASTY_CHILD, opens locks.
"""
import collections
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests/api"), str(TREE / "tests/e2e")]
SKIPPED = 77
HTTP_SENDERS = 6  # for each of two nodes
PROGRAM_SENDERS = 4
HTTP_SENDS = 50
PROGRAM_SENDS = 12
WORK_EVERY = 5  # one send in five asks for an effect
WAITERS = 25  # threads in each of four processes
MS_PER_WAITER_MAX = 40  # of an idle machine; it was 130, and is 4 to 11

if not list(Path("/usr/lib/postgresql").glob("*/bin/initdb")):
    print("skipped: there is no PostgreSQL server; the package is called postgresql")
    sys.exit(SKIPPED)

# pylint: disable=wrong-import-position
import postgres  # noqa: E402
import shop  # noqa: E402
from shop import DETENT, check, environment, equal, wait_until  # noqa: E402
from up import NASTY  # noqa: E402

LOCK_WAITERS = Path(NASTY).parent / "lock_waiters"
NODE = """version: 1
store: "{url}"
http: {{rate: unlimited}}
machines:
  ticket:
    effects:
      work_hard:
        command: [echo, '{{"event":"worked"}}']
        attempts: 3
        backoff: 50ms..50ms
"""


class Node(shop.Daemon):
    """A `detent up` in a folder of its own."""

    def __init__(self, name, url):
        self.folder = Path(name).resolve()
        self.folder.mkdir()
        (self.folder / "detent.yaml").write_text(NODE.format(url=url))
        (self.folder / "ticket.fsm").write_text((TREE / "tests/outside/ticket.fsm").read_text())
        super().__init__(cwd=self.folder)

    def connect(self):
        return shop.Wire(str(self.folder / shop.SOCKET))


class Senders:
    """Each sends numbers that nobody else sends, and keeps what was answered."""

    def __init__(self, url):
        self.url = url
        self.added, self.worked, self.refused = [], [], []
        self.threads = []

    def note(self, number, is_work, sequence):
        (self.worked if is_work else self.added).append((number, sequence))

    def over_http(self, node, first):
        with node.connect() as wire:
            for number in range(first, first + HTTP_SENDS):
                is_work = number % WORK_EVERY == 0
                body = {"event": "work"} if is_work else {"event": "add",
                                                          "payload": {"number": number}}
                answer = wire.post("/v1/machines/ticket/instances/t-1/events", body,
                                   f"key-{number}")
                if answer.status == 200:
                    self.note(number, is_work, answer.json["sequence"])
                else:
                    self.refused.append((number, repr(answer)))

    def by_program(self, first):
        for number in range(first, first + PROGRAM_SENDS):
            done = subprocess.run(
                [DETENT, "send", "t-1", "add", "--payload", json.dumps({"number": number}),
                 "--store", self.url, "--json"],
                env=environment(), capture_output=True, text=True, check=False)
            if done.returncode == 0:
                self.note(number, False, json.loads(done.stdout.splitlines()[0])["sequence"])
            else:
                self.refused.append((number, done.stderr))

    def run(self, nodes):
        def begin(function, *arguments):
            thread = threading.Thread(target=function, args=arguments)
            thread.start()
            self.threads.append(thread)
        for i in range(PROGRAM_SENDERS):
            begin(self.by_program, 1000 * (i + 1))
        for i in range(2 * HTTP_SENDERS):
            begin(self.over_http, nodes[i % 2], 100000 + 1000 * i)
        for thread in self.threads:
            thread.join()


def history(node):
    """All events of the instance, as (sequence, event, number)."""
    done = subprocess.run([DETENT, "history", "t-1", "--json"], cwd=node.folder, check=True,
                          env=environment(), capture_output=True, text=True)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [(row["sequence"], row.get("event"), (row.get("payload") or {}).get("number"))
            for row in rows]


def test_sixteen_senders_meet_no_conflict_and_products_apply():
    url = postgres.store()[1]
    nodes = [Node("one", url), Node("two", url)]
    with nodes[0].connect() as wire:
        shop.start(wire, "t-1", "ticket")
    senders = Senders(url)
    begun = time.monotonic()
    senders.run(nodes)
    took = time.monotonic() - begun
    equal(senders.refused, [])
    wanted = 2 * HTTP_SENDERS * HTTP_SENDS + PROGRAM_SENDERS * PROGRAM_SENDS
    equal(len(senders.added) + len(senders.worked), wanted)

    def worked():
        return sum(event == "worked" for _, event, _ in history(nodes[0]))
    wait_until(lambda: worked() >= len(senders.worked),
               lambda: f"{worked()} of {len(senders.worked)} products\n{nodes[0].shown()}")
    rows = history(nodes[0])
    # Sequence 0 is the start.
    equal([row[0] for row in rows if row[0]], list(range(1, wanted + len(senders.worked) + 1)))
    numbers = collections.Counter(number for _, event, number in rows if event == "add")
    equal(numbers, collections.Counter(number for number, _ in senders.added))
    where = {number: sequence for sequence, event, number in rows if event == "add"}
    equal([pair for pair in senders.added if where[pair[0]] != pair[1]], [])
    equal(worked(), len(senders.worked))
    for node in nodes:
        said = "\n".join([*node.lines, *node.talk])
        check("is rejected" not in said and "dead letter" not in said, node.shown())
    with nodes[1].connect() as wire:
        equal(wire.get("/v1/effects?dead=true").json["items"], [])
    for node in nodes:
        node.stop()
    print(f"    {wanted} sends of 16 senders in {took:.1f} s, {len(senders.worked)} products: "
          "0 refused")


class Process:
    """A lock_waiters that is set up."""

    def __init__(self, url, *words):
        self.process = subprocess.Popen(
            [LOCK_WAITERS, words[0], url, *map(str, words[1:])], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=environment())
        equal(self.process.stdout.readline(), "ready\n")

    def go(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def result(self):
        out, _ = self.process.communicate(timeout=shop.up.PATIENCE)
        equal(self.process.returncode, 0)
        return json.loads(out) if out else None


def run_waiters(processes):
    for process in processes:
        process.go()
    found = [process.result() for process in processes]
    return {name: sum(one[name] for one in found) for name in found[0]} | {
        "ms": max(one["ms"] for one in found)}


def test_a_hundred_waiters_get_a_lock_one_after_the_other():
    url = postgres.store()[1]
    for count, threads in ((1, 4 * WAITERS), (4, WAITERS)):
        begun, wall = shop.up.patience.now(), time.monotonic()
        found = run_waiters([Process(url, "wait", threads) for _ in range(count)])
        share = (shop.up.patience.now() - begun) / (time.monotonic() - wall)
        equal((found["taken"], found["other"]), (count * threads, 0))
        each = found["ms"] / found["taken"]
        print(f"    {found['taken']} waiters in {count} processes: {each:.1f} ms each")
        check(each * share <= MS_PER_WAITER_MAX, f"{each:.1f} ms for each waiter")


def test_locked_error_names_the_holder():
    url = postgres.store()[1]
    holder = Process(url, "hold")
    found = run_waiters([Process(url, "ask", WAITERS) for _ in range(4)])
    equal((found["taken"], found["told"], found["untold"], found["other"]),
          (0, 4 * WAITERS, 0, 0))
    # Also who sends is told.
    done = subprocess.run([DETENT, "send", "t-1", "work", "--store", url], env=environment(),
                          capture_output=True, text=True, check=False)
    check(done.returncode and re.search("has its lock|locked by", done.stderr), done.stderr)
    holder.go()
    holder.result()
    # Where the holder comes and goes, whoever is refused is told who it was.
    found = run_waiters([Process(url, "ask", WAITERS) for _ in range(4)])
    equal((found["taken"] + found["told"], found["untold"], found["other"]), (4 * WAITERS, 0, 0))
    check(found["taken"] > 0, found)


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
