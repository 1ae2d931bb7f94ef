#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Many connections, slow ones, and no descriptors left: others are served all the same.

    crowd.py DETENT NASTY_CHILD [PART_OF_A_NAME]
"""
import json
import os
import resource
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import shop
from patience import now, stretch
from shop import (SOCKET, Daemon, Gone, Stream, Wire, add, check, environment, equal, project,
                  start, token, wait_until)
from wire import request

HERD = str(Path(__file__).resolve().with_name("herd.py"))
P99 = 0.1
PROBES = 2000


def with_limits(limits):
    project(shop.COUNTERS.replace("rate: unlimited", f"rate: unlimited, limits: {{{limits}}}"))


def many_descriptors(count=8192):
    """For us, and for those that we start."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


class Herd:
    """The crowd."""

    def __init__(self, port, idle, slow):
        self.process = subprocess.Popen([sys.executable, HERD, str(port), str(idle), str(slow)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        shop.up.running.append(self)
        equal(self.process.stdout.readline(), "open\n")

    def end(self):
        said, _ = self.process.communicate(timeout=shop.up.PATIENCE)
        return json.loads(said)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


def slowest(wire, target):
    """What 99 of 100 requests stay under, in seconds: of all that were made, in one go."""
    spans = []
    for _ in range(PROBES):
        begun = now()
        answer = wire.get(target)
        spans.append(now() - begun)
        check(answer.status == 200, answer)
    return sorted(spans)[PROBES * 99 // 100 - 1]


def test_many_idle_clients_do_not_delay_others():
    many_descriptors()
    with_limits("peer_connections_max: 4000, header_time: 2s, idle_time: 1h")
    value = token("read")
    daemon = Daemon()
    start(daemon.wire(), "c-1")
    herd = Herd(daemon.port, 1000, 500)
    found = {}
    with daemon.wire(value) as wire:
        for target in ("/livez", "/v1/machines/counter/instances/c-1"):
            found[target] = slowest(wire, target)
            check(found[target] < P99, f"{target} took {found[target]:.3f} s")
        # New ones come in, too.
        for _ in range(20):
            with Wire(daemon.address) as other:
                equal(other.get("/livez").status, 200)
        resident = int(Path(f"/proc/{daemon.number}/statm").read_text().split()[1]) * 4096
        check(resident < 256 << 20, f"{resident >> 20} MiB")
        used = shop.seconds_of(daemon.number)
    equal(herd.process.stdout.readline(), "told\n")
    told = herd.end()
    equal(told["idle"], 1000)
    check(told["said"].get("408", 0) >= 500, told)
    check(set(told["said"]) <= {"408", "cut"}, told)
    print("        p99 " + ", ".join(f"{target} {span * 1000:.1f} ms"
                                     for target, span in found.items()) +
          f"; {resident >> 20} MiB, {used:.1f} s of CPU")
    daemon.stop()


def test_connections_over_the_limits_are_refused_with_a_message():
    with_limits("connections_max: 60, peer_connections_max: 20")
    value = token("read")
    daemon = Daemon()

    def connect(source):
        wire = Wire(daemon.address, value)
        wire.socket = socket.socket()
        wire.socket.settimeout(shop.up.PATIENCE)
        wire.socket.bind((source, 0))
        wire.socket.connect(daemon.address)
        wire.file = wire.socket.makefile("rb")
        return wire

    def crowd(source, count):
        wires = [connect(source) for _ in range(count)]
        for wire in wires:
            equal(wire.get("/v1/status").status, 200)
        return wires

    def refused(source, status):
        wire = connect(source)
        answer = wire.get("/livez")
        equal((answer.status, answer.json["error"]["code"]), (status, "LIMIT"))
        check(wire.socket is None, "it was not closed")
    one = crowd("127.0.0.1", 20)
    for _ in range(5):
        refused("127.0.0.1", 429)
    two = crowd("127.0.0.2", 20) + crowd("127.0.0.3", 20)
    for _ in range(5):
        refused("127.0.0.4", 503)
    # Open connections continue, and a closed one makes room.
    for wire in one + two:
        equal(wire.get("/livez").status, 200)
    for wire in one:
        wire.close()

    def room():
        wire = connect("127.0.0.1")
        answer = wire.get("/livez")
        wire.close()
        return answer.status == 200
    wait_until(room, "there is room again")
    for wire in two:
        wire.close()
    daemon.stop()


def test_clients_without_tokens_shut_out_no_other():
    """256 connections of one address, which is ours, too."""
    with_limits("peer_connections_max: 256")
    value = token("read")
    daemon = Daemon()
    crowd = [Wire(daemon.address).open() for _ in range(300)]
    for wire in crowd[-200:]:
        equal(wire.get("/livez").status, 200)
    # Clients with a token are accepted, each on a separate connection, and stay.
    known = [daemon.wire(value) for _ in range(100)]
    for wire in known:
        equal(wire.get("/v1/status").status, 200)
    crowd += [Wire(daemon.address).open() for _ in range(300)]
    equal(crowd[-1].get("/livez").status, 200)
    for wire in known:
        number = wire.socket.getsockname()
        equal(wire.get("/v1/status").status, 200)
        equal(wire.socket.getsockname(), number)
    with daemon.wire() as local:
        equal(local.get("/v1/status").status, 200)
    for wire in crowd + known:
        wire.close()
    daemon.stop()


def test_slow_clients_are_disconnected():
    span = stretch(1)
    with_limits(f"header_time: {span}s, body_time: {span}s, idle_time: {span}s")
    value = token("read", "send")
    daemon = Daemon()
    start(daemon.wire(), "c-1")
    target = "/v1/machines/counter/instances/c-1/events"
    head = f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with daemon.wire(value) as other:
        wait_until(lambda: other.get("/v1/status").status == 200, "it is known")
    header, body, used = [Wire(daemon.address).open() for _ in range(3)]
    header.send(b"GET /livez HTTP/1.1\r\nHost: loc")
    body.send(f"{head}Authorization: Bearer {value}\r\nContent-Length: 5000\r\n\r\n{{".encode())
    equal(used.get("/livez").status, 200)
    idle, silent = [Wire(daemon.address).open() for _ in range(2)]
    equal(header.answer().status, 408)
    equal(body.answer().status, 408)
    for wire in (silent, idle, used):
        check(wire.hung_up(), "it was kept, or told something")
    equal(daemon.wire().get("/v1/machines/counter/instances/c-1").json["sequence"], 0)
    daemon.stop()


# No process waits longer than ten minutes, so that nothing stays if the test fails.
WAIT = "for n in $(seq 12000); do test -e go && break; sleep 0.05; done"
SLOW = f"""#!/bin/sh
echo $$ >> dots
{WAIT}
"""
STUBBORN = f"""tasks:
  stubborn: {{run: [sh, -c, 'trap "" TERM; echo there; {WAIT}'], grace: 20m}}
"""


def slow_project():
    """Drawings wait for a file, and a task for what never comes."""
    with_limits(f"waiting_max: 16, request_time: {stretch(6)}s")
    with open("detent.yaml", "a", encoding="ascii") as file:
        file.write(STUBBORN)
    Path("bin").mkdir()
    Path("bin/dot").write_text(SLOW)
    Path("bin/dot").chmod(0o755)
    return {"PATH": f"{Path('bin').resolve()}:{os.environ['PATH']}"}


def test_slow_requests_do_not_block_others():
    daemon = Daemon(env=environment() | slow_project())
    daemon.wait_for("stubborn.*there")
    drawing = request("GET", "/v1/machines/counter/diagram?format=svg")
    begun = Path("dots")

    def ask(count):
        wires = [Wire(SOCKET).open() for _ in range(count)]
        for wire in wires:
            wire.send(drawing)
        return wires
    stop = Wire(SOCKET).open()
    stop.send(request("POST", "/v1/tasks/stubborn/stop", {"wait": True}))
    first = ask(4)
    wait_until(lambda: begun.exists() and len(begun.read_text().split()) == 4, "all threads wait")
    stream = Stream(SOCKET, "/v1/events?topics=log")
    equal(stream.next().name, "hello")
    # Closed connections leave nothing; writes, the log and sign-ins continue.
    for _ in range(5):
        for wire in ask(20):
            wire.close()
        start(daemon.wire(), f"c-{time.monotonic_ns()}")
        equal(stream.until("log").data["type"], "start")
    with Wire(daemon.address) as console:
        answer = console.post("/v1/session", {"code": daemon.code})
        console.token = answer.json["token"]
        check(console.ask("DELETE", "/v1/session").status in (200, 204), "it signs out, too")
    # This many may wait; others are refused with a time to retry.
    waiting = ask(16)
    for wire in ask(3):
        answer = wire.answer()
        equal((answer.status, answer.json["error"]["code"]), (503, "BUSY"))
        equal(answer.headers["retry-after"], "1")
    equal(daemon.wire().get("/livez").status, 200)
    # No request waits longer than the limit; each is answered once, and its connection stays.
    for wire in first + waiting:
        answer = wire.answer()
        equal((answer.status, answer.json["error"]["code"]), (504, "TIMEOUT"))
        check("may still take effect" not in answer.json["error"]["text"], answer)
        equal(wire.get("/livez").status, 200)
    # A call without a client is abandoned.
    wait_until(lambda: not any(map(shop.up.is_there, begun.read_text().split())), "no dot")
    Path("go").touch()
    # An order that waits has no time limit: it is answered when the task has ended.
    equal(stop.answer().status, 200)
    equal(stop.get("/livez").status, 200)
    # Of the hundred closed requests none was begun, except those that threads had already.
    equal(daemon.wire().get("/v1/machines").status, 200)
    check(len(begun.read_text().split()) <= 4 + 4 + len(waiting), begun.read_text())
    stream.close()
    daemon.stop()


def test_a_write_that_takes_too_long_may_still_happen():
    """Another program holds the lock of the store, so a commit waits; its client does not."""
    with_limits("request_time: 500ms")
    daemon = Daemon()
    wire = daemon.wire()
    instances = "/v1/machines/counter/instances"
    wait_until(lambda: wire.post(instances, {"id": "c-1"}, "begin").status in (200, 201),
               "it is there")
    store = sqlite3.connect("shop.db", timeout=shop.up.PATIENCE, isolation_level=None)
    store.execute("BEGIN IMMEDIATE")
    answer = add(wire, "c-1", 7, "late")
    equal((answer.status, answer.json["error"]["code"]), (504, "TIMEOUT"))
    check("may still take effect; retry with the same Idempotency-Key" in
          answer.json["error"]["text"], answer)
    equal(wire.get("/livez").status, 200)
    store.execute("ROLLBACK")
    store.close()
    # It happens once, however often it is asked for again.
    wait_until(lambda: add(wire, "c-1", 7, "late").status == 200, "it has happened")
    equal(add(wire, "c-1", 7, "late").status, 200)
    wait_until(lambda: wire.get(f"{instances}/c-1").json.get("sequence") == 1, "it is the only one")
    daemon.stop()


def test_a_shorter_time_after_a_reload_does_not_wait_for_older_calls():
    """A call that waits for the store is older, and has more time than the next one."""
    with_limits("request_time: 5m")
    text = Path("detent.yaml").read_text() + "slots: {jobs: {durable: yes}}\n"
    Path("detent.yaml").write_text(text)
    daemon = Daemon()
    wire = daemon.wire()
    wait_until(lambda: wire.post("/v1/machines/counter/instances", {"id": "c-1"}, "begin").status
               in (200, 201), "it is there")
    store = sqlite3.connect("shop.db", timeout=shop.up.PATIENCE, isolation_level=None)
    store.execute("BEGIN IMMEDIATE")
    older = Wire(SOCKET).open()
    older.send(request("POST", "/v1/slots/jobs/submissions/none/cancel", {}))
    Path("detent.yaml").write_text(text.replace("request_time: 5m", "request_time: 500ms"))
    answer = wire.post("/v1/reload", {})
    check(answer.json["is_applied"], answer)
    begin = now()
    # Over a new connection: an older one keeps its limits.
    equal(add(daemon.wire(), "c-1", 7, "late").status, 504)
    check(now() - begin < stretch(60), "the timeout was late")
    store.execute("ROLLBACK")
    store.close()
    equal(older.answer().status, 404)
    daemon.stop()


SPARE = 12


def leave_few_descriptors(number):
    """As many as a process has now, whatever it needs for itself, and some for connections."""
    highest = max(int(name) for name in os.listdir(f"/proc/{number}/fd"))
    limit = highest + 1 + SPARE
    resource.prlimit(number, resource.RLIMIT_NOFILE, (limit, limit))


def test_server_recovers_from_descriptor_exhaustion():
    with_limits("idle_time: 1m")
    daemon = Daemon()
    keeper, follower = daemon.wire().open(), daemon.wire().open()
    start(keeper, "c-1")
    equal(follower.get("/livez").status, 200)
    leave_few_descriptors(daemon.number)
    storm = []
    for _ in range(120):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(daemon.address)
        storm.append(one)
    # Who is inside is served, writes included: the store has what it needs. Who follows needs it
    # open once more, and waits for that.
    stream = Stream.over(follower, "/v1/events?after=0")
    for number in range(20):
        equal(add(keeper, "c-1", number).status, 200)
    before = shop.seconds_of(daemon.number)
    threading.Event().wait(1.5)
    used = shop.seconds_of(daemon.number) - before
    check(used < 0.3, f"{used:.2f} s of CPU in 1.5 s: it is busy with nothing")
    check(daemon.process.poll() is None, daemon.shown())
    for one in storm:
        one.close()

    def again():
        try:
            with Wire(daemon.address, patience=2) as wire:
                return wire.get("/livez").status == 200
        except Gone:
            return False
    wait_until(again, "it accepts again")
    equal(add(keeper, "c-1", 99).status, 200)
    positions = []
    while len(positions) < 22:
        event = stream.next()
        if event.name == "dropped":
            stream.close()
            stream = Stream(SOCKET, f"/v1/events?after={len(positions)}")
        elif event.name == "log":
            positions.append(event.data["position"])
    equal(positions, list(range(1, 23)))
    keeper.close()
    stream.close()
    daemon.stop()


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
