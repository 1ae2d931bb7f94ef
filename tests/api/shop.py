# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""The daemon that these tests ask, with a project that has something of everything.

The frame (fresh folders, tests as functions, nothing that waits for time) is that of
tests/e2e/up.py; each file here is run as `FILE DETENT NASTY_CHILD [PART_OF_A_NAME]`.
"""
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))
import up  # pylint: disable=wrong-import-position
from up import DETENT, Failure, Up, check, environment, equal, wait_until  # noqa: F401

from wire import Gone, Stream, Wire, Wrong  # noqa: E402,F401

TREE = Path(__file__).resolve().parents[2]
SOCKET = ".detent/detent.sock"
CONSOLE = re.compile(r"Console: http://127\.0\.0\.1:(\d+)/#code=(\S+)")

ORDER = """#define FSM_NAME order
#define FSM_PREFIX ORDER
#define FSM_DATA order_data
ENUM(currency)
    VALUE(EUR, eur)
    VALUE(USD, usd)
END
RECORD(payment)
    FIELD(card, str(40), SENSITIVE)
    FIELD(cents, u64)
    OPTIONAL(money, one_of(currency))
END
RECORD(order_data)
    FIELD(cents, u64)
    OPTIONAL(note, str(40))
END
STATE(PENDING, pending, INITIAL)
STATE(CHARGING, charging)
STATE(GONE, gone, FINAL)
STATE(LOST, lost)
EVENT(PAY, pay, payment)
EVENT(PING, ping)
EVENT(SHIP, ship)
EVENT(HALT, halt)
INTERNAL(CHARGED, charged)
INTERNAL(EXPIRED, expired)
EFFECT(charge_card, CHARGED)
EFFECT(send_mail)
UNHANDLED(SHIP, DEFER)
UNHANDLED(HALT, IGNORE)
ON(PENDING, PAY, CHARGING, KEEP(cents), DO(charge_card, send_mail))
STAY(PENDING, PING)
ON(PENDING, EXPIRED, GONE)
ON(PENDING, SHIP, GONE)
ON(CHARGING, CHARGED, GONE)
ON(CHARGING, PING, PENDING)
ON(LOST, PING, LOST)
STOP(CHARGING, HALT, REASON("halted"))
AFTER(PENDING, MINUTES(30), EXPIRED)
"""
# A machine that takes everything, and counts: for what is about many events.
COUNTER = """#define FSM_NAME counter
#define FSM_PREFIX COUNTER
#define FSM_DATA counter_data
RECORD(number)
    FIELD(number, u64)
END
RECORD(counter_data)
    FIELD(number, u64)
END
STATE(COUNTING, counting, INITIAL)
STATE(OVER, over, FINAL)
EVENT(ADD, add, number)
EVENT(FINISH, finish)
STAY(COUNTING, ADD, KEEP(number))
ON(COUNTING, FINISH, OVER)
"""
# A flow that reads three rows, the second of which is malformed.
PASSING = """#define FLOW_NAME passing
RECORD(sale)
    FIELD(cents, u64)
    FIELD(card, str(20), SENSITIVE)
END
SOURCE(read, sale, USE(csv, "{path: sales.csv}"))
SINK(write, sale, USE(jsonl, "{path: sold.jsonl}"))
EDGE(read, write)
"""
SALES = "cents,card\n10,4242\nmany,4242\n30,4242\n"
PROJECT = """version: 1
store: sqlite:shop.db
http: {rate: unlimited}
machines:
  order:
    effects:
      charge_card: {command: [sh, -c, 'echo no money >&2; exit 1'], attempts: 1}
      send_mail: {command: [sh, -c, 'exit 1'], attempts: 9, backoff: 1h..1h}
  counter: {effects: {}}
groups:
  back: {strategy: one-for-one}
slots:
  batch: {width: 1, depth: 3}
  jobs: {durable: yes, width: 1}
tasks:
  ticker:
    run: [sh, -c, 'echo one; echo two >&2; exec sleep 600']
    group: back
    ready: started
  flaky: {run: "false", group: back, backoff: {first: 1h, max: 1h}}
  waiter: {run: sleep 600, depends_on: [flaky]}
  holder: {run: sleep 600, slot: batch}
flows:
  passing: {durability: os}
  waiting: {file: passing.flow, start: manual, durability: memory, stages: {write: {path: no}}}
workers:
  variables: {IP: 10.0.0.7, PORT: 502}
  children:
    - {name: hello, kind: helloworld}
    - name: press
      kind: exampleparent
      config: {children_count: 2, rest_seconds: 1, run_seconds: 100000}
"""
COUNTERS = """version: 1
store: sqlite:shop.db
http: {rate: unlimited}
machines:
  counter: {effects: {}}
"""
# What every answer says to browsers.
SAFE = {"cache-control": "no-store", "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "cross-origin-resource-policy": "same-origin", "referrer-policy": "no-referrer"}
PAY = {"event": "pay", "data": {"card": "4242", "cents": 1999}}


class Daemon(Up):
    """A `detent up` that listens on any free port and on the socket of its folder."""

    def __init__(self, *words, env=None, **more):
        self.start([DETENT, "up", "--listen", "127.0.0.1:0", *words], env, **more)
        self.link = wait_until(self.console, lambda: f"the link\n{self.shown()}")
        self.port, self.code = int(self.link[1]), self.link[2]

    def console(self):
        check(self.process.poll() is None, f"it has ended: {self.shown()}")
        return next((m for line in [*self.talk, *self.lines] if (m := CONSOLE.search(line))), None)

    @property
    def address(self):
        return ("127.0.0.1", self.port)

    def wire(self, token=None):
        return Wire(self.address, token) if token else Wire(SOCKET)

    def kill_hard(self):
        """As if the power went off, for this process."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.join()


def listens():
    return up.is_listening(SOCKET)


FILE = "sqlite:shop.db"
# Returns the URL of a new store, to run these tests on another kind.
other_store = []


def project(text=PROJECT):
    if other_store:
        check(FILE in text, "the project names its store otherwise")
        text = text.replace(FILE, other_store[0]())
    Path("detent.yaml").write_text(text)
    Path("order.fsm").write_text(ORDER)
    Path("counter.fsm").write_text(COUNTER)
    Path("passing.flow").write_text(PASSING)
    Path("sales.csv").write_text(SALES)


def token(*scopes, **options):
    """A new token of these scopes."""
    words = [f"--{name}={value}" for name, value in options.items()]
    done = subprocess.run([DETENT, "token", "new", "--scope", ",".join(scopes), *words],
                          env=environment(), capture_output=True, text=True, check=True)
    return done.stdout.strip()


def seconds_of(number):
    """The processor time that a process has used."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def start(wire, identity, machine="counter", data=None, key=None):
    body = {"id": identity} | ({"data": data} if data is not None else {})
    answer = wire.post(f"/v1/machines/{machine}/instances", body, key)
    check(answer.status in (200, 201), answer)
    return answer.json


def add(wire, identity, number, key=None):
    """One more event of a counter."""
    return wire.post(f"/v1/machines/counter/instances/{identity}/events",
                     {"event": "add", "data": {"number": number}}, key)


def main(names):
    """That of up.py, which also counts an answer that is none as a failure."""
    def guarded(function):
        def run():
            try:
                function()
            except (Gone, Wrong) as problem:
                raise Failure(f"{type(problem).__name__}: {problem}") from problem
        run.__wrapped__ = function
        return run
    return up.main({name: guarded(thing) if name.startswith("test_") else thing
                    for name, thing in names.items()})
