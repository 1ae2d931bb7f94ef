#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Several processes on one PostgreSQL server, and what may become of them and of their connections.

    run.py fires NODE      three nodes with clocks five minutes apart, one of them killed again and
                           again: every timer fires exactly once
    run.py cuts NODE       the connection is cut after each byte of the exchange that commits, in
                           both directions, in two manners
    run.py partitions NODE the same, but nobody is told that the connection is lost

Every run ends with the comparison of history.py. NODES_TIMES in the environment makes a run that
many times as long.
"""
import os
import random
import sys
import time

from proxy import DOWN, UP, Proxy
from rig import Cluster, Server, Wrong

TIMES = int(os.environ.get("NODES_TIMES", "1"))
SEED = int(os.environ.get("NODES_SEED", "1"))


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
    return f"{fired} timers fired once each, {rounds} nodes killed, {len(history.ran)} runs of effects"


def measure(cluster, proxy, node):
    """The bytes of a commit, up and down, on a connection that knows its statements."""
    for _ in range(3):
        cluster.settle(node, cluster.send(node, "b-0"))
        proxy.arm()
        cluster.settle(node, cluster.send(node, "b-0"))
    return list(proxy.counts)


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
    if proxy.cuts != len(chosen):
        raise Wrong(f"{proxy.cuts} connections were cut, not {len(chosen)}")
    return f"{proxy.cuts} cuts in {total} places ({counts[UP]} bytes up, {counts[DOWN]} down), " \
           f"{unknown} answers unknown, {len(history.rows)} events"


def cuts(server, program):
    return cut_all(server, program, 100 * TIMES, ("close", "reset"), 10000)


def partitions(server, program):
    return cut_all(server, program, 10 * TIMES, ("stall",), 1000)


def main():
    modes = {"fires": fires, "cuts": cuts, "partitions": partitions}
    if len(sys.argv) != 3 or sys.argv[1] not in modes:
        sys.exit(__doc__)
    random.seed(SEED)
    began = time.monotonic()
    try:
        with Server() as server:
            print(f"{sys.argv[1]}: {modes[sys.argv[1]](server, sys.argv[2])}, "
                  f"{time.monotonic() - began:.1f} s")
    except Wrong as wrong:
        print(f"{sys.argv[1]}: {wrong}")
        sys.exit(1)


main()
