#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Workers over HTTP, beyond what contract.py asks of every operation: what is followed is complete,
what is put by hand survives, what is secret stays so, and who did what is told.

    plant.py DETENT NASTY_CHILD [PART_OF_A_NAME]
"""
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import shop
from openapi import operations
from shop import (DETENT, SOCKET, Daemon, Gone, Stream, Up, Wire, Wrong, check, environment, equal,
                  listens, project, token, wait_until)

KILLS = 3
SECRET = "canary-of-a-config"
PLANT = shop.COUNTERS + """workers:
  name: plant
  variables: {IP: 10.0.0.7, PORT: 502}
  limits: {deltas_max: 100000}
  children:
    - {name: hello, kind: helloworld}
    - {name: oven, kind: examplefailing, config: {should_fail: true, max_failures: 1}}
"""


def put(wire, name, **more):
    return wire.ask("PUT", f"/v1/workers/plant~{name}", {"kind": "helloworld", **more})


def deltas(wire, **query):
    """All of them, page by page."""
    rows, after = [], 0
    while after is not None:
        more = "".join(f"&{key}={value}" for key, value in query.items())
        page = wire.get(f"/v1/deltas?limit=7&after={after}{more}").json
        check(not page["bootstrap"], page)
        rows, after = rows + page["items"], page["next"]
    return rows


class Reader(threading.Thread):
    """Follows deltas over all deaths of the daemon, by its last id."""

    def __init__(self, target="/v1/deltas?follow=true&after=0"):
        super().__init__(daemon=True)
        self.target, self.rows, self.last, self.returns = target, [], None, 0
        self.over, self.stream = threading.Event(), None
        self.start()

    def run(self):
        while not self.over.is_set():
            try:
                self.stream = Stream(SOCKET, self.target, last=self.last)
                while (event := self.stream.next()) is not None and event.name != "dropped":
                    if event.name == "delta":
                        equal(event.id, str(event.data["sync"]))
                        self.rows.append(event.data)
                        self.last = event.id
            except (Gone, OSError, Wrong):
                self.over.wait(0.01)
            self.returns += 1

    def has(self, rows):
        wait_until(lambda: len(self.rows) >= len(rows), f"{len(rows)} deltas, {len(self.rows)}")
        equal(self.rows[:len(rows)], rows)


def ids(wire, query=""):
    return [worker["id"] for worker in wire.get(f"/v1/workers{query}").json["items"]]


def stored_startups(wire):
    for document in wire.get("/v1/documents?limit=1000").json["items"]:
        if (document["id"], document["role"]) == ("plant/hello", "identity"):
            return document["document"]["startups"]
    return 0


def test_followers_and_manual_workers_survive_kill_9():
    project(PLANT)
    daemon = Daemon()
    readers = [Reader(), Reader("/v1/deltas?follow=true&after=0&below=plant/by-hand-0"),
               Reader("/v1/deltas?follow=true&after=0&role=identity&kind=helloworld")]
    for kill in range(KILLS):
        wire = daemon.wire()
        for number in range(4):
            name = f"by-hand-{kill}-{number}" if number else f"by-hand-{kill}"
            equal(put(wire, name).status, 200)
        wait_until(lambda w=wire, n=kill + 1: stored_startups(w) == n, "the start is stored")
        daemon.kill_hard()
        daemon = Daemon()
        wanted = {f"plant/by-hand-{n}" for n in range(kill + 1)}
        wait_until(lambda w=wanted: w <= set(ids(daemon.wire())), "what was put is there again")
    wire = daemon.wire()
    wait_until(lambda: len(ids(wire, "?phase=running&kind=helloworld")) == 4 * KILLS + 1,
               "they run")
    equal(wire.get("/v1/workers/hello").json["counts"]["startups"], KILLS + 1)
    rows = deltas(wire)
    equal([row["sync"] for row in rows], list(range(1, len(rows) + 1)))
    schema = {"$ref": "#/components/schemas/delta"}
    equal([p for row in rows for p in operations()[0].schemas.problems(row, schema)], [])
    readers[0].has(rows)
    readers[1].has([row for row in rows if row["id"] == "plant/by-hand-0"])
    readers[2].has([row for row in rows if (row["role"], row["worker_kind"]) ==
                    ("identity", "helloworld")])
    for reader in readers:
        check(reader.returns >= KILLS, f"it was never cut off: {reader.returns}")
        reader.over.set()
    # Documents and the deltas after their position are the same as all deltas.
    first = wire.get("/v1/documents?limit=1000").json
    equal({(d["id"], d["role"]): d["version"] for d in first["items"]},
          {(r["id"], r["role"]): r["version"] for r in deltas(wire)
           if r["sync"] <= first["position"]})
    equal(wire.ask("DELETE", "/v1/workers/by-hand-0").status, 200)
    wait_until(lambda: "plant/by-hand-0" not in ids(wire), "it has gone")
    wait_until(lambda: deltas(wire, below="plant/by-hand-0")[-1]["change"] == "dropped", "and told")
    daemon.stop()


FOLLOWERS = test_followers_and_manual_workers_survive_kill_9


def test_follower_behind_the_compaction_gets_a_bootstrap():
    project(PLANT.replace("deltas_max: 100000", "deltas_max: 5, compact_every: 1s"))
    daemon = Daemon()
    wire = daemon.wire()
    wait_until(lambda: wire.get("/v1/deltas?after=0").json["bootstrap"], "deltas have gone")
    page = wire.get("/v1/deltas?after=0").json
    equal((page["items"], page["next"]), ([], None))
    check(page["oldest"] > 1 and page["position"] >= page["oldest"] - 1, page)
    stream = Stream(SOCKET, "/v1/deltas?follow=true", last="0")
    equal(stream.next().data, {"position": 0})
    event = stream.until("bootstrap")
    check(int(event.id) == event.data["position"] >= page["position"], event)
    put(wire, "after")
    event = stream.until("delta")
    check(event.data["sync"] > page["position"], event)
    stream.close()
    # A client without a position begins now; one that is ahead has read another store.
    stream = Stream(SOCKET, "/v1/deltas?follow=true", last="123456789")
    check(stream.next().data["position"] < 123456789, "it begins behind the end")
    stream.close()
    daemon.stop()


def test_stream_after_a_newer_page_repeats_nothing():
    project(PLANT)
    daemon = Daemon()
    wire = daemon.wire()
    # As long as somebody follows, it is known where deltas end; but not at once.
    keeper = Stream(SOCKET, "/v1/deltas?follow=true")
    equal(keeper.next().name, "hello")
    wait_until(lambda: deltas(wire), "the first delta")
    for number in range(5):
        last = deltas(wire)[-1]["sync"]
        put(wire, f"more-{number}")
        wait_until(lambda n=last: deltas(wire)[-1]["sync"] > n, "a delta")
        last = deltas(wire)[-1]["sync"]
        stream = Stream(SOCKET, "/v1/deltas?follow=true", last=str(last))
        equal(stream.next().data, {"position": last})
        stream.close()
    keeper.close()
    daemon.stop()


def test_worker_configs_appear_in_no_output():
    project(PLANT)
    daemon = Daemon()
    wire = daemon.wire()
    config = f"address: '{SECRET}'\n"
    answer = wire.ask("PUT", "/v1/workers/plant~secret",
                      {"kind": "noop", "variables": {"password": SECRET}})
    equal(answer.status, 200)
    answer = wire.ask("PUT", "/v1/workers/plant~secret",
                      {"kind": "noop", "variables": {"password": SECRET * 2}})
    equal(answer.status, 200)
    equal(wire.ask("PUT", "/v1/workers/plant~secret", {"kind": "noop", "config": config}).status,
          400)
    wait_until(lambda: "plant/secret" in ids(wire), "it is there")
    for target in ("/v1/workers", "/v1/workers/secret", "/v1/workers/secret/history",
                   "/v1/documents", "/v1/deltas", "/v1/overview", "/metrics"):
        answer = wire.get(target)
        equal(answer.status, 200)
        check(SECRET.encode() not in answer.body, f"{target} tells it")
    changed = [row["delta"] for row in deltas(wire, role="spec")]
    equal(changed[0]["added"]["variables"], "{redacted}")
    equal(changed[1]["modified"]["variables"], {"old": "{redacted}", "new": "{redacted}"})
    stream = Stream(SOCKET, "/v1/deltas?follow=true&after=0&role=spec")
    equal(stream.until("delta").data["delta"], changed[0])
    stream.close()
    check(any(SECRET.encode() in file.read_bytes() for file in Path(".").glob("shop.db*")),
          "it is kept all the same")
    daemon.stop()
    said = "\n".join([*daemon.lines, *daemon.talk])
    check(SECRET not in said, "the log tells it")


def test_worker_actions_are_logged_and_need_admin():
    project(PLANT + "log: {format: json}\n")
    admin, reader = token("admin"), token("read", "send")
    daemon = Up("--listen", "127.0.0.1:0")
    wait_until(listens, "its socket")
    done = subprocess.run([DETENT, "console", "--json"], env=environment(), capture_output=True,
                          check=True)
    address = ("127.0.0.1", int(re.search(rb":(\d+)/", done.stdout)[1]))
    with Wire(address, reader) as wire:
        equal([wire.ask("PUT", "/v1/workers/a", {"kind": "noop"}).status,
               wire.ask("DELETE", "/v1/workers/hello").status,
               wire.ask("POST", "/v1/workers/hello/order", {"order": "restart"}).status,
               wire.get("/v1/workers/hello").status, wire.get("/v1/deltas").status],
              [403, 403, 403, 200, 200])
    with Wire(address, admin) as wire:
        equal(wire.ask("PUT", "/v1/workers/plant~a", {"kind": "noop"}).status, 200)
        equal(wire.ask("POST", "/v1/workers/hello/order", {"order": "disable"}).status, 200)
        wait_until(lambda: wire.get("/v1/workers/hello").json["phase"] == "stopped", "it rests")
        check(wire.get("/v1/workers/hello").json["disabled"], "and says why")
        equal(wire.ask("POST", "/v1/workers/hello/order", {"order": "enable"}).status, 200)
        wait_until(lambda: wire.get("/v1/workers/hello").json["phase"] == "running", "it runs")
        equal(wire.ask("DELETE", "/v1/workers/a").status, 200)
    daemon.stop()
    said = [json.loads(line) for line in [*daemon.lines, *daemon.talk] if "/v1/workers/" in line
            and line.startswith("{")]
    text = json.dumps(said)
    for deed in ("PUT /v1/workers/plant~a", "POST /v1/workers/hello/order",
                 "DELETE /v1/workers/a", "PUT /v1/workers/{worker}"):
        check(deed in text, f"{deed} is not told\n{text}")
    identity = admin.split("_")[1]
    check(any(line.get("token") == identity for line in said), text)


def test_overview_reports_the_workers():
    project(PLANT.replace("max_failures: 1", "max_failures: 999999"))
    daemon = Daemon()
    wire = daemon.wire()
    wait_until(lambda: any(s["about"] == "worker" for s in wire.get("/v1/overview").json["stuck"]),
               "one is not well")
    overview = wire.get("/v1/overview").json
    equal([s["name"] for s in overview["stuck"]], ["plant/oven"])
    equal(ids(wire, "?unwell=true"), ["plant/oven"])
    equal((overview["workers"]["workers"], sum(overview["workers"]["by_phase"].values())), (3, 3))
    daemon.stop()
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    equal(wire.get("/v1/overview").json["workers"], None)
    equal(wire.get("/v1/workers").json["error"]["code"], "UNSUPPORTED")
    # What was on record still is.
    equal(wire.get("/v1/deltas?limit=1").json["items"][0]["id"], "plant")
    daemon.stop()


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
