#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs the commands on a store, end to end, on a PostgreSQL server of our own.

    postgres.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py; machines.py has what does not depend on the kind of store. The server
has its cluster in a temporary folder, is reached by a socket in there, and ends with this process.
"""
import atexit
import ctypes
import functools
import os
import pwd
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "api"))
import events  # pylint: disable=wrong-import-position
import plant
import promises
import shop as api
import up
from machines import ORDER, PARCEL, PAY, STORE, Follower, detent, objects, one, run, shop
from up import check, equal, wait_until


def programs():
    """The folder of the newest server that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"),
                   key=lambda path: int(path.parent.parent.name))
    check(found, "there is no PostgreSQL server; the package is called postgresql")
    return found[-1].parent


class Server:
    """A server of our own; each test gets its own schema."""

    def __init__(self, *options):
        self.folder = Path(tempfile.mkdtemp(prefix="detent-pg-"))
        self.count = 0
        self.options = {}
        if os.getuid() == 0:
            user = next(name for name in ("postgres", "nobody") if self.has_user(name))
            self.options = {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
            shutil.chown(self.folder, user)
        os.chmod(self.folder, 0o755)
        data = self.folder / "data"
        subprocess.run([programs() / "initdb", "-D", data, "-A", "trust", "-U", "detent", "-N",
                        *options], check=True, capture_output=True, cwd="/", **self.options)
        atexit.register(self.close)
        self.start()

    def start(self):
        data = self.folder / "data"
        self.process = subprocess.Popen(
            [programs() / "postgres", "-D", data, "-k", self.folder, "-c", "listen_addresses=",
             "-c", "shared_buffers=16MB"], cwd="/", stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=(self.folder / "log").open("w"),
            preexec_fn=self.end_with_us, **self.options)
        ready = [programs() / "pg_isready", "-q", "-h", self.folder, "-U", "detent"]
        wait_until(lambda: subprocess.run(ready, check=False).returncode == 0, "the server")

    def crash(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def enable_checksums(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        subprocess.run([programs() / "pg_checksums", "--enable", "-D", self.folder / "data"],
                       check=True, capture_output=True, cwd="/", **self.options)
        self.start()

    @staticmethod
    def has_user(name):
        return any(entry.pw_name == name for entry in pwd.getpwall())

    @staticmethod
    def end_with_us():
        ctypes.CDLL(None).prctl(1, int(signal.SIGQUIT))

    def url(self):
        self.count += 1
        return f"postgres://detent@/postgres?host={self.folder}&schema=shop_{self.count}"

    def close(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


servers = []


def store():
    if not servers:
        servers.append(Server())
    return ("--store", servers[0].url())


def test_an_order_from_start_to_end():
    Path("order.fsm").write_text(ORDER)
    there = store()
    detent("start", "order.fsm", "o-1", *there, out="o-1: pending")
    Path("order.fsm").unlink()
    detent("send", "o-1", "pay", *there, *PAY, "--id", "p-1", out="pending -> charging",
           err="Effect charge_card waits")
    detent("send", "o-1", "pay", *there, *PAY, "--id", "p-1", out="already done, as event 1")
    detent("send", "o-1", "ping", *there, "--expect", "7", code=4)
    detent("get", "o-1", *there, out=["order o-1 is charging", "cents=1999"])
    detent("why", "o-1", *there, out=["takes      ping, ship, halt", "charge_card was requested",
                                      "so         no process serves this store: start 'detent up'"])
    detent("history", "o-1", *there, out="card={redacted}")
    detent("start", "order", "o-2", *there)
    equal([o["id"] for o in objects("list", *there)], ["o-1", "o-2"])
    equal([o["id"] for o in objects("timers", *there)], ["o-2"])
    detent("cancel", "o-2", *there, "--reason", "over", out="stopped in pending")
    detent("send", "o-2", "ping", *there, code=6, err="over")
    detent("get", "o-9", *there, code=3, err="did you mean 'o-")
    detent("store", "info", *there, out="2 instances")
    detent("store", "verify", *there, err="ok")
    detent("retry", "--list", *there, err="There are no dead letters.")


def test_commands_not_for_postgres_name_the_server_tool():
    Path("order.fsm").write_text(ORDER)
    there = store()
    detent("get", "o-1", *there, code=3)
    detent("start", "order.fsm", "o-1", *there)
    detent("store", "backup", "x", *there, code=2, err="pg_dump")
    detent("store", "compact", *there, code=2, err="VACUUM")
    detent("store", "repair", *there, code=2,
           err="does not support 'detent store repair'; restore a backup")
    url = there[1].replace("detent@", "detent:secret@")
    done = detent("get", "o-9", "--store", url, code=3)
    check("secret" not in done.stdout + done.stderr)
    done = run("get", "o-1", "--store", "postgres://detent:secret@/none?host=/nowhere")
    check(done.returncode == 1 and "secret" not in done.stderr, done.stderr)
    equal(len(done.stderr.splitlines()), 1)


def test_server_without_data_checksums_gets_a_warning():
    # From version 18 on they are the default.
    has_default = int(programs().parent.name) >= 18
    server = Server(*(["--no-data-checksums"] if has_default else []))
    url = server.url()
    advice = "run 'pg_checksums --enable', or make the cluster with 'initdb --data-checksums'"
    Path("order.fsm").write_text(ORDER)
    Path("detent.yaml").write_text(f"version: 1\nstore: {url}\ntasks:\n  a: {{run: sleep 60}}\n")

    def findings():
        return [f["text"] for f in objects("doctor") if f["text"].startswith("store: ")]

    # There is no store in it yet.
    equal(findings(), [])
    detent("start", "order.fsm", "o-1", "--store", url, out="o-1: pending")
    found = findings()
    equal(len(found), 1)
    check(found[0].endswith(advice), found)
    detent("store", "verify", "--store", url, err=["1 instance verified: ok", advice])
    server.enable_checksums()
    equal(findings(), [])
    done = detent("store", "verify", "--store", url, err="1 instance verified: ok")
    check("checksums" not in done.stderr, done.stderr)
    server.crash()
    found = findings()
    equal(len(found), 1)
    check("its settings were not examined" in found[0], found)


def test_watch_shows_changes_of_other_processes():
    Path("order.fsm").write_text(ORDER)
    there = store()
    follower = Follower("start", "order.fsm", "o-1", *there, "--wait")
    follower.wait_for("o-1: pending")
    wait_until(lambda: run("send", "o-1", "pay", *there, *PAY).returncode == 0, "a payment")
    follower.wait_for("pay: pending -> charging")
    detent("send", "o-1", "ship", *there)
    follower.end(0)


def without_stores(instance):
    """Keys of effects begin with the store that they are in."""
    for effect in instance["effects"]:
        effect["key"] = effect["key"].partition("/")[2]
    return instance


def test_exports_move_between_sqlite_and_postgres():
    shop("o-1", "o-2", "o-3")
    Path("parcel.fsm").write_text(PARCEL)
    detent("start", "parcel.fsm", "p-1", *STORE)
    much = ("--payload", '{"card":"4242","cents":18446744073709551615}')
    detent("send", "o-1", "pay", *STORE, *much, "--id", "p-1")
    detent("send", "o-2", "ship", *STORE)
    for _ in range(3):
        detent("send", "o-2", "ping", *STORE)
    detent("cancel", "o-3", *STORE)
    there, back = store(), ("--store", "sqlite:back.db")
    detent("store", "export", "out.jsonl", *STORE)
    detent("store", "import", "out.jsonl", *there, err="4 instances and 6 events imported")
    detent("store", "import", "out.jsonl", *there, err="4 instances already existed")
    detent("store", "verify", *there, err="ok")
    detent("store", "export", "back.jsonl", *there)
    detent("store", "import", "back.jsonl", *back, err="4 instances and 6 events imported")
    for name in ("o-1", "o-2", "o-3", "p-1"):
        for target in (there, back):
            found, first = (one("get", name, *where) for where in (target, STORE))
            equal(without_stores(found), without_stores(first))
            equal(objects("history", name, *target), objects("history", name, *STORE))
    for target in (there, back):
        detent("send", "o-1", "pay", *target, *much, "--id", "p-1",
               out="already done, as event 1")
        detent("send", "o-1", "pay", *target, *PAY, "--id", "p-1", code=4,
               err="was used for another request: pay, event 1")
    detent("send", "o-2", "pay", *there, *PAY, out=["pending -> charging", "charging -> gone"])


# The promises of the HTTP API hold here, too.

def damage(identity):
    server = servers[0]
    table = f"shop_{server.count}.instances"
    subprocess.run(
        [programs() / "psql", "-q", "-h", server.folder, "-U", "detent", "postgres", "-c",
         f"UPDATE {table} SET sequence = sequence + 1 WHERE id = '{identity}'"], check=True)


def over_http(promise):
    @functools.wraps(promise)
    def run_it():
        api.other_store.append(lambda: f'"{store()[1]}"')
        promises.damage = damage
        try:
            promise()
        finally:
            api.other_store.clear()
    return run_it


class Writer:
    """A transaction that could still write an event, for as long as it takes."""

    def __enter__(self):
        server = servers[0]
        self.process = subprocess.Popen(
            [programs() / "psql", "-qAt", "-h", server.folder, "-U", "detent", "postgres"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(
            f"BEGIN; LOCK TABLE shop_{server.count}.events IN ROW EXCLUSIVE MODE; SELECT 'held';\n")
        self.process.stdin.flush()
        equal(self.process.stdout.readline(), "held\n")
        return self

    def __exit__(self, *_):
        self.process.communicate("ROLLBACK;\n")


@over_http
def test_long_transaction_does_not_rewind_readers():
    api.project(api.COUNTERS)
    daemon = api.Daemon()
    api.start(daemon.wire(), "c-1")
    for number in range(5):
        api.add(daemon.wire(), "c-1", number)
    last = events.log_of(daemon.wire())[-1]["position"]
    daemon.stop()
    hellos = queue.Queue()

    def follow(position):
        stream = api.Stream(api.SOCKET, "/v1/events", last=position)
        hellos.put(stream.next().data["position"])
        hellos.put(stream.until("log").data["payload"]["number"])

    readers = [threading.Thread(target=follow, args=(position,)) for position in (str(last), None)]
    with Writer():
        daemon = api.Daemon()
        for reader in readers:
            reader.start()
        # It knows of nothing that is final, and looks for half a second.
        begin = time.monotonic()
        wait_until(lambda: not hellos.empty() or time.monotonic() > begin + 0.7, "all looks")
    equal([hellos.get(timeout=up.PATIENCE) for _ in readers], [last, last])
    api.add(daemon.wire(), "c-1", 77)
    equal([hellos.get(timeout=up.PATIENCE) for _ in readers], [77, 77])
    for reader in readers:
        reader.join()
    daemon.stop()


@over_http
def test_early_disconnect_leaves_no_stale_log_end():
    api.project(api.COUNTERS)
    daemon = api.Daemon()
    wire = daemon.wire()
    api.start(wire, "c-1")
    with Writer():
        api.Stream(api.SOCKET, "/v1/events").close()
        equal(wire.get("/livez").status, 200)
    for number in range(5):
        api.add(wire, "c-1", number)
    last = events.log_of(wire)[-1]["position"]
    stream = api.Stream(api.SOCKET, "/v1/events")
    equal(stream.next().data["position"], last)
    stream.close()
    daemon.stop()


@over_http
def test_reader_that_changes_nodes_sees_no_event_twice():
    api.project(api.COUNTERS)
    Path("other").mkdir()
    for file in ("detent.yaml", "counter.fsm", "order.fsm"):
        shutil.copy(file, "other")
    one_node, other_node = api.Daemon(), api.Daemon(cwd="other")
    there = "other/" + api.SOCKET
    api.start(one_node.wire(), "c-1")
    keeper = api.Stream(there, "/v1/events")
    equal(keeper.next().name, "hello")
    for number in range(20):
        api.add(one_node.wire(), "c-1", number)
        last = events.log_of(one_node.wire())[-1]["position"]
        stream = api.Stream(there, "/v1/events", last=str(last))
        equal(stream.next().data["position"], last)
        stream.close()
    keeper.close()
    one_node.stop()
    other_node.stop()


# What no store has a part in.
ELSEWHERE = {"test_diagram_request_always_succeeds",
             "test_batch_size_is_limited"}


def promised():
    tests = {name: function for name, function in vars(promises).items()
             if name.startswith("test_") and name not in ELSEWHERE}
    # The log of a server is followed otherwise than that of a file: others may write to it.
    for function in (events.test_a_reader_resumes_over_crashes_with_several_writers,
                     events.test_stream_begins_at_the_requested_position,
                     events.test_stream_without_a_position_begins_now,
                     plant.FOLLOWERS):
        tests[function.__name__] = function
    return {name + "_over_http": over_http(function) for name, function in tests.items()}


if __name__ == "__main__":
    globals().update(promised())
    sys.exit(up.main(globals()))
