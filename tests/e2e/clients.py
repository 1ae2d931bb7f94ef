#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs the commands that drive a `detent up` from another terminal, end to end.

    clients.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py: nothing waits for time, and each function whose name starts with `test_`
is one test in a fresh folder.
"""
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import up
from terminal import Terminal
from up import DETENT, PATIENCE, SANITIZER, SLEEPER, Client, Up, check, config, environment
from up import equal, wait_until

PROJECT = """version: 1
defaults: {backoff: {first: 19m, max: 19m, jitter: none}, grace: 5s}
groups:
  back: {strategy: rest-for-one, intensity: {count: 5, window: 10s}}
slots:
  batch: {width: 1, depth: 1}
tasks:
  database: {run: sleep 60, group: back}
  web:
    run: [sh, -c, "echo hello; echo oh >&2; exec sleep 60"]
    group: back
    depends_on: [database]
  flaky: {run: [sh, -c, "exit 7"]}
  late: {run: sleep 60, depends_on: {flaky: completed}}
"""


def detent(*words, code=0, out=None, err=None, folder=None):
    """Runs the program; checks its exit code and, if given, parts of what it printed."""
    done = subprocess.run([DETENT, *words], env=environment(), timeout=PATIENCE, cwd=folder,
                          capture_output=True, text=True, check=False)
    done.stderr = SANITIZER.sub("", done.stderr)
    shown = f"detent {' '.join(words)}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    check(done.returncode == code, f"exit code {done.returncode}, not {code}: {shown}")
    for wanted, found in ((out, done.stdout), (err, done.stderr)):
        for part in [wanted] if isinstance(wanted, str) else wanted or []:
            check(part in found, f"there is no {part!r}: {shown}")
    return done


def objects(*words, code=0):
    done = detent(words[0], "--json", *words[1:], code=code)
    return [json.loads(line) for line in done.stdout.splitlines()]


def task(name):
    return next((o for o in objects("tasks") if o["name"] == name), None)


def begin():
    """The project, up to where nothing moves any more."""
    Path("detent.yaml").write_text(PROJECT)
    one = Up()
    one.wait_for("web .*hello")
    one.wait_for("web .*oh")
    one.wait_for("flaky .*exit code 7")
    return one


class Screen(Terminal):
    """A command whose output is a terminal."""

    def __init__(self, *words, columns=100, rows=30):
        super().__init__([DETENT, *words], environment({"LANG": "C.UTF-8"}), columns, rows)

    def wait_for(self, text):
        while text not in self.text():
            check(self.read(), f"it ended without {text!r}: {self.text()}")

    def finish(self, code=0):
        found = self.end()
        equal((found, self.text()[-500:] if found != code else ""), (code, ""))
        return SANITIZER.sub("", self.text().replace("\r\n", "\n"))


def test_commands_fail_without_a_running_daemon():
    for words in (["tree"], ["tasks"], ["slots"], ["logs"], ["stop"], ["drain"], ["restart", "x"],
                  ["submit", "--", "true"]):
        detent(*words, code=3, err="there is no detent.yaml here or in a folder above")
    config(SLEEPER)
    for words in (["tree"], ["submit", "--", "true"]):
        detent(*words, code=3, err="start it with `detent up`")
    detent("tasks", "--project", "nowhere", code=3, err="there is no such folder")
    # What a killed one left does not answer.
    one = Up()
    one.wait_for("sleeper .*started")
    one.send(signal.SIGKILL)
    one.process.wait()
    detent("tasks", code=3, err="start it with `detent up`")


def test_status_commands_show_the_tasks():
    one = begin()
    done = detent("tasks")
    lines = done.stdout.splitlines()
    check(lines[0].split() == ["task", "state", "for", "attempt", "restarts", "process", "next",
                               "group", "why"], done.stdout)
    check(all(line == line.rstrip() for line in lines), done.stdout)
    detent("tasks", "flaky", out=["backoff", "in 1", "exit code 7"])
    detent("tasks", "late", out=["held", "waits for flaky"])
    equal([o["name"] for o in objects("tasks", "back")], ["database", "web"])
    detent("tasks", "wbe", code=3, err="there is no task or group 'wbe'; did you mean 'web'?")
    tree = detent("tree").stdout
    for part in ("\n|- back ", "\n|  |- database ", "\n|  `- web ", "\n|- flaky ", "\n`- late "):
        check(part in tree, tree)
    check(tree.startswith(Path.cwd().name), tree)
    equal([o["kind"] for o in objects("tree")], ["group"] + ["task"] * 4)
    detent("slots", out=["batch  idle", "0 of 1"])
    equal([o["width"] for o in objects("slots")], [1])
    # From a folder below, and from elsewhere.
    Path("below").mkdir()
    detent("tasks", "late", folder="below", out="waits for flaky")
    detent("tasks", "-C", os.getcwd(), folder="/", out="database")
    one.stop(0)


def test_a_terminal_gets_lines_and_colors_and_is_never_too_narrow():
    one = begin()
    text = Screen("tree").finish()
    check("\u251c\u2500 " in text and "\033[32mrunning" in text, text)
    for columns in (40, 60, 80, 200):
        for words in (["tasks"], ["tree"]):
            text = Screen(*words, "--color=never", columns=columns).finish()
            check(all(len(line) <= columns for line in text.splitlines()), text)
    low = Screen("tasks", "--watch", "--color=never", rows=4)
    low.wait_for("\n3 more")
    low.process.send_signal(signal.SIGINT)
    low.finish(130)
    watch = Screen("tasks", "--watch", "--color=never")
    watch.wait_for("in 1")
    check(task("flaky")["attempt"] == 1)
    detent("restart", "flaky", "--wait")
    watch.wait_for("\033[")
    detent("stop", "late", "--wait")
    wait_until(lambda: watch.read() and "late" not in watch.text().rpartition("\033[J")[2],
               "a table without it")
    watch.process.send_signal(signal.SIGINT)
    watch.finish(130)
    one.stop(0)


def test_orders():
    one = begin()
    before = task("web")["process"]
    detent("restart", "web", "--wait", err="web: restarted")
    check(task("web")["process"] not in (before, None))
    detent("restart", "back", "-w", err="back: 2 tasks restarted")
    detent("restart", "wbe", "web", code=3, err=["did you mean 'web'?", "web: restarting"])
    detent("restart", code=2, err="an argument is missing")
    detent("stop", "web", "--wait", err="web: stopped")
    equal(task("web")["state"], "stopped")
    detent("stop", "web", err="web: nothing to do")
    detent("drain", "flaky", "--wait", err="flaky: drained")
    detent("stop", "database", "--timeout", "1s", code=2, err="--timeout needs --wait")
    detent("drain", "database", "--wait", "--timeout", "1ms", code=5, err="database: not drained")
    detent("stop", "--purge", code=2)
    detent("stop", "--wait", err="Everything has stopped; detent up has exited.")
    # The place is free: the next one need not wait.
    again = Up()
    again.wait_for("database .*started")
    equal(one.process.wait(PATIENCE), 0)
    again.stop(0)


def test_draining_everything():
    config("  short: {run: [sh, -c, 'until test -e go; do sleep 0.01; done'], restart: never}\n")
    one = Up()
    one.wait_for("short .*started")
    waiting = subprocess.Popen([DETENT, "drain", "--wait"], stderr=subprocess.PIPE, text=True,
                               env=environment())
    wait_until(lambda: Client().one("status")["state"] == "draining", "that it drains")
    detent("submit", "--", "true", code=1)
    detent("drain", err="detent up exits when all attempts have finished")
    Path("go").touch()
    said = waiting.communicate(timeout=PATIENCE)[1]
    check("All attempts have finished" in said, said)
    one.end(0)


def test_failing_job_is_retried():
    config(SLEEPER, "defaults: {backoff: {first: 1ms, max: 1ms}}\n")
    one = Up()
    one.wait_for("sleeper .*started")
    detent("submit", "-w", "-r", "2", "--", "false", code=1, err="failed after 3 attempts")
    one.stop(0)


def test_jobs():
    one = begin()
    detent("submit", "batch", "-w", "--", "sh", "-c", "exit 3", code=3, err="failed: exit code 3")
    detent("submit", "--wait", "--", "true", err=["true-", "completed"])
    detent("submit", "-w", "-t", "50ms", "--", "sleep", "60", code=1, err="timed out after 50ms")
    Path("below").mkdir()
    detent("submit", "-w", "--", "sh", "-c", "pwd > here", folder="below")
    equal(Path("below/here").read_text().strip(), str(Path.cwd() / "below"))
    detent("submit", "batch", "--name", "first", "--", "sleep", "60", err="first: started")
    detent("submit", "batch", "--name", "second", "--", "true", err="second: waits")
    detent("tasks", "batch", out=["first", "second", "queued"])
    detent("slots", out=["1 of 1", "running", "first"])
    detent("submit", "batch", "--", "true", code=6, err="batch")
    detent("submit", "batch", "--drop", "--", "true", code=6)
    detent("submit", "--name", "web", "--", "true", code=4, err="web")
    detent("submit", "batch", "true", code=2, err="must follow two dashes")
    detent("submit", "bach", "--", "true", code=3, err="did you mean 'batch'?")
    detent("submit", "other", "--new-slot", "-w", "--", "true", err="completed")
    detent("submit", "--name", "a b", "--", "true", code=2, err="is not a name")
    detent("submit", "-w", "--", "no-such-program", code=1, err="no-such-program")
    waiting = subprocess.Popen([DETENT, "submit", "batch", "--replace", "-w", "--", "sleep", "60"],
                               stderr=subprocess.PIPE, text=True, env=environment())
    wait_until(lambda: task("first") is None, "the end of the first")
    detent("stop", "batch", "--purge", "--wait", err="batch: stopped")
    waiting.communicate(timeout=PATIENCE)
    equal(waiting.returncode, 1)
    equal([o["kind"] for o in objects("submit", "-w", "--", "true")], ["submitted", "end"])
    one.stop(0)


def test_interrupted_wait_leaves_the_job_running():
    one = begin()
    terminal = Screen("submit", "--wait", "--name", "long", "--", "sleep", "60")
    terminal.wait_for("started")
    terminal.process.send_signal(signal.SIGINT)
    check("long: still running; 'detent stop' stops it" in terminal.finish(130))
    equal(task("long")["state"], "running")
    one.stop(0)


def test_names_are_completed():
    one = begin()
    script = f"""
eval "$('{DETENT}' completion bash)"
complete_words() {{
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _detent; echo "${{COMPREPLY[*]}}"
}}
complete_words detent restart da
complete_words detent stop web ba
complete_words detent logs x
complete_words detent submit ba
complete_words detent drain --wa
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False,
                          env=environment())
    equal(done.stderr, "")
    equal(done.stdout, "database\nback\n\nbatch\n--wait\n")
    one.stop(0)


def test_logs():
    one = begin()
    lines = sorted(detent("logs", "web").stdout.splitlines())
    equal(lines, ["web ! oh", "web | hello"])
    equal(len(detent("logs", "back", "-n", "1").stdout.splitlines()), 1)
    equal({o["kind"] for o in objects("logs")}, {"line"})
    detent("logs", "wbe", code=3, err="did you mean 'web'?")
    follower = Screen("logs", "-f", "--color=never")
    follower.wait_for("hello")
    detent("submit", "-w", "--name", "job", "--", "echo", "something new")
    follower.wait_for("something new")
    detent("logs", "job", out="job | something new")
    detent("stop", "-w")
    check("The running detent has exited." in follower.finish(0))
    one.end(0)


if __name__ == "__main__":
    sys.exit(up.main(globals()))
