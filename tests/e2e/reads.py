#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Commands that read a store say the same whether a `detent up` reads it for them or they do.

    reads.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py, and the store that of tests/api/contract.py. There are two projects with
one store: a `detent up` runs in this folder, and none in the folder `beside`.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "api"))
import up
import checksums
import contract
import shop
import patience
from up import DETENT, PATIENCE, SANITIZER, check, environment, equal, wait_until

BESIDE = "beside"
HOUR = 3600 * 10**9
GONE = "has exited"
# Each of them in a table and with --json; what they say does not depend on when they are asked.
COMMANDS = """
get o-1|get o-2|get o-3|get o-4|get c-1|get o-5|get o-6|get o-7
get o-1 --machine order|get o-1 --machine order.fsm|get o-1 --machine counter|get o-1 --machine x
get nobody|get o-11|get C-1|get no/id|get c-2
why o-1|why o-2|why o-3|why o-5|why o-6|why c-1|why nobody
history o-1|history o-2|history o-3|history c-1|history c-1 --last 3|history c-1 --after 1500
history o-2 --after 1|history o-2 --after 9|history nobody|history c-2
list|list --machine order|list --state charging|list --state chargin|list --stopped|list --active
list --older 1ms|list --older 10h|list --limit 2|list --machine order --limit 2
list --machine order --after o-2|list --after o-2|list --machine nobody|list --machine order.fsm
timers|timers o-1|timers o-5|timers --limit 1|timers --machine counter|timers nobody
locks|locks --machine order|locks --machine counter
retry --list|retry --list o-2|retry --list o-5|retry --list o-1|retry --list nobody
jobs|jobs --state done|jobs --queue jobs|jobs --queue nobody|jobs --order oldest --limit 2
jobs --after 2|jobs --order oldest --after 2
dump|dump --since 3|dump --since 100000|dump --below root/press|dump --reveal|dump --below nobody
dump --below root/extra|dump --below root/extra --reveal
watch o-3|watch o-1 --timeout 0s|watch o-2 --after 0 --timeout 0s|watch nobody
list --machine order --after o/1|list --machine order --after /|list --machine order --after zz
"""


def commands():
    for line in COMMANDS.split("\n"):
        for command in filter(None, line.split("|")):
            yield command.split()
            yield [*command.split(), "--json"]


def run(*words, folder=".", before=(), env=None):
    done = subprocess.run([*before, DETENT, *words], cwd=folder, env=environment(env),
                          timeout=PATIENCE, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, SANITIZER.sub("", done.stderr)


def edit_timers():
    """A timer that was given up, one that has failed, and one that was retried."""
    data = checksums.connect("shop.db")
    row = "WHERE instance = (SELECT key FROM instances WHERE id = ?)"
    late = time.time_ns() + HOUR
    for name, attempts, error, reason, dead in (
            ("o-5", 9, -1, "no\x1b use", 1), ("o-6", 2, -20, None, 0), ("o-7", 0, 0, None, 0)):
        data.execute("UPDATE timers SET attempts = ?, last_error = ?, reason = ?, next_at = ?, "
                     f"dead_at = ? {row}", (attempts, error, reason, late, dead, name))
    data.commit()
    checksums.sum_rows(data, "timers")
    data.close()


def world():
    """The `detent up` of this folder, whose store is also that of the folder beside."""
    shop.other_store[:] = [lambda: f"sqlite:{Path('shop.db').resolve()}"]
    daemon, wire = contract.world()
    shop.other_store.clear()
    for name in ("o-5", "o-6", "o-7"):
        shop.start(wire, name, "order")
    for number in range(2500):
        shop.add(wire, "c-1", number)
    answer = wire.ask("PUT", "/v1/workers/extra", {
        "kind": "examplechild", "variables": {"PASSWORD": "secret"},
        "config": "address: '10.0.0.7:502'\n"}, {})
    check(answer.status in (200, 201), answer)
    contract.jobs(wire)
    wait_until(lambda: contract.jobs_stand(wire), "jobs stand")
    daemon.stop()
    edit_timers()
    Path(BESIDE).mkdir()
    for name in ("detent.yaml", "order.fsm", "counter.fsm"):
        shutil.copy(name, BESIDE)
    daemon = shop.Daemon()
    return daemon, daemon.wire()


def differs(words):
    """What the command says with the daemon and without it, when that is not the same. An age may
    change between the two, and so may what workers have observed: then both are asked again."""
    pair = []

    def is_same():
        pair[:] = [run(*words), run(*words, folder=BESIDE)]
        return pair[0] == pair[1]
    if patience.wait(is_same):
        return ""
    return f"detent {' '.join(words)}\nwith:\n{pair[0]}\nwithout:\n{pair[1]}"


def test_commands_print_the_same_with_and_without_a_daemon():
    daemon, _ = world()
    equal([text for words in commands() if (text := differs(words))], [])
    check("secret" in run("dump", "--reveal")[1], "dump --reveal shows no config")
    check("secret" not in run("dump")[1] + run("dump", "--json")[1], "dump shows a config")
    daemon.stop()


def opened_by(words, folder="."):
    trace = Path("trace.txt").resolve()
    run(*words, folder=folder, before=("strace", "-f", "-y", "-o", str(trace), "-e",
                                       "trace=open,openat,openat2,creat"))
    return re.findall(r'"[^"]*shop\.db[^"]*"', trace.read_text())


def test_with_a_daemon_no_command_opens_the_file_of_the_store():
    daemon, _ = world()
    file = Path("shop.db").resolve()
    for words in [*commands(), ["send", "o-1", "ping"],
                  ["start", "order", "new"], ["start", "order", "o-3", "--wait"],
                  ["cancel", "new"], ["jobs", "cancel", "last"], ["retry", "o-2"],
                  ["get", "o-1", "--store", f"sqlite:{file}"],
                  ["get", "o-1", "--store", "sqlite:shop.db"],
                  ["get", "o-1", "--store", "sqlite:beside/../shop.db?sync=full"]]:
        equal((words, opened_by(words)), (words, []))
    check(opened_by(["get", "o-1"], BESIDE), "strace shows nothing")
    os.link("shop.db", "other.db")
    shutil.copy("shop.db", "copy.db")
    check(not re.search("copy.db", str(opened_by(["get", "o-1", "--store", "sqlite:other.db"]))))
    daemon.stop()


def test_command_reads_another_store_directly():
    daemon, wire = world()
    equal(run("store", "backup", "copy.db")[0], 0)
    shop.start(wire, "later", "order")
    equal(run("get", "later")[0], 0)
    equal(run("get", "later", "--store", "sqlite:copy.db")[0], 3)
    equal(run("get", "later", env={"DETENT_STORE": "sqlite:copy.db"})[0], 3)
    daemon.stop()


def test_stale_socket_is_not_a_daemon():
    daemon, _ = world()
    daemon.kill_hard()
    check(Path(shop.SOCKET).exists(), "the socket was removed")
    for words in (["get", "o-2"], ["list"], ["dump", "--json"], ["timers"]):
        equal(differs(words), "")


def test_daemon_exit_is_an_error_of_the_command():
    daemon, _ = world()
    follower = subprocess.Popen([DETENT, "watch", "o-1", "--json"], env=environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    equal(json.loads(follower.stdout.readline())["id"], "o-1")
    daemon.kill_hard()
    _, text = follower.communicate(timeout=PATIENCE)
    # The second one if its next request came after the stop had begun.
    is_reported = GONE in text or "detent is shutting down; retry later" in text
    check(is_reported and follower.returncode == 1, f"{follower.returncode}: {text}")


def test_stopping_daemon_does_not_wait_for_readers():
    daemon, _ = world()
    follower = subprocess.Popen([DETENT, "watch", "o-1"], env=environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    follower.stdout.readline()
    daemon.stop()
    _, text = follower.communicate(timeout=PATIENCE)
    # The second one if its next request came after the stop had begun.
    is_reported = GONE in text or "detent is shutting down; retry later" in text
    check(is_reported and follower.returncode == 1, f"{follower.returncode}: {text}")


def test_ctrl_c_ends_a_command_that_reads():
    daemon, _ = world()
    follower = subprocess.Popen([DETENT, "watch", "o-1"], env=environment(), text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    follower.stdout.readline()
    follower.send_signal(signal.SIGINT)
    _, text = follower.communicate(timeout=PATIENCE)
    equal((follower.returncode, text), (130, ""))
    daemon.stop()


def test_paged_list_shows_each_instance_once_during_inserts():
    shop.project(shop.COUNTERS)
    daemon = shop.Daemon()
    wire = daemon.wire()
    before = [f"c-{number:05}-a" for number in range(0, 5000, 2)]
    for name in before:
        shop.start(wire, name)
    is_over = threading.Event()

    def grow():
        with shop.Wire(shop.SOCKET) as other:
            for number in range(1, 5000, 2):
                if is_over.is_set():
                    return
                shop.start(other, f"c-{number:05}-b")
                shop.add(other, f"c-{number - 1:05}-a", number)
    grower = threading.Thread(target=grow)
    grower.start()
    try:
        for words in (["list", "--json"], ["list", "--active", "--json"]):
            for _ in range(3):
                code, text, _ = run(*words)
                found = [json.loads(line)["id"] for line in text.splitlines()]
                equal(code, 0)
                equal(found, sorted(set(found)))
                equal([name for name in found if name.endswith("a")], before)
    finally:
        is_over.set()
        grower.join()
    daemon.stop()


if __name__ == "__main__":
    sys.exit(up.main(globals()))
