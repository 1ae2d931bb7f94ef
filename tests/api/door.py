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


def test_waiting_submission_gets_the_end_of_its_job():
    daemon, _ = world()
    stream = Stream.over(Wire(SOCKET), BATCH, {"run": ["sh", "-c", "exit 3"], "wait": True})
    submitted, end = stream.next(), stream.next()
    equal((submitted.name, submitted.data["kind"]), ("submitted", "submitted"))
    equal((end.name, end.data["id"]), ("end", submitted.data["id"]))
    equal((end.data["outcome"], end.data["exit_code"]), ("failed", 3))
    equal(stream.next(), None)
    daemon.stop()


def test_refused_submission_is_an_error_and_not_a_stream():
    daemon, wire = world()
    answer = wire.post(BATCH, {"run": ["true"], "name": "ticker", "wait": True})
    equal((answer.status, answer.json["error"]["code"]), (409, "EXISTS"))
    answer = wire.post("/v1/slots/nobody/submissions", {"run": ["true"], "wait": True})
    equal(answer.status, 404)
    equal(wire.post("/v1/slots/nobody/submissions", {"run": ["true"], "new_slot": True}).status,
          201)
    daemon.stop()


def test_invalid_submission_members_are_refused():
    daemon, wire = world()
    for member, sentence in (
            ({"run": "true"}, "'run' of a submission must be an array of texts"),
            ({"run": ["true", 1]}, "'run' of a submission must be an array of texts"),
            ({"run": []}, "a submission needs 'run', the program"),
            ({"run": [""]}, "the program in 'run' has no name"),
            ({"name": ""}, "'name' of a submission must be a text that is not empty"),
            ({"name": None}, "'name' of a submission must be a text that is not empty"),
            ({"folder": 1}, "'folder' of a submission must be a text that is not empty"),
            ({"environment": {"A": 1}}, "must be a mapping from names to texts"),
            ({"environment": {"A=B": "1"}}, "must be a mapping from names to texts"),
            ({"environment": {"": "1"}}, "must be a mapping from names to texts"),
            ({"environment": ["A"]}, "must be a mapping from names to texts"),
            ({"timeout_ns": -1}, "'timeout_ns' of a submission must be a whole number from 0"),
            ({"timeout_ns": 1.5}, "'timeout_ns' of a submission must be a whole number from 0"),
            ({"retries": "1"}, "'retries' of a submission must be a whole number from 0"),
            ({"retries": 4294967295}, "'retries' is too large"),
            ({"wait": "yes"}, "'wait' of a submission must be true or false"),
            ({"new_slot": 1}, "'new_slot' of a submission must be true or false"),
            ({"admission": "now"}, "replace-all; not 'now'"),
            ({"slot": "batch"}, "unknown member 'slot'"),
    ):
        answer = wire.post(BATCH, {"run": ["true"], **member})
        equal(answer.status, 400)
        check(sentence in answer.json["error"]["text"], f"{member}: {answer.json}")
    answer = wire.post("/v1/submissions", {"run": ["true"], "admission": "drop"})
    equal((answer.status, answer.json["error"]["text"]), (400, "'admission' needs a slot"))
    equal(wire.post("/v1/submissions", {"name": "nothing"}).status, 400)
    daemon.stop()


def test_disconnected_waiting_submission_is_dropped():
    daemon, wire = world()
    leaving = Wire(SOCKET)
    stream = Stream.over(leaving, BATCH, {"run": ["sleep", "600"], "wait": True})
    equal(stream.next().name, "submitted")
    leaving.close()
    answer = wire.post("/v1/tasks/batch/stop", {"purge": True, "wait": True})
    equal((answer.status, answer.json["count"]), (200, 1))
    daemon.stop()


def test_waiting_submission_ends_when_the_daemon_stops():
    daemon, wire = world()
    stream = Stream.over(Wire(SOCKET), BATCH, {"run": ["sleep", "600"], "wait": True})
    equal(stream.next().name, "submitted")
    equal(wire.post("/v1/stop", {}).status, 200)
    end = stream.until("end")
    equal(end.data["outcome"], "cancelled")
    daemon.end()


def test_waiting_order_is_answered_when_it_is_done():
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


def test_waiting_stop_of_all_is_answered_at_the_end():
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


def test_disconnected_waiters_leak_nothing():
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


def test_reload_disconnects_no_client():
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
        # The caller of a reload keeps its connection, too.
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


def test_requests_during_a_reload_are_answered_after_it():
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


def test_lines_can_be_filtered_by_task():
    daemon, wire = world()
    stream = Stream(SOCKET, "/v1/lines?task=ticker,other&follow=true")
    equal({stream.next().data["text"] for _ in range(2)}, {"one", "two"})
    wire.post("/v1/tasks/other/restart", {"wait": True})
    equal(stream.next().data["text"], "two")
    stream.close()
    equal([i["text"] for i in wire.get("/v1/lines?task=ticker").json["items"]], ["one"])
    equal(wire.get("/v1/lines?task=,").status, 400)
    daemon.stop()


def test_task_event_stream_resumes_where_it_ended():
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


def test_console_link_is_only_given_over_the_unix_socket():
    project(TASKS)
    value = token("admin")
    daemon = Daemon()
    answer = daemon.wire(value).post("/v1/console-links", {})
    equal((answer.status, answer.json["error"]["code"]), (422, "REFUSED"))
    link = daemon.wire().post("/v1/console-links", {}).json["url"]
    with Wire(daemon.address) as wire:
        equal(wire.post("/v1/session", {"code": link.partition("#code=")[2]}).status, 200)
    daemon.stop()


def test_worker_secrets_are_only_shown_over_the_unix_socket():
    project(TASKS)
    value = token("admin")
    daemon = Daemon()
    for path in ("documents", "deltas"):
        answer = daemon.wire(value).get(f"/v1/{path}?reveal=true")
        equal((answer.status, answer.json["error"]["code"]), (422, "REFUSED"))
        equal(daemon.wire(value).get(f"/v1/{path}?reveal=false").status, 200)
        equal(daemon.wire().get(f"/v1/{path}?reveal=true").status, 200)
    daemon.stop()


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
