#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs diff, replay and migrate end to end: a definition changes under its instances.

    evolve.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py.
"""
import fcntl
import sys
from pathlib import Path

import up
from clients import detent, objects
from up import check, equal

ORDER = """#define FSM_NAME order
#define FSM_PREFIX ORDER
#define FSM_DATA basket
RECORD(basket)
    FIELD(cents, u64)
END
RECORD(payment)
    FIELD(cents, u64)
END
STATE(PENDING, pending, INITIAL)
STATE(WAITING, waiting)
STATE(PAID,    paid)
STATE(DONE,    done, FINAL)
EVENT(PAY,    pay, payment)
EVENT(CHECK,  check)
EVENT(REMIND, remind)
EVENT(SHIP,   ship)
INTERNAL(LATE, late)
EFFECT(print_label)
TIMER(bell, DAYS(1), REMIND)
UNHANDLED(SHIP, DEFER)
ON(PENDING, CHECK, WAITING, ARM(bell))
ON(WAITING, PAY,   PAID,    KEEP(cents), DO(print_label))
ON(WAITING, LATE,  PENDING)
STAY(ANY(PENDING, WAITING, PAID), REMIND)
ON(PAID, SHIP, DONE)
AFTER(WAITING, HOURS(1), LATE)
"""


def write(path, text):
    Path(path).write_text(text)


def change(*pairs):
    """The order with words replaced, as new.fsm."""
    text = ORDER
    for old, new in pairs:
        check(old in text, f"{old!r} is not in the spec")
        text = text.replace(old, new)
    write("new.fsm", text)


def diff(*pairs, code=0, words=()):
    write("order.fsm", ORDER)
    change(*pairs)
    return detent("diff", "order.fsm", "new.fsm", *words, code=code)


def test_diff_of_equal_definitions_reports_no_change():
    done = diff()
    equal((done.stdout, done.stderr), ("", "order: no change\n"))


def test_diff_reports_changes_and_hazards():
    done = diff(("waiting)", "settling)"), ("HOURS(1)", "HOURS(2)"), code=1)
    equal(done.stdout.splitlines(), [
        "- state waiting was removed", "+ state settling is new",
        "~ pending on check: it goes to settling, ARM(bell) "
        "(before: it goes to waiting, ARM(bell))",
        "Possible problems of instances of the old definition:", "! state waiting was removed"])
    check("add --rename-state waiting=settling" in done.stderr, done.stderr)
    check("order: 3 changes, 1 of which could strand instances" in done.stderr, done.stderr)


def test_diff_knows_renames():
    done = diff(("waiting)", "settling)"), ("remind)", "nag)"), ("print_label", "print_slip"),
                ("bell", "gong"), words=["--rename-state", "waiting=settling", "--rename-event",
                                         "remind=nag", "--rename-effect",
                                         "print_label=print_slip", "--rename-timer", "bell=gong"])
    equal(done.stdout.splitlines(), [
        "> state waiting is called settling", "> event remind is called nag",
        "> effect print_label is called print_slip", "> timer bell is called gong"])
    detent("diff", "order.fsm", "new.fsm", "--rename-state", "wating=settling", code=2,
           err="the old definition has no state wating")
    detent("diff", "order.fsm", "new.fsm", "--rename-state", "waiting", code=2,
           err="takes pairs such as")
    detent("diff", "order.fsm", "new.fsm", "--rename-event", "=x", code=2)


def test_diff_reports_unreadable_records():
    done = diff(("FIELD(cents, u64)", "FIELD(cents, i64)"), code=1)
    check("! data basket can no longer be read: the field cents of basket has another type"
          in done.stdout, done.stdout)
    diff(("RECORD(basket)\n", "RECORD(basket, 2)\nFIELD(paid, bool, SINCE(2))\n"))


def test_diff_prints_json():
    diff(("DO(print_label)", "IF(may)"), ("EFFECT(print_label)", "GUARD(may)"), code=1)
    told = objects("diff", "order.fsm", "new.fsm", code=1)
    equal([o["type"] for o in told], ["change", "change", "hazard", "summary"])
    equal(told[0], {"type": "change", "change": "removed", "subject": "effect",
                    "name": "print_label", "text": "effect print_label was removed"})
    equal((told[1]["name"], told[1]["event"]), ("waiting", "pay"))
    equal(told[3], {"type": "summary", "machine": "order", "ok": False, "changes": 2, "hazards": 1,
                    "stranded": 1})


def test_diff_refuses_incomparable_files():
    write("order.fsm", ORDER)
    write("light.fsm", ORDER.replace("order", "light"))
    write("broken.fsm", "STATE(\n")
    detent("diff", "order.fsm", "light.fsm", code=2, err="is not a definition of 'order'")
    detent("diff", "order.fsm", "broken.fsm", code=2)
    detent("diff", "order.fsm", "none.fsm", code=3)
    detent("diff", code=2)
    detent("diff", "order.fsm", code=2, err="which store?")
    detent("replay", "order.fsm", code=2, err="which store?")
    detent("migrate", "order.fsm", "--store", "memory:", code=2)


# With a store.

STORE = ["--store", "sqlite:orders.db"]
NAMES = (("waiting)", "settling)"), ("remind)", "nag)"), ("print_label", "print_slip"),
         ("bell", "gong"))
RENAMES = ["--rename-state", "waiting=settling", "--rename-event", "remind=nag",
           "--rename-effect", "print_label=print_slip", "--rename-timer", "bell=gong"]


def fill():
    """o-1 waits, o-2 has paid and its effect has not ended, o-3 has a deferred event."""
    write("order.fsm", ORDER)
    for name in ("o-1", "o-2", "o-3"):
        detent("start", "order.fsm", name, *STORE)
    detent("send", "o-1", "check", *STORE)
    detent("send", "o-2", "check", *STORE)
    detent("send", "o-2", "pay", "--payload", '{"cents": 42}', *STORE)
    detent("send", "o-3", "ship", *STORE)


def test_diff_counts_what_is_stored():
    fill()
    change(*NAMES)
    done = detent("diff", "new.fsm", *STORE, code=1)
    check("! state waiting was removed; 1 instance is in it\n" in done.stdout, done.stdout)
    check("! effect print_label was removed; 1 has not ended\n" in done.stdout, done.stdout)
    check("! timer bell was removed; 2 are armed\n" in done.stdout, done.stdout)
    check("! event remind was removed; 2 timers, deferred events or effects need it\n"
          in done.stdout, done.stdout)
    equal(detent("diff", "order.fsm", "new.fsm", *STORE, code=1).stdout, done.stdout)
    hazards = [o for o in objects("diff", "new.fsm", *STORE, code=1) if o["type"] == "hazard"]
    equal([(o["subject"], o["name"], o["stored"]) for o in hazards],
          [("state", "waiting", 1), ("event", "remind", 2), ("effect", "print_label", 1),
           ("timer", "bell", 2)])
    detent("diff", "new.fsm", *STORE, *RENAMES)


def test_removing_unused_names_is_no_hazard():
    fill()
    change(("STATE(DONE,    done, FINAL)", "STATE(DONE,    closed, FINAL)"))
    done = detent("diff", "new.fsm", *STORE)
    check("What has no place" not in done.stdout and "in it" not in done.stdout, done.stdout)
    hazards = [o for o in objects("diff", "new.fsm", *STORE) if o["type"] == "hazard"]
    equal([(o["name"], o["stored"]) for o in hazards], [("done", 0)])
    detent("migrate", "new.fsm", *STORE, err="version 1 is in the store")
    detent("diff", "new.fsm", *STORE, err="order: no change")


def test_diff_reports_instances_that_need_a_removed_transition():
    fill()
    change(("ON(WAITING, LATE,  PENDING)", "ON(PENDING, LATE, PENDING)"),
           ("AFTER(WAITING", "AFTER(PENDING"), ("ON(PAID, SHIP, DONE)", "STAY(PAID, SHIP)"),
           ("ON(PENDING, CHECK", "ON(PENDING, SHIP, DONE)\nON(PENDING, CHECK"))
    done = detent("diff", "new.fsm", *STORE, code=1)
    check("! state waiting no longer accepts late, which an armed timeout may send there; "
          "1 instance is in it\n" in done.stdout, done.stdout)
    check("! state paid no longer has an exit; 1 instance is in it\n" in done.stdout)


def test_replay_reports_events_that_would_differ():
    fill()
    detent("replay", "order.fsm", *STORE, err="3 instances, 4 events replayed, 0 different")
    change(("ON(WAITING, PAY,   PAID, ", "ON(WAITING, PAY,   DONE, "))
    write("new.fsm", Path("new.fsm").read_text() + "ON(PENDING, SHIP, PAID)\n")
    done = detent("replay", "new.fsm", *STORE, code=1)
    equal(done.stdout.splitlines(), [
        "o-2 event 2: waiting on pay leads to done; recorded: it leads to paid",
        "o-3 event 1: pending on ship leads to paid; recorded: it is deferred"])
    told = objects("replay", "new.fsm", "--instance", "o-2", *STORE, code=1)
    equal(told, [
        {"type": "drift", "machine": "order", "id": "o-2", "sequence": 2, "event": "pay",
         "from": "waiting", "recorded": "paid", "derived": "done",
         "text": "waiting on pay leads to done; recorded: it leads to paid"},
        {"type": "summary", "ok": False, "instances": 1, "events": 2, "drifts": 1,
         "unreadable": 0}])
    detent("replay", "order.fsm", "--instance", "o-9", *STORE, code=3)
    change(*NAMES)
    detent("replay", "new.fsm", *STORE, code=1, out="order has no state waiting")
    detent("replay", "new.fsm", *STORE, *RENAMES)


def test_migrate_renames_what_is_stored():
    fill()
    change(*NAMES)
    before = Path("orders.db").read_bytes()
    detent("migrate", "new.fsm", *STORE, code=1, err="cannot migrate order")
    done = detent("migrate", "--dry-run", "new.fsm", *STORE, *RENAMES, err="nothing was changed")
    equal(done.stdout.splitlines(), [
        "> state waiting becomes settling: 1 stored", "> event remind becomes nag: 2 stored",
        "> effect print_label becomes print_slip: 1 stored", "> timer bell becomes gong: 2 stored"])
    equal(Path("orders.db").read_bytes(), before)
    detent("migrate", "new.fsm", *STORE, *RENAMES, err="version 1 is in the store, 7 rows changed")
    detent("list", *STORE, out=["o-1  settling", "o-2  paid"])
    detent("history", "o-2", *STORE, out="settling  paid")
    detent("why", "o-2", *STORE, out=["nag by gong", "print_slip was requested"])
    detent("get", "o-2", *STORE, out="settling, pending")
    detent("send", "o-1", "pay", "--payload", '{"cents": 7}', *STORE, out="settling -> paid")
    detent("replay", "new.fsm", *STORE)
    detent("store", "verify", *STORE)
    detent("start", "order.fsm", "o-4", *STORE, code=1, err="detent diff")
    summary = objects("migrate", "order.fsm", "--rename-state", "settling=waiting",
                      "--rename-event", "nag=remind", "--rename-effect",
                      "print_slip=print_label", "--rename-timer", "gong=bell", *STORE)[-1]
    equal((summary["ok"], summary["dry_run"], summary["stranded"]), (True, False, 0))
    detent("history", "o-1", *STORE, out="waiting  paid")
    detent("store", "verify", *STORE)


def test_migrate_needs_exclusive_access():
    fill()
    change(*NAMES)
    with open("orders.db.lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        detent("migrate", "--dry-run", "new.fsm", *STORE, *RENAMES)
        detent("migrate", "new.fsm", *STORE, *RENAMES, code=6)
    detent("list", *STORE, out="waiting")


def test_a_machine_without_payloads_and_data():
    write("light.fsm", """#define FSM_NAME light
#define FSM_PREFIX LIGHT
STATE(RED, red, INITIAL)
STATE(GREEN, green)
EVENT(GO, go)
ON(ANY(RED, GREEN), GO, GREEN)
""")
    detent("start", "light.fsm", "l-1", *STORE)
    detent("send", "l-1", "go", *STORE)
    detent("replay", "light.fsm", *STORE, err="1 instance, 1 event replayed, 0 different")
    detent("diff", "light.fsm", *STORE)


def test_a_machine_that_the_store_does_not_have():
    fill()
    write("light.fsm", ORDER.replace("order", "light"))
    detent("diff", "light.fsm", *STORE, code=3, err="has no machine 'light'")
    detent("replay", "light.fsm", *STORE, code=3)
    detent("migrate", "light.fsm", *STORE, code=3)
    detent("diff", "order.fsm", "--store", "sqlite:none.db", code=3)


if __name__ == "__main__":
    sys.exit(up.main(globals()))
