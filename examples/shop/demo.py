#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""The demo of `make demo`: customers, a shop, a bank, and somebody who kills both with -9.

    demo.py --detent PROGRAM --shop PROGRAM [--orders N] [--seconds N] [--seed N] [--keep]
            [--patience SECONDS] [--port N] [--folder FOLDER]

Customers order until all have an answer; whoever has none asks again with the same id. Meanwhile
shop and bank die at random instants and are started again. Then they are left alone until nothing
is under way, the shop is closed, and books.py compares what everybody knows. The exit code is 0
when all of it agrees.
"""
import argparse
import ctypes
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from books import FINAL, Audit, read_export, read_ledger

HERE = Path(__file__).resolve().parent
WINDOW = 24    # customers at the counter
RUSH = 12
SHOP_LIFE, BANK_LIFE = 0.4, 1.2  # seconds, on average
LONGER, LIFE_MAX = 3, 5          # after a life of the shop in which nobody was answered


class Failure(Exception):
    """Why the demo cannot go on."""


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def free_port(chance):
    """Below those that are given out by chance, which a client might get while the bank is dead."""
    while True:
        port = chance.randrange(20000, 32000)
        with socket.socket() as trial:
            try:
                trial.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Program:
    """A process that is killed and started again; its words are lines."""

    def __init__(self, name, words, hear):
        self.name, self.words, self.hear = name, words, hear
        self.kills = 0
        self.process = self.reader = None

    def start(self):
        self.process = subprocess.Popen(
            self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, preexec_fn=die_with_parent)
        self.reader = threading.Thread(
            target=self.read, args=(self.process.stdout,), daemon=True)
        self.reader.start()

    def read(self, lines):
        """A line without an end was cut off by a kill: nobody has said it."""
        for line in lines:
            if line.endswith("\n"):
                self.hear(line.rstrip("\n"))

    def say(self, line):
        """To one who is just being killed it is said in vain, like anything he does not answer."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError:
            pass

    def ensure_alive(self):
        code = self.process.poll()
        if code is not None:
            text = self.process.stderr.read().strip() or (
                f"signal {-code}" if code < 0 else f"exit code {code}")
            raise Failure(f"the {self.name} ended by itself: {text}")

    def kill(self):
        self.ensure_alive()
        self.process.kill()
        self.bury()
        self.kills += 1

    def bury(self):
        """Neither has anything to complain about: dying is not an error of theirs."""
        self.process.wait()
        self.reader.join()
        complaint = self.process.stderr.read().strip()
        if complaint:
            raise Failure(f"the {self.name} complained: {complaint}")
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                stream.close()
            except OSError:
                pass

    def close(self):
        """The end of its input is the end of its work."""
        self.ensure_alive()
        self.process.stdin.close()
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            raise Failure(f"the {self.name} does not end") from None
        complaint = self.process.stderr.read().strip()
        if code != 0 or complaint:
            raise Failure(f"the {self.name} ended with {code}: {complaint}")

    def end(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Customers:
    """Who wants what, who has asked, who was answered, and what."""

    def __init__(self, count, chance):
        self.lock = threading.Lock()
        self.to_come = [self.make(number, chance) for number in range(count, 0, -1)]
        self.count = count
        self.waiting, self.answered = {}, {}
        self.asked_again = 0
        self.refused = set()
        self.refusal, self.heard_at = "", time.monotonic()

    @staticmethod
    def make(number, chance):
        verb = "keep" if chance.random() < 0.15 else "buy"
        cents = chance.randrange(100, 20000)
        if chance.random() < 0.05:
            cents = cents // 100 * 100 + 13
        return {"id": f"o-{number:05}", "verb": verb, "cents": cents}

    def hear(self, line):
        """The first answer counts; whoever was told no asks again."""
        answer, order, *rest = line.split(" ", 2) + [""]
        with self.lock:
            if answer in ("ok", "late") and order in self.waiting:
                self.answered[order] = {**self.waiting.pop(order), "answer": answer}
                self.heard_at = time.monotonic()
            elif answer == "no":
                self.refused.add(order)
                self.refusal = rest[0]

    def next_lines(self, come):
        """What is said now, when so many have come in all; some click twice."""
        with self.lock:
            lines = [self.line(self.waiting[order]) for order in self.refused & self.waiting.keys()]
            self.asked_again += len(lines)
            self.refused.clear()
            while (self.to_come and len(self.waiting) < WINDOW and
                   self.count - len(self.to_come) < come):
                order = self.to_come.pop()
                self.waiting[order["id"]] = order
                lines.append(self.line(order))
                if order["cents"] % 20 == 0:
                    lines.append(self.line(order))
                    self.asked_again += 1
        return lines

    def lines_again(self):
        with self.lock:
            self.asked_again += len(self.waiting)
            return [self.line(order) for order in self.waiting.values()]

    @staticmethod
    def line(order):
        return f"{order['verb']} {order['id']} {order['cents']}"

    @property
    def are_done(self):
        return not self.to_come and not self.waiting


class Screen:
    """One line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self):
        self.is_terminal = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.shown_at = 0

    def show(self, text):
        now = time.monotonic()
        if now - self.shown_at >= (0.1 if self.is_terminal else 5):
            self.shown_at = now
            print(f"\r\033[K{text[:79]}" if self.is_terminal else text,
                  end="" if self.is_terminal else "\n", flush=True)

    def leave(self):
        if self.is_terminal:
            print("\r\033[K", end="", flush=True)


class Demo:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.store = f"sqlite:{folder}/shop.db"
        self.chance = random.Random(options.seed)
        self.customers = Customers(options.orders, self.chance)
        self.screen = Screen()
        self.bank = self.shop = None

    def start_shop(self):
        self.shop.start()
        for line in self.customers.lines_again():
            self.shop.say(line)

    def open(self):
        """The bank keeps its port for all its lives."""
        is_open = threading.Event()
        port = str(self.options.port or free_port(self.chance))
        self.bank = Program("bank", [sys.executable, str(HERE / "bank"), "--port", port,
                                     "--ledger", str(self.folder / "ledger")],
                            lambda line: is_open.set())
        self.shop = Program("shop", [self.options.shop, "-b", port, self.store],
                            self.customers.hear)
        self.bank.start()
        while not is_open.wait(0.05):
            self.bank.ensure_alive()
        self.start_shop()

    def run(self):
        """Kills until everybody has an answer, and at least for the time that was asked for."""
        began = self.customers.heard_at = time.monotonic()
        bank_dies_at, shop_dies_at = began + self.life(BANK_LIFE), began + self.life(SHOP_LIFE)
        answered, life = 0, SHOP_LIFE
        while not self.customers.are_done or time.monotonic() < began + self.options.seconds:
            now = time.monotonic()
            come = int((now - began) / self.options.seconds * self.options.orders) + 1
            self.let_in(come)
            if now >= bank_dies_at:
                self.bank.kill()
                self.bank.start()
                bank_dies_at = now + self.life(BANK_LIFE)
            if now >= shop_dies_at:
                came = len(self.customers.answered) > answered
                life = SHOP_LIFE if came else min(life * LONGER, LIFE_MAX)
                answered = len(self.customers.answered)
                self.kill_in_a_rush(come)
                shop_dies_at = time.monotonic() + self.life(life)
            self.look()
            time.sleep(0.005)

    def life(self, mean):
        """Most lives are short, and many end before the shop has opened."""
        return self.chance.expovariate(1 / mean)

    def let_in(self, come):
        for line in self.customers.next_lines(come):
            self.shop.say(line)

    def kill_in_a_rush(self, come):
        """Of a dozen who come at once, some were answered, some written down, some not heard."""
        self.let_in(come + RUSH)
        time.sleep(self.chance.uniform(0, 0.02))
        self.shop.kill()
        self.start_shop()

    def look(self):
        """At what goes on; the store tells it later, so these are only the customers' figures."""
        self.shop.ensure_alive()
        self.bank.ensure_alive()
        customers = self.customers
        patience = self.options.patience
        if customers.waiting and time.monotonic() > customers.heard_at + patience:
            raise Failure(f"nobody was answered for {patience:g} s; the last refusal: "
                          f"{customers.refusal or 'none'}")
        if not customers.waiting:
            customers.heard_at = time.monotonic()
        self.screen.show(f"orders {len(customers.answered)} of {customers.count} acknowledged, "
                         f"kill -9: shop {self.shop.kills}, bank {self.bank.kills}")

    def detent(self, *words):
        done = subprocess.run([self.options.detent, *words, "--store", self.store],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failure(f"detent {' '.join(words)}: {done.stderr or done.stdout}")
        return done.stdout or done.stderr

    def settle(self):
        """Until every order is over; asked by another program, while the shop is at work."""
        ends_at = time.monotonic() + 60
        while True:
            rows = [json.loads(line) for line in self.detent("list", "--json").splitlines()]
            left = sum(row["state"] not in FINAL for row in rows)
            if left == 0:
                break
            if time.monotonic() > ends_at:
                raise Failure(f"{left} orders are still under way after a minute of peace")
            self.screen.show(f"no more kills; {left} orders are still under way")
            self.shop.ensure_alive()
            time.sleep(0.1)
        self.shop.close()
        self.bank.end()

    def audit(self):
        ledger = (self.folder / "ledger").read_text().splitlines()
        asked = (self.folder / "ledger.asked").read_text().splitlines()
        orders = read_export(self.detent("store", "export").splitlines())
        return Audit(self.customers.answered, orders, read_ledger(ledger), asked)

    def end(self):
        for program in (self.shop, self.bank):
            if program:
                program.end()


def euros(cents):
    return f"{cents / 100:,.2f}"


def report(demo, audit, seconds):
    customers = demo.customers
    rows = [
        ("killed with -9", f"{demo.shop.kills} times the shop, {demo.bank.kills} times the bank"),
        ("orders acknowledged", f"{len(customers.answered)}, and {customers.asked_again} asked "
                                "for again with the same id"),
        ("  sent, declined, lapsed", ", ".join(str(audit.count(state)) for state in
                                               ("sent", "declined", "lapsed"))),
        ("timers fired", f"{audit.timers}, {audit.early} early; the latest by "
                         f"{audit.latest / 1_000_000:.0f} ms"),
        ("the bank was asked", f"{len(audit.asked)} times, {audit.asked_again} of them again with "
                               "a known key"),
        ("money by the shop's books", euros(audit.cents_of_shop)),
        ("money by the bank's ledger", euros(audit.cents_of_bank)),
        ("lost", audit.lost),
        ("done or paid twice", audit.twice),
        ("detent store verify", demo.detent("store", "verify").strip().partition(": ")[2]),
    ]
    for name, value in rows:
        print(f"  {name:<27}{value}")
    for finding in audit.findings[:20]:
        print(f"  wrong: {finding}")
    if audit.findings:
        raise Failure(f"{len(audit.findings)} findings: the books do not balance")
    print(f"The books balance, after {seconds:.0f} s.")


def parse(words):
    parser = argparse.ArgumentParser(description="orders, kill -9, and books that balance")
    parser.add_argument("--detent", required=True)
    parser.add_argument("--shop", required=True)
    parser.add_argument("--orders", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20, help="how long they are killed")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--patience", type=float, default=20, help="seconds without any answer")
    parser.add_argument("--port", type=int, default=0, help="of the bank; 0: any")
    parser.add_argument("--folder", type=Path, help="for the store and the ledger; it is kept")
    parser.add_argument("--keep", action="store_true", help="do not delete the folder")
    options = parser.parse_args(words)
    if options.orders < 1 or options.seconds <= 0:
        parser.error("at least one order, and some time for it")
    return options


def play(options, folder):
    demo = Demo(options, folder)
    began = time.monotonic()
    try:
        demo.open()
        demo.run()
        demo.settle()
        demo.screen.leave()
        report(demo, demo.audit(), time.monotonic() - began)
    except Failure:
        demo.screen.leave()
        raise
    finally:
        demo.end()


def main(words):
    options = parse(words)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="detent-demo-"))
    keep = options.keep or options.folder is not None
    print(f"{options.orders} orders; shop and bank are killed with -9 at random instants for "
          f"{options.seconds:g} s.\nseed {options.seed}, in {folder}", flush=True)
    try:
        play(options, folder)
        if keep:
            print(f"The store and the ledger stay in {folder}. To list the orders:\n"
                  f"{options.detent} list --store sqlite:{folder}/shop.db")
    except Failure as failure:
        keep = True
        print(f"demo: {failure}\nWhat there is stays in {folder}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
