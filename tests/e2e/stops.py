#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Every stop has a deadline, whatever hangs; the second signal is at once; no reload waits.

    stops.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py, the PostgreSQL server that of postgres.py.
"""
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import postgres
import small_disk
import up
from machines import PARCEL, carried_parcel, detent, run
from up import Up, all_children_of, check, equal, is_there, patience, wait_until

STOP_SPAN = 10  # the store has 5 s of it
HUNG_SPAN = 15  # 10 s after the shutdown, which has 1 s here
AGAIN_SPAN = 4  # 1 s, and what the machine takes


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def ends_within(it, span, code=None):
    """How long it took."""
    begun = patience.now()
    try:
        it.process.wait(patience.HANG)
    except subprocess.TimeoutExpired as problem:
        raise up.Failure(f"it does not end:\n{it.shown()}") from problem
    it.join()
    took = patience.now() - begun
    check(took <= span, f"it took {took:.1f} s, not {span}:\n{it.shown()}")
    if code is not None:
        equal(it.process.returncode, code)
    return took


class Shop:
    """A machine on a separate server, an API, and senders that wait for answers."""

    def __init__(self, more=""):
        self.server = postgres.Server()
        self.port = free_port()
        Path("parcel.fsm").write_text(PARCEL)
        self.head = (f"version: 1\nstore: \"{self.server.url()}\"\n"
                     f"http: {{listen: \"127.0.0.1:{self.port}\"}}\n")
        self.write(more)
        self.it = Up(env={"DETENT_LISTEN": ""})
        wait_until(lambda: any("Serves parcel" in line for line in self.it.talk),
                   lambda: f"it serves it\n{self.it.shown()}")
        self.token = detent("token", "new", "--scope", "read,send").stdout.strip()
        self.threads = []

    def write(self, more):
        Path("detent.yaml").write_text(
            f"{self.head}{more}machines: {{parcel: {{effects: {{}}}}}}\n")

    def ask(self, path, data=None, timeout=patience.HANG):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", data,
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return answer.read()

    def send(self, number):
        try:
            self.ask(f"/v1/machines/parcel/instances/p-{number}/events", b'{"event": "move"}')
        except OSError:
            pass

    def start(self, count):
        for number in range(count):
            self.ask("/v1/machines/parcel/instances", f'{{"id": "p-{number}"}}'.encode())

    def send_many(self, count):
        """Their requests are there; whether they are answered is another matter."""
        for number in range(count):
            thread = threading.Thread(target=self.send, args=(number,), daemon=True)
            thread.start()
            self.threads.append(thread)
        # Half of them have a connection at the same time.
        wait_until(lambda: self.connections() >= count // 2, "the senders")

    def connections(self):
        lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
        return sum(1 for line in lines
                   if line.split()[1].endswith(f":{self.port:04X}") and line.split()[3] == "01")

    def signal_server(self, number):
        """The server and all of its processes."""
        for child in [self.server.process.pid, *all_children_of(self.server.process.pid)]:
            try:
                os.kill(child, number)
            except ProcessLookupError:
                pass


def test_a_stop_ends_while_the_server_of_the_store_is_away():
    shop = Shop()
    shop.start(20)
    shop.server.crash()
    shop.send_many(200)
    shop.it.send(signal.SIGTERM)
    ends_within(shop.it, STOP_SPAN)


def test_a_stop_ends_while_the_server_of_the_store_is_frozen():
    shop = Shop()
    shop.start(20)
    shop.signal_server(signal.SIGSTOP)
    try:
        shop.send_many(200)
        shop.it.send(signal.SIGTERM)
        ends_within(shop.it, STOP_SPAN)
    finally:
        shop.signal_server(signal.SIGCONT)


def test_second_signal_exits_at_once_while_the_store_is_down():
    shop = Shop(f"tasks: {{stubborn: {{run: [{up.NASTY}, deaf], grace: forever}}}}\n")
    shop.it.wait_for("stubborn *= started")
    shop.server.crash()
    shop.send_many(50)
    shop.it.send(signal.SIGTERM)
    shop.it.wait_for("repeat to kill them")
    again(shop.it)
    ends_within(shop.it, AGAIN_SPAN)


def again(it):
    """The second signal, once it is another wish than the first."""
    begun = patience.time.monotonic()
    wait_until(lambda: patience.time.monotonic() - begun > 0.4, "some time")
    it.send(signal.SIGTERM)


def test_reload_is_refused_while_the_store_is_down():
    shop = Shop()
    shop.start(1)
    shop.signal_server(signal.SIGSTOP)
    try:
        # Another definition: what runs would have to be looked at in the store.
        Path("parcel.fsm").write_text(PARCEL.replace("EVENT(MOVE, move)",
                                                     "EVENT(MOVE, move)\nEVENT(PING, ping)")
                                      + "STAY(HERE, PING)\n")
        shop.it.send(signal.SIGHUP)
        answers = []

        def is_refused():
            answers.append(shop.ask("/v1/status"))
            return shop.it.index("reload: nothing was changed: the store cannot be reached") >= 0
        check(patience.wait(is_refused, 0.1), lambda: f"it is not refused\n{shop.it.shown()}")
        check(len(answers) > 1, "nothing was answered while the reload waited for the store")
        shop.it.wait_for("this needs the store, which cannot be reached")
        detent("reload", code=6,
               err="when it is back\ndetent reload: nothing was changed: the store cannot be")
        # What does not need the store is taken over.
        Path("parcel.fsm").write_text(PARCEL)
        shop.write("tasks: {extra: {run: sleep 600}}\n")
        shop.it.send(signal.SIGHUP)
        shop.it.wait_for("extra *= started")
    finally:
        shop.signal_server(signal.SIGCONT)
    shop.it.send(signal.SIGTERM)
    ends_within(shop.it, STOP_SPAN, 0)


def client_that_waits():
    """A reload that was requested and now asks the store: another one is refused."""
    client = up.Answer("POST", "/v1/reload", {})
    refusal = run("reload", "--plan").stderr
    check("a reload is running" in refusal, refusal)
    return client


def test_a_stop_while_a_reload_asks_the_store_answers_its_client():
    shop = Shop()
    shop.start(1)
    shop.signal_server(signal.SIGSTOP)
    try:
        Path("parcel.fsm").write_text(PARCEL.replace("EVENT(MOVE, move)",
                                                     "EVENT(MOVE, move)\nEVENT(PING, ping)")
                                      + "STAY(HERE, PING)\n")
        client = client_that_waits()
        shop.it.send(signal.SIGTERM)
        error = next(client.parts).get("error", {})
        client.close()
        equal(error.get("code"), "CLOSED")
        check("shutting down" in error["text"], lambda: f"{error}\n{shop.it.shown()}")
        ends_within(shop.it, STOP_SPAN)
    finally:
        shop.signal_server(signal.SIGCONT)


def test_reload_continues_when_the_store_is_back():
    shop = Shop()
    shop.start(1)
    shop.write("tasks: {extra: {run: sleep 600}}\n")
    Path("parcel.fsm").write_text(PARCEL + "\n// the same\n")
    shop.it.send(signal.SIGHUP)
    shop.it.wait_for("extra *= started")
    shop.send(0)
    shop.it.wait_for("p-0: here -> there")
    shop.it.send(signal.SIGTERM)
    ends_within(shop.it, STOP_SPAN, 0)


def test_a_stop_ends_while_a_command_of_an_effect_ignores_signals():
    it = carried_parcel("{command: [sh, -c, 'trap : TERM; echo $$ > a.new; mv a.new a; "
                     "while :; do sleep 600; done'], timeout: 1h}")
    wait_until(Path("a").exists, "the command")
    it.send(signal.SIGTERM)
    ends_within(it, STOP_SPAN, 0)
    check(not is_there(int(Path("a").read_text())), "the command is still there")


def test_a_stop_ends_while_an_http_effect_gets_no_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        it = carried_parcel(f"{{http: \"http://127.0.0.1:{port}/\", timeout: 1h, "
                         "statuses: {200: moved}}")
        connection = silent.accept()[0]
        it.send(signal.SIGTERM)
        ends_within(it, STOP_SPAN, 0)
        connection.close()


def test_a_stop_ends_while_a_client_does_not_read():
    Path("detent.yaml").write_text(
        "version: 1\ntasks:\n  loud: {run: [sh, -c, 'while :; do echo aaaaaaaaaaaaaaaaaaaaaa;"
        " done']}\n")
    it = Up()
    wait_until(up.is_listening, "the socket")
    client = socket.socket(socket.AF_UNIX)
    client.connect(".detent/detent.sock")
    client.send(b"GET /v1/lines?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n")
    it.wait_for("loud *. aaa")
    it.send(signal.SIGTERM)
    ends_within(it, STOP_SPAN)
    client.close()


def test_a_stop_ends_while_nobody_reads_the_output():
    Path("detent.yaml").write_text(
        "version: 1\ntasks:\n  loud: {run: [sh, -c, 'while :; do echo aaaaaaaaaaaaaaaaaaaaaa;"
        " done']}\n")
    ends = os.pipe()
    process = subprocess.Popen([up.DETENT, "up"], stdout=ends[1], stderr=subprocess.PIPE,
                               env=up.environment())
    os.close(ends[1])
    try:
        wait_until(lambda: len(os.read(ends[0], 1)) == 1, "a line")
        wait_until(up.is_listening, "the socket")
        process.send_signal(signal.SIGTERM)
        begun = patience.now()
        process.wait(patience.HANG)
        check(patience.now() - begun < STOP_SPAN + 5, "it took too long")
    finally:
        process.kill()
        process.stderr.close()
        os.close(ends[0])


def test_a_stop_ends_while_the_collector_of_spans_and_the_supervisor_are_away():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        Path("parcel.fsm").write_text(PARCEL)
        Path("detent.yaml").write_text(
            f"version: 1\ntraces: {{endpoint: \"http://127.0.0.1:{port}/v1/traces\"}}\n"
            "tasks: {a: {run: sleep 600}}\nmachines: {parcel: {effects: {}}}\n")
        Path("gone.sock").touch()
        it = Up(env={"NOTIFY_SOCKET": str(Path("gone.sock").resolve())})
        it.wait_for("a *= started")
        detent("start", "parcel", "p-1")
        detent("send", "p-1", "move")
        it.send(signal.SIGTERM)
        ends_within(it, STOP_SPAN, 0)


def test_a_stop_ends_while_the_disk_of_the_store_is_full():
    """Acknowledged events are stored; with room again, the run continues."""
    if not small_disk.can_mount():
        print("    only root may mount a small disk")
        return
    with small_disk.mounted("small"):
        effect = ("{command: [sh, -c, 'echo > ran; echo \"{\\\"event\\\":\\\"moved\\\"}\"'], "
                  "timeout: 1h}")
        it = carried_parcel(effect, "store: sqlite:small/parcels.db\n", "p-0")
        detent("start", "parcel", "p-1")
        wait_until(lambda: run("get", "p-0").stdout.count("there"), it.shown)
        small_disk.fill("small/filler")
        wait_until(lambda: run("send", "p-1", "move").returncode != 0, "a send without room")
        it.send(signal.SIGTERM)
        ends_within(it, STOP_SPAN)
        os.unlink("small/filler")
        detent("store", "verify", "--store", "sqlite:small/parcels.db", err="ok")
        it = Up()
        wait_until(lambda: any("Serves parcel" in line for line in it.talk), it.shown)
        detent("get", "p-0", out="there")
        detent("get", "p-1", out="here")
        it.send(signal.SIGTERM)
        ends_within(it, STOP_SPAN, 0)


def with_hung_action():
    """It reads a pipe without a writer: the open never returns, whatever stop is requested."""
    os.mkfifo("never")
    Path("detent.yaml").write_text(
        "version: 1\nlimits: {shutdown: 1s}\ntasks: {a: {run: sleep 600}}\n"
        "workers:\n  name: plant\n  children:\n    - name: p\n      kind: process\n"
        f"      config: {{argv: [sleep, '600'], reload_files: [{os.getcwd()}/never]}}\n")
    it = Up()
    it.wait_for("a *= started")
    wait_until(lambda: opens_something(it.number), lambda: f"an open\n{it.shown()}")
    return it


def test_a_stop_ends_while_an_action_of_a_worker_hangs():
    it = with_hung_action()
    it.send(signal.SIGTERM)
    ends_within(it, HUNG_SPAN, 5)
    check("the stop timed out" in it.shown(), it.shown())


def test_second_signal_exits_at_once_while_a_worker_action_hangs():
    it = with_hung_action()
    it.send(signal.SIGTERM)
    it.wait_for("repeat to kill them")
    again(it)
    ends_within(it, AGAIN_SPAN)


def opens_something(number):
    """True if a thread of the process is in open(), twice in a row: there it hangs."""
    calls = {"x86_64": "257", "aarch64": "56"}
    return all(any(read_call(thread) == calls[os.uname().machine]
                   for thread in Path(f"/proc/{number}/task").iterdir()) for _ in range(2))


def read_call(thread):
    """The number of the system call that a thread is in."""
    try:
        return (thread / "syscall").read_text().partition(" ")[0]
    except OSError:
        return ""


def test_a_stop_has_a_deadline_when_a_task_never_ends():
    Path("detent.yaml").write_text(
        "version: 1\nlimits: {shutdown: 1s}\n"
        f"tasks:\n  stubborn: {{run: [{up.NASTY}, deaf], grace: forever}}\n"
        f"  kept: {{run: [sh, -c, \"echo $$ > kept.pid; exec {up.NASTY} deaf\"], grace: forever,\n"
        "         ends_with_us: false}\n")
    it = Up()
    it.wait_for("stubborn *\\| ready")
    it.wait_for("kept *\\| ready")
    it.send(signal.SIGTERM)
    ends_within(it, STOP_SPAN, 5)
    # It would outlive a crash; a stop was asked for.
    wait_until(lambda: not Path(f"/proc/{Path('kept.pid').read_text().strip()}").exists(),
               "that the kept task is killed")


if __name__ == "__main__":
    sys.exit(up.main(globals()))
