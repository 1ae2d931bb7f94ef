#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Changes a detent.yaml under a detent that runs: SIGHUP and `detent reload`, end to end.

    reload.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py.
"""
import contextlib
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import up
import checksums
import patience
from daemon import Serve, Supervisor
from machines import PARCEL, detent, objects, one, run
from up import PATIENCE, Up, check, children_of, equal, wait_until

ORDER = """#define FSM_NAME order
#define FSM_PREFIX ORDER
STATE(PENDING, pending, INITIAL)
STATE(PAID, paid)
STATE(GONE, gone, FINAL)
EVENT(PAY, pay)
EVENT(SHIP, ship)
INTERNAL(CHARGED, charged)
EFFECT(charge, CHARGED)
ON(PENDING, PAY, PAID, DO(charge))
STAY(PAID, CHARGED)
ON(PAID, SHIP, GONE)
"""
CLOCK = """#define FSM_NAME clock
#define FSM_PREFIX CLOCK
STATE(RUNS, runs, INITIAL)
EVENT(TICK, tick)
STAY(RUNS, TICK)
"""


def project(tasks="", more=""):
    Path("detent.yaml").write_text(
        "version: 1\n" + more + (f"tasks:\n{tasks}" if tasks else ""))


def task(name, word, more=""):
    return f'  {name}: {{run: [sh, -c, "echo {word}; exec sleep 60"]{more}}}\n'


def states():
    return {t["name"]: t["state"] for t in objects("tasks")}


def reload(*words, code=0, **more):
    return one("reload", *words, code=code, **more)


def items(answer):
    return [(i["change"], i["what"], i["name"], i["needs_restart"]) for i in answer["items"]]


def test_tasks_are_added_removed_and_changed():
    project(task("stays", "one") + task("goes", "two") + task("changes", "three"))
    it = Up()
    for name in "stays", "goes", "changes":
        it.wait_for(f"{name} +\\| ")
    before = set(children_of(it.number))
    # The plan first, which changes nothing.
    project(task("stays", "one") + task("changes", "four") + task("comes", "five"))
    wanted = [("changed", "task", "changes", False), ("added", "task", "comes", False),
              ("removed", "task", "goes", False)]
    answer = reload("--plan")
    equal((items(answer), answer["is_applied"]), (wanted, False))
    equal(set(children_of(it.number)), before)
    detent("reload", "--plan", out="task comes: added", err="this is the plan")
    equal(items(reload()), wanted)
    it.wait_for("changes +\\| four")
    it.wait_for("comes +\\| five")
    wait_until(lambda: states() == {"stays": "running", "changes": "running", "comes": "running"},
               "the new tasks")
    equal(len(before & set(children_of(it.number))), 1)
    check(it.index("stays +\\| one", it.wait_for("stays +\\| one") + 1) < 0, "it has begun anew")
    detent("reload", err="No changes.")
    it.stop()


def test_a_bad_file_changes_nothing():
    project(task("a", "one"))
    it = Serve("--log", "text")
    it.wait_for("a +\\| one")
    before = children_of(it.number)
    for text, part in (("version: 1\ntasks:\n  a: {run: nowhere-at-all}\n", "nowhere-at-all"),
                       ("version: 1\ntasks: {\n", "detent.yaml:"), ("version: 2\n", "version 1"),
                       ("version: 1\ntasks:\n  a: {run: 'true', retrys: 1}\n", "retries")):
        Path("detent.yaml").write_text(text)
        detent("reload", code=2, err=[part, "nothing was changed"])
        place = len(it.lines)
        it.send(signal.SIGHUP)
        it.wait_for("reload: nothing was changed: the file is invalid or unsafe", place)
        it.wait_for(part, place)
    Path("detent.yaml").unlink()
    place = len(it.lines)
    it.send(signal.SIGHUP)
    it.wait_for("detent.yaml", it.wait_for("reload: nothing was changed", place))
    equal(children_of(it.number), before)
    it.stop()


def test_reload_notifies_the_service_manager():
    project(task("a", "one"))
    supervisor = Supervisor()
    it = Serve(env=supervisor.env)
    supervisor.hear("READY=1")
    project(task("a", "one") + task("b", "two"))
    it.send(signal.SIGHUP)
    check("MONOTONIC_USEC=" in supervisor.hear("RELOADING=1"))
    check("STATUS=2 tasks" in supervisor.hear("READY=1"))
    it.stop()


def test_reload_changes_slots_and_groups_or_requires_a_restart():
    project(task("a", "one"), "slots: {s: {width: 1}}\ngroups: {g: {}}\nlimits: {tasks: 100}\n")
    it = Up()
    it.wait_for("a +\\| one")
    project(task("a", "one") + task("b", "two", ", group: h"),
            "slots: {s: {width: 3}, t: {}}\ngroups: {g: {strategy: all-for-one}, h: {}}\n"
            "limits: {tasks: 200}\n")
    equal(items(reload()), [
        ("changed", "group", "g", True), ("added", "group", "h", False),
        ("changed", "slot", "s", False), ("added", "slot", "t", False),
        ("added", "task", "b", False), ("changed", "limits", None, True)])
    it.wait_for("b +\\| two")
    equal({s["name"]: s["width"] for s in objects("slots")}, {"s": 3, "t": 1})
    # A change that waits for a restart is reported by each reload, until it is taken back.
    wanted = [("changed", "group", "g", True), ("changed", "limits", None, True)]
    equal((items(reload()), items(reload("--plan"))), (wanted, wanted))
    project(task("a", "one") + task("b", "two", ", group: h"),
            "slots: {s: {width: 3}}\ngroups: {h: {}}\nlimits: {tasks: 100}\n")
    wanted = [("removed", "group", "g", True), ("removed", "slot", "t", True)]
    equal((items(reload()), items(reload())), (wanted, wanted))
    project(task("a", "one"),
            "slots: {s: {width: 3}, t: {}}\ngroups: {g: {}, h: {}}\nlimits: {tasks: 100}\n")
    equal(items(reload()), [("removed", "task", "b", False)])
    detent("reload", err="No changes.")
    it.stop()


def test_reload_keeps_durable_jobs_running():
    project(more="store: sqlite:x.db\nslots: {q: {durable: yes}, s: {}}\n")
    it = Up()
    wait_until(lambda: run("submit", "q", "--", "sleep", "60").returncode == 0, "it is up")
    wait_until(lambda: children_of(it.number), "the job runs")
    before = children_of(it.number)
    Path("parcel.fsm").write_text(PARCEL)
    project(task("a", "one"), "store: sqlite:x.db\n"
            "slots: {q: {durable: yes, width: 2}, s: {durable: yes}}\n"
            "machines: {parcel: {effects: {}}}\nhttp: {rate: 7}\n")
    wanted = [("changed", "slot", "q", True), ("changed", "slot", "s", True),
              ("added", "machine", "parcel", True), ("added", "http", "rate", False)]
    answer = items(reload())
    equal(sorted(answer, key=str), sorted([*wanted, ("added", "task", "a", False)], key=str))
    equal(items(reload()), wanted[:3])
    it.wait_for("a +\\| one")
    check(set(before) <= set(children_of(it.number)), "the job was cut off")
    equal({s["name"]: s["width"] for s in objects("slots")}, {"q": 1, "s": 1})
    it.stop()


def serve_order(command, spec=ORDER, more=""):
    Path("order.fsm").write_text(spec)
    project(more="machines:\n  order:\n    effects:\n"
            f"      charge: {{command: {command}, exits: {{0: nothing}}}}\n{more}")


def test_machines_and_effects_are_taken_over():
    serve_order('[sh, -c, "echo first >> log"]')
    it = Up()
    wait_until(lambda: any("Serves order" in line for line in it.talk), "it serves it")
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay")
    wait_until(lambda: Path("log").exists(), "it is charged")
    # Another effect, another transition, another machine; an instance continues in its state.
    Path("parcel.fsm").write_text(PARCEL)
    serve_order('[sh, -c, "echo second >> log"]',
                ORDER + "EVENT(UNDO, undo)\nON(PAID, UNDO, PENDING)\n",
                "  parcel: {effects: {}}\n")
    equal(items(reload()), [("changed", "machine", "order", False),
                            ("added", "machine", "parcel", False)])
    detent("send", "o-1", "undo")
    detent("send", "o-1", "pay")
    wait_until(lambda: Path("log").read_text().split() == ["first", "second"], "the new effect")
    detent("start", "parcel", "p-1")
    serve_order("['true']")
    equal(items(reload()), [("changed", "machine", "order", False),
                            ("removed", "machine", "parcel", False)])
    detent("send", "o-1", "ship")
    detent("send", "p-1", "move", code=3)
    it.stop()


def test_a_definition_that_would_strand_is_refused():
    serve_order("['true']")
    it = Up()
    wait_until(lambda: any("Serves order" in line for line in it.talk), "it serves it")
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay")
    serve_order("['true']", ORDER.replace("PAID, paid", "PAID, settled"))
    detent("reload", code=6, err=["would strand", "'detent stop --wait', then 'detent migrate"])
    # What it says leads out: migrate says the same, and does it once nothing serves the store.
    rename = ["--rename-state", "paid=settled"]
    detent("migrate", "order.fsm", code=1,
           err=["add --rename-state paid=settled", "cannot migrate order"])
    detent("migrate", "order.fsm", *rename, code=6,
           err="needs the store for itself: run 'detent stop --wait")
    detent("reload", "--plan", code=6, err="would strand instances")
    detent("send", "o-1", "ship")
    it.stop()
    detent("migrate", "order.fsm", *rename)
    it = Up()
    wait_until(lambda: any("Serves order" in line for line in it.talk), "it serves it")
    it.stop()


def test_a_damaged_store_refuses_a_new_definition():
    serve_order("['true']")
    it = Up()
    wait_until(lambda: any("Serves order" in line for line in it.talk), "it serves it")
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay")
    with checksums.connect("detent.db") as database:
        database.execute("UPDATE definitions SET checksum = checksum + 1")
    serve_order("['true']", ORDER.replace("PAID, paid", "PAID, settled"))
    for words in (["reload"], ["reload", "--plan"]):
        detent(*words, code=1, err="nothing was changed: the check could not be finished")
    serve_order("['true']")
    equal(items(reload()), [])
    it.stop()


def test_a_slow_effect_does_not_hold_up_a_reload():
    serve_order('[sh, -c, "echo $$ >> begun; sleep 60"]')
    it = Up()
    wait_until(lambda: any("Serves order" in line for line in it.talk), "it serves it")
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay")
    wait_until(lambda: Path("begun").exists(), "it has begun")
    # What is the API's own business cuts nothing off.
    serve_order('[sh, -c, "echo $$ >> begun; sleep 60"]', more="http: {rate: 7}\n")
    equal(items(reload()), [("added", "http", "rate", False)])
    equal(len(Path("begun").read_text().split()), 1)
    serve_order('[sh, -c, "echo done > log"]', more="http: {rate: 7}\n")
    equal(items(reload()), [("changed", "machine", "order", False)])
    # It was cut off, and is tried again by the new lines.
    wait_until(lambda: Path("log").exists(), "the new effect")
    it.stop()


def ask(port, host, path="/livez", body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body,
                                     {"Host": host, "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def test_reload_applies_new_http_settings():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f'"127.0.0.1:{port}"'
    project(task("a", "one"), f"http: {{listen: {address}}}\n")
    it = Up(env={"DETENT_LISTEN": ""})
    it.wait_for("a +\\| one")
    equal(ask(port, "localhost"), 200)
    equal(ask(port, "shop.example"), 421)
    code = detent("console").stdout.strip().rpartition("=")[2]
    project(task("a", "one"), f"http: {{listen: {address}, hosts: [shop.example]}}\n")
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, PATIENCE)) as wire:
        # One that is not accepted yet would be the next server's.
        wire.request("GET", "/livez")
        equal(wire.getresponse().read(), b"ok\n")
        half = wire.sock
        # A reload does not wait for an incomplete request.
        half.sendall(b"GET /livez HTTP/1.1\r\nHost: shop.")
        begin = patience.now()
        equal(items(reload()), [("added", "http", "hosts", False)])
        check(patience.now() - begin < 4, "a request that is not whole has held it up")
        # It is answered by the new settings.
        half.sendall(b"example\r\n\r\n")
        with half.makefile("rb") as rest:
            equal(rest.readline(), b"HTTP/1.1 200 OK\r\n")
    equal(ask(port, "shop.example"), 200)
    # A link that was printed before is good afterwards.
    equal(ask(port, "localhost", "/v1/session", json.dumps({"code": code}).encode()), 200)
    project(task("a", "one"), "http: {hosts: [shop.example], listen: \"127.0.0.1:1\"}\n")
    equal(items(reload()), [("changed", "http", "listen", True)])
    equal(ask(port, "shop.example"), 200)
    # What would not be safe to begin with is not safe to go on with.
    project(task("a", "two"), "http: {hosts: [shop.example], listen: \"0.0.0.0:1\"}\n")
    detent("reload", code=2, err=["can be reached from other machines", "nothing was changed"])
    project(task("a", "two"), f"http: {{hosts: [shop.example], listen: {address}}}\n")
    os.chmod(".detent/tokens", 0o644)
    detent("reload", code=2, err=["chmod 600", "nothing was changed"])
    os.chmod(".detent/tokens", 0o600)
    equal(items(reload()), [("changed", "task", "a", False)])
    it.wait_for("a +\\| two")
    it.stop()
    check(run("reload").returncode == 3)
    # Without an address it continues, too.
    project(task("a", "one"), "http: {listen: none}\n")
    it = Up(env={"DETENT_LISTEN": ""})
    it.wait_for("a +\\| one")
    project(task("a", "one"), f"http: {{listen: {address}, rate: 7}}\n")
    wanted = [("changed", "http", "listen", True), ("added", "http", "rate", False)]
    equal((items(reload()), items(reload())), (wanted, wanted[:1]))
    detent("console", code=3, err="no address is open for browsers")
    it.stop()


def certify(name, folder="."):
    """A new certificate and its key, each in one step, as renewals do it."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", f"/CN={name}", "-keyout", "new-key.pem",
         "-out", "new.pem"],
        check=True, capture_output=True)
    os.chmod("new-key.pem", 0o600)
    os.rename("new-key.pem", f"{folder}/key.pem")
    os.rename("new.pem", f"{folder}/certificate.pem")


class Secure:
    """A connection by TLS, and the certificate it was begun with."""

    def __init__(self, port):
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self.socket = context.wrap_socket(
            socket.create_connection(("127.0.0.1", port), PATIENCE))
        self.certificate = ssl.DER_cert_to_PEM_cert(self.socket.getpeercert(True))

    def ask(self):
        self.socket.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        check(self.socket.recv(100).startswith(b"HTTP/1.1 200 "), "it is not answered")


def test_reload_renews_certificates_or_changes_nothing():
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def write(tls, more="", word="one"):
        project(task("a", word), f'http: {{listen: "127.0.0.1:{port}", {more}\n  tls: {tls}}}\n')

    def serves():
        return Secure(port).certificate == Path("certificate.pem").read_text()
    good = "{certificate: certificate.pem, key: key.pem}"
    certify("first")
    write(good)
    it = Up(env={"DETENT_LISTEN": ""})
    it.wait_for("a +\\| one")
    before = Secure(port)
    check(before.certificate == Path("certificate.pem").read_text())
    # The same path, another certificate: new connections get it, and none is cut off.
    certify("second")
    equal(items(reload("--plan")), [("changed", "http", "tls files", False)])
    it.send(signal.SIGHUP)
    wait_until(serves, "the new certificate")
    before.ask()
    detent("reload", err="No changes.")
    # What is none changes nothing: neither the files that are named, nor what goes with them.
    children = children_of(it.number)
    Path("none.pem").write_text("no certificate\n")
    certify("other", Path("other").mkdir() or "other")
    for tls, part in (("{certificate: none.pem, key: key.pem}", "none.pem"),
                      ("{certificate: other/certificate.pem, key: key.pem}", "key.pem"),
                      ("{certificate: certificate.pem, key: key.pem, clients: none.pem}",
                       "none.pem")):
        write(tls, "rate: 7,", "two")
        detent("reload", code=2, err=["detent.yaml:3:", part, "nothing was changed"])
        detent("reload", "--plan", code=2, err=part)
    # Nor does what only comes out when it is opened.
    write(good, "socket: no/such/folder/x.sock,", "two")
    place = len(it.lines)
    detent("reload", code=1, err=["x.sock", "the old file stays in effect",
                                  "nothing was changed: the new file could not be put"])
    it.wait_for("reload: nothing was changed: the new file could not", place)
    equal(children_of(it.number), children)
    check(serves(), "it is not the certificate of before")
    # All of that was the file's fault.
    write("{certificate: other/certificate.pem, key: other/key.pem}", word="two")
    equal(items(reload()), [("changed", "task", "a", False), ("changed", "http", "tls", False)])
    it.wait_for("a +\\| two")
    equal(Secure(port).certificate, Path("other/certificate.pem").read_text())
    it.stop()


class Sender(threading.Thread):
    """Sends ticks to a separate instance, each until it is acknowledged, and counts them."""

    def __init__(self, port, token, number):
        super().__init__(daemon=True)
        self.url = f"http://127.0.0.1:{port}/v1/machines/clock/instances/c-{number}/events"
        self.token, self.sent, self.troubles, self.stop_wanted = token, 0, set(), False

    def send(self):
        request = urllib.request.Request(self.url, b'{"event": "tick"}', {
            "Authorization": f"Bearer {self.token}", "Content-Type": "application/json",
            "Idempotency-Key": f"t-{self.sent}"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            check(answer.status == 200)

    def run(self):
        while not self.stop_wanted:
            try:
                self.send()
                self.sent += 1
            except urllib.error.HTTPError as error:
                self.troubles.add(error.code)
                if error.code not in (500, 503):
                    return
            except OSError:
                self.troubles.add("closed")


def test_machine_reload_loses_and_repeats_nothing():
    Path("clock.fsm").write_text(CLOCK)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    rates = "machines: {{clock: {{effects: {{}}}}}}\nhttp: {{listen: \"127.0.0.1:{}\", rate: {}}}\n"
    project(more=rates.format(port, 100000))
    it = Up(env={"DETENT_LISTEN": ""})
    wait_until(lambda: any("Serves clock" in line for line in it.talk), "it serves it")
    token = detent("token", "new", "--scope", "send").stdout.strip()
    senders = [Sender(port, token, number) for number in range(3)]
    for number, sender in enumerate(senders):
        detent("start", "clock", f"c-{number}")
        sender.start()
    for turn in range(5):
        before = [sender.sent for sender in senders]
        wait_until(lambda b=before: all(s.sent > n for s, n in zip(senders, b)), "they go on")
        project(more=rates.format(port, 100001 + turn))
        equal(items(reload()), [("changed", "http", "rate", False)])
    for sender in senders:
        sender.stop_wanted = True
    for number, sender in enumerate(senders):
        sender.join(PATIENCE)
        check(sender.troubles <= {"closed", 500, 503}, sender.troubles)
        equal(one("get", f"c-{number}")["sequence"], sender.sent)
    it.stop()


if __name__ == "__main__":
    sys.exit(up.main(globals()))
