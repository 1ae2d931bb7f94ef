#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""What the commands ask of the daemon: calls that wait, streams of lines, links to the console.

    door.py DETENT NASTY_CHILD [PART_OF_A_NAME]
"""
import os
import sys
import threading
from pathlib import Path

import shop
from shop import SOCKET, Daemon, Stream, Wire, check, equal, project, start, token, wait_until
from wire import request, together

TASKS = """version: 1
http: {rate: unlimited}
slots:
  batch: {width: 1, depth: 3}
tasks:
  ticker: {run: [sh, -c, 'echo one; exec sleep 600'], ready: started}
  other: {run: [sh, -c, 'echo two; exec sleep 600'], ready: started}
"""
BATCH = "/v1/slots/batch/submissions"
# A job that ends when somebody opens the gate.
GATED = {"run": ["sh", "-c", "read line <gate"], "wait": True}


def world():
    project(TASKS)
    daemon = Daemon()
    daemon.wait_for("ticker.*one")
    daemon.wait_for("other.*two")
    return daemon, daemon.wire()


def states(wire):
    return {task["name"]: task["state"] for task in wire.get("/v1/tasks").json["items"]}


def parked(target, body):
    """A call that was sent, and whose answer is not there yet."""
    wire = Wire(SOCKET)
    wire.send(request("POST", target, body))
    return wire


def test_a_submission_that_waits_is_told_how_the_job_ended():
    daemon, _ = world()
    stream = Stream.over(Wire(SOCKET), BATCH, {"run": ["sh", "-c", "exit 3"], "wait": True})
    submitted, end = stream.next(), stream.next()
    equal((submitted.name, submitted.data["kind"]), ("submitted", "submitted"))
    equal((end.name, end.data["id"]), ("end", submitted.data["id"]))
    equal((end.data["outcome"], end.data["exit_code"]), ("failed", 3))
    equal(stream.next(), None)
    daemon.stop()


def test_a_submission_that_is_not_taken_is_an_error_and_no_stream():
    daemon, wire = world()
    answer = wire.post(BATCH, {"run": ["true"], "name": "ticker", "wait": True})
    equal((answer.status, answer.json["error"]["code"]), (409, "EXISTS"))
    answer = wire.post("/v1/slots/nobody/submissions", {"run": ["true"], "wait": True})
    equal(answer.status, 404)
    equal(wire.post("/v1/slots/nobody/submissions", {"run": ["true"], "new_slot": True}).status,
          201)
    daemon.stop()


def test_a_job_that_is_waited_for_ends_also_when_all_stops():
    daemon, wire = world()
    stream = Stream.over(Wire(SOCKET), BATCH, {"run": ["sleep", "600"], "wait": True})
    equal(stream.next().name, "submitted")
    equal(wire.post("/v1/stop", {}).status, 200)
    end = stream.until("end")
    equal(end.data["outcome"], "cancelled")
    daemon.end()


def test_an_order_that_waits_is_answered_when_it_has_happened():
    daemon, wire = world()
    answer = wire.post("/v1/tasks/ticker/stop", {"wait": True})
    equal((answer.status, answer.json), (200, {"kind": "done", "count": 1}))
    equal(states(wire)["ticker"], "stopped")
    wire.post("/v1/tasks/ticker/restart", {"wait": True})
    equal(states(wire)["ticker"], "running")
    answer = wire.post("/v1/tasks/ticker/restart", {"purge": True})
    equal(answer.status, 400)
    daemon.stop()


def test_a_purge_empties_the_queue_of_a_slot():
    daemon, wire = world()
    for _ in range(3):
        equal(wire.post(BATCH, {"run": ["sleep", "600"]}).status, 201)
    answer = wire.post("/v1/tasks/batch/stop", {"purge": True, "wait": True})
    equal((answer.status, answer.json["count"]), (200, 3))
    equal(wire.get("/v1/slots").json["items"][0]["depth"], 0)
    daemon.stop()


def test_a_stop_of_all_that_waits_is_answered_when_all_has_stopped():
    for order in ("stop", "drain"):
        project("version: 1\nslots: {batch: {width: 1}}\nhttp: {rate: unlimited}\n"
                "tasks: {ticker: {run: [sh, -c, 'read line <gate'], ready: started}}\n")
        if not os.path.exists("gate"):
            os.mkfifo("gate")
        daemon = Daemon()
        daemon.wait_for("ticker.*started")
        caller = parked(f"/v1/{order}", {"wait": True})
        if order == "drain":
            wait_until(lambda: daemon.wire().get("/v1/status").json["state"] == "draining",
                       "it drains")
            open_gate()
        answer = caller.answer()
        equal((answer.status, answer.json["kind"]), (200, "done"))
        daemon.end()


def test_who_goes_away_while_it_waits_leaves_nothing():
    daemon, wire = world()
    for _ in range(100):
        # Their orders are given all the same.
        caller = parked("/v1/drain", {"wait": False, "nonsense": 1})
        equal(caller.answer().status, 400)
        caller.close()
    stream = Stream.over(Wire(SOCKET), BATCH, {"run": ["sleep", "600"], "wait": True})
    equal(stream.next().name, "submitted")
    stream.close()
    waiting = [parked("/v1/slots/batch/submissions", {"run": ["true"], "wait": True})
               for _ in range(3)]
    for caller in waiting:
        caller.close()
    equal(states(wire)["ticker"], "running")
    equal(wire.post("/v1/stop", {"wait": True}).status, 200)
    daemon.end()


def open_gate():
    with open("gate", "w", encoding="utf-8") as gate:
        gate.write("go\n")


def test_a_reload_cuts_off_nobody():
    machines = TASKS + "store: sqlite:shop.db\nmachines: {counter: {effects: {}}}\n"
    project(machines)
    os.mkfifo("gate")
    daemon = Daemon()
    daemon.wait_for("ticker.*one")
    wire = daemon.wire()
    start(wire, "c-1")
    lines = Stream(SOCKET, "/v1/lines?task=other&follow=true")
    equal(lines.next().data["text"], "two")
    log = Stream(SOCKET, "/v1/events?after=0")
    equal(log.until("log").data["id"], "c-1")
    job = Stream.over(Wire(SOCKET), BATCH, GATED)
    equal(job.next().name, "submitted")
    for number, text in ((2, machines.replace("effects: {}", "effects: {}, spec: other.fsm")),
                         (3, machines.replace("rate: unlimited", "rate: 7")),
                         (4, machines)):
        Path("other.fsm").write_text(shop.COUNTER)
        Path("detent.yaml").write_text(text)
        # The caller of a reload is one of those who go on.
        answer = wire.post("/v1/reload", {})
        equal((answer.status, answer.json["is_right"], answer.json["is_applied"]),
              (200, True, True))
        check(answer.json["items"], answer.json)
        start(wire, f"c-{number}")
        equal(log.until("log").data["id"], f"c-{number}")
        wire.post("/v1/tasks/other/restart", {"wait": True})
        equal(lines.next().data["text"], "two")
    open_gate()
    equal(job.next().data["outcome"], "completed")
    for each in (lines, log):
        each.close()
    daemon.stop()


def test_what_comes_while_a_reload_is_on_its_way_is_answered_after_it():
    project(TASKS + "store: sqlite:shop.db\nmachines: {counter: {effects: {}}}\n")
    daemon = Daemon()
    text = Path("detent.yaml").read_text()
    start(daemon.wire(), "c-1")
    stop_wanted, sent = threading.Event(), [0] * 4

    def send(number):
        wire = daemon.wire()
        while not stop_wanted.is_set():
            answer = shop.add(wire, "c-1", number, f"{number}-{sent[number]}")
            check(answer.status == 200 and not answer.json["duplicate"], answer)
            sent[number] += 1
            equal(wire.get("/v1/machines/counter/instances/c-1").status, 200)

    def reload():
        wire = daemon.wire()
        for rate in ("7", "unlimited") * 3:
            Path("detent.yaml").write_text(text.replace("rate: unlimited", f"rate: {rate}") +
                                           "# " + rate)
            Path("counter.fsm").write_text(shop.COUNTER + f"// {rate}\n")
            answer = wire.post("/v1/reload", {})
            check(answer.json["is_applied"], answer)
        stop_wanted.set()
    together(5, lambda number: reload() if number == 4 else send(number))
    equal(daemon.wire().get("/v1/machines/counter/instances/c-1").json["sequence"], sum(sent))
    check(min(sent) > 0, sent)
    daemon.stop()


def test_lines_of_some_tasks_and_of_all():
    daemon, wire = world()
    stream = Stream(SOCKET, "/v1/lines?task=ticker,other&follow=true")
    equal({stream.next().data["text"] for _ in range(2)}, {"one", "two"})
    wire.post("/v1/tasks/other/restart", {"wait": True})
    equal(stream.next().data["text"], "two")
    stream.close()
    equal([i["text"] for i in wire.get("/v1/lines?task=ticker").json["items"]], ["one"])
    equal(wire.get("/v1/lines?task=,").status, 400)
    daemon.stop()


def test_events_of_tasks_go_on_where_they_were_left():
    daemon, wire = world()
    before = wire.get("/v1/task-events").json["items"]
    equal([e["sequence"] for e in before], list(range(1, len(before) + 1)))
    stream = Stream(SOCKET, f"/v1/task-events?follow=true&after={len(before)}")
    fresh = Stream(SOCKET, "/v1/task-events?follow=true&new=true")
    wire.post("/v1/tasks/other/restart", {"wait": True})
    for each in (stream, fresh):
        equal(each.next().data["sequence"], len(before) + 1)
        each.close()
    daemon.stop()


def test_a_link_to_the_console_is_for_the_unix_socket_alone():
    project(TASKS)
    value = token("admin")
    daemon = Daemon()
    answer = daemon.wire(value).post("/v1/console-links", {})
    equal((answer.status, answer.json["error"]["code"]), (422, "REFUSED"))
    link = daemon.wire().post("/v1/console-links", {}).json["url"]
    with Wire(daemon.address) as wire:
        equal(wire.post("/v1/session", {"code": link.partition("#code=")[2]}).status, 200)
    daemon.stop()


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
