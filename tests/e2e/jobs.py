#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs durable slots, their schedules and `detent jobs`, end to end, on SQLite and PostgreSQL.

    jobs.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py. Nothing waits for a lease or for a day: what the store knows of times is
moved instead.
"""
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import up
import checksums
import patience
from machines import Follower, detent, fail_syncs, objects, run
from postgres import programs, servers, store
from up import Up, check, children_of, equal, wait_until

STORE = "sqlite:detent.db"
DAY = 24 * 60 * 60 * 10**9
# Says which job it is; one that meets another one of its kind says so.
JOB = """
import fcntl, os, sys, time
lock = open(sys.argv[1] + ".lock", "w")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print("OVERLAP", file=open(sys.argv[1], "a"))
print(os.environ["DETENT_JOB"], os.environ["DETENT_JOB_ATTEMPT"], file=open(sys.argv[1], "a"))
time.sleep(float(sys.argv[2]))
"""


def project(slot="{durable: yes}", url=STORE, more=""):
    """Only a durable slot, neither tasks nor machines, and the job to run in it."""
    Path("detent.yaml").write_text(
        f"version: 1\nstore: {json.dumps(url)}\nslots:\n  batch: {slot}\n{more}")
    Path("job.py").write_text(JOB)


def begin(**more):
    one = Up(**more)
    wait_until(lambda: run("tasks").returncode == 0 or one.process.poll() is not None, "it is up")
    check(one.process.poll() is None, one.shown())
    return one


def jobs(*words):
    return objects("jobs", *words)


def states():
    return {job["id"]: job["state"] for job in jobs()}


def submit(name, *command):
    detent("submit", "batch", "--name", name, "--", *command)


def ledger(path="ledger"):
    return Path(path).read_text().split("\n")[:-1] if Path(path).exists() else []


def submitted(*command):
    done = detent("submit", "batch", "--", *command)
    return done.stderr.split(":")[0]


def test_a_job_without_a_name_is_called_after_its_program_and_the_time():
    project()
    one = begin()
    names = [submitted("/bin/true") for _ in range(3)]
    one.stop()
    one = begin()
    names.append(submitted("/bin/true"))
    for name in names:
        check(re.fullmatch(r"true-20\d{6}T\d{6}Z-[0-9a-f]{8}-\d+", name), name)
    equal(len(set(names)), 4)
    odd = submitted(shutil.copy("/bin/true", os.path.abspath("g++ 1")))
    check(odd.startswith("g___1-20"), odd)
    wait_until(lambda: set(states().values()) == {"done"} and len(states()) == 5, "all are done")
    one.stop()


def test_project_may_consist_of_a_durable_slot():
    project()
    one = begin()
    wait_until(lambda: any("detent submit SLOT" in line for line in one.talk), "the hint")
    submit("a", sys.executable, "job.py", "ledger", "0")
    wait_until(lambda: states() == {"a": "done"}, "it is done")
    equal(ledger(), ["a 1"])
    # What runs comes to its end, what waits stays for the next one.
    submit("runs", "sh", "-c", "until test -e go; do sleep 0.01; done")
    submit("waits", "true")
    wait_until(lambda: states()["runs"] == "running", "it runs")
    detent("drain")
    Path("go").touch()
    one.end()
    equal(states(), {"a": "done", "runs": "done", "waits": "queued"})
    Path("detent.yaml").write_text("version: 1\nslots: {batch: {}}\n")
    detent("check", "detent.yaml", code=2,
           err="needs 'tasks', 'machines', 'workers', 'flows' or a durable slot")


def test_jobs_are_listed_by_slot_and_state_and_page_by_page():
    project(more="  other: {durable: yes}\n")
    one = begin()
    for i in range(5):
        submit(f"good-{i}", "true")
    submit("bad", "false")
    detent("submit", "other", "--name", "good-0", "--", "true")
    wait_until(lambda: [job["state"] for job in jobs()].count("done") == 6, "they are done")
    for _ in ("served", "by itself"):
        equal([job["id"] for job in jobs("--state", "failed")], ["bad"])
        equal(jobs("--state", "failed")[0]["reason"], "exit code 1")
        equal([job["id"] for job in jobs("-q", "other")], ["good-0"])
        equal(json.loads(jobs("-q", "other")[0]["body"])["run"], ["true"])
        page = jobs("--queue", "batch", "--limit", "2")
        equal([job["id"] for job in page], ["bad", "good-4"])
        page = jobs("--queue", "batch", "--after", str(page[-1]["key"]), "-n", "2")
        equal([job["id"] for job in page], ["good-3", "good-2"])
        page = jobs("--queue", "batch", "--order", "oldest", "--limit", "2")
        equal([job["id"] for job in page], ["good-0", "good-1"])
        page = jobs("-q", "batch", "--order", "oldest", "--after", str(page[-1]["key"]), "-n", "2")
        equal([job["id"] for job in page], ["good-2", "good-3"])
        detent("jobs", "-n", "3", err=f"There are more: --after {jobs()[2]['key']}")
        detent("jobs", "--state", "running", err="There are no such jobs.")
        if one:
            one.stop()
            one = None
    detent("jobs", "--state", "gone", code=2, err="failed")
    detent("jobs", "retri", "x", code=2, err="did you mean 'retry'?")
    detent("jobs", "retry", code=2, err="needs the id of a job")
    detent("jobs", "retry", "good-0", code=4, err="select one with --queue")
    for words in ((), ("cancel", "a")):
        done = detent("jobs", *words, "--store", "sqlite:none.db", code=3,
                      err=["sqlite:none.db: there is no such store; check its URL",
                           "created by a 'detent up' with a durable slot"])
        check("detent start" not in done.stderr, done.stderr)


def test_slots_and_log_show_durable_jobs():
    project()
    one = begin()
    submit("long", "sleep", "1000")
    submit("next", "true")
    wait_until(lambda: states()["long"] == "running", "it runs")
    slot = objects("slots")[0]
    equal([slot[key] for key in ("name", "state", "owners", "depth", "depth_max", "owner_name")],
          ["batch", "running", 1, 1, None, "long"])
    words = detent("slots").stdout.splitlines()[-1].split()
    equal(words, ["batch", "running", "1", "of", "1", "1", "long"])
    one.wait_for("batch#1 = started: long$")
    one.send(signal.SIGKILL)
    one.process.wait()
    one = begin()
    one.wait_for("batch#1 = started: long, attempt 2$")
    one.stop()


def test_options_not_for_durable_slots_are_refused_by_name():
    project()
    begin()
    for option in "--replace", "--replace-all", "--drop":
        detent("submit", "batch", option, "--", "true", code=2, err=["is durable:", option])


def test_the_end_of_a_durable_job_is_waited_for():
    project()
    one = begin()
    # The job ends only after its client is seen to wait.
    words = ("submit", "batch", "--wait", "--name", "a", "--", "sh", "-c",
             "until test -e go; do sleep 0.01; done")
    first = Follower(*words)
    first.wait_for("a: stored")
    wait_until(lambda: states().get("a") == "running", "it runs")
    check(first.process.poll() is None, lambda: f"it did not wait: {first.text}")
    Path("go").touch()
    check("a: completed" in first.end(0), lambda: first.text)
    # Its end is known already.
    detent(*words,
           err=["a: this job exists already: done; nothing was submitted",
                "a: completed"])
    detent("submit", "batch", "--wait", "--name", "b", "--", "sh", "-c", "exit 3", code=1,
           err=["b: stored", "b: failed: exit code 3"])
    detent("submit", "batch", "--name", "b", "--", "sh", "-c", "exit 3",
           err="b: this job exists already: failed; nothing was submitted")
    told = detent("submit", "batch", "--json", "--name", "b", "--", "sh", "-c", "exit 3").stdout
    equal(json.loads(told)["state"], "failed")
    # The same name for something else is not the same job.
    detent("submit", "batch", "--name", "b", "--", "true", code=4,
           err=["queue batch: id b was submitted at 20", "use another id"])
    # Each is known to wait by what it says itself: that c runs may be the work of the other one.
    waits = [Follower("submit", "batch", "--wait", "--name", "c", "--", "sleep", "1000")
             for _ in range(2)]
    for one_of_them in waits:
        one_of_them.wait_for("c: ")
    wait_until(lambda: states().get("c") == "running", "it runs")
    waits[0].process.send_signal(signal.SIGINT)
    told = waits[0].end(130)
    check("c: still running; 'detent jobs cancel c --queue batch' stops it" in told, told)
    one.stop()
    waits[1].process.wait(up.PATIENCE)
    told = waits[1].text
    check("detent is shutting down; c is stored; see 'detent jobs'" in told, told)
    check(waits[1].process.returncode != 0, waits[1].process.returncode)
    check(states()["c"] in ("queued", "delayed", "running"), states())


def test_signal_interrupts_the_wait_for_the_store():
    project()
    with open("detent.db.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        one = Up()
        wait_until(lambda: Path(".detent/detent.sock").exists(), "it is about to open the store")
        begun = patience.now()
        one.send(signal.SIGINT)
        equal(one.process.wait(up.PATIENCE), 130)
    # Else it has waited for 5 seconds.
    check(patience.now() - begun < 3, f"it took {patience.now() - begun:.1f} s")


def test_project_option_selects_another_folder():
    project()
    one = begin()
    submit("bad", "false")
    wait_until(lambda: states() == {"bad": "failed"}, "it has failed")
    here, url = os.getcwd(), f"sqlite:{os.getcwd()}/detent.db"
    with tempfile.TemporaryDirectory() as away:
        os.chdir(away)
        detent("jobs", "retry", "bad", "--store", url, code=6, err=f"-C {here} uses it")
        detent("jobs", "-C", here, "--state", "failed", out="bad")
        detent("jobs", "retry", "bad", "-C", here, "--store", url, out="bad: will be retried")
        detent("jobs", "-C", "nowhere", code=3, err="--project nowhere: No such file")
        os.chdir(here)
    one.stop()


def test_jobs_can_be_retried_and_cancelled():
    project()
    one = begin()
    submit("bad", "sh", "-c", "echo $DETENT_JOB_ATTEMPT >> ledger; test -e good")
    wait_until(lambda: states() == {"bad": "failed"}, "it has failed")
    Path("good").touch()
    detent("jobs", "retry", "bad", out="bad: will be retried")
    wait_until(lambda: states() == {"bad": "done"}, "it is done")
    equal(ledger(), ["1", "1"])
    detent("jobs", "retry", "bad", code=6, err="bad is done; only failed jobs")
    submit("long", "sleep", "1000")
    submit("waits", "true")
    wait_until(lambda: states()["long"] == "running", "it runs")
    detent("jobs", "cancel", "waits", "--reason", "not today", out="waits: is cancelled")
    equal(jobs("--state", "failed")[0]["reason"], "not today")
    detent("jobs", "cancel", "waits", code=6, err="waits is already failed")
    detent("jobs", "cancel", "long", out="long: is being stopped")
    wait_until(lambda: states()["long"] == "failed", "it is stopped")
    detent("jobs", "cancel", "nobody", code=3, err="there is no job 'nobody'")
    # Nobody is up: the store itself.
    one.stop()
    detent("jobs", "retry", "long", out="will be retried")
    equal(states()["long"], "queued")
    equal(json.loads(detent("jobs", "cancel", "long", "--json").stdout)["type"], "cancelled")
    equal(states()["long"], "failed")


def test_job_of_a_killed_daemon_can_be_cancelled():
    project()
    one = begin()
    waits = Follower("submit", "batch", "--wait", "--name", "ran", "--", sys.executable, "job.py",
                     "ledger", "1000")
    waits.wait_for("ran: stored")
    wait_until(lambda: ledger() == ["ran 1"], "it runs")
    check("No process serves" not in detent("jobs").stderr, "it is served")
    # Before its job: it must not learn that the job has ended.
    one.send(signal.SIGKILL)
    one.process.wait(up.PATIENCE)
    waits.process.wait(up.PATIENCE)
    check("ran: stored; it starts with the next 'detent up'" in waits.text,
          lambda: waits.text)
    check(waits.process.returncode != 0, waits.process.returncode)
    equal(states(), {"ran": "running"})
    detent("jobs", err="No process serves this store: start 'detent up', or your program")
    detent("jobs", "cancel", "ran", "--reason", "enough", out="ran: is cancelled")
    equal(jobs()[0]["reason"], "enough")
    one = begin()
    submit("next", "true")
    wait_until(lambda: states() == {"ran": "failed", "next": "done"}, "the next one is done")
    equal(ledger(), ["ran 1"])
    one.stop()


def test_failing_disk_ends_up_with_code_74():
    project()
    one = begin(env={"ASAN_OPTIONS": "detect_leaks=0"})
    submit("first", "true")
    wait_until(lambda: states() == {"first": "done"}, "it is done")
    tracer = fail_syncs(one)
    detent("submit", "batch", "--name", "second", "--", "true", code=1)
    one.end(74)
    check(any("has failed permanently" in line for line in one.lines + one.talk), one.shown())
    tracer.wait()
    one = begin()
    submit("second", "true")
    wait_until(lambda: states() == {"first": "done", "second": "done"}, "both are done")
    one.stop()


def move_schedule(days):
    """The store as if it had not been open for so many days."""
    with checksums.connect("detent.db") as database:
        database.execute("UPDATE schedules SET next_at = next_at - ?1, last_at = last_at - ?1",
                         (days * DAY,))
        checksums.sum_rows(database, "schedules")
    database.close()


def count_after_a_gap(missed):
    for path in Path().iterdir():
        if path.is_file():
            path.unlink()
    project(f"{{durable: yes, schedules: {{daily: {{cron: '@daily', missed: {missed}, "
            "run: sh -c 'echo $DETENT_JOB >> ledger'}}}")
    one = begin()
    with sqlite3.connect("detent.db") as database:
        wait_until(lambda: database.execute("SELECT count(*) FROM schedules").fetchone()[0],
                   "its time is kept")
    database.close()
    equal(jobs(), [])
    one.send(signal.SIGKILL)
    one.process.wait()
    move_schedule(3)
    one = begin()
    submit("last", "true")
    wait_until(lambda: states().get("last") == "done", "the last one is done")
    found = [job for job in jobs() if job["id"] != "last"]
    wait_until(lambda: len(ledger()) == len(found), "all have run")
    daily = re.compile(r"batch\.daily:20\d{6}T000000Z")
    check(all(daily.fullmatch(job["id"]) for job in found), str(found))
    one.stop()
    return len(found)


def test_missed_schedules_follow_the_file():
    equal(count_after_a_gap("once"), 1)
    equal(count_after_a_gap("skip"), 0)
    equal(count_after_a_gap("all"), 3)


def in_folder(name, act):
    back = os.getcwd()
    os.makedirs(name, exist_ok=True)
    os.chdir(name)
    try:
        return act()
    finally:
        os.chdir(back)


def sql(url, text):
    host = url.split("host=")[1].split("&")[0]
    subprocess.run([programs() / "psql", "-q", "-h", host, "-U", "detent", "-d", "postgres", "-v",
                    "ON_ERROR_STOP=1", "-c", text], check=True, capture_output=True)


def test_two_daemons_share_a_durable_slot_on_a_server():
    url = store()[1]
    path = os.path.abspath("ledger")
    slot = ("{durable: yes, schedules: {often: {every: 300ms, run: "
            f"[{sys.executable}, job.py, {path}, '0.01']}}}}}}")
    for name in ("a", "b"):
        in_folder(name, lambda: project(slot, url))
    first, second = in_folder("a", begin), in_folder("b", begin)
    for i in range(6):
        in_folder("ab"[i % 2], lambda: submit(f"by-hand-{i}", sys.executable, "job.py", path, "0"))
    by_hand = {f"by-hand-{i} 1" for i in range(6)}
    wait_until(lambda: by_hand <= set(ledger(path)) and len(ledger(path)) > 9, "enough have run")
    for name, one in (("a", first), ("b", second)):
        in_folder(name, one.stop)
    lines = ledger(path)
    check("OVERLAP" not in lines, str(lines))
    equal(len({line.split()[0] for line in lines if line.endswith(" 1")}),
          sum(line.endswith(" 1") for line in lines))


def test_job_of_a_killed_daemon_is_taken_over_on_a_server():
    url = store()[1]
    path = os.path.abspath("ledger")
    for name in ("a", "b"):
        in_folder(name, lambda: project(url=url))
    first = in_folder("a", begin)
    in_folder("a", lambda: submit("long", sys.executable, "job.py", path, "1000"))
    in_folder("a", lambda: submit("next", sys.executable, "job.py", path, "0"))
    wait_until(lambda: ledger(path) == ["long 1"], "it runs")
    second = in_folder("b", begin)
    done = in_folder("b", lambda: detent("jobs", "cancel", "long", code=6))
    check("detent stop batch#" in done.stderr, done.stderr)
    first.send(signal.SIGKILL)
    first.process.wait()
    # Its claim has not lapsed, so nobody else has begun; then it has.
    equal(ledger(path), ["long 1"])
    schema = url.split("schema=")[1]
    sql(url, f"UPDATE {schema}.jobs SET due_at = 1 WHERE state = 'running'")
    wait_until(lambda: "long 2" in ledger(path), "it runs again")
    in_folder("b", lambda: detent("jobs", "cancel", "long", out="is being stopped"))
    wait_until(lambda: ledger(path)[-1] == "next 1", "the next one has run")
    equal(ledger(path), ["long 1", "long 2", "next 1"])
    # The first one comes back, and has nothing to do.
    first = in_folder("a", begin)
    wait_until(lambda: in_folder("a", states) == {"long": "failed", "next": "done"}, "the end")
    for name, one in (("a", first), ("b", second)):
        in_folder(name, one.stop)


def signal_all(numbers, what):
    """Those of clients that have left may be gone by now."""
    for number in numbers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, what)


def test_frozen_server_stops_nothing_else():
    project(url=store()[1], more="tasks:\n  ticker: {run: sleep 1000}\n")
    one = begin()
    submit("first", "true")
    wait_until(lambda: states() == {"first": "done"}, "it is done")
    still = children_of(servers[0].process.pid)
    signal_all(still, signal.SIGSTOP)
    try:
        waiting = subprocess.Popen(
            [up.DETENT, "submit", "batch", "--name", "second", "--", "true"],
            env=up.environment(), stderr=subprocess.DEVNULL)
        # It has been read, and is not answered; others are.
        client = up.Client()
        for _ in range(20):
            check("ticker" in str(client.all("tasks")))
        client.close()
        detent("restart", "ticker", "--wait", err="ticker: restarted")
        equal(waiting.poll(), None)
    finally:
        signal_all(still, signal.SIGCONT)
    equal(waiting.wait(up.PATIENCE), 0)
    wait_until(lambda: states() == {"first": "done", "second": "done"}, "both are done")
    one.stop()


def test_temporary_server_outage_is_reported():
    project(url=store()[1])
    one = begin()
    submit("first", "true")
    wait_until(lambda: states() == {"first": "done"}, "it is done")
    servers[0].crash()
    try:
        one.wait_for("store: no connection: PostgreSQL: .*; retrying$")
        detent("submit", "batch", "--", "true", code=1,
               err="the store cannot be reached: PostgreSQL: ")
        detent("slots", code=1, err="the store cannot be reached: PostgreSQL: ")
    finally:
        servers[0].start()
    one.wait_for("store: back after ")
    submit("second", "true")
    wait_until(lambda: states() == {"first": "done", "second": "done"}, "both are done")
    equal(sum("store: no connection" in line for line in one.lines), 1)
    one.stop()


if __name__ == "__main__":
    sys.exit(up.main(globals()))
