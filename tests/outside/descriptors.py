#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A small limit of descriptors, and a crowd of idle clients that wants them all.

    descriptors.py DETENT NASTY_CHILD [PART_OF_A_NAME]

What our own process is short of is nobody's failure: effects are postponed and not counted, tasks
wait, reads say what is short, and /readyz says that we are not ready.
"""
import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests/api"), str(TREE / "tests/e2e")]
import shop  # noqa: E402  pylint: disable=wrong-import-position
from shop import DETENT, Daemon, check, environment, equal, token, wait_until  # noqa: E402

LIMIT = 1024
ORDERS = """version: 1
store: sqlite:shop.db
http: {rate: unlimited, limits: {peer_connections_max: 100000}}
machines:
  order:
    effects:
      charge_card:
        command: [sh, -c, 'echo "{\\"event\\":\\"charged\\"}"']
        attempts: 3
        backoff: 50ms..50ms
      send_mail: {command: ['true'], attempts: 3, backoff: 50ms..50ms}
  counter: {effects: {}}
"""


def limited(soft, hard):
    """For preexec_fn: this limit, whatever ours is."""
    def run():
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return run


def many():
    """As many descriptors for the clients as there may be."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))


def crowd(port, count):
    """Connections that say nothing."""
    found = []
    for _ in range(count):
        client = socket.socket()
        client.settimeout(shop.up.PATIENCE)
        client.connect(("127.0.0.1", port))
        found.append(client)
    return found


def idle(wire, name):
    return wire.get(f"/v1/machines/order/instances/{name}").json


def test_idle_clients_without_a_token_delay_no_other():
    """1,010 of them at a soft and hard limit of 1,024: the effects of an order run at once."""
    many()
    shop.project(ORDERS)
    value = token("admin")
    daemon = Daemon(preexec_fn=limited(LIMIT, LIMIT))
    clients = crowd(daemon.port, 1010)
    with daemon.wire(value) as wire:
        wait_until(lambda: wire.get("/readyz").status == 200, "it is ready")
        shop.start(wire, "o-1", "order")
        answer = wire.post("/v1/machines/order/instances/o-1/events", shop.PAY)
        equal(answer.status, 200)
        wait_until(lambda: idle(wire, "o-1")["state"] == "gone", "its effects have run")
        equal(wire.get("/v1/effects?dead=true").json["items"], [])
        for path in ("/v1/overview", "/v1/machines/order/instances", "/v1/log", "/v1/store"):
            equal(wire.get(path).status, 200)
    for client in clients:
        client.close()
    daemon.stop()


def use_up(number, left):
    """Lowers the limit of a process to what it has open, and some more."""
    have = len(os.listdir(f"/proc/{number}/fd"))
    resource.prlimit(number, resource.RLIMIT_NOFILE, (have + left, LIMIT))


def test_descriptor_shortage_is_not_an_attempt():
    shop.project(ORDERS)
    value = token("admin")
    daemon = Daemon(preexec_fn=limited(LIMIT, LIMIT))
    with daemon.wire(value) as wire:
        shop.start(wire, "o-1", "order")
        shop.start(wire, "o-2", "order")
        equal(wire.get("/readyz").status, 200)
        use_up(daemon.number, 0)
        answer = wire.post("/v1/machines/order/instances/o-1/events", shop.PAY)
        equal(answer.status, 200)
        daemon.wait_for("postponed; attempt 1 is not counted")
        ready = wire.get("/readyz")
        equal((ready.status, ready.json["ready"]), (503, False))
        check("descriptors" in ready.json["why"], ready)
        # It is tried each second and said every ten: three attempts would be over by then.
        wait_until(lambda: sum("attempt 1" in line for line in daemon.lines) > 1,
                   lambda: f"it is tried again and again\n{daemon.shown()}")
        resource.prlimit(daemon.number, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
        wait_until(lambda: idle(wire, "o-1")["state"] == "gone", "its effects have run")
        wait_until(lambda: wire.get("/readyz").status == 200, "it is ready again")
        equal(wire.get("/v1/effects").json["items"], [])
    daemon.stop()


def test_unopenable_store_error_hides_its_path():
    shop.project(ORDERS)
    value = token("admin")
    daemon = Daemon(preexec_fn=limited(LIMIT, LIMIT))
    with daemon.wire(value) as wire:
        shop.start(wire, "o-1", "order")
        use_up(daemon.number, 0)
        seen = set()
        for path in ("/v1/machines/order/instances", "/v1/log", "/v1/timers", "/v1/effects",
                     "/v1/locks", "/v1/overview", "/v1/machines/order/instances/o-1/why"):
            answer = wire.get(path)
            seen.add(answer.status)
            check(answer.status in (200, 503), f"{path}: {answer}")
            check(answer.status == 200 or os.getcwd().encode() not in answer.body, answer)
        resource.prlimit(daemon.number, resource.RLIMIT_NOFILE, (LIMIT, LIMIT))
        check(503 in seen, "nothing was short")
    daemon.stop()


def test_tasks_without_descriptors_wait_without_failing():
    count = 400
    tasks = "".join(f"  t{i}: {{run: sleep 600, restart: never}}\n" for i in range(count))
    Path("detent.yaml").write_text(f"version: 1\ntasks:\n{tasks}")
    daemon = shop.Up.__new__(shop.Up)
    daemon.start([DETENT, "up"], None, preexec_fn=limited(LIMIT, LIMIT))
    daemon.wait_for(r"400 tasks, 0 slots, 0 effects at a time, 0 workers and 0 flows need about "
                    r"\d+ descriptors, and the hard limit is 1024")

    def status():
        done = subprocess.run([DETENT, "status", "--json"], env=environment(), check=False,
                              capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else {}
    found = wait_until(lambda: (s := status()) and s["running"] + s["backing_off"] == count and s,
                       "each runs or waits")
    check(found["running"] >= 250 and found["backing_off"] > 0, found)
    # restart: never gives up at the first failure: none of these was one.
    equal(found["finished"], 0)
    daemon.stop()


def test_children_inherit_the_original_soft_limit():
    Path("detent.yaml").write_text(
        "version: 1\ntasks:\n  asks: {run: [sh, -c, 'ulimit -Sn; ulimit -Hn'], restart: never}\n")
    done = subprocess.run([DETENT, "up"], env=environment(), capture_output=True, text=True,
                          check=False, preexec_fn=limited(256, LIMIT))
    lines = [line.split("|")[1].strip() for line in done.stdout.splitlines() if "|" in line]
    equal(lines, ["256", "1024"])


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
