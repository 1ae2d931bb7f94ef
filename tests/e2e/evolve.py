#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs diff, replay and migrate end to end: a definition changes under its instances.

    evolve.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py.
"""
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


def test_diff_of_the_same_says_so():
    done = diff()
    equal((done.stdout, done.stderr), ("", "order: no change\n"))


def test_diff_tells_changes_and_what_they_could_strand():
    done = diff(("waiting)", "settling)"), ("HOURS(1)", "HOURS(2)"), code=1)
    equal(done.stdout.splitlines(), [
        "- state waiting is gone", "+ state settling is new",
        "~ pending on check: it goes to settling, ARM(bell) (before: it goes to waiting, ARM(bell))",
        "What instances of the old definition could meet:", "! state waiting is gone"])
    check("say --rename-state waiting=settling" in done.stderr, done.stderr)
    check("order: 3 changes, 1 of which could strand what runs" in done.stderr, done.stderr)


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


def test_diff_tells_records_that_cannot_be_read():
    done = diff(("FIELD(cents, u64)", "FIELD(cents, i64)"), code=1)
    check("! data basket cannot be read any more: the field cents of basket has another type"
          in done.stdout, done.stdout)
    diff(("RECORD(basket)\n", "RECORD(basket, 2)\nFIELD(paid, bool, SINCE(2))\n"))


def test_diff_speaks_json():
    diff(("DO(print_label)", "IF(may)"), ("EFFECT(print_label)", "GUARD(may)"), code=1)
    told = objects("diff", "order.fsm", "new.fsm", code=1)
    equal([o["type"] for o in told], ["change", "change", "hazard", "summary"])
    equal(told[0], {"type": "change", "change": "removed", "subject": "effect",
                    "name": "print_label", "text": "effect print_label is gone"})
    equal((told[1]["name"], told[1]["event"]), ("waiting", "pay"))
    equal(told[3], {"type": "summary", "machine": "order", "ok": False, "changes": 2, "hazards": 1,
                    "stranded": 1})


def test_what_cannot_be_compared():
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


if __name__ == "__main__":
    sys.exit(up.main(globals()))
