#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""kill -9 under load: what was acknowledged is there once, and what was not can be asked again.

    kill.py DETENT NASTY_CHILD [PART_OF_A_NAME]

DETENT_API_KILLS says how often the daemon is killed: 12 times, unless said. Clients write down what
they want before they ask for it, and what they were told; in the end the books are compared.
"""
import os
import random
import sys
import threading

import shop
from shop import SOCKET, Daemon, Gone, Wire, check, equal, project, start, token, wait_until

KILLS = int(os.environ.get("DETENT_API_KILLS", "12"))
CLIENTS = 16
SHARED = 4


class Intent:
    """One event that a client sends: its acknowledgement, and the result after a crash."""

    def __init__(self, client, number, counter):
        self.number, self.counter = client * 1_000_000 + number, counter
        self.key = f"client-{client}.{number}"
        self.told = None
        self.unknown = False

    def body(self):
        return {"event": "add", "data": {"number": self.number}}


class Client(threading.Thread):
    """Sends one event after the other over one connection, to a separate counter and shared ones.

    An answer that does not come leaves it in doubt. It asks again, with the same key, until it
    knows; only then it goes on.
    """

    def __init__(self, number, world):
        super().__init__(daemon=True)
        self.number, self.world = number, world
        self.intents, self.problem = [], None

    def run(self):
        try:
            wire = None
            while not self.world.enough.is_set():
                count = len(self.intents)
                mine = count % 3
                counter = f"own-{self.number}" if mine else f"shared-{self.number % SHARED}"
                self.intents.append(Intent(self.number, count, counter))
                wire = self.settle(wire, self.intents[-1])
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem

    def settle(self, wire, intent):
        """Until it is known; returns the connection, which may be another one."""
        while True:
            wire = wire or self.world.connect(self.number)
            try:
                answer = wire.post(f"/v1/machines/counter/instances/{intent.counter}/events",
                                   intent.body(), intent.key)
            except (Gone, OSError):
                wire.close()
                wire, intent.unknown = None, True
                self.world.pause()
                continue
            if answer.status == 503:
                intent.unknown = True
                self.world.pause()
                continue
            check(answer.status == 200, answer)
            check(not answer.json["duplicate"] or intent.unknown, f"doubled: {answer}")
            intent.told = answer.json
            return wire


class World:
    """The daemon as it is now, for all clients."""

    def __init__(self):
        project(shop.COUNTERS)
        self.token = token("read", "send")
        self.daemon = Daemon()
        self.enough, self.gate = threading.Event(), threading.Event()
        self.gate.set()
        wire = self.daemon.wire()
        for n in range(CLIENTS):
            start(wire, f"own-{n}")
        for n in range(SHARED):
            start(wire, f"shared-{n}")

    def connect(self, number):
        """Half of them connect by the network; none while the results are checked."""
        self.gate.wait()
        return Wire(self.daemon.address, self.token) if number % 2 else Wire(SOCKET)

    def pause(self):
        """While it starts again nothing is there to be heard: who wants to know connects."""
        threading.Event().wait(0.005)

    def crash(self, clients):
        self.gate.clear()
        self.daemon.kill_hard()
        self.daemon = Daemon()
        in_doubt(self, clients)
        self.gate.set()


def history(wire, counter):
    rows, after = [], 0
    while after is not None:
        page = wire.get(f"/v1/machines/counter/instances/{counter}/history"
                        f"?limit=1000&after={after}").json
        rows += [row for row in page["items"] if row["type"] == "event"]
        after = page["next"]
    return rows


def log(wire):
    rows, after = [], 0
    while after is not None:
        page = wire.get(f"/v1/log?limit=1000&after={after}").json
        rows += [row for row in page["items"] if row["type"] == "event"]
        after = page["next"]
    return rows


def in_doubt(world, clients):
    """After a crash, before anybody asks again: what is in doubt is there once or not at all."""
    told = [intent for client in clients for intent in client.intents if intent.told]
    numbers = [row["payload"]["number"] for row in log(world.daemon.wire())]
    equal(len(set(numbers)), len(numbers))
    there = set(numbers)
    for intent in told:
        check(intent.number in there, f"{intent.key} was acknowledged and is lost")


def compare(world, clients):
    wire = world.daemon.wire()
    wanted = {intent.number: intent for client in clients for intent in client.intents}
    rows = log(wire)
    numbers = [row["payload"]["number"] for row in rows]
    equal(len(numbers), len(set(numbers)))
    equal(set(numbers), set(wanted))
    positions = [row["position"] for row in rows]
    equal(positions, sorted(positions))
    for counter in {intent.counter for intent in wanted.values()}:
        events = history(wire, counter)
        equal([row["sequence"] for row in events], list(range(1, len(events) + 1)))
        equal([row["payload"]["number"] for row in events],
              [row["payload"]["number"] for row in rows if row["id"] == counter])
        for row in events:
            intent = wanted[row["payload"]["number"]]
            # The answer was the truth, and a key is kept with what it has done.
            equal((intent.told["id"], intent.told["sequence"]), (counter, row["sequence"]))
            equal(row["event_id"], intent.key)
    for client in clients:
        # Requests of a client that waits for each answer are applied in order.
        for counter in {intent.counter for intent in client.intents}:
            told = [i.told["sequence"] for i in client.intents if i.counter == counter]
            equal(told, sorted(told))


def test_acknowledged_requests_survive_kill_9_once():
    world = World()
    clients = [Client(n, world) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    chance = random.Random(5)

    def settled():
        return sum(len(client.intents) for client in clients)
    for _ in range(KILLS):
        goal = settled() + CLIENTS + chance.randrange(150)
        wait_until(lambda g=goal: settled() >= g or any(c.problem for c in clients), "load")
        world.crash(clients)
        check(not any(c.problem for c in clients), [c.problem for c in clients if c.problem])
    world.enough.set()
    for client in clients:
        client.join()
    check(not any(c.problem for c in clients), [c.problem for c in clients if c.problem])
    compare(world, clients)
    intents = [intent for client in clients for intent in client.intents]
    doubts = [intent for intent in intents if intent.unknown]
    again = [intent for intent in doubts if intent.told["duplicate"]]
    check(doubts, "no kill has hit a request")
    print(f"        {KILLS} kills, {len(intents)} events, {len(doubts)} in doubt, of which "
          f"{len(again)} had happened")
    world.daemon.stop()


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
