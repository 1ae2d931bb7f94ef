# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Audits the shop: what the customers were told, what the store says, and what the bank charged.

None of the three is trusted more than the others. The store is read through its export, which has
every event of every order; the bank through its ledger, which it wrote on its own.
"""
import json
from datetime import datetime, timezone

FINAL = {"sent", "declined", "lapsed"}
SPANS = {"packed": 1_000_000_000, "late": 2_000_000_000}


def nanoseconds(text):
    """Of a time like 2026-01-01T12:00:00.123456789Z, exactly."""
    whole, _, part = text.removesuffix("Z").partition(".")
    seconds = datetime.fromisoformat(whole).replace(tzinfo=timezone.utc).timestamp()
    return int(seconds) * 1_000_000_000 + int(part.ljust(9, "0") or 0)


def read_export(lines):
    """The orders by id, each with its events."""
    orders, order = {}, None
    for line in map(json.loads, lines):
        if line["kind"] == "instance":
            order = orders[line["id"]] = {**line, "events": []}
        elif line["kind"] == "event":
            order["events"].append(line)
    return orders


def read_ledger(lines):
    """The rows by order; a key is store/machine/order/sequence/number."""
    rows = {}
    for row in map(json.loads, lines):
        rows.setdefault(row["key"].split("/")[-3], []).append(row)
    return rows


class Audit:
    """Findings are sentences; figures are counted on the way."""

    def __init__(self, promises, orders, ledger, asked):
        self.promises, self.orders, self.ledger, self.asked = promises, orders, ledger, asked
        self.findings = []
        self.keys = {}
        for key in asked:
            self.keys.setdefault(key.split("/")[-3], set()).add(key)
        self.lost = self.twice = 0
        self.timers = self.early = 0
        self.latest = 0  # by so many nanoseconds
        for order in sorted(promises.keys() | orders.keys() | ledger.keys()):
            self.inspect(order)

    def find(self, order, text):
        self.findings.append(f"{order}: {text}")

    def inspect(self, order):
        found = self.orders.get(order)
        if found is None:
            self.lost += 1
            self.find(order, "is not in the store")
            return
        self.look_at_events(order, found)
        self.look_at_promise(order, found)
        self.look_at_money(order, found)

    def look_at_events(self, order, found):
        """Each step once, from where the last one led, and no timer before its time."""
        state, at, seen = "pending", nanoseconds(found["started_at"]), set()
        for number, event in enumerate(found["events"], 1):
            if event["sequence"] != number or event["from"] != state:
                self.find(order, f"event {event['sequence']} does not follow the one before it")
            if event["event"] in seen:
                self.twice += 1
                self.find(order, f"{event['event']} happened twice")
            if event["timeout"]:
                self.look_at_timer(order, event, nanoseconds(event["at"]) - at)
            seen.add(event["event"])
            state, at = event["to"], nanoseconds(event["at"])
        if state != found["state"] or len(found["events"]) != found["sequence"]:
            self.find(order, f"its events lead to {state}, but it is {found['state']}")

    def look_at_timer(self, order, event, waited):
        late = waited - SPANS[event["event"]]
        self.timers += 1
        self.latest = max(self.latest, late)
        if late < 0:
            self.early += 1
            self.find(order, f"{event['event']} came {-late} ns before its time")

    def look_at_promise(self, order, found):
        """Everything is over, and as it was told."""
        promise = self.promises.get(order)
        if found["state"] not in FINAL or found["timers"] or found["effects"]:
            self.find(order, f"is {found['state']}, and something of it is left")
        if promise is None:
            self.find(order, "was ordered by nobody")
        elif (promise["answer"] == "ok" and promise["verb"] == "buy") == (
                found["state"] == "lapsed"):
            self.find(order, f"is {found['state']}, but the customer was told otherwise")
        elif promise["cents"] != found["data"]["cents"]:
            self.find(order, "has another price than the customer was told")

    def look_at_money(self, order, found):
        """One row of the ledger for an order that was paid or declined, none for another."""
        rows = self.ledger.get(order, [])
        wanted = {"sent": ["yes"], "declined": ["no"]}.get(found["state"], [])
        if [row["answer"] for row in rows] != wanted:
            self.twice += max(0, len(rows) - 1)
            self.find(order, f"is {found['state']}, and {len(rows)} times in the ledger")
        for row in rows:
            if row["cents"] != found["data"]["cents"]:
                self.find(order, "the bank took another amount")
            if wanted == ["yes"] and row["key"] != found["data"]["receipt"]:
                self.find(order, "the receipt is that of another payment")
        if len(self.keys.get(order, ())) > 1:
            self.find(order, "the bank was asked with several keys")

    def count(self, state):
        return sum(order["state"] == state for order in self.orders.values())

    @property
    def cents_of_shop(self):
        return sum(order["data"]["cents"] for order in self.orders.values()
                   if order["state"] == "sent")

    @property
    def cents_of_bank(self):
        return sum(row["cents"] for rows in self.ledger.values() for row in rows
                   if row["answer"] == "yes")

    @property
    def asked_again(self):
        return len(self.asked) - len(set(self.asked))
