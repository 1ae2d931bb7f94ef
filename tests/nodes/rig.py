# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A PostgreSQL server that can be crashed, nodes on it (node.c), and what was asked of them.

    Server --- Cluster, a schema of its own --- Node, Node, Node
                  |
                  +--- History: compared with the store by history.py when all has ended
"""
import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "lib"))
# pylint: disable=wrong-import-position
import patience  # noqa: E402
from history import ACKED, NEVER, REFUSED, Asked, Grant, History, Ran, Row, check  # noqa: E402

SPAN = 250_000_000  # of the timeout in bell.fsm
LIBC = ctypes.CDLL(None)


class Wrong(Exception):
    """Something that must hold does not; `names` are the rules of history.py that are broken."""

    def __init__(self, text, names=()):
        super().__init__(text)
        self.names = set(names)


def wait_until(condition, what):
    """Looks again and again; there is nothing that would tell."""
    if not patience.wait(condition, 0.01):
        raise Wrong(f"waited in vain for {what}")


def within_store(key):
    """The key of an effect without the store that it begins with: all nodes have the same one."""
    return key.partition("/")[2]


def programs():
    """The folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"),
                   key=lambda path: int(path.parent.parent.name))
    if not found:
        raise Wrong("there is no PostgreSQL server; the package is called postgresql")
    return found[-1].parent


def end_with_us():
    LIBC.prctl(1, int(signal.SIGQUIT))


class Server:
    """A server of our own, with its cluster and its socket in a temporary folder."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="detent-nodes-"))
        self.options, self.process, self.clusters = {}, None, 0
        if os.getuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            user = "postgres" if "postgres" in names else "nobody"
            self.options = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
            shutil.chown(self.folder, user)
        os.chmod(self.folder, 0o755)
        subprocess.run([programs() / "initdb", "-D", self.folder / "data", "-A", "trust", "-U",
                        "detent", "-N"], check=True, capture_output=True, cwd="/", **self.options)
        self.start()

    def start(self):
        """Also after a crash: then it recovers first."""
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [programs() / "postgres", "-D", self.folder / "data", "-k", self.folder,
                 "-c", "listen_addresses=", "-c", "shared_buffers=16MB",
                 "-c", "max_connections=200", "-c", "log_min_messages=fatal",
                 "-c", "recovery_init_sync_method=syncfs"],
                cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                preexec_fn=end_with_us, **self.options)
        ready = [programs() / "pg_isready", "-q", "-h", self.folder, "-U", "detent"]
        wait_until(lambda: subprocess.run(ready, check=False).returncode == 0, "the server")

    def crash(self):
        """What `pg_ctl stop -m immediate` does: nothing is written, every connection is cut."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def query(self, sql):
        """The rows, as lists of texts."""
        done = subprocess.run(
            [programs() / "psql", "-XAtq", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", self.folder,
             "-U", "detent", "postgres", "-c", sql], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Wrong(done.stderr)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def close(self):
        self.crash()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()


class Node:
    """A process of node.c. What it says is told to the cluster by a thread of its own."""

    def __init__(self, cluster, name, host=None, workers=4, clock=0):
        self.cluster, self.name = cluster, name
        self.said, self.lock = [], threading.Lock()
        url, timeout = cluster.url(host), patience.stretch(cluster.timeout)
        self.process = subprocess.Popen(
            [cluster.program, url, str(cluster.lease), str(timeout), str(workers), str(clock),
             cluster.locking], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            self.cluster.hear(self, words)
            with self.lock:
                self.said.append(words)

    def tell(self, *words):
        """An order; a node that is gone does not hear it."""
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def has_printed(self, *words):
        with self.lock:
            return any(line[:len(words)] == list(words) for line in self.said)

    def wait_for(self, *words):
        wait_until(lambda: self.has_printed(*words) or self.process.poll() is not None, words)
        if not self.has_printed(*words):
            self.reader.join()
            raise Wrong(f"{self.name} ended with {self.process.returncode}, without {words}: "
                        f"{self.said[-3:]}")

    def arm(self, step):
        """It stops at the next such step."""
        with self.lock:
            self.said = [line for line in self.said if line[0] not in ("armed", "stopped")]
        self.tell("stop", step)
        self.wait_for("armed", step)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def close(self):
        """Lets it end as it should."""
        self.process.stdin.close()
        try:
            self.process.wait(patience.HANG)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Wrong(f"{self.name} does not end") from None
        self.reader.join()
        if self.process.returncode != 0 or not self.has_printed("findings", "0"):
            raise Wrong(f"{self.name} ended with {self.process.returncode}: {self.said[-3:]}")


class Cluster:
    """Nodes on one store, and the history of what was asked of them. Times are in milliseconds; the
    timeout is that of an idle machine, since a node also has to open the store within it."""

    def __init__(self, server, program, lease=10000, timeout=60000, locking="optimistic"):
        server.clusters += 1
        self.server, self.program = server, program
        self.lease, self.timeout, self.locking = lease, timeout, locking
        self.schema = f"bells_{server.clusters}"
        self.nodes, self.number, self.lock = [], 0, threading.Lock()
        self.asked, self.starts, self.open, self.grants, self.ran = {}, {}, {}, [], []
        self.locks, self.events, self.seen = {}, {}, {}

    def url(self, host=None):
        return f"postgres://detent@/postgres?{host or f'host={self.server.folder}'}" \
               f"&schema={self.schema}"

    def add(self, host=None, workers=4, clock=0):
        node = Node(self, f"node {len(self.nodes) + 1} of {self.schema}", host, workers, clock)
        self.nodes.append(node)
        node.wait_for("ready")
        return node

    def hear(self, node, words):
        """A line of a node."""
        now = time.monotonic()
        with self.lock:
            if words[0] == "effect":
                self.ran.append(Ran(within_store(words[1]), words[2], int(words[3])))
            elif words[0] == "seen":
                self.seen.setdefault((node.name, words[1]), []).append(int(words[2]))
            elif words[0] == "grant":
                instance, called, _ = self.locks[words[1]]
                self.grants.append(Grant(instance, int(words[2]), called, now))
                for item in self.asked.values():
                    if item.id.startswith(words[1] + "."):
                        item.fence = int(words[2])
            elif words[0] in ("ack", "refused", "unknown", "end"):
                self.answered(words, now)

    def answered(self, words, now):
        kind, name = words[:2]
        self.open.pop(name, None)
        if name in self.locks and kind != "end":
            self.locks[name] = self.locks[name][:2] + (kind,)
        item = self.asked.get(name) or self.starts.get(name)
        if not item or kind == "end":
            return
        if kind == "ack":
            if item.status == ACKED and item.sequence != int(words[2]):
                item.sequence = -1  # Two answers that differ: found out as lost.
            elif item.status != ACKED:
                item.status, item.sequence, item.returned = ACKED, int(words[2]), now
        elif kind == "refused" and item.status == "asked":
            item.status, item.returned = REFUSED, now
        elif kind == "unknown" and item.status != ACKED:
            item.status = "unknown"

    def put(self, name, instance, table):
        """Written down before it is asked for; again with the same id it is the same item."""
        with self.lock:
            item = table.get(name)
            if not item:
                item = table[name] = Asked(name, instance, time.monotonic(), NEVER, "asked")
            elif item.status == REFUSED:
                item.status, item.returned = "asked", NEVER
            self.open[name] = True
        return item

    def id(self):
        with self.lock:
            self.number += 1
            return f"e-{self.number}"

    def start(self, node, instance):
        name = f"s-{instance}"
        self.put(name, instance, self.starts)
        node.tell("start", name, instance)
        return name

    def send(self, node, instance, event="note", name=None, verb="send"):
        """An id that was sent before is sent again as the same event. With "submit" the node does
        not wait for it."""
        name = name or self.id()
        event = self.events.setdefault(name, event)
        self.put(name, instance, self.asked)
        node.tell(verb, name, instance, event)
        return name

    def take(self, node, instance, event="note", count=2, hold=0):
        """Several under a lock."""
        name = self.id()
        with self.lock:
            self.locks[name] = (instance, time.monotonic(), None)
        for number in range(1, count + 1):
            self.put(f"{name}.{number}", instance, self.asked)
            self.open.pop(f"{name}.{number}")
        with self.lock:
            self.open[name] = True
        node.tell("lock", name, instance, event, count, hold)
        return name

    def is_over(self, *names):
        with self.lock:
            return not any(name in self.open for name in names)

    def wait(self, *names):
        wait_until(lambda: self.is_over(*names), f"the answers to {names}")

    def status(self, name):
        with self.lock:
            item = self.asked.get(name) or self.starts.get(name)
            return item.status

    def settle(self, node, name):
        """Sends it again with the same id until there is an answer."""
        item = self.asked.get(name) or self.starts.get(name)
        for _ in range(100):
            self.wait(name)
            if item.status == ACKED:
                return
            if name in self.starts:
                self.start(node, item.instance)
            else:
                self.send(node, item.instance, name=name)
        raise Wrong(f"{name} is not taken: {item.status}")

    def drain(self):
        """Until no timer is armed and no effect has not ended."""
        sql = f"SELECT (SELECT count(*) FROM {self.schema}.timers) + " \
              f"(SELECT count(*) FROM {self.schema}.outbox)"
        wait_until(lambda: self.server.query(sql) == [["0"]], "the last timer and effect")

    def rows(self):
        sql = "SELECT i.id, e.sequence, e.visit, e.from_state, e.to_state, e.event, e.timeout, " \
              "e.at, coalesce(e.event_id, ''), coalesce(e.cause, '') " \
              f"FROM {self.schema}.events e JOIN {self.schema}.instances i ON i.key = e.instance"
        return [Row(r[0], int(r[1]), int(r[2]), r[3], r[4], r[5], r[6] == "t", int(r[7]), r[8],
                    within_store(r[9])) for r in self.server.query(sql)]

    def check_seen(self, rows):
        """Each observer hears of an instance in order, nothing twice, and nothing that is not."""
        there = {(row.instance, row.sequence) for row in rows}
        for (name, instance), sequences in self.seen.items():
            if any(a >= b for a, b in zip(sequences, sequences[1:])):
                raise Wrong(f"{name} was told of {instance} in this order: {sequences}", ["seen"])
            if any(n and (instance, n) not in there for n in sequences):
                raise Wrong(f"{name} was told of what {instance} did not do", ["seen"])

    def unseen(self, rows):
        """What no observer was told of."""
        seen = {(key[1], n) for key, sequences in self.seen.items() for n in sequences}
        return sorted({(row.instance, row.sequence) for row in rows} - seen)

    def finish(self):
        """Drains, ends all nodes, and compares; returns the history."""
        self.drain()
        for node in self.nodes:
            if node.process.poll() is None:
                node.close()
        history = History(list(self.asked.values()), self.grants, self.ran, self.rows(), SPAN)
        found = check(history)
        for name, text in found[:10]:
            print(f"{self.schema}: {name}: {text}", flush=True)
        if found:
            raise Wrong(f"{len(found)} violations", (name for name, _ in found))
        self.check_seen(history.rows)
        return history
