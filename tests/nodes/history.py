#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Compares what was asked of several nodes with what their store has recorded.

    history.py     rejects bad histories, each broken in one way, and takes the good ones

Event ids are unique, so there is nothing to search for: everything is one pass over the events of
an instance. What must hold, by the name under which a violation is told:

    gap        sequences are 1, 2, 3 ..., and each event begins in the state where the last ended
    lost       what was acknowledged is there, at the sequence of the answer
    doubled    no event id is there twice
    stray      no event that nobody sent, and none that was refused
    reordered  what was asked for after something else was acknowledged comes after it
    token      the fences of an instance grow: a later grant has a higher one, no two the same
    stale      no event written under a fence follows one of a higher fence
    between    no other sender's event is between two of one lock
    timer      one firing for a visit, at most
    early      none before its time, by the clock of the store
    effect     each that was asked for has run, once at least, always with the same key, and what it
               produced was taken once
    undone     when all has ended, no timer is left that has not fired
"""
import copy
import random
import sys
from dataclasses import dataclass, field

NEVER = float("inf")
ACKED, UNKNOWN, REFUSED = "acked", "unknown", "refused"


@dataclass
class Asked:
    """An event that was sent, perhaps several times with the same id. Times are of the one clock
    of the test: when it was first asked for, and when it was answered (NEVER: it was not)."""

    id: str
    instance: str
    called: float
    returned: float = NEVER
    status: str = UNKNOWN
    sequence: int = 0
    fence: int = 0


@dataclass
class Grant:
    """A lock that somebody got."""

    instance: str
    fence: int
    called: float
    returned: float


@dataclass
class Ran:
    """An attempt of an effect."""

    key: str
    instance: str
    sequence: int


@dataclass
class Row:
    """A recorded event."""

    instance: str
    sequence: int
    visit: int
    source: str
    target: str
    event: str
    is_timeout: bool
    at: int
    id: str = ""
    cause: str = ""


@dataclass
class History:
    """Everything that is known of a run. `span` is after how long the timeout of the state `armed`
    is due, in nanoseconds; its event asks for the effect."""

    asked: list = field(default_factory=list)
    grants: list = field(default_factory=list)
    ran: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    span: int = 0
    is_drained: bool = True


def by_instance(items):
    groups = {}
    for item in items:
        groups.setdefault(item.instance, []).append(item)
    return groups


def check_chain(rows):
    """gap"""
    state = "quiet"
    for number, row in enumerate(rows, 1):
        if row.sequence != number:
            yield "gap", f"{row.instance} has {row.sequence} where {number} should be"
            return
        if row.source != state:
            yield "gap", f"{row.instance} {row.sequence} begins in {row.source}, not in {state}"
        state = row.target


def check_ids(rows, asked):
    """lost, doubled, stray"""
    found = {}
    for row in rows:
        if row.id in found:
            yield "doubled", f"{row.id} is {found[row.id]} and {row.sequence} of {row.instance}"
        elif row.id:
            found[row.id] = row.sequence
            if row.id not in asked:
                yield "stray", f"{row.id}, {row.sequence} of {row.instance}, was never sent to it"
            elif asked[row.id].status == REFUSED:
                yield "stray", f"{row.id}, {row.sequence} of {row.instance}, was refused"
        elif not row.is_timeout and not row.cause:
            yield "stray", f"{row.sequence} of {row.instance} comes from nobody"
    for item in asked.values():
        if item.status == ACKED and found.get(item.id) != item.sequence:
            there = f"at {found[item.id]}" if item.id in found else "not there"
            yield "lost", f"{item.id} of {item.instance}, answered as {item.sequence}, is {there}"


def check_order(rows, asked):
    """reordered: going through the record, nothing may have been answered before something that is
    already passed was asked for."""
    latest = None
    for row in rows:
        item = asked.get(row.id)
        if not item:
            continue
        if latest and item.returned < latest.called:
            yield "reordered", f"{item.id} was answered before {latest.id} was sent; it is after it"
        if not latest or item.called > latest.called:
            latest = item


def check_fences(rows, asked, grants):
    """token, stale, between"""
    latest = None
    for grant in sorted(grants, key=lambda grant: grant.fence):
        if latest and latest.fence == grant.fence:
            yield "token", f"fence {grant.fence} of {grant.instance} was granted twice"
        if latest and grant.returned < latest.called:
            yield "token", f"fence {grant.fence} of {grant.instance} is higher than a later one"
        if not latest or grant.called > latest.called:
            latest = grant
    highest, last_of = 0, {}
    written = [(row, asked[row.id]) for row in rows if row.id in asked]
    for place, (row, item) in enumerate(written):
        if not item.fence:
            continue
        if item.fence < highest:
            yield "stale", f"{item.id} of {row.instance}, under {item.fence}, follows {highest}"
        highest = max(highest, item.fence)
        if last_of.get(item.fence, place - 1) != place - 1:
            yield "between", f"before {item.id} somebody wrote between it and its lock"
        last_of[item.fence] = place


def check_timers(rows, span, is_drained):
    """timer, early, undone"""
    fired, visit, since = set(), 1, None
    for row in rows:
        if row.is_timeout:
            if visit in fired:
                yield "timer", f"{row.instance} fired twice in visit {visit}"
            fired.add(visit)
            if since is not None and row.at < since + span:
                yield "early", f"{row.instance} {row.sequence}: {since + span - row.at} ns early"
        if row.visit != visit:
            since = row.at if row.target == "armed" else None
            visit = row.visit
    if is_drained and rows and rows[-1].target == "armed":
        yield "undone", f"{rows[-1].instance} is armed and never fires"


def check_effects(rows, ran, is_drained):
    """effect"""
    wanted = {row.sequence: f"bell/{row.instance}/{row.sequence}/0" for row in rows
              if row.event == "ring"}
    seen, taken = set(), set()
    for item in ran:
        if wanted.get(item.sequence) != item.key:
            yield "effect", f"{item.key} ran for {item.sequence} of {item.instance}"
        seen.add(item.key)
    for row in rows:
        if row.cause in taken:
            yield "effect", f"{row.cause} was taken twice"
        if row.cause:
            taken.add(row.cause)
            if row.cause not in seen:
                yield "effect", f"{row.cause} was taken but never ran"
    for key in wanted.values():
        if is_drained and key not in taken:
            yield "effect", f"{key} never came to its end"


def check(history):
    """All violations, as pairs of a name and a sentence."""
    found = []
    asked, grants = by_instance(history.asked), by_instance(history.grants)
    ran, rows = by_instance(history.ran), by_instance(history.rows)
    for instance in sorted(set(asked) | set(rows) | set(ran) | set(grants)):
        own = sorted(rows.get(instance, []), key=lambda row: row.sequence)
        by_id = {item.id: item for item in asked.get(instance, [])}
        found += check_chain(own)
        found += check_ids(own, by_id)
        found += check_order(own, by_id)
        found += check_fences(own, by_id, grants.get(instance, []))
        found += check_timers(own, history.span, history.is_drained)
        found += check_effects(own, ran.get(instance, []), history.is_drained)
    return found


# What follows shows that it can fail.


def good(seed):
    """A history of two instances as a store without faults would have it."""
    chance = random.Random(seed)
    history, now = History(span=100), 0
    for instance in ("a", "b"):
        state, visit, fence = "quiet", 1, 0
        sequence = 0

        def put(event, target, **more):
            nonlocal state, visit, sequence
            sequence += 1
            visit = sequence + 1 if target != state else visit
            history.rows.append(Row(instance, sequence, visit, state, target, event,
                                    more.pop("is_timeout", False), now, **more))
            state = target

        for number in range(24):
            now += 10
            item = Asked(f"{instance}-{number}", instance, now, now + 5, ACKED)
            history.asked.append(item)
            kind = chance.random()
            if number % 6 == 2 and state != "armed":
                now += 1
                put("arm", "armed", id=item.id)
                item.sequence = sequence
                now += 150
                put("ring", "rung", is_timeout=True)
                key = f"bell/{instance}/{sequence}/0"
                history.ran += [Ran(key, instance, sequence)] * chance.randint(1, 3)
                now += 3
                put("told", "rung", cause=key)
                item.returned = now
                continue
            if number % 6 in (3, 4):
                if number % 6 == 3:
                    fence += 1
                    history.grants.append(Grant(instance, fence, now, now + 1))
                item.fence = fence
            elif kind < 0.15:
                item.status, item.returned = UNKNOWN, NEVER
                if chance.random() < 0.5:
                    continue
            elif kind < 0.25:
                item.status = REFUSED
                continue
            put("note", state, id=item.id)
            item.sequence = sequence
    return history


def pick(items, wanted, number=0):
    return [item for item in items if wanted(item)][number]


def renumber(history, rows):
    """Others close up, so that the break is not seen by its gap."""
    history.rows = rows
    for own in by_instance(rows).values():
        for number, row in enumerate(own, 1):
            row.sequence = number


def asked_of(history, row):
    return next(item for item in history.asked if item.id == row.id)


def lose(history):
    row = pick(history.rows, lambda row: row.id and asked_of(history, row).status == ACKED, -1)
    renumber(history, [other for other in history.rows if other is not row])


def forget(history):
    history.rows.remove(pick(history.rows, lambda row: row.event == "note", 1))


def double(history):
    row = pick(history.rows, lambda row: row.event == "note", -1)
    own = [other for other in history.rows if other.instance == row.instance]
    history.rows.append(copy.copy(own[-1]))
    history.rows[-1].id, history.rows[-1].sequence = row.id, own[-1].sequence + 1
    history.rows[-1].source = history.rows[-1].target = own[-1].target
    history.rows[-1].event, history.rows[-1].cause = "note", ""


def invent(history):
    row = pick(history.rows, lambda row: row.event == "note", -1)
    row.id = "x-1"


def admit(history):
    row = pick(history.rows, lambda row: row.event == "note" and
               asked_of(history, row).status == ACKED)
    asked_of(history, row).status = REFUSED


def anonymous(history):
    pick(history.rows, lambda row: row.event == "note").id = ""


def other_sequence(history):
    pick(history.asked, lambda item: item.status == ACKED and item.sequence).sequence += 1


def swap(history):
    notes = [row for row in history.rows if row.event == "note" and row.instance == "a"
             and asked_of(history, row).status == ACKED and not asked_of(history, row).fence]
    first, last = notes[0], notes[-1]
    items = asked_of(history, first), asked_of(history, last)
    first.id, last.id = last.id, first.id
    items[0].sequence, items[1].sequence = items[1].sequence, items[0].sequence


def early_answer(history):
    """Answered before a later one was sent, though recorded after it: the answers agree."""
    notes = [asked_of(history, row) for row in history.rows if row.event == "note"
             and row.instance == "b" and asked_of(history, row).status == ACKED]
    notes[-1].called, notes[-1].returned = 0, 1


def wrong_state(history):
    pick(history.rows, lambda row: row.event == "note", 3).source = "elsewhere"


def same_fence(history):
    history.grants.append(copy.copy(history.grants[0]))


def falling_fence(history):
    grants = [grant for grant in history.grants if grant.instance == "a"]
    grants[0].fence, grants[-1].fence = grants[-1].fence, grants[0].fence


def zombie(history):
    """A write under the first fence at the very end, acknowledged and all."""
    last = [row for row in history.rows if row.instance == "a"][-1]
    history.asked.append(Asked("z-1", "a", last.at + 900, last.at + 901, ACKED,
                               last.sequence + 1, 1))
    history.rows.append(Row("a", last.sequence + 1, last.visit, last.target, last.target, "note",
                            False, last.at + 900, id="z-1"))


def intrude(history):
    """Somebody without the lock between two events of one lock."""
    locked = [row for row in history.rows if row.id and asked_of(history, row).fence == 1
              and row.instance == "a"]
    place = history.rows.index(locked[1])
    row = copy.copy(locked[1])
    row.id = "i-1"
    history.asked.append(Asked("i-1", "a", 0, NEVER, UNKNOWN))
    rows = history.rows[:place] + [row] + history.rows[place:]
    renumber(history, rows)


def fire_twice(history):
    """Twice, and the second one stays in the visit."""
    place = next(i for i, row in enumerate(history.rows) if row.is_timeout)
    row = history.rows[place]
    before = copy.copy(row)
    before.target, before.visit = before.source, history.rows[place - 1].visit
    renumber(history, history.rows[:place] + [before] + history.rows[place:])


def fire_early(history):
    pick(history.rows, lambda row: row.is_timeout).at -= 100


def never_fire(history):
    place = max(i for i, row in enumerate(history.rows) if row.is_timeout)
    history.rows = history.rows[:place]


def no_effect(history):
    key = history.ran[0].key
    history.ran = [item for item in history.ran if item.key != key]


def other_key(history):
    history.ran[0] = Ran(history.ran[0].key + "0", history.ran[0].instance,
                         history.ran[0].sequence)


def product_twice(history):
    row = pick(history.rows, lambda row: row.cause)
    renumber(history, history.rows[:history.rows.index(row)] + [copy.copy(row)] +
             history.rows[history.rows.index(row):])


def no_product(history):
    row = pick(history.rows, lambda row: row.cause)
    renumber(history, [other for other in history.rows if other is not row])


BAD = {
    lose: "lost", forget: "gap", double: "doubled", invent: "stray", admit: "stray",
    anonymous: "stray", other_sequence: "lost", swap: "reordered", early_answer: "reordered",
    wrong_state: "gap", same_fence: "token", falling_fence: "token", zombie: "stale",
    intrude: "between", fire_twice: "timer", fire_early: "early", never_fire: "undone",
    no_effect: "effect", other_key: "effect", product_twice: "effect", no_product: "effect",
}


def main():
    seeds, wrong = range(100), 0
    for seed in seeds:
        found = check(good(seed))
        if found:
            print(f"seed {seed}: a good history is rejected: {found[0]}")
            wrong += 1
        for spoil, name in BAD.items():
            history = good(seed)
            spoil(history)
            if name not in {violation for violation, _ in check(history)}:
                print(f"seed {seed}: {spoil.__name__} is not told as {name}")
                wrong += 1
    print(f"{len(seeds)} good histories, {len(seeds) * len(BAD)} bad ones of {len(BAD)} kinds, "
          f"{wrong} misjudged")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
