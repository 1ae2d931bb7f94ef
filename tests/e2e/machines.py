#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs the commands on a store, end to end, on real SQLite files.

    machines.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py. Where a store must look like nobody would make it, the tests write into
the file themselves, by the tables of docs/formats/sql_schema.md.
"""
import fcntl
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import up
import checksums
from up import DETENT, PATIENCE, SANITIZER, check, environment, equal, wait_until

ORDER = """#define FSM_NAME order
#define FSM_PREFIX ORDER
#define FSM_DATA order_data
RECORD(payment)
    FIELD(card, str(24), SENSITIVE)
    FIELD(cents, u64)
END
RECORD(order_data)
    FIELD(cents, u64)
    OPTIONAL(note, str(40))
END
STATE(PENDING, pending, INITIAL)
STATE(CHARGING, charging)
STATE(GONE, gone, FINAL)
EVENT(PAY, pay, payment)
EVENT(PING, ping)
EVENT(SHIP, ship)
EVENT(HALT, halt)
INTERNAL(CHARGED, charged)
INTERNAL(EXPIRED, expired)
EFFECT(charge_card, CHARGED)
UNHANDLED(SHIP, DEFER)
UNHANDLED(HALT, IGNORE)
ON(PENDING, PAY, CHARGING, KEEP(cents), DO(charge_card))
STAY(PENDING, PING)
ON(PENDING, EXPIRED, GONE)
ON(CHARGING, CHARGED, GONE)
ON(CHARGING, SHIP, GONE)
ON(CHARGING, PING, PENDING)
STOP(CHARGING, HALT, REASON("halted"))
AFTER(PENDING, MINUTES(30), EXPIRED)
"""
PARCEL = """#define FSM_NAME parcel
#define FSM_PREFIX PARCEL
STATE(HERE, here, INITIAL)
STATE(THERE, there, FINAL)
EVENT(MOVE, move)
ON(HERE, MOVE, THERE)
"""
CARRIED = """#define FSM_NAME parcel
#define FSM_PREFIX PARCEL
STATE(HERE, here, INITIAL)
STATE(THERE, there, FINAL)
EVENT(MOVE, move)
INTERNAL(MOVED, moved)
EFFECT(carry, MOVED)
ON(HERE, MOVE, HERE, DO(carry))
ON(HERE, MOVED, THERE)
"""
GUARDED = """#define FSM_NAME door
#define FSM_PREFIX DOOR
STATE(SHUT, shut, INITIAL)
STATE(OPEN, open, FINAL)
EVENT(PUSH, push)
GUARD(has_key)
ON(SHUT, PUSH, OPEN, IF(has_key))
"""
STORE = ("--store", "sqlite:orders.db")
PAY = ("--data", '{"card": "4242", "cents": 1999}')


def run(*words, stdin="", env=None, strace=None):
    command = [*(strace or []), DETENT, *words]
    done = subprocess.run(command, env=environment(env), timeout=PATIENCE, input=stdin,
                          capture_output=True, text=True, check=False)
    done.stderr = SANITIZER.sub("", done.stderr)
    return done


def detent(*words, code=0, out=None, err=None, **more):
    """Runs the program; checks its exit code and, if given, parts of what it printed."""
    done = run(*words, **more)
    shown = f"detent {' '.join(words)}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    check(done.returncode == code, f"exit code {done.returncode}, not {code}: {shown}")
    for wanted, found in ((out, done.stdout), (err, done.stderr)):
        for part in [wanted] if isinstance(wanted, str) else wanted or []:
            check(part in found, f"there is no {part!r}: {shown}")
    return done


def objects(*words, code=0, **more):
    done = detent(*words, "--json", code=code, **more)
    return [json.loads(line) for line in done.stdout.splitlines()]


def one(*words, **more):
    found = objects(*words, **more)
    equal(len(found), 1)
    return found[0]


def carried_parcel(effect, more="", name="p-1"):
    """A `detent up` that has begun to carry a parcel, by this effect."""
    Path("parcel.fsm").write_text(CARRIED)
    Path("detent.yaml").write_text(
        f"version: 1\n{more}machines:\n  parcel:\n    effects:\n      carry: {effect}\n")
    it = up.Up()
    wait_until(lambda: any("Serves parcel" in line for line in it.talk), it.shown)
    detent("start", "parcel", name)
    detent("send", name, "move")
    return it


def shop(*ids):
    """A store with orders in it."""
    Path("order.fsm").write_text(ORDER)
    for name in ids or ("o-1",):
        detent("start", "order.fsm", name, *STORE)


def database(path="orders.db"):
    return checksums.connect(path)


class Follower:
    """A command that goes on, and what it has printed."""

    def __init__(self, *words):
        self.path = Path(f"follower-{len(up.running)}.txt").resolve()
        with self.path.open("w") as file:
            self.process = subprocess.Popen([DETENT, *words], stdout=file,
                                            stderr=subprocess.STDOUT, env=environment())
        up.running.append(self)

    @property
    def text(self):
        return self.path.read_text()

    def wait_for(self, part):
        wait_until(lambda: part in self.text, lambda: f"{part}\n{self.text}")

    def end(self, code):
        found = self.process.wait(PATIENCE)
        check(found == code, f"exit code {found}, not {code}: {self.text}")
        return self.text

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def test_an_order_from_start_to_end():
    Path("order.fsm").write_text(ORDER)
    detent("start", "order.fsm", "o-1", *STORE, "--data", '{"note": "fragile"}',
           out="o-1: pending", err="The timer of expired waits")
    detent("get", "o-1", *STORE, out=["order o-1 is pending", 'note="fragile"', "expired, in 29m"])
    detent("send", "o-1", "ping", *STORE, out="o-1: ping: stays pending")
    detent("send", "o-1", "pay", *STORE, *PAY, out="o-1: pay: pending -> charging",
           err="Effect charge_card waits")
    detent("why", "o-1", *STORE,
           out=["order o-1 is charging", "last       pay: pending -> charging, ",
                "takes      ping, ship, halt", "awaits     charged",
                "no attempt has ended"])
    history = detent("history", "o-1", *STORE, out=["card={redacted}", "cents=1999"]).stdout
    check("4242" not in history)
    equal(len(history.splitlines()), 4)
    check(re.search(r'\n *0  .*\(started\) .*pending .*note="fragile"', history), history)
    detent("list", *STORE, out=["o-1", "charging"])
    detent("send", "o-1", "ship", *STORE, out="charging -> gone")
    detent("why", "o-1", *STORE, out=["order o-1 is gone", "this state is final"])
    detent("timers", *STORE, err="No timer is armed.")


def test_every_command_prints_json():
    shop()
    sent = one("send", "o-1", "pay", *STORE, *PAY)
    equal(sent, {"type": "sent", "machine": "order", "id": "o-1", "event": "pay", "outcome": "goto",
                 "state": "charging", "sequence": 1, "visit": 2, "duplicate": False})
    got = one("get", "o-1", *STORE)
    equal(got["data"], {"cents": 1999})
    check(re.fullmatch("[0-9a-f]{16}/order/o-1/1/0", got["effects"][0]["key"]) is not None, got)
    equal(got["history"], ["pending"])
    why = one("why", "o-1", *STORE)
    equal([t["event"] for t in why["takes"] if not t["internal"]], ["ping", "ship", "halt"])
    start, event = objects("history", "o-1", *STORE)
    equal((start["type"], start["sequence"], start["state"]), ("start", 0, "pending"))
    equal(start["data"], {"cents": 0})
    equal(event["payload"], {"card": "{redacted}", "cents": 1999})
    equal(one("list", *STORE)["state"], "charging")
    started = one("start", "order", "o-2", *STORE)
    equal((started["event"], started["outcome"], started["state"]), (None, "goto", "pending"))
    timer = one("timers", *STORE)
    equal((timer["id"], timer["event"], timer["timer"]), ("o-2", "expired", ""))
    equal(timer, {**one("timers", "o-2", *STORE)})
    equal(one("cancel", "o-2", *STORE)["outcome"], "stop")
    equal(objects("retry", "--list", *STORE), [])
    info = one("store", "info", *STORE)
    equal(info["instances"], 2)
    equal(info["machines"][0]["states"], {"pending": 1, "charging": 1, "gone": 0})
    equal(objects("store", "verify", *STORE), [])
    watched = objects("watch", "o-2", "--after", "0", *STORE)
    equal((watched[0]["stopped"], watched[1]["outcome"]), (True, "stop"))


def test_the_store_keeps_the_definition():
    shop()
    Path("order.fsm").unlink()
    detent("get", "o-1", *STORE, out="order o-1 is pending")
    detent("send", "o-1", "pay", *STORE, *PAY, out="pending -> charging")
    detent("start", "order", "o-2", *STORE, out="o-2: pending")


def test_a_definition_may_grow_without_a_new_version():
    shop()
    more = ORDER.replace("EVENT(PING, ping)", "EVENT(PING, ping)\nEVENT(FLY, fly)\nSTATE(UP, up)\n"
                         "ON(PENDING, FLY, UP)\nON(UP, PING, GONE)")
    Path("order.fsm").write_text(more)
    detent("send", "o-1", "fly", *STORE, code=2, err="has no event 'fly'")
    detent("send", "o-1", "fly", *STORE, "-m", "order.fsm", out="pending -> up")
    detent("get", "o-1", *STORE, out="order o-1 is up")
    detent("send", "o-1", "ping", *STORE, out="up -> gone")
    detent("history", "o-1", *STORE, out="fly")


def test_project_file_names_store_and_machines():
    Path("detent.yaml").write_text(
        "version: 1\nstore: sqlite:data/shop.db\nmachines: {order: {spec: specs/order.fsm}}\n")
    Path("data").mkdir()
    Path("specs").mkdir()
    Path("specs/order.fsm").write_text(ORDER)
    detent("check", "detent.yaml")
    detent("start", "order", "o-1")
    check(Path("data/shop.db").exists())
    Path("below").mkdir()
    os.chdir("below")
    detent("send", "o-1", "ping", out="stays pending")
    detent("get", "o-1", out="order o-1 is pending")
    detent("list", out="o-1")
    os.chdir("..")
    detent("get", "o-1", *STORE, code=3, err="does not exist")
    detent("get", "o-1", env={"DETENT_STORE": "sqlite:data/shop.db"}, out="order o-1")
    detent("up", code=2, err="has no tasks to run")
    Path("specs/order.fsm").write_text(PARCEL)
    detent("send", "o-1", "ping", code=2, err="defines 'parcel', and detent.yaml calls it 'order'")
    detent("get", "o-1", out="order o-1 is pending")
    Path("detent.yaml").write_text("version: 1\nmachines: {order: {sepc: x}}\n")
    detent("get", "o-1", code=2, err="did you mean 'spec'?")
    detent("get", "o-1", "--store", "sqlite:data/shop.db", out="order o-1")


def test_event_id_is_applied_once():
    shop()
    detent("send", "o-1", "pay", *STORE, *PAY, "--id", "p-1", out="pending -> charging")
    detent("send", "o-1", "pay", *STORE, *PAY, "--id", "p-1",
           out="o-1: already done, as event 1 (pay): charging")
    again = one("send", "o-1", "pay", *STORE, *PAY, "--id", "p-1")
    check(again["duplicate"])
    detent("send", "o-1", "ping", *STORE, "--id", "p-1", code=4,
           err="the event id p-1 was used for another request: pay, event 1")
    detent("send", "o-1", "ping", *STORE, "--id", "no id", code=2)
    detent("start", "order", "o-2", *STORE, "--id", "s-1")
    detent("start", "order", "o-2", *STORE, "--id", "s-1", out="already done")
    detent("send", "o-2", "ping", *STORE, "--id", "s-1", code=4,
           err="the event id s-1 was used for another request: the start, event 0")
    detent("start", "order", "o-1", *STORE, "--id", "p-1", code=4)
    detent("start", "order", "o-2", *STORE, code=4, err="'o-2' of order already exists")
    equal(len(objects("history", "o-1", *STORE)), 2)
    detent("send", "o-1", "ping", *STORE)
    with database() as data:
        data.execute("UPDATE events SET previous = 0 WHERE sequence = 2")
        data.execute("DELETE FROM events WHERE sequence < 2")
        data.execute("DELETE FROM starts")
    detent("send", "o-1", "ping", *STORE, "--id", "p-1", code=4, err="another request: pay")
    detent("send", "o-1", "pay", *STORE, *PAY, "--id", "p-1", out="already done, as event 1: ")


def test_failed_expect_changes_nothing():
    shop()
    detent("send", "o-1", "ping", *STORE, "--expect", "0")
    detent("send", "o-1", "ping", *STORE, "--expect", "5", code=4, err="5")
    detent("send", "o-1", "ping", *STORE, "--expect", "0", code=4,
           err="expected sequence 0, but the instance is at 1")
    detent("send", "o-1", "ping", *STORE, "--expect", "1")
    detent("send", "o-1", "ping", *STORE, "--expect", "x", code=2,
           err="detent send: --expect must be a whole number")
    equal(one("get", "o-1", *STORE)["sequence"], 2)


def test_errors_suggest_the_nearest_name():
    shop("order-1")
    detent("get", "order-2", *STORE, code=3, err="did you mean 'order-1'?")
    detent("get", "zzz", *STORE, code=3, err="'detent list' shows all")
    detent("send", "order-1", "pya", *STORE, code=2, err="did you mean 'pay'?")
    detent("send", "order-1", "xxxxxx", *STORE, code=2, err="'detent why order-1' lists")
    detent("send", "order-1", "charged", *STORE, code=6, err="only effects and timers send it")
    detent("send", "order-1", "halt", *STORE, out="order-1: halt: ignored in pending")
    detent("send", "order-1", "ship", *STORE, out="order-1: ship: deferred until pending is left")
    detent("send", "order-1", "pay", *STORE, code=2,
           err="pay needs --payload '{\"card\": ..., \"cents\": ...}'")
    detent("send", "order-1", "pay", *STORE, "--payload", "{", code=2, err="--payload: ")
    detent("send", "order-1", "pay", *STORE, "--payload", '{"card":"1","cents":-1}', code=2,
           err="cents")
    detent("send", "order-1", "ping", *STORE, "--payload", '{"x":1}', code=2,
           err="--payload: ping has none; omit the option")
    card = '{"card":"1","cents":1}'
    detent("send", "order-1", "pay", *STORE, "--payload", card, "--data", card, code=2,
           err="use --payload alone")
    detent("start", "ordre", "o", *STORE, code=3, err="did you mean 'order'?")
    detent("start", "order", "o", *STORE, "--data", '{"nota": "x"}', code=2, err="nota")
    detent("start", "order", "no spaces", *STORE, code=2)
    detent("list", "--state", "pendign", *STORE, code=3, err="did you mean 'pending'?")
    detent("list", "--active", "--stopped", *STORE, code=2)
    detent("get", "order-1", code=2, err=["which store?", "DETENT_STORE"])
    detent("get", "order-1", "--store", "orders.db", code=2, err="did you mean sqlite:orders.db?")
    detent("get", "order-1", "--store", "memory:", code=2, err="lasts only for one command")
    detent("get", "order-1", "--store", "mysql:x", code=2, err="unknown kind of store")
    detent("get", "order-1", "--store", "sqlite:none.db", code=3, err="none.db")
    detent("send", "order-1", "ping", "--store", "sqlite:none.db", code=3, err="none.db")
    check(not Path("none.db").exists() and not Path("none.db.lock").exists())
    detent("get", "order-1", *STORE, "--machine", "none.fsm", code=3, err="none.fsm")
    detent("get", "order-1", *STORE, "--machine", "parcel", code=3, err="no machine 'parcel'")
    Path("parcel.fsm").write_text(PARCEL)
    detent("start", "parcel.fsm", "o", *STORE, "--data", '{"x":1}', code=2,
           err="--data: parcel has none; omit the option")


def test_why_lists_events_that_would_be_deferred():
    shop()
    detent("why", "o-1", *STORE, out="defers     ship: may be sent, and waits for a state")
    equal([item["event"] for item in one("why", "o-1", *STORE)["defers"]], ["ship"])
    detent("send", "o-1", "pay", *STORE, *PAY)
    equal(one("why", "o-1", *STORE)["defers"], [])


def test_a_history_is_drawn_as_a_run():
    shop()
    detent("send", "o-1", "pay", *STORE, *PAY)
    Path("run.jsonl").write_text(detent("history", "o-1", "--json", *STORE).stdout)
    detent("diagram", "order.fsm", "--trace", "run.jsonl", "--format", "sequence",
           out=["pay", "charging"])
    Path("run.jsonl").write_text(detent("history", "o-1", "--last", "1", "--json", *STORE).stdout)
    detent("diagram", "order.fsm", "--trace", "run.jsonl", "--format", "timeline", out="pay")


def test_a_deferred_event_follows_by_itself():
    shop()
    detent("send", "o-1", "ship", *STORE)
    detent("why", "o-1", *STORE, out="deferred   ship, kept since event 1")
    detent("send", "o-1", "pay", *STORE, *PAY,
           out=["o-1: pay: pending -> charging", "o-1: ship: charging -> gone"])


def test_data_comes_from_files_too():
    shop()
    Path("pay.json").write_text('{"card": "secret", "cents": 5}')
    detent("send", "o-1", "pay", *STORE, "--payload", "@pay.json", out="charging")
    detent("start", "order", "o-2", *STORE, "--data", "@-", stdin='{"cents": 7}')
    equal(one("get", "o-2", *STORE)["data"]["cents"], 7)
    detent("start", "order", "o-3", *STORE, "--data", "@none", code=3, err="none")


def test_functions_in_c_are_explained():
    Path("door.fsm").write_text(GUARDED)
    detent("start", "door.fsm", "d-1", *STORE)
    detent("send", "d-1", "push", *STORE, code=6,
           err=["has_key", "only the program that contains it can do this"])
    equal(one("get", "d-1", *STORE)["sequence"], 0)


def test_an_id_of_two_machines_needs_a_name():
    shop("x")
    Path("parcel.fsm").write_text(PARCEL)
    detent("start", "parcel.fsm", "x", *STORE)
    for command in (("get", "x"), ("send", "x", "move"), ("cancel", "x"), ("why", "x")):
        detent(*command, *STORE, code=2, err="exists in several machines: order, parcel")
    detent("get", "x", *STORE, "--machine", "parcel", out="parcel x is here")
    detent("send", "x", "move", *STORE, "-m", "parcel.fsm", out="here -> there")
    equal(len(objects("list", *STORE)), 2)
    equal(len(objects("list", *STORE, "-m", "order")), 1)
    detent("list", *STORE, "--after", "a", code=2, err="--after needs --machine")


def test_lists_are_filtered_and_paged():
    shop("a", "b", "c", "d")
    detent("send", "b", "pay", *STORE, *PAY)
    detent("cancel", "c", *STORE)

    def ids(*words):
        return [o["id"] for o in objects("list", *STORE, *words)]
    equal(ids(), ["a", "b", "c", "d"])
    equal(ids("--state", "pending"), ["a", "c", "d"])
    equal(ids("--stopped"), ["c"])
    equal(ids("--active", "--state", "pending"), ["a", "d"])
    detent("send", "b", "ship", *STORE)
    equal(ids("--state", "gone"), ["b"])
    equal(ids("--active"), ["a", "d"])
    equal(ids("--active", "--limit", "1", "--after", "a"), ["d"])
    detent("list", *STORE, "--active", "-n", "1", err="There are more: --after a")
    equal(ids("--limit", "2"), ["a", "b"])
    equal(ids("--limit", "2", "--after", "b"), ["c", "d"])
    equal(ids("--older", "1h"), [])
    equal(ids("--older", "1ns"), ["a", "b", "c", "d"])
    detent("list", *STORE, "-n", "2", err="There are more: --after b")
    detent("list", *STORE, "--older", "1h", err="There are no such instances.")
    detent("list", *STORE, "--limit", "0", code=2, err="list: --limit must be a whole number")
    detent("list", *STORE, "--older", "soon", code=2, err="list: --older must be a duration")


def test_history_can_be_limited_at_both_ends():
    shop()
    detent("history", "o-1", *STORE, err="There are no events yet.")
    for _ in range(4):
        detent("send", "o-1", "ping", *STORE)
    equal([o["sequence"] for o in objects("history", "o-1", *STORE, "--last", "2")], [3, 4])
    equal([o["sequence"] for o in objects("history", "o-1", *STORE, "--after", "3")], [4])
    detent("history", "o-1", *STORE, "--after", "4", err="There are no events after 4.")
    with database() as data:
        data.execute("UPDATE events SET previous = 0 WHERE sequence = 3")
        data.execute("DELETE FROM events WHERE sequence < 3")
        data.execute("DELETE FROM starts")
    detent("history", "o-1", *STORE, err="Events up to 2 were deleted.")


def test_watch_follows_until_the_end():
    shop()
    follower = Follower("watch", "o-1", *STORE)
    follower.wait_for("order o-1 is pending")
    detent("send", "o-1", "pay", *STORE, *PAY)
    follower.wait_for("pay: pending -> charging")
    detent("send", "o-1", "ship", *STORE)
    check("ship: charging -> gone" in follower.end(0))
    lines = [json.loads(line) for line in
             detent("watch", "o-1", *STORE, "--json", "--after", "0").stdout.splitlines()]
    equal([o.get("event") for o in lines], [None, "pay", "ship"])
    detent("start", "order", "o-2", *STORE)
    detent("watch", "o-2", *STORE, "--timeout", "10ms", code=5, err="o-2 is still pending")
    follower = Follower("watch", "o-2", *STORE)
    follower.wait_for("order o-2 is pending")
    follower.process.send_signal(signal.SIGINT)
    follower.end(130)


def test_start_can_wait_for_the_end():
    shop("o-0")
    detent("start", "order", "t", *STORE, "--wait", "--timeout", "10ms", code=5,
           err="t is still pending")
    detent("start", "order", "t2", *STORE, "--timeout", "10ms", code=2, err="need --wait")
    for name, last, options, code in (("a", "ship", (), 0), ("b", "halt", (), 1),
                                      ("c", "ship", ("--success", "paid,gone"), 0),
                                      ("d", "ship", ("--success", "paid"), 1)):
        follower = Follower("start", "order", name, *STORE, "--wait", *options)
        follower.wait_for(f"{name}: pending")
        wait_until(lambda n=name: run("send", n, "pay", *STORE, *PAY).returncode == 0, "a payment")
        follower.wait_for("pay: pending -> charging")
        detent("send", name, last, *STORE)
        follower.end(code)


def test_cancel_is_final():
    shop()
    detent("cancel", "o-1", *STORE, "--reason", "no stock", out="o-1: stopped in pending")
    detent("get", "o-1", *STORE, out=["order o-1 has stopped in pending", "reason     no stock"])
    detent("send", "o-1", "ping", *STORE, code=6, err="no stock")
    detent("cancel", "o-1", *STORE, "--reason", "other", err="was already stopped: no stock")
    equal(one("get", "o-1", *STORE)["reason"], "no stock")
    equal(objects("timers", *STORE), [])
    detent("cancel", "o-9", *STORE, code=3)
    detent("start", "order", "o-2", *STORE)
    detent("send", "o-2", "pay", *STORE, *PAY)
    detent("send", "o-2", "ship", *STORE, out="charging -> gone")
    detent("cancel", "o-2", *STORE, code=6, err="o-2 is in the final state gone")
    equal(one("get", "o-2", *STORE)["stopped"], False)


def bury():
    """Every effect that waits becomes a dead letter."""
    with database() as data:
        columns = [{row[1] for row in data.execute(f"PRAGMA table_info({table})")}
                   for table in ("outbox", "dead_letters")]
        names = ", ".join(columns[0] & columns[1])
        data.execute("UPDATE outbox SET attempts = 8, last_error = -12")
        data.execute(f"INSERT INTO dead_letters ({names}, dead_at) SELECT {names}, 1 FROM outbox")
        data.execute("DELETE FROM outbox")
        checksums.sum_rows(data, "dead_letters")


def test_retry_revives_dead_effects():
    shop("o-1", "o-2")
    detent("retry", "--list", *STORE, err="There are no dead letters.")
    detent("retry", "o-1", *STORE, code=3, err="o-1 has no dead letters")
    for name in ("o-1", "o-2"):
        detent("send", name, "pay", *STORE, *PAY)
    bury()
    detent("why", "o-1", *STORE, out=["charge_card is a dead letter after 8 attempts: IO",
                                      "/order/o-1/1/0",
                                      "nothing is pending: an effect is a dead letter"])
    detent("start", "order", "o-3", *STORE)
    detent("retry", "--list", *STORE, out=["order/o-1/1/0", "order/o-2/1/0", "IO"])
    equal([o["key"][17:] for o in objects("retry", "-l", "o-2", *STORE)], ["order/o-2/1/0"])
    detent("retry", "o-1", "7/7", *STORE, code=3, err="has no dead letter '7/7'")
    detent("retry", "o-1", "1/0", *STORE, out="order/o-1/1/0: charge_card will be retried")
    equal(one("retry", "o-2", *STORE)["key"][17:], "order/o-2/1/0")
    for name in ("o-1", "o-2"):
        effect = one("get", name, *STORE)["effects"][0]
        equal((effect["dead"], effect["attempts"]), (False, 0))
    detent("retry", *STORE, code=2, err="needs the id of an instance, or --list")


def test_a_store_is_verified():
    shop("o-1", "o-2")
    detent("send", "o-1", "ping", *STORE)
    detent("send", "o-1", "ping", *STORE)
    detent("store", "verify", *STORE, err="2 instances verified: ok")
    with database() as data:
        data.execute("UPDATE events SET at = at + 1 WHERE sequence = 2")
    detent("store", "verify", *STORE, code=1, out="order o-1", err="nothing was changed")
    found = objects("store", "verify", *STORE, code=1)
    check(any(o["id"] == "o-1" and o["sequence"] == 2 for o in found), found)
    with database() as data:
        data.execute("UPDATE instances SET state = 'gone' WHERE id = 'o-2'")
    detent("get", "o-2", *STORE, code=1, err="order 'o-2' is damaged")
    detent("send", "o-2", "ping", *STORE, code=1)
    detent("get", "o-1", *STORE, out="order o-1 is pending")
    equal(len(objects("list", *STORE)), 2)
    detent("timers", *STORE, out="o-1", err="Instances that cannot be read are left out: 1")
    equal([timer["id"] for timer in objects("timers", *STORE)], ["o-1"])


def damage(statement):
    with database() as data:
        data.execute(statement)


def test_damaged_heads_are_repaired():
    shop("o-1", "o-2", "o-3", "o-4")
    detent("send", "o-2", "pay", *STORE, *PAY)
    before = [one("get", name, *STORE) for name in ("o-1", "o-2", "o-3", "o-4")]
    detent("store", "repair", *STORE, err="nothing is damaged")
    detent("store", "repair", "o-2", *STORE, err="the head of order 'o-2' is not damaged")
    damage("UPDATE instances SET data = zeroblob(length(data)), state = 'xyz' WHERE id = 'o-2'")
    damage("UPDATE instances SET visit = 7 WHERE id IN ('o-3', 'o-4')")
    for words in (("get", "o-2"), ("send", "o-2", "ping"), ("why", "o-2"), ("cancel", "o-2")):
        detent(*words, *STORE, code=1, err=["order 'o-2' is damaged",
                                            "'detent store repair o-2' may restore it"])
    detent("store", "verify", *STORE, code=1, err="'detent store repair'")
    raw = Path("orders.db").read_bytes()
    detent("store", "repair", "--dry-run", *STORE,
           out=["order o-2: its head can be restored", "order o-3", "order o-4"],
           err="3 instances can be restored; nothing was changed")
    equal(one("store", "repair", "-n", "o-2", *STORE),
          {"type": "repair", "machine": "order", "id": "o-2", "ok": True, "dry_run": True,
           "text": None})
    equal(Path("orders.db").read_bytes(), raw)
    detent("store", "repair", "o-2", *STORE, out="order o-2: its head is restored",
           err="1 instance restored")
    equal(one("get", "o-2", *STORE), before[1])
    equal([(o["id"], o["ok"]) for o in objects("store", "repair", *STORE)],
          [("o-3", True), ("o-4", True)])
    equal([one("get", name, *STORE) for name in ("o-1", "o-2", "o-3", "o-4")], before)
    detent("store", "verify", *STORE, err="4 instances verified: ok")


def test_heads_that_cannot_be_proven_are_not_repaired():
    shop("o-1", "o-2", "o-3", "o-4")
    detent("send", "o-1", "ping", *STORE)
    damage("UPDATE events SET at = at + 1")
    damage("UPDATE instances SET visit = 7 WHERE id IN ('o-2', 'o-3')")
    damage("DELETE FROM starts WHERE instance = (SELECT key FROM instances WHERE id = 'o-2')")
    detent("store", "repair", *STORE, code=1,
           out=["order o-1 cannot be repaired: event 1: the event does not match its hash",
                "order o-2 cannot be repaired: it has neither a snapshot nor its start",
                "order o-3: its head is restored"],
           err="1 instance restored, 2 not")
    found = objects("store", "repair", *STORE, "-n", code=1)
    equal([(o["id"], o["ok"]) for o in found], [("o-1", False), ("o-2", False)])
    check("neither a snapshot nor its start" in found[1]["text"], found)
    detent("store", "repair", "o-2", *STORE, code=1, out="order o-2 cannot be repaired")
    detent("store", "repair", "o-9", *STORE, code=3, err="there is no 'o-9'")
    detent("store", "verify", "--dry-run", *STORE, code=2,
           err="'detent store verify' does not take --dry-run")
    damage("UPDATE timers SET instance = 77 WHERE instance = 4")
    detent("store", "repair", *STORE, code=1, out="1 timer belongs to no instance")


def test_repair_takes_the_definition_of_the_store():
    shop()
    damage("UPDATE instances SET visit = 7")
    Path("order.fsm").write_text(ORDER.replace("PENDING, pending", "PENDING, waiting"))
    Path("detent.yaml").write_text("version: 1\nstore: sqlite:orders.db\n"
                                   "machines:\n  order: {spec: order.fsm}\n")
    detent("store", "repair", "-m", "parcel", code=3, err="there is no machine 'parcel'")
    detent("store", "repair", out="order o-1: its head is restored")
    detent("get", "o-1", out="order o-1 is pending")


def test_writer_upgrades_a_store_of_an_older_schema():
    old = Path(__file__).parents[1] / "schema" / "1.sqlite.sql"
    with sqlite3.connect("old.db") as data:
        data.executescript(old.read_text())
    data.close()
    place = ("--store", "sqlite:old.db")
    detent("store", "info", *place, code=1, err="detent store upgrade")
    equal(one("store", "upgrade", *place)["schema"], 7)
    equal(one("store", "info", *place)["instances"], 2)
    detent("store", "info", *place, out="schema 7, 2 instances")
    detent("store", "verify", *place)
    detent("get", "p", *place, out="pad p is")


def test_a_store_is_copied_and_compacted():
    shop("o-1", "o-2")
    detent("store", "backup", "copy.db", *STORE, err="copied to copy.db")
    equal(one("store", "info", "--store", "sqlite:copy.db")["identity"],
          one("store", "info", *STORE)["identity"])
    detent("get", "o-2", "--store", "sqlite:copy.db", out="order o-2")
    done = run("store", "backup", "copy.db", *STORE)
    check(done.returncode in (1, 4) and "copy.db" in done.stderr, done.stderr)
    detent("store", "backup", *STORE, code=2, err="needs a file")
    detent("store", "compact", *STORE, err="compacted")
    detent("store", "verify", *STORE)
    detent("store", "info", *STORE, out=["sqlite:orders.db", "2 instances", "pending"])
    detent("store", "fix", *STORE, code=2, err="unknown verb 'fix'")
    detent("store", "verfy", *STORE, code=2, err="did you mean 'verify'?")
    detent("store", "verify", "x", *STORE, code=2, err="takes no 'x'")
    detent("store", code=2)


def test_export_and_import_preserve_the_store():
    shop("o-1", "o-2", "o-3")
    Path("parcel.fsm").write_text(PARCEL)
    detent("start", "parcel.fsm", "p-1", *STORE)
    much = ("--payload", '{"card":"4242","cents":18446744073709551615}')
    detent("send", "o-1", "pay", *STORE, *much, "--id", "p-1")
    detent("send", "o-2", "ship", *STORE)
    detent("cancel", "o-3", *STORE, "--reason", "over")
    detent("store", "export", "all.jsonl", *STORE, err="4 instances and 3 events exported")
    detent("store", "export", "all.jsonl", *STORE, code=4, err="all.jsonl")
    there = ("--store", "sqlite:other.db")
    detent("store", "import", "all.jsonl", *there, err="4 instances and 3 events imported")
    detent("store", "import", "all.jsonl", *there, err="4 instances already existed")
    for name in ("o-1", "o-2", "o-3", "p-1"):
        found, was = one("get", name, *there), one("get", name, *STORE)
        for effect in found["effects"] + was["effects"]:
            effect["key"] = effect["key"][16:]      # keys are of their store
        equal(found, was)
        equal(objects("history", name, *there), objects("history", name, *STORE))
    detent("store", "verify", *there, err="ok")
    detent("send", "o-1", "pay", *there, *much, "--id", "p-1", out="already done, as event 1")
    detent("send", "o-1", "pay", *there, *PAY, "--id", "p-1", code=4,
           err="was used for another request: pay, event 1")
    kinds = [json.loads(line)["kind"] for line in
             detent("store", "export", *STORE, "-m", "parcel").stdout.splitlines()]
    equal(kinds, ["store", "definition", "instance", "end"])
    text = Path("all.jsonl").read_text()
    Path("bad.jsonl").write_text(text.replace("18446744073709551615", "18446744073709551614"))
    new = ("--store", "sqlite:new.db")
    detent("store", "import", "bad.jsonl", *new, code=2, err="the hash chain is broken")
    Path("bad.jsonl").write_text("".join(text.splitlines(True)[:-1]))
    detent("store", "import", "bad.jsonl", *new, code=2, err="the end is missing")
    check(not Path("new.db").exists())
    detent("store", "import", "none.jsonl", *new, code=3)
    detent("send", "o-2", "ping", *there)
    detent("store", "import", "all.jsonl", *there, code=4, err="with a different history")


def test_store_in_use_can_still_be_read():
    followers = []
    shop()
    with open("orders.db.lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4242\n")
        lock.flush()
        begun = time.monotonic()
        for words in (("send", "o-1", "ping"), ("start", "order", "o-2"), ("cancel", "o-1"),
                      ("store", "compact")):
            followers.append(Follower(*words, *STORE))
        for follower in followers:
            check("process 4242" in follower.end(6), follower.text)
        check(time.monotonic() - begun >= 5, "they did not wait")
        detent("get", "o-1", *STORE, out="order o-1 is pending")
        detent("list", *STORE, out="o-1")
        detent("store", "verify", *STORE, err="ok")
        detent("store", "backup", "copy.db", *STORE)
        detent("store", "export", "all.jsonl", *STORE)
        lock.truncate(0)
        detent("send", "o-1", "ping", *STORE, code=6, err="in another process;")
    detent("send", "o-1", "ping", *STORE)


def test_lock_is_reported_with_its_holder():
    shop()
    with database() as data:
        data.execute("UPDATE instances SET lock_owner = 'node-7', lock_until = ?, fence = 1",
                     (int(time.time() + 600) * 10**9,))
        checksums.sum_locks(data)
    detent("why", "o-1", *STORE, out="lock       held by node-7, lapses in 9m")
    lock = one("why", "o-1", *STORE)["lock"]
    equal((lock["owner"], lock["fence"]), ("node-7", 1))
    detent("locks", *STORE, out=["o-1", "node-7", "in 9m"])
    equal(one("locks", *STORE), {"type": "lock", "machine": "order", "id": "o-1", **lock})
    # Who writes to a file is the only one, and so whoever held it is gone.
    detent("send", "o-1", "ping", *STORE)
    equal(one("why", "o-1", *STORE)["lock"], None)
    detent("locks", *STORE, err="No instance is locked.")
    equal(objects("locks", *STORE), [])
    with database() as data:
        equal(data.execute("SELECT fence FROM instances").fetchall(), [(1,)])


def test_overdue_timer_fires_before_a_command():
    shop("o-1", "o-2", "o-3")
    with database() as data:
        data.execute("UPDATE timers SET due = 1, next_at = 1")
        checksums.sum_rows(data, "timers")
    detent("send", "o-1", "pay", *STORE, *PAY, code=6)
    detent("cancel", "o-2", *STORE)
    for name in ("o-1", "o-2"):
        done = objects("history", name, *STORE)
        equal([(o["event"], o["timeout"]) for o in done if o["type"] == "event"][:1],
              [("expired", True)])
    detent("get", "o-1", *STORE, out="order o-1 is gone")
    # Nobody has sent anything to it.
    detent("get", "o-3", *STORE, out="order o-3 is pending")


def test_why_reports_an_unserved_store():
    shop("o-1", "o-2")
    nobody = "no process serves this store: start 'detent up', or your program"
    check(nobody not in detent("why", "o-1", *STORE).stdout)
    detent("send", "o-1", "pay", *STORE, *PAY)
    with database() as data:
        data.execute("UPDATE timers SET due = 1, next_at = 1")
        checksums.sum_rows(data, "timers")
    for name in ("o-1", "o-2"):
        detent("why", name, *STORE, out=f"so         {nobody}")
    with open("orders.db.lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in ("o-1", "o-2"):
            check(nobody not in detent("why", name, *STORE).stdout)


def test_why_and_check_name_a_machine_that_is_listed_but_not_served():
    unserved = "machine 'order' is listed, but 'detent up' does not serve it: add 'effects'"
    Path("order.fsm").write_text(ORDER)
    Path("detent.yaml").write_text("version: 1\nmachines: {order: {}}\n")
    detent("start", "order", "o-1")
    check("is listed" not in detent("why", "o-1").stdout)
    detent("send", "o-1", "pay", *PAY)
    said = " ".join(detent("why", "o-1").stdout.split())
    check(unserved in said, said)
    detent("check", "detent.yaml", err=f"detent.yaml:2:12: note: {unserved}")
    detent("up", code=2, err=f"no machine to serve; {unserved}")


def every_command():
    return (("get", "o-1"), ("list",), ("send", "o-1", "ping"), ("start", "order.fsm", "o-2"),
            ("store", "verify"), ("timers",), ("why", "o-1"), ("cancel", "o-1"))


def test_files_that_are_not_stores_are_unchanged():
    Path("order.fsm").write_text(ORDER)
    Path("text.db").write_text("this is no database\n" * 100)
    with database("foreign.db") as data:
        data.execute("CREATE TABLE precious (a)")
    Path("folder.db").mkdir()
    before = Path("foreign.db").read_bytes(), Path("text.db").read_bytes()
    for path in ("text.db", "foreign.db", "folder.db"):
        for words in every_command():
            done = detent(*words, "--store", f"sqlite:{path}", code=1, err=path)
            check(len(done.stderr.splitlines()) == 1, done.stderr)
    equal(before, (Path("foreign.db").read_bytes(), Path("text.db").read_bytes()))


def test_a_newer_and_a_damaged_store_are_refused():
    shop()
    shutil.copy("orders.db", "newer.db")
    with database("newer.db") as data:
        data.execute("PRAGMA user_version = 99")
        data.execute("UPDATE store SET schema = 99")
    for words in every_command():
        detent(*words, "--store", "sqlite:newer.db", code=1, err="newer.db")
    shutil.copy("orders.db", "missing.db")
    with database("missing.db") as data:
        data.execute("DROP TABLE timers")
    for words in every_command():
        detent(*words, "--store", "sqlite:missing.db", code=1, err=["missing.db", "timers"])
    raw = bytearray(Path("orders.db").read_bytes())
    for i in range(4096, len(raw), 512):
        raw[i] ^= 0xFF
    Path("damaged.db").write_bytes(raw)
    for words in every_command():
        done = run(*words, "--store", "sqlite:damaged.db")
        check(done.returncode == 1 and "damaged.db" in done.stdout + done.stderr,
              f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")


def test_local_damage_is_reported_with_its_place():
    shop("o-1", "o-2")
    detent("send", "o-1", "ping", *STORE)
    with database() as data:
        # Beyond the size that is checked whole when it is opened.
        data.execute("CREATE TABLE big (a)")
        data.execute("INSERT INTO big VALUES (zeroblob(9000000))")
        pages = dict(data.execute("SELECT name, rootpage FROM sqlite_master"))
    data.close()
    shutil.copy("orders.db", "whole.db")

    def spoil(name):
        shutil.copy("whole.db", "orders.db")
        with open("orders.db", "r+b") as file:
            file.seek((pages[name] - 1) * 4096)
            file.write(b"\x2a")

    spoil("sqlite_autoindex_instances_1")
    for words in (("get", "o-1"), ("list",), ("send", "o-1", "ping"), ("store", "export", "x")):
        detent(*words, *STORE, code=1, err=["orders.db is damaged; 'detent store verify'",
                                            "backup"])
    detent("store", "verify", *STORE, code=1, out=f"Page {pages['sqlite_autoindex_instances_1']}",
           err=["2 instances", "backup"])
    spoil("events")
    detent("send", "o-1", "ping", *STORE, code=1, err="backup")
    detent("get", "o-2", *STORE, out="order o-2 is pending")
    detent("store", "verify", *STORE, code=1, err=["2 instances", "backup"],
           out=[f"Page {pages['events']}", "order o-1, event 1: ", "not all events"])
    spoil("starts")
    detent("store", "verify", *STORE, code=1, err="2 instances",
           out=[f"Page {pages['starts']}", "order o-2: not all of the instance can be read",
                "not all starts"])
    spoil("instances")
    detent("store", "verify", *STORE, code=1, err="0 instances",
           out=[f"Page {pages['instances']}", "not all instances can be read"])
    shutil.copy("whole.db", "orders.db")
    with database() as data:
        data.execute("UPDATE instances SET state = 'nowhere' WHERE id = 'o-2'")
    data.close()
    detent("store", "export", "x", *STORE, code=1,
           err=["order 'o-2' is damaged", "1 instance and 1 event exported",
                "1 instance was left out"])
    detent("store", "import", "x", "--store", "sqlite:rest.db",
           err=["1 instance and 1 event imported", "1 damaged instance is not in the export"])
    detent("get", "o-1", "--store", "sqlite:rest.db", out="order o-1 is pending")
    detent("store", "verify", *STORE, code=1, out="order o-2: ")


def test_a_definition_that_does_not_fit_is_refused():
    shop()
    detent("send", "o-1", "pay", *STORE, *PAY)
    Path("less.fsm").write_text(PARCEL.replace("parcel", "order").replace("PARCEL", "ORDER"))
    done = detent("send", "o-1", "move", *STORE, "-m", "less.fsm", code=1)
    check("charging" in done.stderr, done.stderr)
    detent("get", "o-1", *STORE, out="order o-1 is charging")


def inject(calls, error):
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}",
            "-e", f"inject={calls}:error={error}"]


def fail_syncs(one):
    """From now on no sync of this `up` succeeds; it must not look for leaks at its end."""
    tracer = subprocess.Popen([*inject("fsync,fdatasync", "EIO"), "-p", str(one.number)])
    threads = Path(f"/proc/{one.number}/task")

    def are_traced():
        try:
            return all(f"TracerPid:\t{tracer.pid}" in (thread / "status").read_text()
                       for thread in threads.iterdir())
        except OSError:  # one has ended meanwhile
            return False
    wait_until(are_traced, "the tracer")
    return tracer


def test_full_disk_is_reported_and_loses_nothing():
    shop()
    quiet = {"ASAN_OPTIONS": "detect_leaks=0"}
    check(shutil.which("strace"), "this test needs strace")
    detent("send", "o-1", "ping", *STORE, code=1, env=quiet, strace=inject("pwrite64", "ENOSPC"),
           err="space")
    detent("send", "o-1", "ping", *STORE, code=1, env=quiet,
           strace=inject("fsync,fdatasync", "EIO"))
    detent("send", "o-1", "ping", *STORE)
    detent("store", "verify", *STORE, err="ok")
    detent("store", "export", "all.jsonl", *STORE, code=1, env=quiet,
           strace=inject("fsync,fdatasync", "ENOSPC"), err="all.jsonl")
    check(not Path("all.jsonl").exists())


def test_store_behind_its_mark_is_read_only_with_a_warning():
    shop()
    lost = "orders.db has lost acknowledged commits: the last 1 of 2 positions"
    shutil.copy("orders.db", "old.db")
    detent("send", "o-1", "ping", *STORE)
    shutil.copy("old.db", "orders.db")
    detent("send", "o-1", "ping", *STORE, code=1, err=lost)
    for command in (["get", "o-1"], ["list"], ["history", "o-1"], ["store", "info"]):
        detent(*command, *STORE, err=lost)
    detent("store", "backup", "copy.db", *STORE, code=1, err=[lost, "--accept-loss"])
    detent("store", "export", "all.jsonl", *STORE, code=1, err=[lost, "--accept-loss"])
    detent("store", "export", *STORE, code=1, err=lost)
    check(not Path("copy.db").exists() and not Path("all.jsonl").exists())
    detent("store", "verify", *STORE, code=1)
    detent("store", "backup", "copy.db", "--accept-loss", *STORE, err=[lost, "copied to copy.db"])
    detent("store", "export", "all.jsonl", "--accept-loss", *STORE, err=[lost, "1 instance"])
    detent("store", "verify", "--accept-loss", *STORE, code=2,
           err="'detent store verify' does not take --accept-loss")
    detent("send", "o-1", "ping", "--store", "sqlite:copy.db")
    # Once it is accepted for good, nothing is said any more.
    os.unlink("orders.db.mark")
    check("lost" not in run("get", "o-1", *STORE).stderr)
    detent("store", "backup", "whole.db", *STORE, err="copied to whole.db")


def test_file_size_limit_is_reported_and_recoverable():
    shop()
    detent("send", "o-1", "ping", *STORE, code=1, strace=["prlimit", "--fsize=8192"],
           err="File too large")
    detent("send", "o-1", "ping", *STORE)
    detent("store", "verify", *STORE, err="ok")


def somebody():
    """What runs a command as one who may look at the folder and write nothing in it."""
    os.chmod(".", 0o755 if os.getuid() == 0 else 0o555)
    if os.getuid() != 0:
        return []
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]


def test_unwritable_store_can_be_read():
    shop()
    Path("a%20b#.db").write_bytes(Path("orders.db").read_bytes())
    for name in ("orders.db", "a%20b#.db"):
        os.chmod(name, 0o444)
    os.unlink("orders.db.lock")
    os.unlink("orders.db.mark")
    who = {"strace": somebody()}
    try:
        detent("get", "o-1", *STORE, out="order o-1 is pending", **who)
        detent("list", *STORE, out="o-1", **who)
        detent("store", "verify", *STORE, err="ok", **who)
        detent("get", "o-1", "--store", "sqlite:a%20b#.db", out="order o-1 is pending", **who)
        detent("send", "o-1", "ping", *STORE, code=1,
               err=["orders.db", "cannot write to", "for reading only"], **who)
        detent("start", "order.fsm", "o-2", "--store", "sqlite:new.db", code=1,
               err=["new.db", "cannot write to"], **who)
    finally:
        os.chmod(".", 0o755)
    equal(sorted(path.name for path in Path(".").glob("*.db*")), ["a%20b#.db", "orders.db"])


def test_commits_in_an_unusable_log_are_not_ignored():
    shop()
    with database() as data:
        data.execute("CREATE TABLE more (a)")
        shutil.copy("orders.db", "left.db")
        shutil.copy("orders.db-wal", "left.db-wal")
    check(Path("left.db-wal").stat().st_size > 0)
    for path in Path(".").glob("*.db*"):
        path.chmod(0o644)
    who = {"strace": somebody()}
    try:
        detent("get", "o-1", *STORE, out="order o-1 is pending", **who)
        data.close()
        detent("get", "o-1", "--store", "sqlite:left.db", code=1, err="left.db-wal", **who)
    finally:
        os.chmod(".", 0o755)
    detent("get", "o-1", "--store", "sqlite:left.db", out="order o-1 is pending")


def test_lock_file_has_the_owner_and_mode_of_the_store():
    shop()
    os.chmod("orders.db", 0o664)
    os.unlink("orders.db.lock")
    if os.getuid() == 0:
        os.chown("orders.db", 65534, 65533)
    detent("send", "o-1", "ping", *STORE)
    made, meant = os.stat("orders.db.lock"), os.stat("orders.db")
    equal((made.st_uid, made.st_gid, made.st_mode), (meant.st_uid, meant.st_gid, meant.st_mode))
    if os.getuid() == 0:
        os.chown(".", 65534, 65533)
        detent("send", "o-1", "ping", *STORE, strace=somebody())
        os.chown("orders.db.lock", 0, 0)
        os.chmod("orders.db.lock", 0o640)
        detent("send", "o-1", "ping", *STORE, strace=somebody(), code=1,
               err=["orders.db.lock", "cannot write to"])


def test_commands_at_the_same_time_wait_for_each_other():
    shop()
    many = [subprocess.Popen([DETENT, "start", "order", f"c-{i}", *STORE], env=environment(),
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            for i in range(20)]
    said = [(start.communicate(timeout=PATIENCE)[1], start.returncode) for start in many]
    for i, (text, code) in enumerate(said):
        if code != 0:  # after 5 s, which are few for 20 commands on a busy machine
            check(code == 6 and "waiting for its turn" in text, f"{code}: {text}")
            detent("start", "order", f"c-{i}", *STORE)
    equal(len(objects("list", *STORE)), 21)


def test_failed_command_creates_no_store():
    Path("order.fsm").write_text(ORDER)
    Path("letter").write_text("dear sir\n")
    new = ("--store", "sqlite:new.db")
    detent("start", "nope.fsm", "a", *new, code=3, err="nope.fsm")
    detent("start", "nope", "a", *new, code=3, err="no machine 'nope'")
    detent("start", "order.fsm", "bad id", *new, code=2, err="an id has")
    detent("start", "order.fsm", "a", *new, "--id", "bad id", code=2, err="an event id has")
    detent("start", "order.fsm", "a", *new, "--data", "{", code=2, err="--data: ")
    detent("start", "order.fsm", "a", *new, "--data", "@none", code=3, err="none")
    detent("store", "import", "nosuch", *new, code=3, err="nosuch")
    detent("store", "import", "letter", *new, code=2, err="not an export")
    detent("start", "order.fsm", "a", "--store", "sqlite:no/new.db", code=3,
           err="the folder no does not exist")
    Path("here").mkdir()
    detent("start", "order.fsm", "a", "--store", "sqlite:here", code=1, err="here is a folder")
    detent("get", "a", "--store", "sqlite:here", code=1, err="here is a folder")
    equal(sorted(path.name for path in Path(".").iterdir()), ["here", "letter", "order.fsm"])
    detent("start", "order.fsm", "a", *new, "--data", "@-", stdin='{"cents": 7}')
    equal(one("get", "a", *new)["data"]["cents"], 7)
    detent("store", "backup", "sqlite:copy.db", *new, err="copied to copy.db")
    detent("get", "a", "--store", "sqlite:copy.db", out="order a is pending")
    detent("store", "backup", "postgres://x/y", *new, code=2, err="a file")
    detent("store", "backup", "memory:", *new, code=2, err="a file")


def test_help_and_completion_list_the_store_commands():
    for name in ("start", "send", "get", "list", "history", "watch", "why", "timers", "cancel",
                 "retry", "store"):
        text = detent("help", name).stdout
        check(f"detent {name}" in text and "--store" in text, text)
        check(all(len(line) <= 80 for line in text.splitlines()), text)
        check(name in detent("completion", "bash").stdout)
    check(re.search(r"^ *start +start a new instance", detent("help").stdout, re.MULTILINE))


if __name__ == "__main__":
    sys.exit(up.main(globals()))
