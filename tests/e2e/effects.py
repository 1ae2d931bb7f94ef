#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs effects that are commands and HTTP calls, and machines that `detent up` serves, end to end.

    effects.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py. Commands are scripts that keep what they were given; the HTTP server is
one of ours, in this process, that fails as it is told.
"""
import fcntl
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import up
from clients import detent, objects
from machines import PARCEL, fail_syncs
from up import Up, check, equal, wait_until

ORDER = """#define FSM_NAME order
#define FSM_PREFIX ORDER
#define FSM_DATA order_data
RECORD(payment)
    FIELD(card, str(24), SENSITIVE)
    FIELD(cents, u64)
END
RECORD(receipt)
    FIELD(receipt, str(24))
END
RECORD(order_data)
    FIELD(cents, u64)
    FIELD(receipt, str(24))
END
STATE(PENDING, pending, INITIAL)
STATE(CHARGING, charging)
STATE(PAID, paid)
STATE(GONE, gone, FINAL)
EVENT(PAY, pay, payment)
EVENT(PING, ping)
EVENT(SHIP, ship)
INTERNAL(CHARGED, charged, receipt)
INTERNAL(DECLINED, declined)
INTERNAL(EXPIRED, expired)
EFFECT(charge, CHARGED, DECLINED)
UNHANDLED(SHIP, DEFER)
ON(PENDING, PAY, CHARGING, KEEP(cents), DO(charge))
STAY(PENDING, PING)
ON(CHARGING, CHARGED, PAID, KEEP(receipt))
ON(CHARGING, DECLINED, PENDING)
STAY(PAID, SHIP)
ON(PAID, EXPIRED, GONE)
AFTER(PAID, MILLISECONDS(300), EXPIRED)
"""
PAY = ("--data", '{"card": "4242", "cents": 18446744073709551615}')
RECEIPT = '{"event": "charged", "payload": {"receipt": "r-7"}}'


def script(name, text):
    Path(name).write_text(f"#!/bin/sh\n{text}\n")
    Path(name).chmod(0o755)


def project(effect, **more):
    """A project with one machine, whose one effect is this."""
    Path("order.fsm").write_text(ORDER)
    lines = ["version: 1", *(f"{key}: {value}" for key, value in more.items()), "machines:",
             "  order:", "    effects:", f"      charge: {effect}"]
    Path("detent.yaml").write_text("\n".join(lines) + "\n")


def begin(**more):
    one = Up(**more)
    wait_until(lambda: up.is_listening() or one.process.poll() is not None, "the socket")
    check(one.process.poll() is None, one.shown())
    return one


def state(name):
    return objects("get", name)[0]["state"]


class Bank(http.server.ThreadingHTTPServer):
    """Answers with the statuses it was given, then with the last one; keeps what it was sent."""

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.requests, self.times = list(answers), [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/charge"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.requests.append((dict(self.headers), json.loads(body)))
        answers = self.server.answers
        status, text, *headers = answers.pop(0) if len(answers) > 1 else answers[0]
        self.server.times.append(time.monotonic())
        if status == "wait":
            self.rfile.read(1)  # until the caller has had enough
            return
        self.send_response(status)
        for header in headers:
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *words):
        pass


def test_order_uses_an_effect_command_and_a_timer():
    script("charge.sh", f"cat > input.json; echo '{RECEIPT}'")
    project("{command: [./charge.sh]}")
    one = begin()
    detent("start", "order", "o-1", out="o-1: pending\n")
    done = detent("send", "o-1", "pay", *PAY, out="o-1: pay: pending -> charging\n")
    check("Waits for a program" not in done.stderr, done.stderr)
    one.wait_for(r"order *= o-1: pending -> charging \(pay\)")
    one.wait_for(r"order *= o-1: charging -> paid \(charged, by an effect\)")
    one.wait_for(r"order *= o-1: paid -> gone \(expired, by a timer\)")
    given = json.loads(Path("input.json").read_text())
    equal(given["key"][16:], "/order/o-1/1/0")
    equal(given["event"], {"name": "pay", "payload": {"card": "4242", "cents": 2**64 - 1}})
    detent("get", "o-1", out=["order o-1 is gone", 'receipt="r-7"'])
    check("4242" not in "\n".join(one.lines + one.talk))
    one.stop()


def test_the_output_is_the_same_with_and_without_a_server():
    """Each command once on a store that is served, and once on one that is not."""
    steps = [("start", "order", "o-1"), ("start", "order", "o-1"),
             ("start", "order", "o-2", "--id", "s-2"), ("start", "order", "o-2", "--id", "s-2"),
             ("send", "o-1", "ping"), ("send", "o-1", "ship"), ("send", "o-1", "nope"),
             ("send", "o-1", "ping", "--expect", "9"), ("send", "o-1", "expired"),
             ("send", "o-1", "ping", "--id", "p"), ("send", "o-1", "ping", "--id", "p"),
             ("send", "o-1", "ship", "--id", "p"),
             ("send", "o-9", "ping"), ("send", "o-1", "pay", "--payload", '{"cents": 1}'),
             ("cancel", "o-2", "--reason", "enough"), ("cancel", "o-2"), ("send", "o-2", "ping"),
             ("retry", "o-1"), ("start", "parcel", "p-1"), ("cancel", "o-9")]
    seen = []
    for is_served in (False, True):
        project("{command: ['true']}", store=f"sqlite:{is_served}.db")
        one = begin() if is_served else None
        runs = [subprocess.run([up.DETENT, *step, *more], env=up.environment(),
                                  capture_output=True, text=True, check=False)
                for step in steps for more in ((), ("--json",)) if step[0] != "start" or not more]
        seen.append([(r.args[1:], r.returncode, r.stdout.replace(f"{is_served}.db", "DB"),
                      up.SANITIZER.sub("", r.stderr).replace(f"{is_served}.db", "DB")) for r in
                     runs])
        if one:
            one.stop()
    for direct, served in zip(*seen):
        equal(served, direct)


def test_failing_command_is_retried_until_it_is_a_dead_letter():
    script("charge.sh", f"""cat >> inputs
if [ -e open ]; then echo '{RECEIPT}'; else echo 'the bank is closed' >&2; exit 1; fi""")
    project("{command: [./charge.sh], attempts: 3, backoff: 10ms..20ms}")
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    one.wait_for("o-1: charge failed, attempt 3: exit code 1: the bank is closed")
    one.wait_for("order *= .*o-1.*charge")
    wait_until(lambda: objects("retry", "--list"), "a dead letter")
    said = "exit code 1: the bank is closed"
    detent("why", "o-1", out=["nothing is pending: an effect is a dead letter",
                              "a dead letter after 3 attempts: ACTION_FAILED",
                              "the bank is closed"])
    equal(objects("why", "o-1")[0]["effects"][0]["reason"], said)
    equal(objects("retry", "--list")[0]["reason"], said)
    detent("retry", "--list", out=said)
    Path("open").touch()
    detent("retry", "o-1", out="order/o-1/1/0: charge will be retried")
    one.wait_for("o-1: charging -> paid")
    given = [json.loads(line) for line in Path("inputs").read_text().splitlines()]
    equal([g["attempt"] for g in given], [1, 2, 3, 1])
    equal({g["key"][16:] for g in given}, {"/order/o-1/1/0"})
    equal(len({g["key"] for g in given}), 1)
    one.stop()


def test_command_without_a_result_is_reported():
    script("charge.sh", "exit 0")
    project("{command: [./charge.sh], attempts: 2, backoff: 10ms..20ms}")
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    one.wait_for(r"o-1: charge failed, attempt 2: exit code 0, and its answer names no event that "
                 r"EFFECT\(charge\) lists; if no event is needed, write exits: {0: nothing}")
    wait_until(lambda: objects("retry", "--list"), "a dead letter")
    detent("why", "o-1", out="nothing is pending: an effect is a dead letter")
    one.stop()
    project("{command: [./charge.sh], exits: {0: nothing}}")
    one = begin()
    detent("retry", "o-1")
    wait_until(lambda: not objects("get", "o-1")[0].get("effects"), "its end")
    equal(state("o-1"), "charging")
    one.stop()


def test_exit_codes_choose_the_event():
    script("charge.sh", "exit 3")
    project("{command: [./charge.sh], exits: {3: declined}}")
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    one.wait_for(r"o-1: charging -> pending \(declined, by an effect\)")
    one.stop()


def test_a_flaky_bank_is_asked_with_the_same_key_until_it_answers():
    bank = Bank((500, ""), ("wait", ""), (429, ""), (200, RECEIPT))
    span = up.patience.stretch(1)
    Path("token").write_text("Bearer sesame\n")
    project(f"{{http: 'POST {bank.url}', secret: {{Authorization: 'file:token'}}, "
            f"timeout: {span}s, backoff: 10ms..20ms}}")
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    one.wait_for("o-1: charge failed, attempt 1: status 500")
    one.wait_for(f"o-1: charge failed, attempt 2: timed out after {span}s")
    one.wait_for("o-1: charge failed, attempt 3: status 429")
    one.wait_for("o-1: charging -> paid")
    equal([h["Idempotency-Key"][16:] for h, _ in bank.requests], ["/order/o-1/1/0"] * 4)
    equal([b["attempt"] for _, b in bank.requests], [1, 2, 3, 4])
    equal(bank.requests[0][0]["Authorization"], "Bearer sesame")
    equal(bank.requests[0][1]["event"]["payload"]["card"], "4242")
    check("sesame" not in "\n".join(one.lines + one.talk))
    one.stop()
    bank.shutdown()


def test_watch_shows_attempts_and_http_responses():
    bank = Bank((500, "closed:\n  come\ttomorrow"), (500, "still closed"), (200, RECEIPT))
    project(f"{{http: '{bank.url}', backoff: 2s..2s}}")
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    told = objects("watch", "o-1", "--after", "0", "--timeout", "10m")
    failed = [item for item in told if item["type"] == "attempt"]
    equal(failed[-1]["attempts"], 2)
    equal(failed[-1]["reason"], "status 500: still closed")
    equal(told[-1]["to"], "gone")
    check(any("status 500: closed: come tomorrow" in line for line in one.lines + one.talk),
          "the log has the body")
    one.stop()
    bank.shutdown()


def test_retry_after_delays_the_next_attempt():
    bank = Bank((503, "", ("Retry-After", "1")), (429, "", ("Retry-After", "3600")),
                (200, RECEIPT))
    project(f"{{http: '{bank.url}', backoff: 10ms..20ms}}")
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    wait_until(lambda: len(bank.times) == 2, "the second attempt")
    check(bank.times[1] - bank.times[0] >= 0.95, str(bank.times))
    wait_until(lambda: re.search("in (59m|1h)", detent("why", "o-1").stdout), "the wait of an hour")
    one.stop()
    bank.shutdown()


def test_statuses_choose_the_event():
    bank = Bank((402, "no money"))
    project(f"{{http: '{bank.url}', statuses: {{402: declined}}}}")
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    one.wait_for(r"o-1: charging -> pending \(declined")
    one.stop()
    bank.shutdown()


def test_effect_continues_with_the_same_key_after_a_kill():
    """kill -9 in the middle of an effect; the next one runs it again."""
    script("charge.sh", f"""cat >> inputs
until [ -e go ]; do [ -e inputs ] || exit 1; sleep 0.01; done
echo '{RECEIPT}'""")
    project("{command: [./charge.sh]}")
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    wait_until(lambda: Path("inputs").exists() and Path("inputs").read_text(), "the first attempt")
    one.send(signal.SIGKILL)
    one.process.wait()
    equal(state("o-1"), "charging")
    two = begin()
    wait_until(lambda: len(Path("inputs").read_text().splitlines()) == 2, "the second attempt")
    detent("why", "o-1", out="charge is running: attempt 1 began ")
    Path("go").touch()
    two.wait_for("o-1: charging -> paid")
    keys = [json.loads(line)["key"] for line in Path("inputs").read_text().splitlines()]
    equal([key[16:] for key in keys], ["/order/o-1/1/0"] * 2)
    equal(keys[0], keys[1])
    equal([e["event"] for e in objects("history", "o-1")[1:3]], ["pay", "charged"])
    two.stop()


HANGING = f"""echo run >> runs
until [ -e go ]; do [ -e runs ] || exit 1; sleep 0.05; done
echo '{RECEIPT}'"""


def pay_many(count):
    client = up.Client()
    for number in range(1, count + 1):
        client.one("start", machine="order", instance=f"o-{number}")
        client.one("send", machine="order", instance=f"o-{number}", event="pay", data=PAY[1])


def runs():
    return len(Path("runs").read_text().splitlines()) if Path("runs").exists() else 0


def test_many_effects_that_hang_all_run():
    script("charge.sh", HANGING)
    project("{command: [./charge.sh], timeout: 1h}")
    one = begin()
    pay_many(24)
    wait_until(lambda: runs() == 24, "all effects")
    detent("why", "o-24", out="effects    charge is running: attempt 1 began ")
    Path("go").touch()
    wait_until(lambda: len(objects("list", "--state", "charging")) == 0, "the end of all")
    check("wait for a thread" not in one.shown(), one.shown())
    one.stop()


def test_effect_waiting_for_a_thread_is_reported():
    script("charge.sh", HANGING)
    project("{command: [./charge.sh]}", limits="{effects: 2}")
    one = begin()
    pay_many(4)
    wait_until(lambda: runs() == 2, "two effects")
    # Told a second after the first one waits; the second one may come later than that.
    one.wait_for("(1 effect waits|2 effects wait) for a thread: 2 of 2 are in use, "
                 "2 by order.charge; raise limits.effects in detent.yaml")
    detent("why", "o-1", out="effects    charge is running: attempt 1 began ")
    for name in ("o-3", "o-4"):
        detent("why", name, out="effects    charge waits for a free thread (2 of 2 in use: ")
    running, queued = (objects("why", name)[0]["effects"][0] for name in ("o-1", "o-4"))
    equal((running["activity"], "began_at" in running), ("running", True))
    equal((queued["activity"], "began_at" in queued), ("queued", False))
    project("{command: [./charge.sh]}", limits="{effects: 3}")
    detent("reload")
    one.wait_for("reload: limits changed, which needs a restart")
    Path("go").touch()
    one.wait_for("o-4: charging -> paid")
    one.stop()
    equal(len([line for line in one.lines + one.talk if "wait for a thread" in line]), 1)


def test_effect_without_a_daemon_is_shown_from_the_store():
    project("{command: ['true']}")
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    done = detent("why", "o-1", out=["effects    charge was requested ", "no attempt has ended"])
    check("running" not in done.stdout and "thread" not in done.stdout, done.stdout)


def test_failed_listen_starts_no_effect():
    """The address is bound and the certificate read before anything is served."""
    script("charge.sh", "touch begun")
    project("{command: [./charge.sh]}")
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        Path("cert.pem").write_text("none\n")
        Path("key.pem").write_text("none\n")
        Path("key.pem").chmod(0o600)
        for address, http_section, reason in (
                (f"127.0.0.1:{port}", "{}", f"127.0.0.1:{port} is taken"),
                ("127.0.0.1:0", "{tls: {certificate: cert.pem, key: key.pem}}", "cert.pem")):
            project("{command: [./charge.sh]}", http=http_section)
            one = Up("--listen", address)
            check(one.process.wait(up.PATIENCE) != 0, one.shown())
            one.join()
            check(reason in one.shown(), one.shown())
            check("o-1: charge" not in one.shown() and not Path("begun").exists(), one.shown())
            detent("why", "o-1", out="no attempt has ended")


def test_the_limit_of_effects_is_listed_and_checked():
    limit = next(row for row in objects("limits") if row["name"] == "effects")
    equal((limit["where"], limit["default"], limit["most"]), ("limits", 64, 1024))
    project("{command: ['true']}", limits="{effects: 1025}")
    detent("check", "detent.yaml", code=2, err="1024")


def test_command_that_kills_detent_becomes_a_dead_letter():
    script("charge.sh", "cat >> inputs; kill -9 $PPID")
    project("{command: [./charge.sh], attempts: 2, backoff: 10ms..20ms}")
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    for _ in range(2):
        equal(Up().process.wait(up.PATIENCE), -signal.SIGKILL)
    last = begin()
    last.wait_for("o-1 failed with UNFINISHED .*the process ended during attempt 2")
    wait_until(lambda: objects("retry", "--list"), "a dead letter")
    given = [json.loads(line) for line in Path("inputs").read_text().splitlines()]
    equal([g["attempt"] for g in given], [1, 2])
    last.stop()


def test_running_command_is_killed_at_shutdown():
    script("charge.sh", "echo $$ > number; exec sleep 100")
    project("{command: [./charge.sh], timeout: 1h}")
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    wait_until(lambda: Path("number").exists() and Path("number").read_text().strip(), "it runs")
    number = int(Path("number").read_text())
    one.stop()
    check(not up.is_there(number), "the command outlives detent")
    check(one.index("charge postponed; attempt 1 is not counted: interrupted, since detent is "
                    "stopping") >= 0, one.shown())
    effect = objects("get", "o-1")[0]["effects"][0]
    equal((effect["effect"], effect["attempts"]), ("charge", 0))


def inputs():
    path = Path("inputs")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def stop_during_three_attempts(start, end, count):
    """Three processes that are stopped while the effect runs; the fourth one lets it succeed."""
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    for number in range(3):
        one = start()
        wait_until(lambda want=number + 1: count() == want, lambda it=one: it.shown())
        end(one)
        check(one.index("is not counted: interrupted, since detent is stopping") >= 0, one.shown())
        equal(objects("retry", "--list"), [])
        effect = objects("get", "o-1")[0]["effects"][0]
        equal(effect["attempts"], 0)
    Path("go").touch()
    last = start()
    last.wait_for("o-1: charging -> paid")
    last.stop()


def test_a_stop_spends_no_attempt_of_a_command():
    script("charge.sh", f"cat >> inputs; [ -e go ] || exec sleep 100; echo '{RECEIPT}'")
    project("{command: [./charge.sh], attempts: 2, timeout: 1h}")
    stop_during_three_attempts(begin, lambda one: one.stop(), lambda: len(inputs()))
    equal([given["attempt"] for given in inputs()], [1] * 4)
    equal(len({given["key"] for given in inputs()}), 1)


def test_forced_stop_spends_no_attempt():
    script("charge.sh", f"cat >> inputs; [ -e go ] || exec sleep 100; echo '{RECEIPT}'")
    project("{command: [./charge.sh], attempts: 2, timeout: 1h}")

    def force(one):
        one.send(signal.SIGTERM)
        one.wait_for("repeat to kill them")
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 0.4, "another wish than the first")
        one.send(signal.SIGTERM)
        one.process.wait(up.PATIENCE)
        one.join()

    stop_during_three_attempts(begin, force, lambda: len(inputs()))
    equal([given["attempt"] for given in inputs()], [1] * 4)


def test_a_stop_spends_no_attempt_of_a_call():
    bank = Bank(("wait", ""), ("wait", ""), ("wait", ""), (200, RECEIPT))
    project(f"{{http: \"{bank.url}\", attempts: 2, timeout: 1h}}")
    stop_during_three_attempts(begin, lambda one: one.stop(), lambda: len(bank.requests))
    equal([given["attempt"] for _, given in bank.requests], [1] * 4)
    equal(len({headers["Idempotency-Key"] for headers, _ in bank.requests}), 1)


def test_a_reload_spends_no_attempt():
    script("charge.sh", f"cat >> inputs; [ $(wc -l < inputs) -gt 3 ] || exec sleep 100; "
                        f"echo '{RECEIPT}'")
    project("{command: [./charge.sh], attempts: 2, timeout: 1h}")
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay", *PAY)
    for number in range(1, 4):
        wait_until(lambda want=number: len(inputs()) == want, one.shown)
        project(f"{{command: [./charge.sh], attempts: 2, timeout: {number + 1}m}}")
        detent("reload")
    one.wait_for("o-1: charging -> paid")
    equal([given["attempt"] for given in inputs()], [1] * 4)
    one.stop()


def test_tasks_and_machines_in_one_file():
    script("charge.sh", f"echo '{RECEIPT}'")
    project("{command: [./charge.sh]}")
    with Path("detent.yaml").open("a") as file:
        file.write("tasks:\n  shop: {run: ./shop.sh, restart: never}\n")
    script("shop.sh", """detent start order o-1 &&
detent send o-1 pay --payload '{"card": "1", "cents": 1}'""")
    one = Up()
    one.wait_for(r"shop *\| o-1: pay: pending -> charging")
    one.wait_for("order *= o-1: charging -> paid")
    one.stop()
    named = Up("shop")
    named.process.wait(up.PATIENCE)
    check(named.process.returncode == 1, named.shown())


def test_store_in_use_is_reported():
    project("{command: ['true']}", store="sqlite:a.db")
    one = begin()
    wait_until(lambda: any("Serves order" in line for line in one.talk), "it serves the file")
    Path("other").mkdir()
    os.chdir("other")
    Path("order.fsm").write_text(ORDER)
    Path("detent.yaml").write_text(Path("../detent.yaml").read_text().replace(
        "sqlite:a.db", "sqlite:../a.db"))
    two = Up()
    two.process.wait(up.PATIENCE)
    two.join()
    equal(two.process.returncode, 1)  # so that a service manager tries again
    check("a.db" in "\n".join(two.talk), two.shown())
    os.chdir("..")
    one.stop()


def test_briefly_locked_store_is_waited_for():
    project("{command: ['true']}", store="sqlite:a.db")
    for text in ("", "slots:\n  batch: {durable: yes}\n"):
        if text:
            Path("detent.yaml").write_text("version: 1\nstore: sqlite:a.db\n" + text)
        with open("a.db.lock", "a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            one = Up()
            wait_until(lambda: "waiting for its turn: " in one.shown(), one.shown)
            check(one.process.poll() is None, one.shown())
            check("stops all" not in one.shown(), "it did not wait")
        wait_until(lambda: "stops all" in one.shown(), one.shown)
        one.stop()


def test_unserved_machine_is_reported():
    project("{command: ['true']}")
    one = begin()
    Path("other.fsm").write_text(PARCEL.replace("parcel", "other"))
    detent("start", "other.fsm", "n-1", code=3,
           err="this detent does not serve the machine 'other'; add it to detent.yaml")
    one.stop()


def test_failing_store_ends_up_with_code_74():
    project("{command: ['true']}")
    one = begin(env={"ASAN_OPTIONS": "detect_leaks=0"})
    client = up.Client()
    client.one("start", machine="order", instance="o-1")
    tracer = fail_syncs(one)
    client.fails("IO", "", "send", machine="order", instance="o-1", event="ping")
    one.end(74)
    tracer.wait()
    check(any("has failed permanently" in line for line in one.lines + one.talk), one.shown())
    before = objects("get", "o-1")[0]["sequence"]
    two = begin()
    detent("send", "o-1", "ping")
    equal(objects("get", "o-1")[0]["sequence"], before + 1)
    two.stop()


def test_effect_config_errors_are_reported_at_their_place():
    cases = [
        ("{command: [./nothing]}", "detent.yaml:5:25: error: ./nothing: there is no such program"),
        ("{command: ['true'], exits: {0: chargd}}",
         "detent.yaml:5:46: error: 'chargd' is not an event that EFFECT(charge) lists; "
         "did you mean 'charged'?"),
        ("{command: ['true'], exits: {0: pay}}", "EFFECT(charge) does not list 'pay'"),
        ("{comand: ['true']}", "did you mean 'command'?"),
        ("{command: ['true'], http: 'https://h/'}", "either a 'command' or an 'http' call"),
        ("{http: 'https://h/', secret: {Authorization: sesame}}", "a secret is a reference"),
        ("{command: ['true'], timeout: 3}", "the unit is missing"),
    ]
    for effect, text in cases:
        project(effect)
        for words in (("check", "detent.yaml"), ("up",)):
            done = detent(*words, code=2, err=text)
            check("sesame" not in done.stderr.replace(effect, ""), done.stderr)
    check(not Path("detent.db").exists())


def test_all_config_errors_are_reported_together():
    project("{command: [./nothing]}\n      send_mail: {command: ['true']}", store="mysql://x/y")
    Path("two.fsm").write_text(PARCEL)
    with Path("detent.yaml").open("a") as file:
        file.write("  parcel: {spec: two.fsm, effects: {fly: {command: ['true']}}}\n"
                   "  lost: {effects: {}}\n")
    done = detent("check", "detent.yaml", code=2)
    for text in ('detent.yaml:2:8: error: unknown kind of store "mysql"',
                 "./nothing: there is no such program", "order has no effect 'send_mail'",
                 "parcel has no effect 'fly'", "lost.fsm: there is no such spec"):
        equal((text, done.stderr.count(text)), (text, 1))
    project("{command: ['true']}", store="'postgres://[::1/x'")
    for words in (("check", "detent.yaml"), ("up",)):
        detent(*words, code=2, err="detent.yaml:2:8: error: the URL of the store is not valid "
                                   "for libpq: ")


def test_functions_in_c_are_refused():
    project("{command: ['true']}")
    Path("order.fsm").write_text(ORDER.replace(
        "ON(PENDING, PAY, CHARGING,", "GUARD(may)\nON(PENDING, PAY, CHARGING, IF(may),"))
    detent("up", code=2, err=["functions in C (guard may)", "serve it from your own program"])


if __name__ == "__main__":
    sys.exit(up.main(globals()))
