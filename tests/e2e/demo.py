#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs the demo of `make demo`, for a shorter time, and what can go wrong with it.

    demo.py DETENT SHOP [PART_OF_A_NAME]

The frame is that of up.py. The auditor is given books that do not balance, too: it has to say so.
"""
import copy
import json
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import up
from up import DETENT, PATIENCE, check, equal, wait_until
from up import NASTY as SHOP

EXAMPLE = Path(__file__).resolve().parent.parent.parent / "examples" / "shop"
sys.dont_write_bytecode = True
sys.path.insert(0, str(EXAMPLE))
from books import Audit, read_export, read_ledger  # noqa: E402

BANK = [sys.executable, str(EXAMPLE / "bank")]


def demo(*words, code=0, **options):
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "demo.py"), "--detent", DETENT, "--shop", SHOP, *words],
        capture_output=True, text=True, check=False, timeout=PATIENCE, **options)
    check(done.returncode == code, f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def shop(lines, code=0, **options):
    """What the shop answers to these lines, without a bank."""
    done = subprocess.run([SHOP, "-b", "1"], input="".join(f"{line}\n" for line in lines),
                          capture_output=True, text=True, check=False, timeout=PATIENCE, **options)
    check(done.returncode == code, f"exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.splitlines() if code == 0 else done.stderr


class Bank:
    """A bank that runs; nothing goes wrong in it by chance."""

    def __init__(self, *words):
        self.process = subprocess.Popen([*BANK, "--port", "0", "--trouble", "0", *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        up.running.append(self)
        self.port = int(self.process.stdout.readline())

    def charge(self, key, cents):
        """The status; None when it hangs up."""
        head = f"Idempotency-Key: {key}\r\n" if key else ""
        with socket.create_connection(("127.0.0.1", self.port), 30) as connection:
            connection.sendall(f"POST /charges/{cents} HTTP/1.0\r\n{head}\r\n".encode())
            words = connection.makefile().readline().split()
        return int(words[1]) if words else None

    def kill(self):
        self.process.kill()
        self.process.communicate()


def test_the_books_balance_after_many_kills():
    folder = Path("books")
    folder.mkdir()
    said = demo("--orders", "150", "--seconds", "4", "--folder", str(folder)).stdout
    *lines, kept, command = said.splitlines()
    check(all(len(line) <= 79 for line in lines[2:]), said)
    check(f" stay in {folder}. " in kept, said)
    rows = subprocess.run(command.split(), capture_output=True, text=True, check=True).stdout
    check("o-00001" in rows or "o-00150" in rows, rows)
    kills = re.search(r"killed with -9 +(\d+) times the shop, (\d+) times the bank", said)
    check(kills and int(kills[1]) > 0, said)
    for line in (r"orders acknowledged +150, ", r"timers fired +\d+, 0 early", r"lost +0$",
                 r"done or paid twice +0$", r"store verify +150 instances verified: ok$",
                 r"^The books balance, after \d+ s\.$"):
        check(re.search(line, said, re.MULTILINE), f"{line} is missing in\n{said}")
    check_auditor(folder)


def check_auditor(folder):
    """The same books, each time with something wrong in them."""
    export = subprocess.run([DETENT, "store", "export", "--store", f"sqlite:{folder}/shop.db"],
                            capture_output=True, text=True, check=True).stdout.splitlines()
    orders = read_export(export)
    ledger = read_ledger((folder / "ledger").read_text().splitlines())
    asked = (folder / "ledger.asked").read_text().splitlines()
    promises = {order: {"verb": "keep" if found["state"] == "lapsed" else "buy", "answer": "ok",
                        "cents": found["data"]["cents"]} for order, found in orders.items()}
    sent = next(order for order, found in orders.items() if found["state"] == "sent")
    lapsed = next(order for order, found in orders.items() if found["state"] == "lapsed")

    def findings(change):
        books = copy.deepcopy((promises, orders, ledger, asked))
        change(*books)
        return Audit(*books).findings

    def finds(text, change):
        equal(findings(change), [text])
    equal(findings(lambda *_: None), [])
    finds(f"{sent}: is not in the store", lambda p, o, l, a: o.pop(sent))
    finds(f"{sent}: was ordered by nobody", lambda p, o, l, a: p.pop(sent))
    finds(f"{sent}: is sent, and 0 times in the ledger", lambda p, o, l, a: l.pop(sent))
    finds(f"{sent}: is sent, and 2 times in the ledger",
          lambda p, o, l, a: l[sent].append(l[sent][0]))
    finds(f"{lapsed}: is lapsed, and 1 times in the ledger",
          lambda p, o, l, a: l.update({lapsed: [{**l[sent][0], "cents": p[lapsed]["cents"]}]}))
    finds(f"{sent}: the bank took another amount",
          lambda p, o, l, a: l[sent][0].update(cents=1))
    finds(f"{sent}: the receipt is that of another payment",
          lambda p, o, l, a: l[sent][0].update(key=f"order/{sent}/9/9"))
    finds(f"{sent}: the bank was asked with several keys",
          lambda p, o, l, a: a.append(f"order/{sent}/9/9"))
    finds(f"{lapsed}: is lapsed, but the customer was told otherwise",
          lambda p, o, l, a: p[lapsed].update(verb="buy"))
    finds(f"{sent}: has another price than the customer was told",
          lambda p, o, l, a: p[sent].update(cents=1))
    finds(f"{sent}: is sent, and something of it is left",
          lambda p, o, l, a: o[sent]["timers"].append({}))
    finds(f"{sent}: its events lead to paid, but it is sent",
          lambda p, o, l, a: o[sent]["events"].pop())
    check(f"{sent}: pay happened twice" in findings(
        lambda p, o, l, a: o[sent]["events"].insert(1, o[sent]["events"][0])))
    check(any("before its time" in text for text in findings(
        lambda p, o, l, a: o[lapsed]["events"][0].update(at=o[lapsed]["started_at"]))))


def test_port_in_use_is_reported():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = demo("--port", port, "--folder", ".", code=1)
        check(f"bank: port {port}: Address already in use" in done.stderr, done.stderr)
        check("Traceback" not in done.stderr, done.stderr)


def test_unopenable_shop_files_are_reported():
    done = demo("--folder", "nowhere", code=1)
    check("nowhere" in done.stderr and "Traceback" not in done.stderr, done.stderr)
    Path("shop.db").write_text("this is not a store, however long it is " * 200)
    done = demo("--folder", ".", code=1)
    check("the shop ended by itself: shop: " in done.stderr and "shop.db" in done.stderr,
          done.stderr)
    demo("--orders", "0", code=2)


def test_two_shops_do_not_share_a_store():
    first = subprocess.Popen([SHOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    equal(first.stdout.readline(), "open\n")
    check("shop.db" in shop([], code=1))
    first.communicate()
    equal(first.returncode, 0)
    equal(shop([]), ["open"])


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)


def test_full_disk_loses_no_acknowledged_order():
    lines = [f"buy o-{number} 100" for number in range(100)]
    answers = shop(lines, preexec_fn=limit_files, restore_signals=False)
    taken = {line.split()[1] for line in answers if line.startswith("ok ")}
    refused = {line.split()[1] for line in answers if line.startswith("no ")}
    check(taken and refused and len(taken | refused) == 100 and not taken & refused, answers)
    again = shop(lines)
    equal(sorted(again), sorted(["open", *(f"ok o-{number} charging" for number in range(100))]))
    done = subprocess.run([DETENT, "store", "verify", "--store", "sqlite:shop.db"],
                          capture_output=True, text=True, check=False)
    check("100 instances verified: ok" in done.stderr + done.stdout, done)


def test_demo_reports_a_full_disk():
    folder = Path("small")
    folder.mkdir()
    words = ["--orders", "300", "--seconds", "2", "--patience", str(up.patience.stretch(2)),
             "--folder", str(folder)]
    if shutil.which("unshare") and subprocess.run(
            ["unshare", "-rm", "mount", "-t", "tmpfs", "none", folder], check=False,
            capture_output=True).returncode == 0:
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-ec", 'mount -t tmpfs -o size=700k none small; exec "$@"',
             "sh", sys.executable, EXAMPLE / "demo.py", "--detent", DETENT, "--shop", SHOP, *words],
            capture_output=True, text=True, check=False, timeout=PATIENCE)
        equal(done.returncode, 1)
        check("no space left" in done.stderr.lower(), done.stderr)
    else:
        done = demo(*words, code=1, preexec_fn=limit_files, restore_signals=False)
    check("Traceback" not in done.stderr, done.stderr)


def test_bank_answers_each_key_once():
    bank = Bank()
    equal(bank.charge("a/b/1/0", 500), 200)
    equal(bank.charge("a/b/2/0", 513), 402)
    bank.kill()
    with open("ledger.json", "a", encoding="utf-8") as ledger:
        ledger.write('{"key": "a/b/3/0", "ce')
    bank = Bank()
    equal(bank.charge("a/b/1/0", 500), 200)
    equal(bank.charge("a/b/1/0", 501), 409)
    equal(bank.charge("a/b/2/0", 513), 402)
    equal(bank.charge("a/b/3/0", 700), 200)
    equal(bank.charge("", 700), 400)
    equal(bank.charge("a/b/4/0", "much"), 400)
    rows = [json.loads(line) for line in Path("ledger.json").read_text().splitlines()]
    equal([row["cents"] for row in rows], [500, 513, 700])
    bank.process.send_signal(signal.SIGINT)
    equal(bank.process.wait(PATIENCE), 0)


def test_a_bank_with_a_full_ledger_charges_nobody():
    bank = Bank()
    resource.prlimit(bank.process.pid, resource.RLIMIT_FSIZE, (80, 80))
    equal([bank.charge(f"a/b/{number}/0", 500) for number in range(3)], [200, None, None])
    equal(len(Path("ledger.json").read_text().splitlines()), 1)
    bank.kill()
    bank = Bank()
    equal([bank.charge(f"a/b/{number}/0", 500) for number in range(3)], [200] * 3)
    Path("other").write_text("hello\n")
    done = subprocess.run([*BANK, "--port", "0", "--ledger", "other"], capture_output=True,
                          text=True, check=False)
    equal(done.returncode, 1)
    check(done.stderr.startswith("bank: other is no ledger"), done.stderr)


def test_ctrl_c_leaves_nothing_behind():
    demo_process = subprocess.Popen(
        [sys.executable, str(EXAMPLE / "demo.py"), "--detent", DETENT, "--shop", SHOP],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    demo_process.stdout.readline()
    folder = Path(demo_process.stdout.readline().split(" in ")[1].strip())
    wait_until((folder / "shop.db").exists, "the shop")
    children = up.children_of(demo_process.pid)
    demo_process.send_signal(signal.SIGINT)
    demo_process.communicate(timeout=PATIENCE)
    equal(demo_process.returncode, 130)
    check(not folder.exists(), folder)
    wait_until(lambda: not any(map(up.is_there, children)), "the end of the children")


if __name__ == "__main__":
    sys.exit(up.main(globals()))
