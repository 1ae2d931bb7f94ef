#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""What openapi.yaml promises and no schema can say: exact numbers, keys, conflicts, batches, pages.

    promises.py DETENT NASTY_CHILD [PART_OF_A_NAME]
"""
import sqlite3
import sys
from pathlib import Path

import shop
from shop import Daemon, check, equal, project, start, wait_until

MOST = 18446744073709551615


def test_numbers_are_exact():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    start(wire, "c-1", data={"number": MOST})
    get = "/v1/machines/counter/instances/c-1"
    check(b'"number":18446744073709551615' in wire.get(get).body.replace(b" ", b""))
    for number in (2**53 + 1, 2**63, MOST - 1, MOST):
        equal(shop.add(wire, "c-1", number).status, 200)
        equal(wire.get(get).json["data"]["number"], number)
        equal(wire.get(f"{get}/history").json["items"][-1]["payload"]["number"], number)
        equal(wire.get("/v1/log?backward=true").json["items"][0]["payload"]["number"], number)
    daemon.stop()


def test_first_answer_is_repeated_after_a_crash():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    firsts = {"s": start(wire, "c-1", key="s-1"), "a": shop.add(wire, "c-1", 7, "a-1").json}
    equal(shop.add(wire, "c-1", 8, "a-2").status, 200)
    for round_number in range(2):
        for name, again in (("s", start(wire, "c-1", key="s-1")),
                            ("a", shop.add(wire, "c-1", 7, "a-1").json)):
            equal(again, {**firsts[name], "duplicate": True})
        # The same key with other content is another request, which is refused and names the first.
        refused = shop.add(wire, "c-1", 9, "a-1")
        equal((refused.status, refused.json["error"]["code"]), (422, "CONFLICT"))
        check("a-1" in refused.json["error"]["text"], refused.json)
        equal(wire.get("/v1/machines/counter/instances/c-1").json["sequence"], 2)
        if round_number == 0:
            daemon.kill_hard()
            wire.close()
            daemon = Daemon()
    # A key belongs to its instance: another one is another request.
    start(wire, "c-2", key="s-1")
    equal(shop.add(wire, "c-2", 7, "a-1").json["duplicate"], False)
    daemon.stop()


def test_wrong_expected_sequence_is_a_conflict():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    start(wire, "c-1")
    target = "/v1/machines/counter/instances/c-1"
    body = {"event": "add", "payload": {"number": 1}}
    equal(wire.post(f"{target}/events", body).status, 200)
    for path, wrong in (("events", body), ("batch", {"events": [body]})):
        answer = wire.post(f"{target}/{path}", {**wrong, "expected": 5})
        error = answer.json["error"]
        equal((answer.status, error["code"]), (409, "CONFLICT"))
        equal((error.get("expected"), error.get("actual")), (5, 1))
    equal(wire.post(f"{target}/events", {**body, "expected": 1}).json["sequence"], 2)
    daemon.stop()


def test_batch_of_one_instance_is_atomic():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    start(wire, "c-1")
    target = "/v1/machines/counter/instances/c-1"
    adds = [{"event": "add", "payload": {"number": n}} for n in range(64)]
    answer = wire.post(f"{target}/batch", {"events": adds}, "b-1")
    equal((answer.status, answer.json["sequence"]), (200, 64))
    again = wire.post(f"{target}/batch", {"events": adds}, "b-1")
    equal((again.status, again.json["sequence"], again.json["duplicate"]), (200, 64, True))
    for bad in ({"event": "nonsense"}, {"event": "add", "payload": {"number": -1}}):
        answer = wire.post(f"{target}/batch", {"events": [*adds[:3], bad]})
        check(400 <= answer.status < 500, answer)
    # It ends with the first, and then takes no more: none of them has happened.
    answer = wire.post(f"{target}/batch", {"events": [{"event": "finish"}, adds[0]]})
    check(answer.status in (409, 422), answer)
    got = wire.get(target).json
    equal((got["sequence"], got["state"], got["data"]["number"]), (64, "counting", 63))
    daemon.stop()


def test_sends_of_a_batch_are_independent():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    for n in range(3):
        start(wire, f"c-{n}")
    one = {"machine": "counter", "event": "add", "payload": {"number": 1}}
    sends = [{**one, "id": "c-0"}, {**one, "id": "nobody"}, {**one, "id": "c-1", "expected": 9},
             {**one, "id": "c-2", "event_id": "e-1"}, {**one, "id": "c-2", "event_id": "e-1"},
             {**one, "id": "c-1", "payload": {}}, {**one, "machine": "nobody", "id": "c-1"},
             {**one, "id": "c-0"}]
    answer = wire.post("/v1/batches", {"sends": sends})
    equal(answer.status, 200)
    said = [item["error"]["code"] if "error" in item else item["sequence"]
            for item in answer.json["items"]]
    equal(said, [1, "NOT_FOUND", "CONFLICT", 1, 1, "MISSING_FIELD", "NOT_FOUND", 2])
    equal([item.get("duplicate") for item in answer.json["items"][3:5]], [False, True])
    equal(answer.json["failed"], 4)
    many = wire.post("/v1/batches", {"sends": [{**one, "id": f"c-{n % 3}"} for n in range(1000)]})
    equal((many.status, many.json["failed"], len(many.json["items"])), (200, 0, 1000))
    # Sent again with its key, each has its first answer; one that failed is tried again.
    sends = [{**one, "id": "c-0"}, {**one, "id": "c-0"}, {**one, "id": "new"},
             {**one, "id": "c-1", "event_id": "own"}]
    first = wire.post("/v1/batches", {"sends": sends}, "b-1").json
    equal((first["failed"], first["items"][2]["error"]["code"]), (1, "NOT_FOUND"))
    daemon.kill_hard()
    wire.close()
    daemon = Daemon()
    wire = daemon.wire()
    start(wire, "new")
    again = wire.post("/v1/batches", {"sends": sends}, "b-1").json
    equal([item["duplicate"] for item in again["items"]], [True, True, False, True])
    for k in (0, 1, 3):
        equal(again["items"][k], {**first["items"][k], "duplicate": True})
    equal([item["sequence"] for item in again["items"][:2]], [first["items"][0]["sequence"],
                                                              first["items"][0]["sequence"] + 1])
    equal(wire.post("/v1/batches", {"sends": sends[:1]}, "b" * 124).status, 400)
    daemon.stop()


def test_every_write_is_stored_with_its_trace():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    target = "/v1/machines/counter/instances/c-1"
    add = {"event": "add", "payload": {"number": 1}}
    writes = [(f"{target}/events", add), (f"{target}/batch", {"events": [add, add]}),
              ("/v1/batches", {"sends": [{"machine": "counter", "id": "c-1", **add}]}),
              (f"{target}/cancel", {})]
    start(wire, "c-1")
    for number, (path, body) in enumerate(writes, 1):
        trace = f"00-{number:032x}-{number:016x}-01"
        answer = wire.ask("POST", path, body, {"traceparent": trace})
        equal(answer.status, 200)
    rows = wire.get("/v1/log").json["items"][1:]
    equal([int(row["traceparent"].split("-")[1], 16) for row in rows], [1, 2, 2, 3, 4])
    daemon.stop()


# One whose events take much more room than their JSON.
WIDE = """#define FSM_NAME wide
#define FSM_PREFIX WIDE
RECORD(page)
    FIELD(text, str(60000))
END
STATE(HERE, here, INITIAL)
STATE(OVER, over, FINAL)
EVENT(WRITE, write, page)
EVENT(FINISH, finish)
STAY(HERE, WRITE)
ON(HERE, FINISH, OVER)
"""


def test_batch_size_is_limited():
    project("version: 1\nstore: sqlite:shop.db\nmachines: {wide: {effects: {}}}\n")
    Path("wide.fsm").write_text(WIDE)
    daemon = Daemon()
    wire = daemon.wire()
    start(wire, "w", "wide")
    one = {"machine": "wide", "id": "w", "event": "write", "payload": {"text": "a"}}
    equal(wire.post("/v1/batches", {"sends": [one] * 200}).json["failed"], 0)
    many = wire.post("/v1/batches", {"sends": [one] * 1000})
    equal((many.status, many.json["error"]["code"]), (422, "LIMIT"))
    # Nothing of it has happened, and its room is free again: else it would be BUSY soon.
    for _ in range(20):
        equal(wire.post("/v1/batches", {"sends": [one] * 1000}).status, 422)
    equal(wire.post("/v1/batches", {"sends": [one] * 200}).json["items"][0]["sequence"], 201)
    daemon.stop()


def pages(wire, target):
    """All items of a list with pages."""
    found, after, count = [], None, 0
    while after is not None or not count:
        page = wire.get(target if after is None else f"{target}&after={after}").json
        check(len(page["items"]) <= 10, page)
        found, after, count = found + page["items"], page["next"], count + 1
        check(count < 100, "it has no end")
    return found


def test_pages_cover_the_whole_list():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    names = sorted(f"c-{n}" for n in range(30))
    for name in names:
        start(wire, name)
    for number in range(25):
        equal(shop.add(wire, "c-7", number).status, 200)
    equal([row["id"] for row in pages(wire, "/v1/machines/counter/instances?limit=10")], names)
    rows = pages(wire, "/v1/log?limit=10")
    equal(len(rows), 55)
    equal([row["position"] for row in rows], sorted({row["position"] for row in rows}))
    equal(pages(wire, "/v1/log?limit=10&backward=true"), rows[::-1])
    equal(pages(wire, "/v1/log?limit=10&event=add&id=c-7"), rows[30:])
    history = pages(wire, "/v1/machines/counter/instances/c-7/history?limit=10")
    equal([row["sequence"] for row in history], list(range(26)))
    daemon.stop()


def damage(identity):
    """A head whose checksum is wrong."""
    store = sqlite3.connect("shop.db", timeout=30, isolation_level=None)
    store.execute("UPDATE instances SET sequence = sequence + 1 WHERE id = ?", (identity,))
    store.close()


def keys(rows, *names):
    return [tuple(row[name] for name in names) for row in rows]


def test_pages_of_pending_rows_cover_the_whole_list():
    project(shop.PROJECT.partition("groups:")[0])
    daemon = Daemon()
    wire = daemon.wire()
    names = [f"o-{n:02}" for n in range(34)]
    for name in names:
        start(wire, name, "order")
    paid = {"sends": [{"machine": "order", "id": name, **shop.PAY} for name in names[:17]]}
    equal(wire.post("/v1/batches", paid).json["failed"], 0)
    # Those of one page and of several, with a damaged one among them.
    for damaged in (0, 1):
        timers = wire.get("/v1/timers?limit=1000").json
        equal(sorted(keys(timers["items"], "id")), [(name,) for name in names[17 + damaged:]])
        equal((timers["next"], timers["left_out"]), (None, damaged))
        equal([t["due"] for t in timers["items"]], sorted(t["due"] for t in timers["items"]))
        equal(pages(wire, "/v1/timers?limit=1"), timers["items"])
        equal(pages(wire, "/v1/timers?limit=10&machine=order"), timers["items"])
        wait_until(lambda: all(e["attempts"] for e in wire.get(
            "/v1/effects?limit=1000").json["items"]), "each has been tried")
        effects = wire.get("/v1/effects?limit=1000").json
        equal(keys(effects["items"][:17 - damaged], "dead", "id", "effect"),
              [(True, name, "charge_card") for name in names[damaged:17]])
        alive = effects["items"][17 - damaged:]
        equal(sorted(keys(alive, "dead", "id", "effect")),
              [(False, name, "send_mail") for name in names[damaged:17]])
        equal([e["next_at"] for e in alive], sorted(e["next_at"] for e in alive))
        equal((effects["next"], effects["left_out"]), (None, 2 * damaged))
        for limit in (1, 5, 10):
            equal(pages(wire, f"/v1/effects?limit={limit}"), effects["items"])
        equal(pages(wire, "/v1/effects?dead=true&limit=4"), effects["items"][:17 - damaged])
        equal(pages(wire, "/v1/effects?dead=false&limit=4"), alive)
        answer = wire.get(f"/v1/machines/order/instances/{names[0]}/why")
        equal((answer.status, answer.json.get("error", {}).get("code")),
              (500, "CORRUPT") if damaged else (200, None))
        if not damaged:
            daemon.kill_hard()
            wire.close()
            damage(names[0])
            damage(names[17])
            daemon = Daemon()
            wire = daemon.wire()
    daemon.stop()


# Two machines whose effects become dead letters at once, each with its reasons.
DOOMED = """version: 1
store: sqlite:shop.db
http: {rate: unlimited}
machines:
  order:
    effects:
      charge_card:
        command: [sh, -c,
                  'if grep -q card.:.4242; then echo no money; else echo blocked; fi >&2; exit 1']
        attempts: 1
      send_mail: {command: [sh, -c, 'echo no mail >&2; exit 1'], attempts: 1}
  zebra:
    effects:
      charge_card: {command: [sh, -c, 'echo no money >&2; exit 1'], attempts: 1}
      send_mail: {command: ["true"]}
"""


def pay(wire, machine, cards):
    """An instance for each card, and what was paid with it."""
    for number, card in enumerate(cards):
        start(wire, f"o-{number:03}", machine)
    sends = [{"machine": machine, "id": f"o-{number:03}", "event": "pay",
              "data": {"card": card, "cents": 1}} for number, card in enumerate(cards)]
    for first in range(0, len(sends), 50):
        equal(wire.post("/v1/batches", {"sends": sends[first:first + 50]}).json["failed"], 0)


def dead_groups(overview):
    return {(s["machine"], s["name"], s["why"].rpartition(": ")[2].strip()): s["count"]
            for s in overview["stuck"] if s["about"] == "effect"}


def test_dead_letters_are_counted_by_machine_effect_and_reason():
    project(DOOMED)
    Path("zebra.fsm").write_text(shop.ORDER.replace("FSM_NAME order", "FSM_NAME zebra"))
    daemon = Daemon()
    wire = daemon.wire()
    pay(wire, "order", ["4242"] * 22 + ["0000"] * 8)
    pay(wire, "zebra", ["4242"] * 3)
    wait_until(lambda: wire.get("/v1/overview").json["stuck_total"] == 63, "all are given up")
    overview = wire.get("/v1/overview").json
    equal(list(dead_groups(overview).values()), [30, 22, 8, 3])
    equal(dead_groups(overview), {
        ("order", "send_mail", "no mail"): 30, ("order", "charge_card", "no money"): 22,
        ("order", "charge_card", "blocked"): 8, ("zebra", "charge_card", "no money"): 3})
    blocked = next(s for s in overview["stuck"] if s["count"] == 8)
    equal((blocked["id"], blocked["ids"]), ("o-022", ["o-022", "o-023", "o-024"]))
    check(not overview["stuck_capped"], "all were read")
    daemon.stop()


def test_truncated_dead_letter_counts_are_marked():
    project(DOOMED)
    Path("zebra.fsm").write_text(shop.ORDER.replace("FSM_NAME order", "FSM_NAME zebra"))
    daemon = Daemon()
    wire = daemon.wire()
    pay(wire, "zebra", ["4242"] * 201)
    pay(wire, "order", ["0000"])
    wait_until(lambda: wire.get("/v1/overview").json["stuck_total"] == 203, "all are given up")
    overview = wire.get("/v1/overview").json
    equal(sorted(dead_groups(overview).values()), [1, 1, 200])
    check(overview["stuck_capped"], "not all were read")
    daemon.stop()


WAITING = shop.COUNTERS + """tasks:
  failed-import: {run: sleep 60}
  report: {run: sleep 60, depends_on: {failed-import: completed}}
  broken: {run: 'false', restart: never}
  after-broken: {run: sleep 60, depends_on: {broken: completed}}
"""


def test_waiting_task_is_stuck_only_if_its_dependency_failed():
    project(WAITING)
    daemon = Daemon()
    wire = daemon.wire()
    stuck = lambda: {s["name"] for s in wire.get("/v1/overview").json["stuck"]}
    wait_until(lambda: "after-broken" in stuck(), "it waits in vain")
    equal(stuck(), {"broken", "after-broken"})
    daemon.stop(1)


def test_diagram_request_always_succeeds():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire = daemon.wire()
    start(wire, "c-1")
    # dot is a child of the daemon; other code that waits for ended children ignores it.
    for path in ("/v1/machines/counter/diagram", "/v1/machines/counter/instances/c-1/diagram"):
        answers = [wire.get(f"{path}?format=svg") for _ in range(12)]
        failed = [answer for answer in answers if answer.status != 200]
        check(not failed, f"{len(failed)} of {len(answers)}: {failed[:1]}")
    daemon.stop()


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
