#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""The server does what openapi.yaml says: every operation with good and with bad input.

    contract.py DETENT NASTY_CHILD [PART_OF_A_NAME]

Bad input is made of the schemas of the file, so that an operation that is added to it is tested
without a word here but its good calls.
"""
import json
import re
import sys
import time
import urllib.parse

import yaml

import shop
import checksums
from openapi import FILE, METHODS, failure_problems, operations, strict
from shop import (ORDER, PAY, SOCKET, Daemon, Gone, Stream, Wire, check, equal, project, start,
                  wait_until)

# Operations that the file has and the server has not, by their operationId.
NOT_YET = set()

MOST = 18446744073709551615
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def call(query="", body=None, status=200, headers=None, holds=None, **path):
    """A good call: what it asks for, and what holds of the answer beside its schema."""
    return {"query": query, "body": body, "status": status, "headers": headers or {},
            "holds": holds or (lambda value: True), "path": path}


def of(identity, **more):
    return call(machine="order", id=identity, **more)


# The finding of the check in ORDER: an unreachable state.
LOST = [("unreachable", ORDER.splitlines().index("STATE(LOST, lost)") + 1)]


def values_of(machine, record, field):
    """The values that a field of a record may have."""
    fields = next(r["fields"] for r in machine["records"] if r["name"] == record)
    return next(f["values"] for f in fields if f["name"] == field)


# Good calls to what world() makes, in this order: those that end what others need come last.
GOOD = {
    "livez": [call()],
    "readyz": [call(holds=lambda v: v["ready"])],
    "metrics": [call(holds=lambda v: "detent_build_info" in v)],
    "openapi": [call(holds=lambda v: v == FILE.read_text())],
    "redeem": [],
    "session": [call(holds=lambda v: "admin" in v["scopes"])],
    "sign_out": [],
    "status": [call(holds=lambda v: v["machines"] == 2 and v["state"] == "running"
                    and v["tasks"]["events_lost"] == 0)],
    "make_console_link": [call(body={}, holds=lambda v: "/#code=" in v["url"])],
    "reload": [call(body={"plan": True}, holds=lambda v: v["is_right"] and not v["items"]),
               call(body={}, holds=lambda v: v["is_right"] and v["is_applied"])],
    # Nothing would be there for the others: tests of their own ask for these.
    "stop_all": [],
    "drain_all": [],
    "served": [call(holds=lambda v: sorted(v["machines"]) == ["counter", "order"] and v["jobs"] and
                    v["workers"] == v["store"] and v["now"] and v["url"] and
                    v["file"].endswith("/shop.db"))],
    "store": [call(holds=lambda v: len(v["machines"]) == 2 and v["away"] is None)],
    "rates": [call(holds=lambda v: len(v["events"]) == 360 and v["step_ns"] == 10**10),
              call(query="span_s=60", holds=lambda v: len(v["events"]) == 12),
              call(query="span_s=86400", holds=lambda v: len(v["events"]) == 360)],
    "overview": [call(holds=lambda v: any(s["about"] == "effect" for s in v["stuck"]))],
    "machines": [call(holds=lambda v: [m["name"] for m in v["items"]] == ["counter", "order"])],
    "machine": [call(machine="order", holds=lambda v: {r["name"] for r in v["records"]} ==
                     {"payment", "order_data"} and
                     values_of(v, "payment", "money") == ["eur", "usd"] and
                     [(f["rule"], f["line"]) for f in v["findings"]] == LOST),
                call(machine="counter", holds=lambda v: v["findings"] == [])],
    "machine_diagram": [call(machine="order", holds=lambda v: "stateDiagram" in v),
                        call("format=mermaid", machine="order"),
                        call("format=dot", machine="order", holds=lambda v: "digraph" in v),
                        call("format=svg", machine="order", holds=lambda v: "<svg" in v)],
    "definitions": [call(holds=lambda v: [d["name"] for d in v["items"]] == ["counter", "order"]
                         and "charge_card" in v["items"][1]["spec"])],
    "check_definition": [
        call(body={"spec": ORDER}, holds=lambda v: v["machine"]["name"] == "order" and v["dot"]),
        call(body={"spec": "STATE("}, holds=lambda v: v["machine"] is None and v["findings"])],
    "instances": [
        call(machine="order", holds=lambda v: [i["id"] for i in v["items"]] ==
             ["o-1", "o-2", "o-3", "o-4"]),
        call("state=charging", machine="order", holds=lambda v: len(v["items"]) == 1),
        call("stopped=true", machine="order", holds=lambda v: v["items"][0]["id"] == "o-3"),
        call("stopped=false", machine="order", holds=lambda v: len(v["items"]) == 3),
        call("after=o-1&limit=1", machine="order", holds=lambda v: v["next"] == "o-2"),
        call("moved_before=2001-02-03T04:05:06.789Z", machine="order",
             holds=lambda v: v["items"] == []),
        call("dead=true", machine="order", holds=lambda v: [i["id"] for i in v["items"]] ==
             ["o-2"]),
        call("locked=true&ids=true", machine="order", holds=lambda v: v["items"] ==
             [{"type": "instance", "machine": "order", "id": "o-1"}]),
        call("ids=true&after=o-1&limit=1", machine="order", holds=lambda v: v["next"] == "o-2")],
    "due": [call(machine="order", holds=lambda v: {i["id"] for i in v["items"]} >= {"o-1", "o-4"}
                 and v["next"] is None),
            call("kind=timers&limit=1", machine="order",
                 holds=lambda v: len(v["items"]) == 1 and v["next"]),
            call("kind=effects&from=2100-01-01T00:00:00Z", machine="order",
                 holds=lambda v: v["items"] == [])],
    "start": [call(body={"id": "s-1", "data": {"cents": 7}}, status=201, machine="order",
                   headers={"Idempotency-Key": "start-1", "traceparent": TRACE}),
              call(body={"id": "s-1", "data": {"cents": 7}}, status=200, machine="order",
                   headers={"Idempotency-Key": "start-1"}, holds=lambda v: v["duplicate"]),
              call(body={"id": "s-2"}, status=201, machine="order")],
    "instance": [of("o-1", holds=lambda v: v["timers"][0]["event"] == "expired"),
                 of("o-2", holds=lambda v: len(v["deferred"]) == 1 and len(v["effects"]) == 2),
                 of("o-3", holds=lambda v: v["stopped"])],
    "send": [of("s-1", body=PAY, headers={"Idempotency-Key": "pay-1", "traceparent": TRACE},
                holds=lambda v: v["state"] == "charging" and not v["duplicate"]),
             of("s-1", body=PAY, headers={"Idempotency-Key": "pay-1"},
                holds=lambda v: v["sequence"] == 1 and v["duplicate"]),
             of("s-1", body={"event": "ship"}, holds=lambda v: v["outcome"] == "deferred"),
             of("s-2", body={"event": "ping"}, query="steps=true", holds=lambda v: v["steps"] ==
                [{"event": "ping", "from": "pending", "to": "pending", "outcome": "stay"}]),
             of("s-2", body={"event": "ping", "expected": 2}, status=409)],
    "send_all": [of("s-2", body={"events": [{"event": "ping"}, PAY]},
                    holds=lambda v: v["sequence"] == 3 and v["event"] == "pay")],
    "batch": [call(headers={"Idempotency-Key": "b-1", "traceparent": TRACE},
                   body={"sends": [{"machine": "order", "id": "s-2", "event": "ping"},
                                   {"machine": "order", "id": "nobody", "event": "ping"}]},
                   holds=lambda v: v["failed"] == 1 and "error" in v["items"][1])],
    "history": [of("o-2", holds=lambda v: v["items"][0]["type"] == "start"),
                of("o-2", query="after=0&limit=1", holds=lambda v: len(v["items"]) == 1),
                of("o-2", query="data=true", holds=lambda v: v["items"][1]["data"]["cents"]),
                of("o-2", query="data=false&limit=1000")],
    "trace": [of("o-2", holds=lambda v: all(json.loads(line) for line in v.splitlines()) and v)],
    "instance_diagram": [of("o-2"), of("o-2", query="format=dot"), of("o-2", query="format=svg")],
    "why": [of("o-1", holds=lambda v: v["lock"]["owner"] == "somebody"),
            of("o-2", holds=lambda v: v["sentences"]), of("o-3")],
    "instance_effects": [of("o-2", holds=lambda v: {e["state"] for e in v["effects"]} ==
                            {"waiting", "dead"} and v["threads_max"]),
                         of("o-1", holds=lambda v: v["effects"] == [])],
    "timers": [call(holds=lambda v: {t["id"] for t in v["items"]} >= {"o-1", "o-4"}),
               call("machine=order&limit=1", holds=lambda v: len(v["items"]) == 1 and v["next"]),
               call("after=9223372036854775806~~~~0~0&limit=7",
                    holds=lambda v: v["items"] == [] and v["next"] is None),
               call("machine=counter", holds=lambda v: v["items"] == [])],
    "effects": [call(holds=lambda v: {e["dead"] for e in v["items"]} == {True, False}),
                call("after=9223372036854775806~~~~0~0", holds=lambda v: v["items"] == []),
                call("dead=true", holds=lambda v: all(e["dead"] for e in v["items"])),
                call("dead=false&machine=order&limit=5",
                     holds=lambda v: {e["dead"] for e in v["items"]} == {False})],
    "lock": [of("o-1", holds=lambda v: v["owner"] == "somebody" and v["until"]),
             of("o-2", holds=lambda v: v["owner"] is None and v["until"] is None)],
    "locks": [call(holds=lambda v: [(lock["machine"], lock["id"], lock["owner"], lock["fence"])
                                    for lock in v["items"]] == [("order", "o-1", "somebody", 7)]),
              call("machine=counter&limit=1", holds=lambda v: v["items"] == []),
              call("after=0~order~o-1~~0~0", holds=lambda v: v["items"] == [])],
    "log": [call(holds=lambda v: v["items"][0]["position"] >= 1),
            call("after=0&limit=1", holds=lambda v: v["next"] == v["items"][0]["position"]),
            call("backward=true&limit=2",
                 holds=lambda v: v["items"][0]["position"] > v["items"][1]["position"]),
            call("backward=false&machine=order&id=o-2&event=pay",
                 holds=lambda v: [(i["id"], i["event"]) for i in v["items"]] == [("o-2", "pay")]),
            call("state=charging", holds=lambda v: all(i["to"] == "charging" for i in v["items"])),
            call("since=2001-01-01T00:00:00Z&until=2002-01-01T00:00:00Z",
                 holds=lambda v: v["items"] == [])],
    "events": [],
    "tasks": [call(holds=lambda v: {t["name"] for t in v["items"]} >= {"ticker", "flaky"})],
    "task": [call(task="flaky", holds=lambda v: v["backoff"][0]["base_ns"] == 3600 * 10**9),
             call(task="ticker", holds=lambda v: v["state"] == "running")],
    "logs": [call(task="ticker", holds=lambda v: sorted(i["text"] for i in v["items"]) ==
                  ["one", "two"]),
             call("lines=1&follow=false", task="ticker", holds=lambda v: len(v["items"]) == 1),
             call("lines=0", task="ticker", holds=lambda v: v["items"] == [])],
    "lines": [call("task=ticker,nobody", holds=lambda v: sorted(i["text"] for i in v["items"]) ==
                   ["one", "two"]),
              call("lines=1&follow=false", holds=lambda v: len(v["items"]) == 1),
              call("task=nobody", holds=lambda v: v["items"] == [])],
    "task_events": [call(holds=lambda v: {"group_started", "task_added"} <=
                         {e["event"] for e in v["items"]}),
                    call("after=2", holds=lambda v: v["items"][0]["sequence"] == 3),
                    call("new=true&follow=false", holds=lambda v: v["items"] == [])],
    "tree": [call(holds=lambda v: v["groups"][0]["name"] == "back")],
    "slots": [call(holds=lambda v: [s["durable"] for s in v["items"]] == [False, True])],
    "submissions": [call(slot="jobs", holds=lambda v: len(v["items"]) == 4 and
                         v["items"][0]["id"] == "last"),
                    call("order=oldest", slot="jobs",
                         holds=lambda v: v["items"][0]["id"] == "good"),
                    call("order=newest&limit=2", slot="jobs", holds=lambda v:
                         [j["id"] for j in v["items"]] == ["last", "long"]),
                    call("state=done", slot="jobs", holds=lambda v: v["items"][0]["id"] == "good"),
                    call("limit=1&after=0", slot="jobs", holds=lambda v: v["next"] is not None)],
    "all_submissions": [call(holds=lambda v: len(v["items"]) == 4 and
                             v["items"][0]["id"] == "last"),
                        call("queue=jobs&order=oldest&limit=1",
                             holds=lambda v: v["items"][0]["id"] == "good" and v["next"]),
                        call("id=good", holds=lambda v: [j["id"] for j in v["items"]] == ["good"]),
                        call("queue=nobody&state=failed&after=1",
                             holds=lambda v: v["items"] == [])],
    "submit": [call(body={"run": ["sleep", "600"], "name": "more", "admission": "queue",
                          "folder": ".", "environment": {"A": "b"}, "timeout_ns": 10**12,
                          "retries": 2}, status=201, slot="batch"),
               call(body={"run": ["true"], "new_slot": True}, status=201, slot="made"),
               call(body={"run": ["true"], "name": "good"}, status=200, slot="jobs",
                    holds=lambda v: v["state"] == "done"),
               call(body={"run": ["true"]}, status=201, slot="jobs"),
               call(body={"run": ["true"]}, status=201, slot="jobs",
                    headers={"Idempotency-Key": "once"}, holds=lambda v: v["name"] == "once"),
               call(body={"run": ["true"]}, status=200, slot="jobs",
                    headers={"Idempotency-Key": "once"}),
               call(body={"run": ["true"], "name": "more"}, status=400, slot="jobs",
                    headers={"Idempotency-Key": "once"}),
               call(body={"run": ["true"]}, status=422, slot="batch",
                    headers={"Idempotency-Key": "once"})],
    "submit_alone": [call(body={"run": ["true"], "name": "alone"}, status=201,
                          holds=lambda v: v["started"])],
    "workers": [
        call(holds=lambda v: [w["id"] for w in v["items"]] ==
             ["root", "root/hello", "root/press", "root/press/child-0", "root/press/child-1"] and
             [w["depth"] for w in v["items"]] == [0, 1, 1, 2, 2] and
             v["items"][3]["parent"] == "root/press" and v["next"] is None),
        call("below=root/press&kind=examplechild", holds=lambda v: len(v["items"]) == 2),
        call("phase=stopping", holds=lambda v: v["items"] == []),
        call("unwell=true", holds=lambda v: v["items"] == []),
        call("unwell=false&limit=2", holds=lambda v: v["next"] == "2~root/hello"),
        call("limit=2&after=2~root/hello", holds=lambda v: [w["name"] for w in v["items"]] ==
             ["press", "child-0"] and v["next"] == "4~root/press/child-0"),
        # A row that is gone is skipped by its number.
        call("limit=2&after=3~root/nobody", holds=lambda v: [w["name"] for w in v["items"]] ==
             ["child-0", "child-1"] and v["next"] is None)],
    "workers_summary": [call(holds=lambda v: v["workers"]["workers"] == 5 and v["unwell"] == [])],
    "worker": [call(worker="root~press~child-0", holds=lambda v: v["id"] == "root/press/child-0" and
                    v["desired"]["address"] == "10.0.0.7:502"),
               call(worker="hello", holds=lambda v: v["phase"] == "running" and
                    v["counts"]["startups"] == 1)],
    "worker_history": [call(worker="hello", holds=lambda v: {"say_hello"} ==
                            {i["action"] for i in v["items"] if "action" in i}),
                       call(worker="hello", query="after=0", holds=lambda v: v["lost"] == 0 and
                            [i["sequence"] for i in v["items"]] == list(range(1, v["next"] + 1))),
                       call(worker="hello", query="after=1",
                            holds=lambda v: v["items"][0]["sequence"] == 2),
                       call(worker="hello", query="after=1000000",
                            holds=lambda v: v["items"][0]["sequence"] == 1)],
    "put_worker": [call(worker="root~extra", body={
        "kind": "examplechild", "config": "address: '{{ .IP }}:{{ .PORT }}'\n",
        "variables": {"PORT": 9}, "location": {"site": "north"}, "run_in": ["running"],
        "disabled": False}),
                   call(worker="press~child-0", body={"kind": "helloworld"}, status=409),
                   call(worker="nobody~extra", body={"kind": "helloworld"}, status=404),
                   call(worker="extra", body={"kind": "nonsense"}, status=404),
                   call(worker="extra", body={"kind": "examplechild", "config": "x: 1"},
                        status=400),
                   call(worker="extra", body={"kind": "helloworld", "run_in": ["nowhere"]},
                        status=400)],
    "order_worker": [call(worker="hello", body={"order": "disable"},
                          holds=lambda v: v["order"] == "disable"),
                     call(worker="hello", body={"order": "enable"}),
                     call(worker="root~hello", body={"order": "restart"})],
    "delete_worker": [call(worker="root~extra", holds=lambda v: v["id"] == "root/extra"),
                      call(worker="hello", status=400)],
    "flows": [call(holds=lambda v: [f["name"] for f in v["items"]] == ["passing", "waiting"] and
                   (f := v["items"][0])["state"] == "completed" and f["rows_out"] == 2 and
                   f["rejected"] == 1 and v["items"][1]["start"] == "manual")],
    "flow": [call(flow="passing", holds=lambda v: [s["name"] for s in v["stages"]] ==
                  ["read", "write"] and v["edges"][0]["record"] == "sale")],
    "flow_diagram": [call(flow="passing", holds=lambda v: "flowchart" in v),
                     call("format=mermaid", flow="passing"),
                     call("format=dot", flow="passing", holds=lambda v: "digraph" in v),
                     call("format=svg", flow="passing", holds=lambda v: "<svg" in v)],
    "flow_stage": [call(flow="passing", stage="read", holds=lambda v: v["kind"] == "source" and
                        "running" in [s["name"] for s in v["machine"]["states"]]),
                   call(flow="passing", stage="none", status=404)],
    "flow_facts": [call(flow="passing"), call("after=0&limit=1", flow="passing"),
                   call("backward=true&limit=1", flow="passing")],
    "flow_rows": [call(flow="passing"), call("stream=read&after=0&limit=2", flow="passing"),
                  call("stream=read.errors", flow="passing"),
                  call("kind=rejected", flow="passing", holds=lambda v: v["items"] and
                       all(r["kind"] == "rejected" for r in v["items"])),
                  call("kind=gone", flow="passing", status=400),
                  call("backward=true&stream=system", flow="passing"),
                  call("backward=false&run=999999", flow="passing",
                       holds=lambda v: v["items"] == [])],
    # events() asks for it.
    "flow_stream": [],
    "order_flow": [call(body={}, flow="waiting", flow_order="run"),
                   call(body={"wait": True}, flow="waiting", flow_order="cancel"),
                   call(body={"wait": False, "timeout_ns": 10**9}, flow="waiting",
                        flow_order="drain")],
    "documents": [
        call(holds=lambda v: {d["role"] for d in v["items"]} >= {"identity", "desired", "observed"}
             and v["position"] >= max(d["sync"] for d in v["items"])),
        call("limit=1", holds=lambda v: {d["id"] for d in v["items"]} == {"root"} and
             v["next"] == "root"),
        call("after=root/press/child-0&role=desired&kind=examplechild&below=root/press",
             holds=lambda v: [d["id"] for d in v["items"]] == ["root/press/child-1"]),
        call("reveal=true", holds=lambda v: v["items"])],
    "deltas": [
        call(holds=lambda v: [d["sync"] for d in v["items"]] ==
             list(range(1, len(v["items"]) + 1)) and not v["bootstrap"]),
        call("after=2&limit=1&follow=false", holds=lambda v: v["items"][0]["sync"] == 3 and
             v["next"] == 3),
        call("below=root/hello&kind=helloworld&role=identity",
             holds=lambda v: [d["change"] for d in v["items"]] == ["created"]),
        call("reveal=true", holds=lambda v: v["items"])],
    "change_job": [call(body={}, slot="jobs", job="bad", change="retry"),
                   call(body={"reason": "not wanted"}, slot="jobs", job="last", change="cancel")],
    "retry": [of("o-2", body={"key": "order/o-2/1/0"})],
    "cancel": [of("o-4", body={"reason": "by hand"}, headers={"Idempotency-Key": "cancel-1"},
                  holds=lambda v: v["outcome"] == "stop"),
               of("s-2", body={})],
    "order": [call(body={"wait": True}, task="ticker", order="restart"),
              call(body={"wait": True}, task="ticker", order="stop"),
              call(body={}, task="back", order="drain")],
}


def jobs(wire):
    """A job that was done, one that failed, one that runs and one that waits."""
    def submit(name, *run):
        answer = wire.post("/v1/slots/jobs/submissions", {"run": list(run), "name": name})
        check(answer.status == 201, answer)
    submit("good", "true")
    submit("bad", "false")
    submit("long", "sleep", "600")
    submit("last", "true")


def jobs_stand(wire):
    items = wire.get("/v1/slots/jobs/submissions?order=oldest").json.get("items", [])
    return [job["state"] for job in items] == ["done", "failed", "running", "queued"]


def lock_by_hand(identity):
    """A lock that another program holds; in a store of SQLite only a row can say so."""
    store = checksums.connect("shop.db", timeout=30)
    store.execute("UPDATE instances SET lock_owner = 'somebody', lock_until = ?, fence = 7 "
                  "WHERE id = ?", (time.time_ns() + 3600 * 10**9, identity))
    checksums.sum_locks(store)
    store.close()


def world():
    """Instances with a timer, a dead letter, a deferred event and a lock; tasks, slots and jobs."""
    project()
    daemon = Daemon()
    wire = daemon.wire()
    for name in ("o-1", "o-2", "o-3", "o-4"):
        start(wire, name, "order")
    start(wire, "c-1", data={"number": MOST})
    for body in (PAY, {"event": "ship"}):
        answer = wire.post("/v1/machines/order/instances/o-2/events", body)
        check(answer.status == 200, answer)
    wait_until(lambda: {e["attempts"] for e in wire.get(
        "/v1/machines/order/instances/o-2").json["effects"]} == {1}, "its effects have failed")
    answer = wire.post("/v1/machines/order/instances/o-3/cancel", {"reason": "by hand"})
    check(answer.status == 200, answer)
    lock_by_hand("o-1")
    wait_until(lambda: wire.get("/v1/flows/passing").json["state"] == "completed", "its rows")
    daemon.wait_for("ticker.*two")
    wait_until(lambda: len(wire.get("/v1/workers?phase=running").json["items"]) >= 2 and
               len(wire.get("/v1/documents?role=desired").json["items"]) == 5, "workers stand")
    return daemon, wire


def target_of(operation, good):
    path = re.sub(r"{(\w+)}", lambda m: good["path"][m[1]], operation.path)
    return f"{path}?{good['query']}" if good["query"] else path


def ask(wire, operation, good):
    return wire.ask(operation.method, target_of(operation, good), good["body"], good["headers"])


def nothing_happened(answer):
    """Of a batch whose one send cannot be one."""
    return answer.status != 200 or b"\"failed\":0" not in answer.body.replace(b" ", b"")


def short(problems):
    """Each of them once, wherever in a list it was."""
    return "; ".join(dict.fromkeys(re.sub(r"\[\d+\]", "[]", text[:300]) for text in problems))


def wrong_with(operation, good, answer):
    found = operation.problems(answer)
    if answer.status != good["status"]:
        return [f"{answer.status}, not {good['status']}", *found]
    if found:
        return found
    value = strict(answer) if answer.type == "application/json" else answer.body.decode()
    try:
        return [] if good["holds"](value) else ["what should hold of it does not"]
    except (KeyError, IndexError, TypeError) as problem:
        return [f"what should hold of it does not: {problem!r}"]


def tell(found):
    check(not found, f"{len(found)} wrong:\n  " + "\n  ".join(found[:60]))


def test_every_operation_answers_valid_input_as_specified():
    daemon, wire = world()
    jobs(wire)
    by_name = {operation.name: operation for operation in operations()}
    equal(set(GOOD), set(by_name))
    found = []
    if "submissions" not in NOT_YET:
        wait_until(lambda: jobs_stand(wire), "the jobs stand as they should")
    for name, calls in GOOD.items():
        for good in calls if name not in NOT_YET else []:
            try:
                answer = ask(wire, by_name[name], good)
            except Gone as problem:
                found.append(str(problem))
                continue
            if wrong := wrong_with(by_name[name], good, answer):
                found.append(f"{name} {target_of(by_name[name], good)}: {short(wrong)}\n"
                             f"    {answer.status} {answer.body[:200]}")
    tell(found)
    daemon.stop()


def test_every_member_of_an_answer_is_listed():
    daemon, wire = world()
    jobs(wire)
    wait_until(lambda: jobs_stand(wire), "the jobs stand as they should")
    found = []
    for operation, _ in tried():
        calls = GOOD[operation.name] if operation.method == "GET" else []
        for good in calls:
            answer = ask(wire, operation, good)
            found += [f"{operation.name}: {text}" for text in operation.problems(answer, True)
                      if "is not listed" in text]
    found = sorted(set(re.sub(r"\[\d+\]", "[]", text) for text in found))
    tell(found)
    daemon.stop()


def wrong_texts(schema):
    """Values of a query or header that its schema does not take."""
    kind = schema.get("type")
    if "enum" in schema:
        yield from ("nonsense", "", schema["enum"][0].upper())
    elif kind == "integer":
        yield from ("x", "", "1.5", "1e2", "0x10", "+1", "%201", "99999999999999999999")
        if "minimum" in schema:
            yield str(schema["minimum"] - 1)
        if "maximum" in schema:
            yield str(schema["maximum"] + 1)
    elif kind == "boolean":
        yield from ("maybe", "", "TRUE", "1", "yes")
    elif schema.get("format") == "date-time":
        yield from ("yesterday", "", "2001-02-03", "2001-02-30T00:00:00Z", "12345")
    elif "pattern" in schema:
        yield from (text for text in ("a%20b", "", "a" * 129, "%C3%A4", "a%2Fb")
                    if not re.search(schema["pattern"], urllib.parse.unquote(text)))


def wrong_values(schema):
    """Values of a member that its schema does not take."""
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0]
    others = {"string": 7, "integer": "7", "boolean": "true", "object": [], "array": {}}
    yield from (value for name, value in others.items() if name != kind)
    yield others[kind]
    yield None
    if kind == "integer":
        yield from (1.5, schema.get("minimum", 0) - 1, 2**64, 10**30)
    if "enum" in schema:
        yield "nonsense"
    if "pattern" in schema:
        yield from ("", "a b", "a" * 129)
    if "maxLength" in schema:
        yield "a" * (schema["maxLength"] + 1)
    if schema.get("minItems"):
        yield []
    if "maxItems" in schema:
        yield [{}] * (schema["maxItems"] + 1)


def wrong_bodies(schemas, schema, good):
    """Bodies that are not as the schema says, each of them good but for one thing."""
    for name in schema.get("required", []):
        yield {key: value for key, value in good.items() if key != name}
    yield {**good, "nonsense": 1}
    for name, member in schema.get("properties", {}).items():
        member = schemas.follow(member)
        yield from ({**good, name: value} for value in wrong_values(member)
                    if schemas.problems(value, member))
        items = schemas.follow(member.get("items", {}))
        if items.get("type") == "object":
            yield from ({**good, name: [wrong]}
                        for wrong in wrong_bodies(schemas, items, good[name][0]))
        elif items:
            yield from ({**good, name: [value]} for value in wrong_values(items)
                        if schemas.problems(value, items))


def wrong_json(good):
    """What is no JSON object, or is one that two readers would read in two ways."""
    text = json.dumps(good)
    inner = text[1:-1] or '"nonsense":1'
    first = inner.partition(":")[0]
    yield from ("", " ", "nonsense", "[]", "1", "null", '"x"', text[:-1], text + text, text + "x",
                f"{{{first}:1,{inner}}}", f"{{{inner},{inner}}}",
                f'{{{inner},"\\u{ord(first[1]):04x}{inner[2:]}}}', f"{{{inner},}}",
                f"{{'a':1,{inner}}}", f"/**/{text}",
                "[" * 5000, f'{{{first}:{"[" * 5000}{"]" * 5000}}}', f"{{{first}:NaN}}",
                f'{{"\\ud800":1,{inner}}}', b'{"a\xff":1}', b"\xef\xbb\xbf" + text.encode(),
                text.encode("utf-16"), text.encode() + b"\0")


class Trial:
    """Bad input, and what was answered to it."""

    def __init__(self, wire):
        self.wire, self.found, self.count = wire, [], 0
        self.schemas = operations()[0].schemas

    def refused(self, what, statuses, method, target, body=None, headers=None):
        """Such a request gets one of these statuses, with a failure that says why."""
        self.count += 1
        try:
            answer = self.wire.ask(method, target, body, headers)
        except Gone as problem:
            self.found.append(f"{what}: {problem}")
            return
        wrong = failure_problems(self.schemas, answer) if answer.status >= 400 else []
        if answer.status not in statuses:
            wrong.append(f"{answer.status}, not {' or '.join(map(str, statuses))}")
        if not nothing_happened(answer):
            wrong.append("it has happened")
        shown = f"{str(body)[:120]} {headers or ''}"
        if wrong:
            self.found.append(f"{what}: {method} {target[:100]} {shown}: {short(wrong)}\n"
                              f"    {answer.status} {answer.body[:200]}")

    def tell(self):
        tell(self.found)
        check(self.count, "nothing was tried")


def tried():
    """Every operation that is there, with its first good call; and all that it takes to ask."""
    for operation in operations():
        if operation.name not in NOT_YET:
            calls = GOOD[operation.name] or [call(body={"code": "x"} if operation.body else None,
                                                  flow="passing")]
            yield operation, calls[0]


def test_invalid_queries_and_headers_are_refused():
    daemon, wire = world()
    trial = Trial(wire)
    for operation, good in tried():
        path = target_of(operation, {**good, "query": ""})

        def refused(what, query="", headers=None):
            trial.refused(f"{operation.name}, {what}", (400,), operation.method,
                          f"{path}?{query}" if query else path, good["body"],
                          {**good["headers"], **(headers or {})})
        if operation.name not in ("livez", "metrics", "readyz"):
            for query in ("nonsense=1", "nonsense", "=1", "limitt=3"):
                refused("an unknown key", query)
        for name, schema in operation.of("query").items():
            for value in wrong_texts(schema):
                refused(f"a wrong {name}", f"{name}={value}")
            refused(f"{name} twice", f"{name}=1&{name}=1")
        for name, schema in operation.of("header").items():
            for value in ("", "a b", "a" * 129) if name != "traceparent" else ():
                refused(f"a wrong {name}", headers={name: value})
        if operation.method != "GET" and "Idempotency-Key" not in operation.of("header"):
            refused("a key that nobody keeps", headers={"Idempotency-Key": "k-1"})
    trial.tell()
    daemon.stop()


def test_bodies_that_are_wrong_are_refused_and_change_nothing():
    daemon, wire = world()
    jobs(wire)
    for name in ("s-1", "s-2"):
        start(wire, name, "order")
    before = wire.get("/v1/log?limit=1000").json
    trial = Trial(wire)
    for operation, good in tried():
        if not operation.body:
            continue
        target = target_of(operation, good)

        def refused(what, body, statuses=(400,), **headers):
            headers = {**good["headers"], **{n.replace("_", "-"): v for n, v in headers.items()}}
            trial.refused(f"{operation.name}, {what}", statuses, operation.method, target, body,
                          headers)
        for body in wrong_json(good["body"]):
            refused("no such JSON", body, (400, 422))
        # A code that cannot be one is a wrong code; a send that cannot be one fails for itself;
        # of a spec that is too long that is what is found.
        also = {"redeem": (401,), "batch": (200,), "check_definition": (200,)}.get(
            operation.name, ())
        for body in wrong_bodies(operation.schemas, operation.body, good["body"]):
            refused("a wrong body", body, (400, *also))
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                     "application/jsonx", "", None):
            refused(f"the type {kind!r}", good["body"], (415,), Content_Type=kind)
        refused("a coding", good["body"], (415,), Content_Encoding="gzip")
        refused("much too long", b" " * (2 << 20), (413,))
        refused("no body", None, (400, 415))
    trial.tell()
    equal(wire.get("/v1/log?limit=1000").json, before)
    daemon.stop()


def test_missing_resources_are_not_found():
    daemon, wire = world()
    trial = Trial(wire)
    for operation, good in tried():
        for name, schema in operation.of("path").items():
            # What is put need not be there.
            for value in ("nobody", "x" * 128) if operation.name != "put_worker" else ():
                target = target_of(operation, {**good, "path": {**good["path"], name: value}})
                trial.refused(f"{operation.name}, no such {name}", (404,), operation.method,
                              target, good["body"], good["headers"])
            for value in ("a%20b", "x" * 200, "%C3%A4", "a%0Ab", "..", "%2e%2e", "a%2Fb"):
                target = target_of(operation, {**good, "path": {**good["path"], name: value}})
                trial.refused(f"{operation.name}, an odd {name}", (400, 404, 405),
                              operation.method, target, good["body"], good["headers"])
    trial.tell()
    daemon.stop()


def some_target(path):
    """A path with a word for each of its parameters."""
    words = {"order": "stop", "change": "retry", "flow_order": "run"}
    return re.sub(r"{(\w+)}", lambda m: words.get(m[1], "counter"), path)


def other_methods():
    """Every path with a method that it has not, and those that it has."""
    there = {}
    for operation in operations():
        there.setdefault(operation.path, set()).add(operation.method)
    patterns = [(re.sub(r"{\w+}", "[^/]+", path), methods) for path, methods in there.items()]
    for path in there:
        target = some_target(path)
        # `logs` of a task stands where an order would.
        allowed = set().union(*(methods for pattern, methods in patterns
                                if re.fullmatch(pattern, target)))
        for method in sorted(set(METHODS) - allowed):
            yield method, target, allowed


def test_other_methods_are_refused():
    project(shop.COUNTERS)
    daemon = Daemon()
    trial = Trial(daemon.wire())
    for method, target, _ in other_methods():
        trial.refused("another method", (405,), method, target, "{}" if method != "GET" else None)
    trial.tell()
    daemon.stop()


def test_refused_method_lists_the_allowed_ones():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire, found = daemon.wire(), []
    for method, target, allowed in other_methods():
        answer = wire.ask(method, target, "{}" if method != "GET" else None)
        named = {name.strip() for name in answer.headers.get("allow", "").split(",")}
        if not named - {"HEAD", "OPTIONS"} <= allowed or "allow" not in answer.headers:
            found.append(f"{method} {target}: Allow is {named}, not {allowed}")
    tell(found)
    daemon.stop()


def test_openapi_file_lists_exactly_the_existing_routes():
    project(shop.COUNTERS + "workers: {children: []}\n")
    daemon = Daemon()
    trial = Trial(daemon.wire())
    for path in ("/v1", "/v1/", "/v1/status/", "/v1//status", "/v1/Status",
                 "/v1/status;x=1", "/v1/./status", "/v1/../v1/status",
                 "/v1/%2e%2e/v1/status", "/v1/tokens", "/v1/token", "/v1/config",
                 "/v1/limits", "/v1/session/x", "/v1/jobs", "/v1/groups",
                 "/v1/machines/counter/nonsense", "/v1/machines/counter/instances/c/nonsense",
                 "/v1/machines/counter%2Finstances", "/v1/tasks/x/logs/y", "/v1/debug",
                 "/v1/status%00", "/livez/", "/livez/x", "/metrics/x", "/v1/lock", "/v1/batch",
                 "/v1/machines/", "/v1/..%2f..%2f..%2fetc%2fpasswd", "/v1/status%2f.."):
        for method, body in (("GET", None), ("POST", "{}")):
            trial.refused("nothing is there", (400, 404, 405), method, path, body)
    for operation in operations():
        if operation.name not in NOT_YET | {"redeem", "events", "stop_all", "drain_all"}:
            target = some_target(operation.path)
            answer = trial.wire.ask(operation.method, target, "{}" if operation.body else None)
            # Without durable slots there are no jobs to change.
            is_absent = answer.status == 405 or (answer.status, operation.name) != (
                501, "change_job") and answer.status == 501
            if is_absent or b"no such path" in answer.body:
                trial.found.append(f"{operation.name} is not there: {answer}")
    trial.tell()
    daemon.stop()


def test_data_that_does_not_fit_its_record_is_refused():
    daemon, wire = world()
    trial = Trial(wire)
    send = "/v1/machines/order/instances/o-4/events"
    for code, data in (("MISSING_FIELD", {"card": "1"}),
                       ("UNKNOWN_FIELD", {"card": "1", "cents": 1, "nonsense": 1}),
                       ("TYPE", {"card": 1, "cents": 1}), ("TYPE", {"card": "1", "cents": "1"}),
                       ("TYPE", {"card": "1", "cents": 1.5}),
                       ("RANGE", {"card": "1", "cents": -1}),
                       ("RANGE", {"card": "1", "cents": MOST + 1}),
                       ("RANGE", {"card": "1" * 41, "cents": 1})):
        trial.refused(code, (400,), "POST", send, {"event": "pay", "payload": data})
        equal(wire.post(send, {"event": "pay", "payload": data}).json["error"]["code"], code)
    trial.refused("no such event", (400, 404), "POST", send, {"event": "nonsense"})
    trial.refused("an internal event", (400, 403, 404, 409), "POST", send, {"event": "charged"})
    trial.refused("a payload that it has not", (400,), "POST", send,
                  {"event": "ping", "payload": {"x": 1}})
    both = {"event": "pay", "payload": PAY["data"], "data": PAY["data"]}
    for target, body in (
            (send, both), ("/v1/machines/order/instances/o-4/batch", {"events": [both]}),
            ("/v1/batches", {"sends": [{**both, "machine": "order", "id": "o-4"}]}),
            ("/v1/batches", {"sends": [{**both, "machine": "nobody", "id": "o-4"}]}),
            ("/v1/batches", {"sends": [{**both, "machine": "order", "id": "o-4", "data": 1}]})):
        trial.refused(f"payload and data: {target}", (400,), "POST", target, body)
        text = wire.post(target, body).json["error"]["text"]
        check("use 'payload' alone" in text, text)
    trial.refused("exists", (409,), "POST", "/v1/machines/order/instances", {"id": "o-4"})
    trial.tell()
    equal(wire.get("/v1/machines/order/instances/o-4").json["sequence"], 0)
    for identity, event, code in (("o-3", "ping", "STOPPED"), ("o-2", "pay", "UNHANDLED")):
        body = {**PAY, "event": event} if event == "pay" else {"event": event}
        answer = wire.post(f"/v1/machines/order/instances/{identity}/events", body)
        check(answer.status in (409, 422), answer)
        equal(answer.json["error"]["code"], code)
        check(answer.json["error"].get("state") in ("pending", "charging"), answer)
    daemon.stop()


def test_session_code_and_stream_match_the_openapi_file():
    project(shop.COUNTERS)
    daemon = Daemon()
    by_name = {operation.name: operation for operation in operations()}
    with Wire(daemon.address) as wire:
        answer = wire.ask("POST", "/v1/session", {"code": daemon.code})
    equal(by_name["redeem"].problems(answer, closed=True), [])
    equal(answer.status, 200)
    with Wire(daemon.address, answer.json["token"]) as wire:
        over = wire.ask("DELETE", "/v1/session")
    equal(by_name["sign_out"].problems(over, closed=True), [])
    equal(over.json, {"revoked": answer.json["token"].split("_")[1]})
    stream = Stream(SOCKET, "/v1/events?after=0")
    equal(by_name["events"].problems(stream.head), [])
    equal(stream.next().name, "hello")
    start(daemon.wire(), "c-1", key="k")
    row = stream.until("log")
    schema = {"$ref": "#/components/schemas/log_row"}
    equal(by_name["events"].schemas.problems(row.data, schema), [])
    equal((row.id, row.data["id"]), (str(row.data["position"]), "c-1"))
    stream.close()
    daemon.stop()


def test_openapi_file_is_consistent():
    document = yaml.safe_load(FILE.read_text())
    names = [operation.name for operation in operations()]
    equal(len(names), len(set(names)))
    for operation in operations():
        node, where = operation.node, f"{operation.method} {operation.path}"
        open_to_all = node.get("security") == []
        check(open_to_all or node.get("x-scope") in ("read", "send", "admin", "metrics"), where)
        check(open_to_all or "default" in node["responses"], where)
        equal(set(re.findall(r"{(\w+)}", operation.path)), set(operation.of("path")))
        if operation.body:
            check(operation.body["additionalProperties"] is False, where)
        for status in node["responses"].values():
            check(operation.schemas.follow(status)["content"], where)
    references = set(re.findall(r"#/components/(\w+/\w+)", FILE.read_text()))
    there = {f"{kind}/{name}" for kind in ("parameters", "responses", "schemas")
             for name in document["components"][kind]}
    equal(references, there)


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
