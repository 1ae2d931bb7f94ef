#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Events are published once, in the order of the log, over crashes and to slow readers, too.

    events.py DETENT NASTY_CHILD [PART_OF_A_NAME]
"""
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import shop
from patience import stretch
from shop import (SOCKET, Daemon, Gone, Stream, Wire, Wrong, add, check, equal, project, start,
                  token, wait_until)
from wire import together

WRITERS = 4


def many(counters, rounds):
    """So many times 64 events of each counter, in one commit each."""
    def work(n):
        with Wire(SOCKET) as wire:
            for number in range(rounds):
                adds = [{"event": "add", "payload": {"number": number * 64 + k}} for k in range(64)]
                answer = wire.post(f"/v1/machines/counter/instances/c-{n}/batch", {"events": adds})
                check(answer.status == 200, answer)
    together(counters, work)
    return counters * rounds * 64


def log_of(wire):
    """All of the log, by pages: position, instance and number."""
    rows, after = [], 0
    while after is not None:
        page = wire.get(f"/v1/log?after={after}&limit=1000").json
        rows += page["items"]
        after = page["next"]
    return rows


def brief(row):
    return (row["position"], row["machine"], row["id"], row["sequence"])


class Reader(threading.Thread):
    """Follows the log from its beginning, and comes back with its last id when it is cut off."""

    def __init__(self, target="/v1/events?after=0"):
        super().__init__(daemon=True)
        self.target, self.rows, self.last, self.returns = target, [], None, 0
        self.over, self.stream, self.problem = threading.Event(), None, None
        shop.up.running.append(self)
        self.start()

    def run(self):
        while not self.over.is_set():
            try:
                self.stream = Stream(SOCKET, self.target, last=self.last)
                self.follow()
            except (Gone, OSError, Wrong) as problem:
                # A daemon that is away, or about to end; it is asked again when it is back.
                self.problem = problem
                self.over.wait(0.01)
            self.returns += 1

    def follow(self):
        while (event := self.stream.next()) is not None and event.name != "dropped":
            if event.name == "log":
                equal(event.id, str(event.data["position"]))
                self.rows.append(event.data)
                self.last = event.id

    def has(self, count):
        """Waits for so many; that they come only to who asks again counts as not coming."""
        wait_until(lambda: len(self.rows) >= count or "timed out" in str(self.problem),
                   f"{count} events")
        check(len(self.rows) >= count, f"of {count} events {len(self.rows)} came: {self.problem}")

    def end(self):
        self.kill()
        return self.rows

    def kill(self):
        """Also for the end of a test that failed: it would come to the daemon of the next one."""
        self.over.set()
        try:
            self.stream.wire.socket.shutdown(socket.SHUT_RDWR)
        except (OSError, AttributeError):
            pass
        self.join()


def test_a_reader_resumes_over_crashes_with_several_writers():
    project(shop.COUNTERS)
    daemon = Daemon()
    for n in range(WRITERS):
        start(daemon.wire(), f"c-{n}")
    readers = [Reader(), Reader("/v1/events?after=0&machine=counter"),
               Reader("/v1/events?after=0&id=c-1")]
    told, enough = [], threading.Event()

    def write(n):
        wire, number = Wire(SOCKET), 0
        while not enough.is_set():
            try:
                answer = add(wire, f"c-{n}", number, f"w{n}-{number}")
                if answer.status == 200:
                    told.append((f"c-{n}", number))
                    number += 1
            except (Gone, OSError):
                enough.wait(0.005)
    writers = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
    for writer in writers:
        writer.start()
    for _ in range(3):
        count = len(told)
        wait_until(lambda c=count: len(told) >= c + 60, "events are acknowledged")
        daemon.kill_hard()
        daemon = Daemon()
    count = len(told)
    wait_until(lambda: len(told) >= count + 60, "events are acknowledged")
    enough.set()
    for writer in writers:
        writer.join()
    rows = log_of(daemon.wire())
    numbers = [(row["id"], row["payload"]["number"]) for row in rows if row["type"] == "event"]
    # A key makes one event of all its requests: what was acknowledged is there once.
    equal(len(set(numbers)), len(numbers))
    check(set(told) <= set(numbers), "what was acknowledged is lost")
    positions = [row["position"] for row in rows]
    equal(positions, sorted(set(positions)))
    for reader in readers[:2]:
        reader.has(len(rows))
        equal(list(map(brief, reader.end())), list(map(brief, rows)))
        check(reader.returns >= 3, f"it was never cut off: {reader.returns}")
    only = [brief(row) for row in rows if row["id"] == "c-1"]
    readers[2].has(len(only))
    equal(list(map(brief, readers[2].end())), only)
    daemon.stop()


def test_stream_begins_at_the_requested_position():
    project(shop.PROJECT)
    daemon = Daemon()
    wire = daemon.wire()
    start(wire, "c-1")
    start(wire, "o-1", "order")
    for number in range(5):
        add(wire, "c-1", number)
    rows = log_of(wire)
    third = rows[2]["position"]

    def first(target, last=None, count=1):
        stream = Stream(SOCKET, target, last=last)
        hello = stream.next()
        equal(hello.name, "hello")
        found = [stream.until("log") for _ in range(count)]
        stream.close()
        return hello, [brief(event.data) for event in found]
    hello, found = first(f"/v1/events?after={third}")
    equal(found, [brief(rows[3])])
    equal(hello.data["position"], third)
    equal(first("/v1/events", last=str(third))[1], [brief(rows[3])])
    # Who says both has come back to a link that it once began with.
    equal(first("/v1/events?after=0", last=str(third))[1], [brief(rows[3])])
    equal(first("/v1/events?after=0&machine=order")[1], [brief(rows[1])])
    equal(first("/v1/events?after=0&id=o-1")[1], [brief(rows[1])])
    equal(first("/v1/events?after=0&topics=log&machine=counter&id=c-1", count=6)[1],
          [brief(row) for row in rows if row["id"] == "c-1"])
    # Without a place it begins with what comes.
    stream = Stream(SOCKET, "/v1/events")
    equal(stream.next().data["position"], rows[-1]["position"])
    add(wire, "c-1", 77)
    equal(stream.until("log").data["payload"]["number"], 77)
    stream.close()
    with Wire(SOCKET) as other:
        for last in ("x", "-1", "1.5", "9" * 20, ""):
            answer = other.get("/v1/events", **{"Last-Event-ID": last})
            check(answer.status == 400, f"{last!r}: {answer}")
    # A position that has not come yet is one of another log: it begins where this one ends.
    stream = Stream(SOCKET, "/v1/events?after=999999999")
    equal(stream.next().data["position"], log_of(wire)[-1]["position"])
    add(wire, "c-1", 78)
    equal(stream.until("log").data["payload"]["number"], 78)
    stream.close()
    daemon.stop()


def test_reader_far_behind_catches_up():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    for n in range(10):
        start(wire, f"c-{n}")
    count = many(10, 16)
    check(count > 10000)
    reader = Reader()
    reader.has(5000)
    # Meanwhile it continues.
    for number in range(20):
        equal(add(wire, "c-0", number).status, 200)
    reader.has(10 + count + 20)
    rows = reader.end()
    positions = [row["position"] for row in rows]
    equal(positions, sorted(set(positions)))
    equal(len(rows), 10 + count + 20)
    daemon.stop()


def metric(wire, name):
    line = re.search(rf"^{name} (\d+)", wire.get("/metrics").body.decode(), re.MULTILINE)
    return int(line[1]) if line else None


def rest_of(stream):
    """All that comes until it ends as it should."""
    return list(iter(stream.next, None))


def test_slow_reader_and_revoked_token_are_disconnected():
    project(shop.COUNTERS.replace("rate: unlimited", "rate: unlimited, limits: {unread_max: 64KiB, "
                                  "sse_queue: 64}") + "tasks: {talker: {run: sleep 600}}\n")
    daemon = Daemon()
    wire = daemon.wire()
    for n in range(10):
        start(wire, f"c-{n}")
    keys = [token("read"), token("read", expires=f"{stretch(4)}s")]
    for key in keys:
        wait_until(lambda: daemon.wire(key).get("/v1/status").status == 200, "it is known")
    lost = [Stream(daemon.address, target, token=key) for key in keys
            for target in ("/v1/events", "/v1/tasks/talker/logs?follow=true")]
    kept = Stream(daemon.address, "/v1/events", token=token("read"))
    subprocess.run([shop.DETENT, "token", "revoke", keys[0].split("_")[1]], check=True,
                   env=shop.environment(), capture_output=True)
    slow = Stream(SOCKET, "/v1/events?topics=log")
    equal(slow.next().data["position"], 10)
    # More than it is given to read, and not so much that it would have to catch up.
    count = many(10, 6)
    # It reads nothing until it is dropped. What it finds then is a beginning of the log without
    # holes, and where it goes on.
    wait_until(lambda: metric(wire, "detent_sse_dropped_total") == 1, "the slow one is dropped")
    told = rest_of(slow)
    rows = [event.data for event in told if event.name == "log"]
    check(0 < len(rows) < count - 64, f"{len(rows)} of {count} rows")
    equal((told[-1].data["why"], told[-1].data["position"]), ("too slow", rows[-1]["position"]))
    reader = Reader(f"/v1/events?after={rows[-1]['position']}")
    reader.has(count - len(rows))
    rows += reader.end()
    equal(list(map(brief, rows)), list(map(brief, log_of(wire)[10:])))
    # Revoked, or expired: with a word.
    for stream in lost:
        equal(rest_of(stream)[-1].data["why"], "its token has expired or was revoked")
    add(wire, "c-1", 4711)
    while kept.until("log").data["payload"]["number"] != 4711:
        pass
    kept.close()
    daemon.stop()


BLOB = """#define FSM_NAME blob
#define FSM_PREFIX BLOB
#define FSM_DATA blob_data
RECORD(text)
    FIELD(text, str(65000))
END
RECORD(blob_data)
    FIELD(number, u64)
END
STATE(TAKING, taking, INITIAL)
STATE(OVER, over, FINAL)
EVENT(TAKE, take, text)
EVENT(FINISH, finish)
STAY(TAKING, TAKE)
ON(TAKING, FINISH, OVER)
"""
BLOBS = 64
PAGE = 256 << 10


def resident(daemon):
    return int(Path(f"/proc/{daemon.number}/statm").read_text().split()[1]) * 4096


def with_blobs(more="", unread="32KiB"):
    """A daemon whose rows are longer than what may wait for a reader."""
    project("""version: 1
store: sqlite:shop.db
http: {rate: unlimited, limits: {unread_max: @}}
machines: {blob: {effects: {}}}
""".replace("@", unread) + more)
    Path("blob.fsm").write_text(BLOB)
    # What is freed is not kept, where a sanitizer would.
    daemon = Daemon(env=shop.environment({"ASAN_OPTIONS": "quarantine_size_mb=1"}))
    wire = daemon.wire()
    start(wire, "b-1", "blob")
    for n in range(BLOBS):
        answer = wire.post("/v1/machines/blob/instances/b-1/events",
                           {"event": "take", "payload": {"text": chr(65 + n % 26) * 60000}})
        equal(answer.status, 200)
    return daemon, wire


def test_other_events_do_not_disconnect_a_reader_of_a_long_row():
    daemon, _ = with_blobs("tasks:\n  short: {run: [sh, -c, 'until test -e go; do sleep 0.01; "
                           "done'], restart: never}\n", "1KiB")
    idle, other = (Stream(SOCKET, f"/v1/events?after={after}") for after in (0, BLOBS + 1))
    equal(idle.next().name, "hello")
    drain = subprocess.Popen([shop.DETENT, "drain", "--wait"], env=shop.environment(),
                             stderr=subprocess.DEVNULL)
    try:
        # The other one came later, so it is published later.
        while (event := other.next()).name != "status" or event.data["state"] != "draining":
            pass
        seen = {"log": 0, "status": []}
        while seen["log"] <= BLOBS or "draining" not in seen["status"]:
            event = idle.next()
            check(event is not None and event.name != "dropped", f"cut off after {seen}")
            if event.name == "log":
                seen["log"] += 1
            elif event.name == "status":
                seen["status"].append(event.data["state"])
    finally:
        Path("go").touch()
    equal(drain.wait(shop.up.PATIENCE), 0)
    daemon.process.wait(shop.up.PATIENCE)


def test_long_rows_are_returned_in_short_pages():
    daemon, wire = with_blobs()
    for target, count in (("/v1/log?limit=1000", BLOBS + 1), ("/v1/log?backward=true", BLOBS + 1),
                          ("/v1/machines/blob/instances/b-1/history?limit=1000", BLOBS + 1)):
        rows, after, pages = [], "", 0
        while after is not None:
            answer = wire.get(target + after)
            check(len(answer.body) < PAGE + 70000, f"{target}: {len(answer.body)}")
            rows += answer.json["items"]
            following, pages = answer.json["next"], pages + 1
            after = None if following is None else f"&after={following}"
        sequences = [row.get("sequence") or 0 for row in rows]
        equal(sequences, sorted(range(count), reverse="backward" in target))
        check(pages > count * 60000 // (PAGE + 70000), f"{pages} pages")
    # Rows longer than what may wait come one by one, on one connection.
    reader = Reader()
    reader.has(BLOBS + 1)
    equal(reader.returns, 0)
    equal([row["position"] for row in reader.end()], list(range(1, BLOBS + 2)))
    # A client that does not read holds a row, and not a page of them.
    before = resident(daemon)
    idle = [Stream(SOCKET, "/v1/events?after=0") for _ in range(40)]
    for stream in idle:
        equal(stream.next().name, "hello")
    reader = Reader()
    reader.has(BLOBS + 1)
    reader.end()
    grown = resident(daemon) - before
    check(grown < 96 << 20, f"{grown >> 20} MiB for 40 who do not read")
    for stream in idle:
        stream.close()
    daemon.stop()


def test_many_readers_get_the_same_events():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    start(wire, "c-1")
    streams = [Stream(SOCKET, "/v1/events?after=0") for _ in range(200)]
    for number in range(5):
        equal(add(wire, "c-1", number).status, 200)
    rows = [brief(row) for row in log_of(wire)]
    for stream in streams:
        equal([brief(stream.until("log").data) for _ in rows], rows)
        stream.close()
    equal(add(wire, "c-1", 6).status, 200)
    daemon.stop()


def test_tasks_and_their_lines_can_be_followed():
    project("""version: 1
http: {rate: unlimited}
tasks:
  talker: {run: [sh, -c, 'echo first; until test -e go; do sleep 0.01; done; echo second;
           exec sleep 600']}
  other: {run: sleep 600}
""")
    daemon = Daemon()
    daemon.wait_for("talker.*first")
    stream = Stream(SOCKET, "/v1/events?topics=tasks")
    lines = Stream(SOCKET, "/v1/tasks/talker/logs?follow=true&lines=10")
    equal(lines.head.type, "text/event-stream")
    equal(lines.next().data["text"], "first")
    Path("go").touch()
    equal(lines.next().data["text"], "second")
    hello = stream.next()
    equal(hello.name, "hello")
    answer = daemon.wire().post("/v1/tasks/other/stop", {"wait": True})
    equal(answer.status, 200)
    event = stream.until("task")
    while event.data.get("name") != "other":
        event = stream.until("task")
    check(event.id is None and event.data["event"], event)
    lines.close()
    stream.close()
    daemon.stop()


def test_streams_end_when_the_daemon_does():
    project(shop.COUNTERS + "tasks: {talker: {run: sleep 600}}\n")
    daemon = Daemon()
    start(daemon.wire(), "c-1")
    streams = [Stream(SOCKET, target) for target in ("/v1/tasks/talker/logs?follow=true",
                                                     "/v1/events", "/v1/events?after=0&topics=log")]
    for stream in streams[1:]:
        equal(stream.next().name, "hello")
    daemon.send(signal.SIGTERM)
    # A chunk of no length says that nothing is missing; a connection that breaks off does not.
    for stream in streams:
        told = rest_of(stream)
        check({event.name for event in told} <= {"log", "status", "task", "dropped"}, told)
        equal((told[-1].name, told[-1].data["why"]),
              ("dropped", "detent is shutting down; retry later"))
        stream.close()
    daemon.end()


def test_streams_are_limited_and_begin_with_hello():
    project(shop.COUNTERS.replace("unlimited", "unlimited, limits: {sse_subscribers: 5}") +
            "tasks: {talker: {run: sleep 600}}\n")
    daemon = Daemon()
    targets = ("/v1/events", "/v1/tasks/talker/logs?follow=true")
    with daemon.wire() as wire:
        # A HEAD gets the head of a stream, but no stream: it uses no place.
        heads = [wire.ask("HEAD", target) for target in targets * 4]
        for answer in heads:
            equal((answer.status, answer.body, answer.type), (200, b"", "text/event-stream"))
        equal(wire.ask("HEAD", "/v1/tasks/nobody/logs?follow=true").status, 404)
        streams = [Stream(SOCKET, target) for target in (*targets, *targets, targets[0])]
        equal(metric(wire, "detent_sse_subscribers"), 5)
        for answer in heads + [stream.head for stream in streams]:
            for name, value in shop.SAFE.items():
                equal(answer.headers[name], value)
        # So does every other answer, the server's own words included.
        for method, target, status in (("GET", "/none.txt", 404), ("POST", "/", 405),
                                       ("GET", "/v1/none", 404), ("GET", "/v1/status", 200)):
            answer = wire.ask(method, target, {} if method == "POST" else None)
            equal((answer.status, answer.headers | shop.SAFE), (status, answer.headers))
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
        answer = wire.answer()
        equal((answer.status, answer.headers | shop.SAFE), (400, answer.headers))
        for target in targets:
            answer = wire.get(target)
            equal((answer.status, answer.json["error"]["code"]), (503, "LIMIT"))
            equal(answer.headers["retry-after"], "1")
        # A closed stream is forgotten: there is room for others, again and again.
        for target in targets * 10:
            streams.pop(0).close()
            wait_until(lambda: metric(wire, "detent_sse_subscribers") == 4, "one is forgotten")
            streams.append(Stream(SOCKET, target))
        # The time that they were open is not an answer time.
        equal(metric(wire, re.escape('detent_http_request_duration_seconds_count'
                                     '{route="/v1/events"}')), 5)
    for stream in streams:
        stream.close()
    daemon.stop()


def test_daemon_state_changes_are_streamed():
    project(shop.COUNTERS + "tasks: {stubborn: {run: [sh, -c, 'trap \"\" TERM; echo there; "
            "for n in $(seq 600); do test -e go && break; sleep 0.05; done']}}\n")
    daemon = Daemon()
    daemon.wait_for("stubborn.*there")
    streams = [Stream(SOCKET, target) for target in ("/v1/events", "/v1/events?topics=log")]
    for stream in streams:
        equal(stream.next().name, "hello")
        equal(stream.until("status").data, {"state": "running", "away": None})
    late = Stream(SOCKET, "/v1/events")
    equal([late.next().name for _ in range(2)], ["hello", "status"])
    # The bus of tasks is followed while there is a listener, and again for the next one.
    for stream in (late, streams.pop(0)):
        stream.close()
    streams.append(Stream(SOCKET, "/v1/events?topics=tasks"))
    equal(streams[-1].until("status").data["state"], "running")
    daemon.send(signal.SIGTERM)
    wanted = {("status", "stopping"), ("task", "stubborn")}
    while wanted:
        event = streams[-1].next()
        wanted -= {(event.name, event.data.get("state")), (event.name, event.data.get("name"))}
    Path("go").touch()
    daemon.end()


def test_stream_without_a_position_begins_now():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    start(wire, "c-1")
    stream = Stream(SOCKET, "/v1/events")
    equal(stream.next().name, "hello")
    stream.close()
    # There is no listener while this happens.
    for number in range(5):
        equal(add(wire, "c-1", number).status, 200)
    stream = Stream(SOCKET, "/v1/events")
    position = stream.next().data["position"]
    equal(add(wire, "c-1", 9).status, 200)
    equal(stream.until("log").data["position"], position + 1)
    equal(position, 6)
    stream.close()
    daemon.stop()


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
