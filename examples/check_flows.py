#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs the examples of flows and holds them to what their READMEs say, their drills included.

    check_flows.py WHAT DETENT [PROGRAM]    WHAT is a function check_<WHAT> below; PROGRAM is the
                                            program or the module of the example

A drill runs a flow over a large input, kills it with SIGKILL again and again, and compares the
result with that of a run that nobody killed.
"""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests" / "lib"))
from patience import HANG, PATIENCE, now  # noqa: E402  pylint: disable=wrong-import-position

KILLS = 4
STATE = ".detent/flows"
BANK = STATE + "/piggy_bank"


class Example:
    """A copy of the folder of an example."""

    def __init__(self, name, detent, product=None):
        self.folder = Path(tempfile.mkdtemp())
        self.work = self.folder / name
        shutil.copytree(HERE / name, self.work, ignore=shutil.ignore_patterns(".detent", "*.so"))
        self.detent = str(Path(detent).resolve())
        if product and product.endswith(".so"):
            shutil.copy(product, self.work / f"{name.replace('-', '_')}.so")
        self.children = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()
        shutil.rmtree(self.folder)

    def run(self, *words, code=0):
        """Runs detent, and returns what it printed."""
        done = subprocess.run(
            [self.detent, *words], cwd=self.work, text=True, timeout=HANG, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode != code:
            sys.exit(f"detent {' '.join(words)}: exit code {done.returncode}\n{done.stdout}")
        return done.stdout

    def tap(self, stage, spec, state):
        """The rows that a stage has appended; none also if there is no log yet."""
        done = subprocess.run(
            [self.detent, "flow", "tap", stage, "--file", spec, "--state", state, "--from", "1"],
            cwd=self.work, text=True, timeout=HANG, check=False, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        return done.stdout.splitlines()

    def start(self, *words, program=None):
        child = subprocess.Popen(  # pylint: disable=consider-using-with
            [program or self.detent, *words], cwd=self.work, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.children.append(child)
        return child

    def check_spec(self, spec):
        """The commands that every spec has to pass."""
        self.run("check", "--strict", spec)
        self.run("fmt", "--check", spec)
        if (self.work / f"{spec}.test.yaml").exists():
            self.run("test", f"{spec}.test.yaml")


def same(found, wanted, what):
    if found != wanted:
        sys.exit(f"{what}: found\n{found}\nwanted\n{wanted}")


def has(text, pattern):
    if not re.search(pattern, text, re.M):
        sys.exit(f"this is missing: {pattern}\n{text}")


def blocks(readme, mark="text"):
    """The fenced blocks of a README."""
    return re.findall(rf"^```{mark}\n(.*?)^```$", (HERE / readme).read_text(), re.M | re.S)


def shown(readme, command):
    """What a README shows under `$ command`."""
    for block in blocks(readme):
        match = re.search(rf"^\$ {re.escape(command)}\n((?:[^$].*\n)*)", block, re.M)
        if match:
            return match[1]
    return sys.exit(f"{readme} does not show: {command}")


def until(condition, what):
    deadline = now() + PATIENCE
    while not condition():
        if now() > deadline:
            sys.exit(f"this did not happen: {what}")
        time.sleep(0.005)


def size_of(folder):
    """Bytes of the files below a folder, which may change meanwhile."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(root, name)).st_size
            except FileNotFoundError:
                pass
    return total


def killed(start, progress, share):
    """Starts the flow KILLS times and kills it, each time when `progress()` has become larger by
    `share`; false if it ended before."""
    for _ in range(KILLS):
        child = start()
        begun = progress()
        until(lambda: progress() >= begun + share or child.poll() is not None, "progress")
        if child.poll() is not None:
            return False
        child.send_signal(signal.SIGKILL)
        child.wait()
    return True


def main():
    what, detent, *rest = sys.argv[1:]
    globals()[f"check_{what.replace('-', '_')}"](detent, *rest)
    print(f"{what}: as it should be")


def check_characters(detent, program):
    wanted = shown("characters/README.md", "characters")
    program = str(Path(program).resolve())

    def run(*words):
        return subprocess.run([program, *words], text=True, check=True, stdout=subprocess.PIPE,
                              timeout=HANG, cwd=example.work).stdout

    def letters():
        """How many letters are in the log of the drill; 0: there is none yet."""
        return len(example.tap("read_letters", "characters.flow", "drill"))

    with Example("characters", detent) as example:
        example.check_spec("characters.flow")
        same(run(), wanted, "in memory")
        same(run("state"), wanted, "with a log")
        if not killed(lambda: example.start("--slow", "drill", program=program), letters, 5):
            sys.exit("it ended before it was killed")
        same(run("drill"), wanted, "after kill -9")


def check_support_sla(detent):
    with Example("support-sla", detent) as example:
        example.check_spec("support_sla.flow")
        has(example.run("flow", "run", "support_sla.flow"), "6 rows in, 3 out, 1 rejected")
        same((example.work / "late.csv").read_text(),
             shown("support-sla/README.md", "cat late.csv"), "late.csv")
        has(example.run("flow", "tap", "read_tickets.errors", "--file", "support_sla.flow",
                        "--from", "1"), "line 7, column priority")
        drill_file(example, ("support_sla.flow",), "tickets.csv", "late.csv", 60000)


def drill_file(example, flow, source, target, lines):
    """Repeats the lines of the source, and runs the flow undisturbed and killed."""
    head, *rows = (example.work / source).read_text().splitlines()
    (example.work / source).write_text(
        "\n".join([head] + [rows[i % len(rows)] for i in range(lines)]) + "\n")
    target = example.work / target
    run = ("flow", "run", *flow, "--state", "drill")
    example.run(*run)
    wanted = target.read_bytes()
    target.unlink()
    shutil.rmtree(example.work / "drill")

    def size():
        return target.stat().st_size if target.exists() else 0

    killed(lambda: example.start(*run), size, len(wanted) // (2 * KILLS))
    example.run(*run)
    same(target.read_bytes() == wanted, True, "the result of a flow that was killed is the same")


def check_top_sellers(detent, module):
    run = ("flow", "run", "top_sellers.flow", "--module", "./top_sellers.so")
    with Example("top-sellers", detent, module) as example:
        example.check_spec("top_sellers.flow")
        wanted = shown("top-sellers/README.md", " ".join(("detent",) + run))
        same(example.run(*run)[:len(wanted)], wanted, "the ranking")
        has(example.run(*run), "18 rows in, 8 out, 0 rejected")
        # The drill: the totals of all sales are the same, however often it is killed.
        sales = example.work / "sales.csv"
        head, *rows = sales.read_text().splitlines(keepends=True)
        sales.write_text(head + "".join(rows * 3000))
        wanted = ranking(example.run(*run, "--state", "calm"))
        killed(lambda: example.start(*run, "--state", "drill"),
               lambda: size_of(example.work / "drill"), 1 << 16)
        same(ranking(example.run(*run, "--state", "drill")), wanted, "after kill -9")
        same(wanted[1][-1], str(750 * 3000), "the cents of mint tea")


def ranking(text):
    """The rows of the table, without what is said before and after it."""
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("category"))
    return [line.rsplit(maxsplit=2) for line in lines[begin:begin + 9]]


def check_flights(detent, module):
    run = ("flow", "run", "flights.flow", "--module", "./flights.so")
    with Example("flights", detent, module) as example:
        example.check_spec("flights.flow")
        wanted = shown("flights/README.md", " ".join(("detent",) + run))
        same(example.run(*run)[:len(wanted)], wanted, "the summary")
        same((example.work / "delays.csv").read_text(),
             shown("flights/README.md", "cat delays.csv"), "delays.csv")
        drill_file(example, ("flights.flow", "--module", "./flights.so"), "flights.csv",
                   "delays.csv", 60000)
        # A module of another definition than the file is refused.
        flow = example.work / "flights.flow"
        flow.write_text(flow.read_text().replace("worst", "longest"))
        has(example.run(*run, code=2), "defines the flow 'flights' otherwise .*build it again")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


class Bank:
    """`detent flow run` of the piggy bank, and its customers."""

    def __init__(self, example):
        self.example = example
        self.accounts, self.bookings = free_port(), free_port()

    def start(self):
        return self.example.start(
            "flow", "run", "piggy_bank.flow", "--module", "./piggy_bank.so",
            f"take_accounts.listen=127.0.0.1:{self.accounts}",
            f"take_bookings.listen=127.0.0.1:{self.bookings}")

    def post(self, path, row):
        """Sends a row until it is accepted, also to a bank that starts; returns the answer."""
        port = self.accounts if path == "/accounts" else self.bookings

        def send():
            try:
                link = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG)
                link.request("POST", path, json.dumps(row))
                answer = link.getresponse()
                return json.loads(answer.read()) if answer.status == 200 else None
            except OSError:
                return None
            except http.client.HTTPException:
                return None

        answer = []
        until(lambda: answer.append(send()) or answer[-1], f"an answer to {row}")
        return answer[-1]

    def balances(self):
        file = self.example.work / "bank.db"
        if not file.exists():
            return {}
        with closing(sqlite3.connect(file)) as database:
            try:
                rows = database.execute("select account, owner, bookings, cents from balances")
                return {account: tuple(rest) for account, *rest in rows}
            except sqlite3.OperationalError:
                return {}


def check_piggy_bank(detent, module):
    with Example("piggy-bank", detent, module) as example:
        example.check_spec("piggy_bank.flow")
        bank = Bank(example)
        child = bank.start()
        same(bank.post("/accounts", {"id": "a-1", "owner": "Alice"}),
             {"accepted": 1, "rejected": 0}, "the answer")
        bank.post("/accounts", {"id": "a-2", "owner": "Bob"})
        until(lambda: len(example.tap("take_accounts", "piggy_bank.flow", BANK)) == 2, "accounts")
        bank.post("/bookings", {"id": "b-1", "account": "a-1", "cents": 250, "note": "paycheck"})
        bank.post("/bookings", {"id": "b-2", "account": "a-1", "cents": -100})
        bank.post("/bookings", {"id": "b-3", "account": "a-9", "cents": 1})
        until(lambda: bank.balances() == {"a-1": ("Alice", 2, 150)}, "the balance of Alice")
        bank.post("/bookings", {"id": "b-4", "account": "a-1", "cents": -151})
        until(lambda: any("the account has 150 cents" in row for row in
                          example.tap("book", "piggy_bank.flow", BANK)), "the refused booking")
        # The drill: what was answered counts, and what was sent again counts once.
        for number in range(120):
            if number % 30 == 15:
                child.kill()
                child.wait()
                child = bank.start()
            bank.post("/bookings", {"id": f"c-{number}", "account": "a-2", "cents": number})
        total = sum(range(120))
        until(lambda: bank.balances().get("a-2") == ("Bob", 120, total), "the balance of Bob")
        same(bank.balances()["a-1"], ("Alice", 2, 150), "the balance of Alice")


class Broker:
    """A private mosquitto."""

    def __init__(self, example):
        self.port = free_port()
        config = example.work / "mosquitto.conf"
        config.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\n"
                          "max_queued_messages 0\npersistence false\n")
        program = shutil.which("mosquitto", path=os.environ["PATH"] + ":/usr/sbin")
        if not program:
            sys.exit("mosquitto is not installed")
        example.start("-c", str(config), program=program)
        until(self.accepts, "the broker accepts connections")

    def accepts(self):
        try:
            socket.create_connection(("127.0.0.1", self.port)).close()
        except OSError:
            return False
        return True


def check_sensors(detent):
    with Example("sensors", detent) as example:
        example.check_spec("sensors.flow")
        example.check_spec("publish.flow")
        broker = Broker(example)
        run = ("flow", "run", "sensors.flow", f"receive.port={broker.port}")
        publish = ("flow", "run", "publish.flow", f"send.port={broker.port}")

        def stored():
            file = example.work / "readings.db"
            if not file.exists():
                return []
            with closing(sqlite3.connect(file)) as database:
                try:
                    numbers = "select number from readings order by number"
                    return database.execute(numbers).fetchall()
                except sqlite3.OperationalError:
                    return []

        child = example.start(*run)
        # The broker knows the session once the flow has subscribed: what comes before is lost.
        until(lambda: any("stage_running" in row and "receive" in row for row in
                          example.tap("system", "sensors.flow", STATE + "/sensors")), "it runs")
        until(lambda: example.run(*publish) and len(stored()) >= 4, "four readings")
        same([json.loads(line)["sensor"] for line in
              (example.work / "alarms.jsonl").read_text().splitlines()], ["oven", "roof"], "alarms")
        # The drill: messages that come while the flow is away are delivered later.
        rows = [f"{number},oven,{number % 50}.5" for number in range(100, 2100)]
        (example.work / "readings.csv").write_text(
            "\n".join(["number,sensor,celsius"] + rows) + "\n")
        publisher = example.start(*publish)
        for _ in range(KILLS):
            child.kill()
            child.wait()
            before = len(stored())
            child = example.start(*run)
            until(lambda: len(stored()) > before or len(stored()) == 2004, "more readings")
        until(lambda: publisher.poll() is not None and len(stored()) == 2004, "all readings")
        same(stored(), [(n,) for n in [1, 2, 3, 4, *range(100, 2100)]], "each reading once")


def check_orders_flow(detent):
    with Example("orders-flow", detent) as example:
        example.check_spec("orders.flow")
        example.run("check", "--strict", "detent.yaml", "order.fsm")
        lines = example.work / "orders.jsonl"

        def state(order):
            done = subprocess.run([detent_path, "get", order], cwd=example.work, text=True,
                                  check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            return done.stdout

        detent_path = example.detent
        child = example.start("up")
        until(lambda: "paid" in state("o-1") and "placed" in state("o-2"), "two orders")
        has(example.run("flow", "tap", "send_event.errors", "--from", "1"),
            "order o-3 is new, which does not accept pay")
        # The drill: detent is killed while orders come.
        for turn in range(KILLS):
            with open(lines, "a", encoding="ascii") as file:
                for number in range(100):
                    order = f"d-{turn}-{number}"
                    for action in ("place", "pay"):
                        line = {"order": order, "action": action, "cents": 5}
                        file.write(json.dumps(line) + "\n")
                        file.flush()
            child.kill()
            child.wait()
            child = example.start("up")
        last = [f"d-{turn}-99" for turn in range(KILLS)]
        until(lambda: all("paid" in state(order) for order in last), "the last orders are paid")
        listed = example.run("list", "--machine", "order", "--state", "paid", "--json")
        paid = sum('"d-' in line for line in listed.splitlines())
        same(paid, KILLS * 100, "orders that are paid")


if __name__ == "__main__":
    main()
