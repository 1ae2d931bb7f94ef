#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Several processes on one PostgreSQL server, and what may become of them and of their connections.

    run.py fires NODE      three nodes with clocks five minutes apart, one of them killed again and
                           again: every timer fires exactly once
    run.py cuts NODE       the connection is cut after each byte of the exchange that commits, in
                           both directions, in two manners
    run.py partitions NODE the same, but nobody is told that the connection is lost
    run.py stops NODE      the server ends as in a crash while two nodes commit, and comes back
    run.py zombies NODE    a node is stopped at each step of its protocol until its lease and its
                           locks are others', and then goes on

Every run ends with the comparison of history.py. NODES_TIMES in the environment makes a run that
many times as long, NODES_SEED another one. With NODES_BUG the store is a bad one (step.h), and that
must be found out.
"""
import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from history import REFUSED
from proxy import DOWN, UP, Proxy
from rig import Cluster, Server, Wrong, patience, wait_until

BUG = os.environ.get("NODES_BUG")
TIMES = 1 if BUG else int(os.environ.get("NODES_TIMES", "1"))
SEED = int(os.environ.get("NODES_SEED", "1"))
TOLD_AS = {"early": "lost", "id": "doubled", "fence": "stale"}


def started(cluster, node, names):
    """Instances that are there."""
    asked = [cluster.start(node, name) for name in names]
    for name in asked:
        cluster.settle(node, name)
    return list(names)


def fires(server, program):
    """Who is killed has armed a third of them; the others find that out and fire them."""
    cluster = Cluster(server, program, lease=600)
    nodes = [cluster.add(clock=clock, workers=8) for clock in (0, 300, -300)]
    bells = started(cluster, nodes[0], [f"b-{i}" for i in range(60)])
    rounds = 4 * TIMES
    for number in range(rounds):
        asked = [cluster.send(nodes[i % 3], bell, "arm") for i, bell in enumerate(bells)]
        cluster.wait(*asked)
        victim = number % 3
        nodes[victim].kill()
        nodes[victim] = cluster.add(clock=(0, 300, -300)[victim], workers=8)
        cluster.drain()
    history = cluster.finish()
    fired = sum(row.is_timeout for row in history.rows)
    wanted = rounds * len(bells)
    if fired != wanted:
        raise Wrong(f"{fired} timers have fired, not {wanted}")
    return f"{fired} timers fired once each, {rounds} nodes killed, " \
           f"{len(history.ran)} runs of effects"


def measure(cluster, proxy, node):
    """The bytes of a commit, up and down, on a connection that knows its statements. The fewest of
    several: the longer a commit takes, the more of what else the node asks for is among them."""
    found = []
    for _ in range(5):
        cluster.settle(node, cluster.send(node, "b-0"))
        proxy.arm()
        cluster.settle(node, cluster.send(node, "b-0"))
        found.append(proxy.counts)
    return [min(counts[direction] for counts in found) for direction in (UP, DOWN)]


def places(counts, wanted):
    """Pairs of a direction and a byte: the first and the last ones, and others between them."""
    found = set()
    every = [(direction, k) for direction in (UP, DOWN) for k in range(counts[direction] + 1)]
    for direction in (UP, DOWN):
        found |= {(direction, k) for k in (0, 1, counts[direction] - 1, counts[direction])}
    rest = sorted(set(every) - found)
    wanted = min(wanted - len(found), len(rest))
    if wanted > 0:
        found |= set(random.sample(rest, wanted))
    return sorted(found), len(every)


def cut_all(server, program, wanted, manners, timeout):
    """Node A through the proxy, node B not. Whatever A is told of a send that is cut, B gets the
    one answer to it, and A goes on."""
    proxy = Proxy(server.folder / ".s.PGSQL.5432")
    cluster = Cluster(server, program, lease=60000, timeout=timeout)
    a, b = cluster.add(host=proxy.host()), cluster.add()
    started(cluster, a, ["b-0"])
    counts = measure(cluster, proxy, a)
    chosen, total = places(counts, wanted)
    unknown = 0
    for number, (direction, after) in enumerate(chosen):
        cluster.settle(a, cluster.send(a, "b-0"))
        proxy.arm(direction, after, manners[number % len(manners)])
        name = cluster.send(a, "b-0")
        cluster.wait(name)
        proxy.arm()
        proxy.heal()
        unknown += cluster.status(name) == "unknown"
        cluster.settle(b, name)
    history = cluster.finish()
    if cluster.unseen(history.rows):
        raise Wrong(f"no observer was told of {cluster.unseen(history.rows)}", ["seen"])
    if proxy.cuts != len(chosen):
        raise Wrong(f"{proxy.cuts} connections were cut, not {len(chosen)}")
    return f"{proxy.cuts} cuts in {total} places ({counts[UP]} bytes up, {counts[DOWN]} down), " \
           f"{unknown} answers unknown, {len(history.rows)} events"


def cuts(server, program):
    return cut_all(server, program, 40 if BUG else 100 * TIMES, ("close", "reset"), 10000)


def partitions(server, program):
    return cut_all(server, program, 10 * TIMES, ("stall",), 1000)


class Load:
    """Keeps nodes busy: so many sends under way on each, to any bell, some under a lock, and some
    of those whose fate is unknown again on another node."""

    def __init__(self, cluster, nodes, bells, width):
        self.cluster, self.nodes, self.bells, self.width = cluster, nodes, bells, width
        self.chance = random.Random(SEED)
        self.under_way = {node.name: set() for node in nodes}
        self.acked = 0

    def again(self, node, name):
        cluster = self.cluster
        if name in cluster.asked and cluster.status(name) == "unknown" and \
                self.chance.random() < 0.7:
            return cluster.send(self.chance.choice(self.nodes), cluster.asked[name].instance,
                                name=name)
        return self.fresh(node)

    def fresh(self, node):
        bell, kind = self.chance.choice(self.bells), self.chance.random()
        if kind < 0.03:
            return self.cluster.take(node, bell)
        verb = "submit" if self.chance.random() < 0.5 else "send"
        return self.cluster.send(node, bell, "arm" if kind < 0.25 else "note", verb=verb)

    def turn(self):
        """Replaces what has been answered."""
        for node in self.nodes:
            names = self.under_way[node.name]
            over = [name for name in names if self.cluster.is_over(name)]
            self.acked += sum(name in self.cluster.asked and
                              self.cluster.status(name) == "acked" for name in over)
            names -= set(over)
            names |= {self.again(node, name) for name in over}
            while len(names) < self.width:
                names.add(self.fresh(node))
        time.sleep(0.001)

    def end(self):
        for names in self.under_way.values():
            self.cluster.wait(*names)


def stops(server, program):
    """Each time only once something was committed after the last one, and then at any moment."""
    cluster = Cluster(server, program, lease=600)
    nodes = [cluster.add(workers=6) for _ in range(2)]
    bells = started(cluster, nodes[0], [f"b-{i}" for i in range(12)])
    load = Load(cluster, nodes, bells, 6)
    count = 40 * TIMES
    for _ in range(count):
        acked, late = load.acked, patience.now() + patience.PATIENCE
        while load.acked < acked + 20:
            load.turn()
            if patience.now() > late:
                raise Wrong("nothing is committed any more")
        rest = time.monotonic() + load.chance.random() * 0.05
        while time.monotonic() < rest:
            load.turn()
        server.crash()
        server.start()
    load.end()
    history = cluster.finish()
    unknown = sum(item.status == "unknown" for item in history.asked)
    return f"{count} immediate stops, {len(history.asked)} sends, {load.acked} answered, " \
           f"{unknown} unknown in the end, {len(history.grants)} locks, {len(history.rows)} events"


SIDES = ("before", "after")
ON_LOCK = [f"{name}.{side}" for name in ("acquire", "between", "locked", "renew", "release")
           for side in SIDES]
ON_SEND = [f"{name}.{side}" for name in ("commit", "load", "answer") for side in SIDES]
ON_TIMER = [f"{name}.{side}" for name in ("fire", "effect", "product") for side in SIDES]
BY_ITSELF = [f"{name}.{side}" for name in ("node", "sweeper", "adopt", "due") for side in SIDES]

STEPS = ON_LOCK + ON_SEND + ON_TIMER + BY_ITSELF
# Where every send takes the lock: these are steps of a send, and its commit is one under a lock.
LEASED = [f"{name}.{side}" for name in ("acquire", "locked", "release") for side in SIDES]
BURST = 6
AGAIN = 5  # seconds of an idle machine: a timer of 250 ms, an effect and a product are over


class Zombies:
    """Two or three nodes of which one after the other is stopped. In every third cluster each send
    takes the lock of its instance; in every second one many are submitted at once."""

    def __init__(self, server, program, number):
        self.is_leased, self.is_burst = number % 3 == 2, number % 2 == 1
        self.cluster = Cluster(server, program, lease=500,
                               locking="lease" if self.is_leased else "optimistic")
        self.nodes = [self.cluster.add() for _ in range(2 + number % 2)]
        self.number, self.count = number, 0

    def leave(self, bell):
        """A node that dies and leaves a timer behind: who takes that over looks for what is due."""
        node = self.cluster.add()
        self.cluster.wait(self.cluster.send(node, bell, "arm"))
        node.kill()
        return []

    def provoke(self, node, bell, step):
        """Has the node come to the step; the names of what was asked of it."""
        if step in BY_ITSELF:
            return self.leave(bell) if step.startswith("due") else []
        if step in ON_LOCK and not (self.is_leased and step in LEASED):
            return [self.cluster.take(node, bell, count=2, hold=250 if "renew" in step else 0)]
        event = "arm" if step in ON_TIMER else "note"
        if not self.is_burst:
            return [self.cluster.send(node, bell, event)]
        return [self.cluster.send(node, bell, event if i == 0 else "note", verb="submit")
                for i in range(BURST)]

    def stopped(self, step):
        return [node for node in self.nodes if node.has_printed("stopped", step)]

    def freeze(self, bell, step):
        """Until a node stands there. What a node does by itself one of them does, we do not know
        which."""
        armed = self.nodes if step in BY_ITSELF else self.nodes[:1]
        for node in self.nodes:
            node.arm(step if node in armed else "none")
        asked = self.provoke(self.nodes[0], bell, step)
        again = patience.now() + AGAIN

        def stands():
            nonlocal again
            # On a busy machine the lease of the node may lapse: then another one has done it.
            if not self.stopped(step) and step in ON_TIMER and patience.now() > again:
                again += AGAIN
                asked.extend(self.provoke(self.nodes[0], bell, step))
            return self.stopped(step)
        wait_until(stands, step)
        zombie = self.stopped(step)[0]
        for node in armed:
            if node is not zombie:
                node.tell("stop", "none")
                wait_until(
                    lambda n=node: n.has_printed("armed", "none") or n.resume(), "the others"
                )
        return zombie, asked

    def haunt(self, step):
        """One zombie: others go on with its instance, and it is told when it comes back."""
        cluster = self.cluster
        if self.is_leased:
            step = step.replace("commit", "locked")
        self.count += 1
        bell = f"b-{self.count}"
        started(cluster, self.nodes[1], [bell])
        if not step.startswith("load"):
            cluster.settle(self.nodes[0], cluster.send(self.nodes[0], bell))
        zombie, asked = self.freeze(bell, step)
        twice = time.monotonic() + 2 * cluster.lease / 1000
        other = next(node for node in self.nodes if node is not zombie)
        cluster.wait(cluster.take(other, bell), cluster.send(other, bell, "arm"))
        wait_until(lambda: time.monotonic() > twice, "the end of the lease")
        zombie.resume()
        cluster.wait(*asked)
        cluster.settle(zombie, cluster.send(zombie, bell))
        self.nodes.append(self.nodes.pop(0))

    def run(self, steps):
        for step in steps:
            self.haunt(step)
        return self.cluster.finish()


def zombies(server, program):
    """Several clusters at once, since a zombie is waited for; each with its share of the steps."""
    steps = ["locked.before"] * 4 if BUG else STEPS * 4 * TIMES
    random.shuffle(steps)
    width = min(10, len(steps))
    with ThreadPoolExecutor(width) as pool:
        work = [pool.submit(lambda i=i: Zombies(server, program, i).run(steps[i::width]))
                for i in range(width)]
        histories = [job.result() for job in work]
    refused = sum(item.status == REFUSED and "." in item.id for h in histories for item in h.asked)
    if not refused:
        raise Wrong("no zombie has lost its lock")
    return f"{len(steps)} zombies at {len(STEPS)} steps, " \
           f"{refused} sends under a lost lock refused, " \
           f"{sum(len(h.grants) for h in histories)} locks, " \
           f"{sum(len(h.rows) for h in histories)} events"


def main():
    modes = {"fires": fires, "cuts": cuts, "partitions": partitions, "stops": stops,
             "zombies": zombies}
    if len(sys.argv) != 3 or sys.argv[1] not in modes:
        sys.exit(__doc__)
    random.seed(SEED)
    began = time.monotonic()
    names = set()
    try:
        with Server() as server:
            print(f"{sys.argv[1]}: {modes[sys.argv[1]](server, sys.argv[2])}, "
                  f"{time.monotonic() - began:.1f} s")
    except Wrong as wrong:
        print(f"{sys.argv[1]}: {wrong}")
        if not BUG:
            sys.exit(1)
        names = wrong.names
    if BUG and TOLD_AS[BUG] not in names:
        sys.exit(f"{BUG} is not found out as {TOLD_AS[BUG]}")


main()
