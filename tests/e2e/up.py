#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs `detent up` end to end, with real processes.

    up.py DETENT NASTY_CHILD [PART_OF_A_NAME]

Nothing here waits for time: a test waits for a fact, and fails when it has not come after a while.
Each function whose name starts with `test_` is one test and gets a fresh folder as its current one.
"""
import contextlib
import http.client
import inspect
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "lib"))
import patience  # noqa: E402  pylint: disable=wrong-import-position
from patience import HANG as PATIENCE  # noqa: E402  pylint: disable=wrong-import-position
from terminal import Terminal  # noqa: E402  pylint: disable=wrong-import-position

DETENT = str(Path(sys.argv[1]).resolve())
NASTY = str(Path(sys.argv[2]).resolve())
WANTED = next(iter(sys.argv[3:]), "")
GUARD = "detent-guard"
SANITIZER = re.compile(r"^==\d+==WARNING: ASan doesn't fully support makecontext.*\n", re.MULTILINE)
SLEEPER = "  sleeper: {run: sleep 60}\n"
running = []


class Failure(Exception):
    """What did not hold."""


def check(condition, text="it does not hold"):
    """`text` says what was found; it may be a function that makes it."""
    if not condition:
        raise Failure((text() if callable(text) else text) or "it does not hold: nothing was seen")


def equal(found, wanted):
    check(found == wanted, f"found:\n{found}\nwanted:\n{wanted}")


def is_listening(path=".detent/detent.sock"):
    """The file of the socket is there a moment before."""
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(path) == 0


def wait_until(condition, what):
    """Until it holds; returns what it said. `what` is a text, or a function that makes it when the
    wait has failed, of what is seen then."""
    found = patience.wait(condition)
    check(found, lambda: f"this did not come: {what() if callable(what) else what}")
    return found


def config(tasks, head=""):
    Path("detent.yaml").write_text(f"version: 1\n{head}tasks:\n{tasks}")


def environment(extra=None):
    return {"PATH": f"{Path(DETENT).parent}:{os.environ['PATH']}", "HOME": os.getcwd(),
            "TERM": "xterm", "DETENT_LISTEN": "none", **(extra or {})}


def is_there(number):
    """True if the process lives; a zombie does not."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def name_of(number):
    try:
        return Path(f"/proc/{number}/comm").read_text().strip()
    except OSError:
        return ""


def all_children_of(number):
    try:
        return [int(n) for n in Path(f"/proc/{number}/task/{number}/children").read_text().split()]
    except OSError:
        return []


def children_of(number):
    """Those that it was asked for: not the guard of the others."""
    return [child for child in all_children_of(number) if name_of(child) != GUARD]


class Up:
    """One `detent up` that runs, and what it has printed up to now."""

    def __init__(self, *words, env=None):
        self.start([DETENT, "up", *words], env)

    def start(self, command, env, **more):
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(env), start_new_session=True, errors="surrogateescape", **more)
        running.append(self)
        self.lines, self.talk = [], []
        self.readers = [threading.Thread(target=self.read, args=pair, daemon=True) for pair in
                        ((self.process.stdout, self.lines), (self.process.stderr, self.talk))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    @property
    def number(self):
        return self.process.pid

    def index(self, pattern, start=0):
        return next((i for i, line in enumerate(self.lines[start:], start)
                     if re.search(pattern, line)), -1)

    def wait_for(self, pattern, start=0):
        """The first line that matches; returns its place."""
        wait_until(lambda: self.index(pattern, start) >= 0 or self.process.poll() is not None,
                   lambda: f"{pattern}\n{self.shown()}")
        if self.process.poll() is not None:
            self.join()
        check(self.index(pattern, start) >= 0, f"it ended without {pattern}\n{self.shown()}")
        return self.index(pattern, start)

    def match(self, pattern):
        return re.search(pattern, self.lines[self.wait_for(pattern)])

    def shown(self):
        return "\n".join([*self.lines[-60:], "--- stderr", *self.talk[-40:]])

    def send(self, number):
        os.kill(self.number, number)

    def join(self):
        for reader in self.readers:
            reader.join(PATIENCE)

    def end(self, code=0):
        """Waits for its end, after which no process is left."""
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired as problem:
            raise Failure(f"it does not end:\n{self.shown()}") from problem
        self.join()
        found = self.process.returncode
        check(found == code, f"exit code {found}, not {code}:\n{self.shown()}")
        check(not Path(".detent/detent.sock").exists(), "the socket is still there")

    def stop(self, code=0):
        self.send(signal.SIGINT)
        self.end(code)

    def kill(self):
        """For the end of a test that failed: it and all below it."""
        for number in children_of(self.number):
            try:
                os.killpg(number, signal.SIGKILL)
            except OSError:
                pass
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


class Answer:
    """What was asked over HTTP, and the parts of its answer: items, events, or one object."""

    def __init__(self, method, path, body):
        self.connection = http.client.HTTPConnection("localhost", timeout=PATIENCE)
        self.connection.sock = socket.socket(socket.AF_UNIX)
        self.connection.sock.settimeout(PATIENCE)
        self.connection.sock.connect(".detent/detent.sock")
        headers = {"Content-Type": "application/json"} if body is not None else {}
        text = None if body is None else json.dumps(body)
        self.connection.request(method, path, text, headers)
        self.parts = self.read()

    def read(self):
        response = self.connection.getresponse()
        if response.getheader("content-type") == "text/event-stream":
            for line in response:
                if line.startswith(b"data: "):
                    yield {"data": json.loads(line[6:])}
        else:
            data = json.loads(response.read())
            found = [data.get(key) for key in ("groups", "tasks", "items")]
            if "error" in data:
                yield data
            elif any(isinstance(items, list) for items in found):
                for part in sum((items for items in found if isinstance(items, list)), []):
                    yield {"data": part}
            else:
                yield {"data": data}
        yield {"end": True}

    def close(self):
        self.connection.close()


def query_of(arguments):
    values = {key: str(value).lower() if isinstance(value, bool) else value
              for key, value in arguments.items()}
    return "?" + urllib.parse.urlencode(values) if values else ""


def request_of(verb, arguments):
    """Method, path and body of what the commands ask for."""
    name = arguments.pop("name", None)
    instance = f"/v1/machines/{arguments.pop('machine', '')}/instances"
    if verb in ("restart", "stop", "drain"):
        return "POST", f"/v1/tasks/{name}/{verb}" if name else f"/v1/{verb}", arguments
    if verb == "submit":
        slot = arguments.pop("slot", None)
        more = {"name": name} if name else {}
        if not slot:
            more["new_slot"], slot = True, f"slot-{time.monotonic_ns()}"
        return "POST", f"/v1/slots/{slot}/submissions", arguments | more
    if verb == "start":
        return "POST", instance, {"id": arguments["instance"]}
    if verb == "send":
        body = {"event": arguments["event"], "payload": json.loads(arguments.get("data", "{}"))}
        return "POST", f"{instance}/{arguments['instance']}/events", body
    if verb == "logs":
        names = arguments.pop("names", None)
        arguments |= {"task": ",".join(names)} if names else {}
    path = {"logs": "lines", "events": "task-events"}.get(verb, verb)
    return "GET", f"/v1/{path}{query_of(arguments)}", None


class Client:
    """Talks to the `detent up` of this folder."""

    def __init__(self):
        self.open = []
        wait_until(is_listening, "a socket that answers")

    def ask(self, verb, **arguments):
        self.open.append(Answer(*request_of(verb, arguments)))
        return self.open[-1]

    @staticmethod
    def next(request):
        return next(request.parts)

    def take(self, verb, arguments):
        """All parts but the end."""
        request = self.ask(verb, **arguments)
        found = list(request.parts)[:-1]
        self.open.remove(request)
        request.close()
        return found

    def one(self, verb, **arguments):
        answer = self.take(verb, arguments)[0]
        check("data" in answer, str(answer))
        return answer["data"]

    def all(self, verb, **arguments):
        found = self.take(verb, arguments)
        check(all("data" in answer for answer in found), str(found))
        return [answer["data"] for answer in found]

    def fails(self, code, text, verb, **arguments):
        answer = self.take(verb, arguments)[0]
        check("error" in answer, str(answer))
        equal(answer["error"]["code"], code)
        check(text in answer["error"]["text"], answer["error"]["text"])

    def task(self, name):
        return next((t for t in self.all("tasks") if t["name"] == name), None)

    def close(self):
        for request in self.open:
            request.close()
        self.open = []


# Starting.

def test_tasks_start_when_what_they_depend_on_is_ready():
    config("""
  web: {run: [sh, -c, 'echo web is up; exec sleep 60'], depends_on: [database, cache]}
  database:
    run: [sh, -c, 'until test -e go; do sleep 0.01; done; : > ready; exec sleep 60']
    ready: {check: [test, -e, ready], every: 10ms}
  cache:
    run: [sh, -c, 'detent notify --ready; exec sleep 60']
    ready: notify
    depends_on: {prepare: completed}
  prepare: {run: echo prepared, restart: never}
""")
    up = Up()
    up.wait_for("cache *= ready")
    client = Client()
    check(client.task("web")["waits_for"].startswith("database"), str(client.task("web")))
    equal(client.task("web")["state"], "held")
    equal(up.index("web is up"), -1)
    Path("go").touch()
    up.wait_for("web is up")
    order = [up.index(p) for p in ("prepare *= completed", "cache *= started",
                                   "database *= ready", "web *= started", "web is up")]
    equal(order, sorted(order))
    check(-1 not in order, up.shown())
    client.close()
    up.stop()
    stops = [up.index(f"{name} *= stopped") for name in ("web", "database")]
    check(-1 < stops[0] < stops[1], up.shown())


def test_named_tasks_run_with_their_dependencies():
    config("""
  a: {run: echo a, restart: never}
  b: {run: echo b, restart: never, depends_on: {a: completed}}
  c: {run: echo c, restart: never}
  d: {run: echo d, restart: never, group: glob}
""", "groups: {glob: {}}\n")
    up = Up("b")
    up.end()
    check(up.index("a *. a") >= 0 and up.index("b *. b") >= 0 and up.index("c *=") < 0, up.shown())
    up = Up("glob")
    up.end()
    check(up.index("d *. d") >= 0 and up.index("^a") < 0, up.shown())
    up = Up("glop")
    up.end(3)
    check("did you mean 'glob'" in "\n".join(up.talk), up.shown())


def test_bad_file_is_reported_completely_and_starts_nothing():
    config("  a: {run: touch started, restarts: never}\n  b: {run: nosuchprogram, slot: x}\n")
    up = Up()
    up.end(2)
    talk = "\n".join(up.talk)
    check("detent.yaml:3:" in talk and "detent.yaml:4:" in talk and "restart" in talk, talk)
    check(not Path("started").exists() and not Path(".detent").exists())
    Path("detent.yaml").unlink()
    Up().end(3)
    Up("-f", "other.yaml").end(3)


def test_second_daemon_is_refused():
    config(SLEEPER)
    up = Up()
    up.wait_for("sleeper *= started")
    second = Up()
    second.process.wait(PATIENCE)
    second.join()
    equal(second.process.returncode, 4)
    check("runs" in "\n".join(second.talk) or "running" in "\n".join(second.talk), second.shown())
    equal(second.lines, [])
    up.stop()


def test_leftovers_of_a_killed_daemon_are_replaced():
    config(SLEEPER)
    up = Up()
    up.wait_for("sleeper *= started")
    left = children_of(up.number)
    up.send(signal.SIGKILL)
    up.process.wait(PATIENCE)
    check(Path(".detent/detent.sock").exists())
    for number in left:
        with contextlib.suppress(ProcessLookupError):  # it has died with its parent
            os.killpg(number, signal.SIGKILL)
    up = Up()
    up.wait_for("sleeper *= started")
    client = Client()
    equal(client.one("status")["process"], up.number)
    client.close()
    up.stop()


# Running.

def test_crash_is_reported_with_reason_and_next_attempt():
    config("""
  crash:
    run: [sh, -c, 'echo boom >&2; exit 3']
    retries: 2
    backoff: {first: 20ms, max: 40ms, jitter: none}
""")
    up = Up()
    up.end(1)
    text = "\n".join(up.lines)
    for part in ("crash  ! boom", "crash  = exit code 3; attempt 2 in 20ms",
                 "crash  = started, attempt 2", "crash  = exit code 3; attempt 3 in 40ms",
                 "crash  = failed permanently after 3 attempts: exit code 3"):
        check(part in text, up.shown())


def test_up_ends_when_all_tasks_have_completed():
    config("  a: {run: 'true', restart: never}\n  b: {run: echo b}\n")
    up = Up()
    up.end(0)
    check(up.index("a *= completed") >= 0 and up.index("b *= completed") >= 0, up.shown())


def test_failed_group_is_reported_and_sets_the_exit_code():
    config("""
  x: {run: [sh, -c, 'exit 1'], group: g, backoff: {first: 1ms, max: 1ms}}
  y: {run: sleep 60, group: g}
""", "groups: {g: {strategy: all-for-one, intensity: {count: 2, window: 60s}}}\n")
    up = Up()
    up.end(1)
    check(up.index("g *= restarts its members") >= 0, up.shown())
    check(up.index("g *= the group has failed") >= 0, up.shown())


def test_lines_are_never_mixed():
    script = 'i=0; while [ $i -lt 3000 ]; do echo "$0 $i end"; i=$((i+1)); done'
    config("".join(f"  t{n}: {{run: [sh, -c, '{script}', t{n}], restart: never}}\n"
                   for n in range(4)))
    up = Up("-q")
    up.end()
    equal(len(up.lines), 4 * 3000)
    for name in ("t0", "t1", "t2", "t3"):
        mine = [line for line in up.lines if line.startswith(name)]
        equal(mine, [f"{name}     | {name} {i} end" for i in range(3000)])


def test_quiet_prints_only_lines_and_failures():
    config("  a: {run: echo a, restart: never}\n  b: {run: 'false', restart: never}\n")
    up = Up("--quiet")
    up.end(1)
    equal(sorted(up.lines),
          ["a      | a", "b      = failed permanently after 1 attempt: exit code 1"])
    equal(SANITIZER.sub("", "\n".join(up.talk)), "")


def test_json_is_one_object_a_line():
    config("  a: {run: [sh, -c, 'echo out; printf \"\\\\377\" >&2'], restart: never}\n")
    up = Up("--json")
    up.end()
    found = [json.loads(line) for line in up.lines]
    lines = [o for o in found if o["kind"] == "line"]
    equal(sorted((o["name"], o["stream"], o["text"]) for o in lines),
          [("a", "error", "\\xff"), ("a", "output", "out")])
    events = [o["event"] for o in found if o["kind"] == "event"]
    for label in ("attempt_starting", "attempt_succeeded", "task_finished", "all_stopped"):
        check(label in events, str(events))


def test_times_and_the_journal():
    config("  a: {run: echo a, restart: never}\n")
    Up("--times", "--journal", "events").end()
    up = Up("--times", "--journal", "events")
    up.end()
    check(all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", line) for line in up.lines),
          up.shown())
    kinds = [json.loads(line).get("kind") for line in Path("events").read_text().splitlines()]
    equal(kinds.count("all_stopped"), 2)
    Path("events").write_text("no journal\n" * 3)
    Path("dir").mkdir()
    Up("--journal", "dir").end(1)


def test_closed_output_pipe_ends_up():
    config("  a: {run: [sh, -c, 'while :; do echo a; sleep 0.01; done']}\n")
    process = subprocess.Popen([DETENT, "up", "-q"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, env=environment())
    process.stdout.readline()
    process.stdout.close()
    equal(process.wait(PATIENCE), 1)


def test_closed_standard_streams_are_not_reused():
    """What is opened later must not take their numbers: lines would end in it."""
    config("  a: {run: echo hello, restart: never}")
    for closed in ("<&-", ">&-", "<&- >&-"):
        shell = f'exec "{DETENT}" up {closed}'
        done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False,
                              timeout=PATIENCE, env=environment())
        equal(done.returncode, 1 if ">" in closed else 0)
        equal("cannot write the output: Bad file descriptor" in done.stderr, ">" in closed)


def test_unread_output_blocks_nothing():
    config(f"  flood: {{run: [sh, -c, 'until test -e go; do sleep 0.01; done; {NASTY} flood 8']}}\n"
           f"  wide: {{run: [{NASTY}, deaf], grace: forever}}\n", "limits: {shutdown: 100ms}\n")
    process = subprocess.Popen([DETENT, "up"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=environment(), text=True)
    client = Client()
    Path("go").touch()
    wait_until(lambda: client.task("flood")["state"] == "completed",
               "the end of what nobody reads")
    equal(client.one("stop", name="wide")["count"], 1)
    equal(client.one("stop")["kind"], "done")
    wait_until(lambda: not Path(".detent/detent.sock").exists(), "the end of all")
    client.close()
    lines = process.stdout.read().splitlines()
    equal(process.wait(PATIENCE), 5)
    process.stdout.close()
    hidden = sum(int(m[1]) for m in (re.search(r"detent *= (\d+) lines? (?:is|are) not shown", line)
                                     for line in lines) if m)
    shown = sum(line.startswith("flood") and " x" in line for line in lines)
    equal(shown + hidden, 8 * 16 * 1024)
    check(hidden > 0 and shown > 0, f"{hidden} hidden, {shown} shown")


def test_sighup_is_reported_and_harmless():
    config(SLEEPER)
    up = Up()
    up.wait_for("sleeper *= started")
    up.send(signal.SIGHUP)
    up.wait_for("reload: no changes")
    up.send(signal.SIGTERM)
    up.end()
    check(up.index("terminated: stopping all tasks") >= 0, up.shown())


# Stopping.

def test_interrupt_stops_all_tasks_and_leaves_no_process():
    config("  a: {run: sleep 60}\n  b: {run: [sh, -c, 'sleep 60 & wait']}\n")
    up = Up()
    up.wait_for("a *= started")
    up.wait_for("b *= started")
    numbers = wait_until(lambda: len(children_of(up.number)) == 2 and children_of(up.number),
                         "two children")
    numbers += [n for number in numbers for n in children_of(number)]
    up.stop()
    check(up.index("interrupted: stopping all tasks") >= 0, up.shown())
    check(not any(is_there(n) for n in numbers), "somebody is still there")


def test_second_interrupt_kills_the_tasks():
    config(f"  deaf: {{run: [{NASTY}, deaf], grace: forever}}\n")
    up = Up()
    up.wait_for(r"deaf *\| ready")
    number = children_of(up.number)[0]
    up.send(signal.SIGINT)
    up.wait_for("stopping all tasks")
    up.wait_for("still running: deaf; killed in")
    check(is_there(number))
    up.stop(5)
    check(up.index("again: killing all remaining tasks") >= 0, up.shown())
    check(not is_there(number))


def test_task_that_does_not_stop_in_its_grace_is_killed():
    config(f"  deaf: {{run: [{NASTY}, deaf], grace: 100ms}}\n")
    up = Up()
    up.wait_for(r"deaf *\| ready")
    up.stop(5)
    check(up.index("deaf *= killed") >= 0, up.shown())


def test_total_stop_time_is_limited():
    config(f"  deaf: {{run: [{NASTY}, deaf], grace: forever}}\n", "limits: {shutdown: 200ms}\n")
    up = Up()
    up.wait_for(r"deaf *\| ready")
    up.stop(5)
    check(up.index("did not stop in time and were killed: deaf") >= 0, up.shown())


def test_the_keys_of_the_terminal_reach_only_detent():
    config("""
  a: {run: [sh, -c, 'trap "echo INT" INT; trap "echo TERM; exit 0" TERM; echo ready;
                     while :; do sleep 0.05; done']}
""")
    terminal = Terminal([DETENT, "up"], environment(), keys=True)
    while b"ready" not in terminal.bytes:
        check(terminal.read(), f"it ended: {terminal.text()}")
    os.write(terminal.main, b"\x03")
    equal(terminal.end(), 0)
    text = terminal.bytes
    check(b"\033[" in text and b"TERM" in text, text.decode())
    check(b"| INT" not in re.sub(rb"\033\[[0-9;]*m", b"", text), text.decode())


# Children that behave badly.

def test_nasty_children_are_ended():
    config(f"""
  family: {{run: [{NASTY}, family], restart: never}}
  runaway: {{run: [{NASTY}, runaway], restart: never}}
  frozen: {{run: [{NASTY}, frozen], restart: never}}
  tree: {{run: [{NASTY}, generations, '5'], restart: never, grace: 100ms}}
  raise: {{run: [{NASTY}, raise, '6'], restart: never}}
  binary: {{run: [{NASTY}, binary], restart: never}}
  flood: {{run: [{NASTY}, flood, '2'], restart: never}}
""")
    up = Up()
    in_group = int(up.match(r"family *\| (\d+)")[1])
    runaway = int(up.match(r"runaway *\| (\d+)")[1])
    up.wait_for("family *= completed")
    up.wait_for("runaway *= completed")
    wait_until(lambda: not is_there(in_group), "the end of what was left in the group")
    check(is_there(runaway))
    up.wait_for("raise *= failed permanently after 1 attempt: killed by signal 6")
    up.wait_for("binary *= completed")
    up.wait_for("flood *= completed")
    up.wait_for(r"frozen *\| ready")
    wait_until(lambda: sum(bool(re.match(r"tree *\| \d+", line)) for line in up.lines) == 5,
               "five generations")
    tree = [int(line.split()[-1]) for line in up.lines if re.match(r"tree *\| \d+", line)]
    up.stop(5)
    check(not any(is_there(n) for n in tree), "the tree still stands")
    check(not is_there(runaway), "the runaway got away")
    check(up.index("left running by") >= 0, up.shown())
    check(not any("\x1b" in line or "\x00" in line for line in up.lines), "bytes as they were")


def test_orphans_that_have_ended_are_no_zombies():
    config("""
  a:
    run: [sh, -c, 'setsid sh -c "echo \\$\\$ > orphan; until test -e go; do sleep 0.01; done" &
                   until test -s orphan; do sleep 0.01; done']
    restart: never
  b: {run: sleep 60}
""")
    up = Up()
    up.wait_for("a *= completed")
    orphan = int(Path("orphan").read_text())
    wait_until(lambda: orphan in children_of(up.number), "an orphan that is adopted")
    Path("go").touch()
    wait_until(lambda: not Path(f"/proc/{orphan}").exists(), "an orphan that is reaped")
    up.stop()


# The second terminal.

def test_tasks_groups_and_slots_can_be_listed():
    config("""
  a: {run: sleep 60, group: g}
  b: {run: sleep 60, slot: s}
  c: {run: sleep 60, slot: s}
""", "groups: {top: {}, g: {parent: top, strategy: rest-for-one}}\nslots: {s: {depth: 5}}\n")
    up = Up()
    up.wait_for("a *= started")
    client = Client()
    status = client.one("status")
    tasks = status["tasks"]
    equal([status["state"], tasks["registered"], tasks["queued"], status["process"]],
          ["running", 2, 1, up.number])
    equal(status["project"], os.getcwd())
    tree = client.all("tree")
    equal([(o["kind"], o["name"]) for o in tree],
          [("group", "top"), ("group", "g"), ("task", "a"), ("task", "b"), ("task", "c")])
    equal([tree[1]["parent"], tree[1]["strategy"], tree[1]["members"]], ["top", "rest-for-one", 1])
    task = client.task("a")
    equal([task["group"], task["slot"], task["type"], task["state"], task["ready"]],
          ["g", None, "process", "running", True])
    check(task["process"] in children_of(up.number), str(task))
    equal([client.task("c")["state"], client.task("c")["slot"]], ["queued", "s"])
    slot = client.all("slots")[0]
    equal([slot["name"], slot["state"], slot["depth"], slot["depth_max"], slot["owner_name"]],
          ["s", "running", 1, 5, "b"])
    client.fails("INVALID", "unknown query parameter 'nam'", "tasks", nam="a")
    client.fails("NOT_FOUND", "no such path", "taskss")
    client.close()
    up.stop()


def test_orders_are_answered_when_they_are_done():
    config("""
  a: {run: sleep 60}
  b: {run: [sh, -c, 'until test -e go; do sleep 0.01; done'], restart: always}
  c: {run: sleep 60, group: group}
  d: {run: sleep 60, group: group}
""", "groups: {group: {}}\n")
    up = Up()
    up.wait_for("d *= started")
    client = Client()
    before = client.task("a")
    equal(client.one("restart", name="a", wait=True), {"kind": "done", "count": 1})
    after = client.task("a")
    equal([after["id"], after["attempt"]], [before["id"], 2])
    check(after["process"] != before["process"] and not is_there(before["process"]))
    equal(client.one("restart", name="group", wait=True)["count"], 2)
    equal([client.task(n)["attempt"] for n in "cd"], [2, 2])
    equal(client.one("stop", name="a", wait=True)["count"], 1)
    equal([client.task("a")[key] for key in ("state", "process")], ["stopped", None])
    equal(client.one("stop", name="a")["count"], 0)
    equal(client.one("restart", name="a", wait=True)["count"], 1)
    equal(client.task("a")["state"], "running")
    equal(client.one("stop", name="group", wait=True)["count"], 2)
    equal([client.task(n)["state"] for n in "cd"], ["held", "held"])
    equal(client.one("restart", name="group", wait=True)["count"], 2)
    equal([client.task(n)["state"] for n in "cd"], ["running", "running"])
    request = client.ask("drain", name="b", wait=True)
    Path("go").touch()
    equal(client.next(request)["data"], {"kind": "done", "count": 1})
    equal(client.task("b")["state"], "completed")
    client.fails("NOT_FOUND", "did you mean 'group'", "stop", name="grup")
    client.fails("NOT_FOUND", "there is no task or group", "restart", name="zzzzzz")
    client.fails("NOT_FOUND", "no such path", "restart")
    client.fails("INVALID", "'wait' of the body", "stop", name="a", wait=1)
    client.fails("UNKNOWN_FIELD", "unknown member 'purge'", "stop", purge=True)
    request = client.ask("stop", wait=True)
    equal(client.next(request)["data"]["kind"], "done")
    up.end()
    client.close()


def test_ended_task_stays_listed_and_can_be_restarted():
    config("""
  once: {run: [sh, -c, 'test -e right || exit 7'], restart: never}
  prepare: {run: 'true', restart: never}
  web: {run: sleep 60, depends_on: {once: completed}}
  database: {run: sleep 60, depends_on: {prepare: completed}}
""")
    up = Up()
    up.wait_for("once *= failed permanently")
    up.wait_for("database *= started")
    client = Client()
    equal([client.task(n)["state"] for n in ("once", "prepare", "web", "database")],
          ["failed", "completed", "held", "running"])
    equal([client.task("once")["last"]["exit_code"], client.task("once")["reason"]],
          [7, "exit code 7"])
    equal(client.task("web")["waits_for"], "once: failed: exit code 7")
    up.wait_for("web *= waits for once: failed: exit code 7")
    equal(client.one("stop", name="database", wait=True)["count"], 1)
    equal(client.task("database")["state"], "stopped")
    equal(client.one("restart", name="database", wait=True)["count"], 1)
    equal(client.task("database")["state"], "running")
    equal(client.one("stop", name="web")["count"], 1)
    equal(client.one("restart", name="web")["count"], 1)
    equal(client.one("drain", name="web", wait=True)["count"], 1)
    equal(client.task("web")["state"], "stopped")
    client.fails("REFUSED", "web depends on once: failed: exit code 7; restart that first",
                 "restart", name="web")
    Path("right").touch()
    equal(client.one("restart", name="once", wait=True)["count"], 1)
    equal(client.one("restart", name="web")["count"], 1)
    up.wait_for("web *= started")
    equal(client.one("restart", name="prepare", wait=True)["count"], 1)
    equal(client.one("drain", name="database")["count"], 1)
    client.close()
    up.stop(1)


def test_waiting_submissions_do_not_own_a_slot():
    config("""
  load: {run: echo loaded, slot: b, depends_on: {fetch: completed}, restart: never}
  fetch: {run: echo fetched, slot: b, restart: never}
  after: {run: echo after, depends_on: {load: completed}, restart: never}
""", "slots: {b: {}}\n")
    up = Up()
    up.end()
    check(up.index("load *. loaded") > up.index("fetch *. fetched"), up.shown())
    check(up.index("after *. after") > up.index("load *. loaded"), up.shown())


def test_submission_waiting_for_its_slot_can_be_stopped():
    config("""
  sleeper: {run: sleep 60}
  load: {run: echo loaded, slot: b, depends_on: {sleeper: completed}, restart: never}
""", "slots: {b: {}}\n")
    up = Up()
    up.wait_for("sleeper *= started")
    client = Client()
    equal([client.task("load")[key] for key in ("state", "waits_for", "slot")],
          ["held", "sleeper: not completed yet", "b"])
    equal(client.all("slots")[0]["owners"], 0)
    equal(client.one("stop", name="load")["count"], 1)
    equal(client.task("load")["state"], "stopped")
    client.close()
    up.stop()


def test_scheduled_runs_are_not_printed_as_restarts():
    config("""
  tick: {run: 'true', schedule: {every: 20ms}}
  tock: {run: 'false', schedule: {every: 20ms}}
""")
    up = Up()
    up.wait_for("tick *= succeeded; next run in")
    up.wait_for("tock *= exit code 1; next run in")
    up.wait_for("tick *= succeeded", up.wait_for("tick *= succeeded") + 1)
    check(up.index("attempt") < 0, up.shown())
    up.stop()


def test_a_member_that_was_stopped_keeps_its_place():
    config("""
  a: {run: sleep 60, group: g}
  b: {run: sleep 60, group: g}
""", "groups: {g: {strategy: rest-for-one}}\ndefaults: {backoff: {first: 1ms, max: 1ms}}\n")
    up = Up()
    up.wait_for("b *= started")
    client = Client()
    equal(client.one("stop", name="a", wait=True)["count"], 1)
    equal(client.one("restart", name="a", wait=True)["count"], 1)
    os.kill(client.task("a")["process"], signal.SIGKILL)
    up.wait_for("g *= restarts its members")
    up.wait_for("b *= started, attempt 2")
    client.close()
    up.stop()


def test_up_ends_when_the_rest_waits_for_a_failed_task():
    config("""
  once: {run: [sh, -c, 'exit 7'], restart: never}
  web: {run: sleep 60, depends_on: {once: completed}}
  late: {run: sleep 60, depends_on: [web], slot: b}
""", "slots: {b: {}}\n")
    up = Up()
    up.end(1)
    check(up.index("web *= waits for once: failed: exit code 7") >= 0, up.shown())
    check(up.index("detent = no task can proceed") >= 0, up.shown())


def test_failed_group_can_be_restarted():
    config("""
  crash: {run: [sh, -c, 'test -e mended || exit 1; exec sleep 60'], group: group,
          backoff: {first: 1ms, max: 1ms}}
  queued: {run: sleep 60, slot: batch}
  sleeper: {run: sleep 60, slot: batch}
""", "groups: {group: {intensity: {count: 1, window: 60s}}}\nslots: {batch: {}}\n")
    up = Up()
    up.wait_for("crash *= failed permanently")
    client = Client()
    equal(client.all("tree")[0]["state"], "failed")
    Path("mended").touch()
    equal(client.one("restart", name="group", wait=True)["count"], 1)
    equal([client.all("tree")[0]["state"], client.task("crash")["state"]], ["running", "running"])
    equal(client.one("restart", name="sleeper")["count"], 0)
    equal([t["name"] for t in client.all("tasks")].count("sleeper"), 1)
    client.close()
    up.stop(1)


def test_drain_lets_running_attempts_finish():
    config("""
  a: {run: [sh, -c, 'until test -e go; do sleep 0.01; done'], restart: always}
  b: {run: [sh, -c, 'exit 1'], backoff: {first: 1h, max: 1h}}
""")
    up = Up()
    up.wait_for("b *= exit code 1; attempt 2 in")
    client, other = Client(), Client()
    request = client.ask("drain", wait=True)
    wait_until(lambda: other.one("status")["state"] == "draining", "that it drains")
    other.fails("CLOSED", "admits no more jobs", "submit", run=["true"])
    equal([(t["name"], t["state"]) for t in other.all("tasks")],
          [("a", "running"), ("b", "stopped")])
    Path("go").touch()
    equal(client.next(request)["data"], {"kind": "done", "count": 2})
    up.end()
    client.close()
    other.close()


def test_jobs_run_one_after_the_other():
    config(SLEEPER, "slots: {batch: {depth: 1}}\n")
    up = Up()
    client = Client()
    request = client.ask("submit", slot="batch", run=["sh", "-c", "echo $X; pwd; exit 4"],
                         environment={"X": "from here"}, folder=".detent", wait=True)
    answer = client.next(request)["data"]
    equal([answer["kind"], answer["started"]], ["submitted", True])
    end = client.next(request)["data"]
    equal([end["kind"], end["id"], end["outcome"], end["exit_code"], end["attempts"]],
          ["end", answer["id"], "failed", 4, 1])
    check("end" in client.next(request))
    up.wait_for(r"sh-1 *\| from here")
    up.wait_for(r"sh-1 *\| .*\.detent$")
    equal(client.all("submit", run=["nosuchprogram"], wait=True)[1]["outcome"], "failed")
    equal(client.all("submit", run=["false"], retries=1, wait=True)[1]["attempts"], 2)
    equal(client.all("submit", run=["sleep", "60"], timeout_ns=1000000, wait=True)[1]["outcome"],
          "failed")
    client.one("submit", slot="batch", name="first", run=["sleep", "60"])
    equal(client.one("submit", slot="batch", name="second", run=["sleep", "60"])["depth"], 1)
    client.fails("REFUSED", "the queue is full", "submit", slot="batch", run=["true"])
    client.fails("REFUSED", "the slot is busy", "submit", slot="batch", admission="drop",
                 run=["true"])
    client.fails("INVALID", "admission", "submit", slot="batch", admission="now", run=["true"])
    client.fails("INVALID", "needs 'run'", "submit", slot="batch")
    client.fails("INVALID", "an array of texts", "submit", run="true")
    other = Client()
    waiting = other.ask("submit", slot="batch", name="third", run=["sleep", "60"],
                        admission="replace-all", wait=True)
    equal(other.next(waiting)["data"]["kind"], "submitted")
    wait_until(lambda: (client.task("third") or {}).get("state") == "running", "the third")
    equal(client.one("stop", name="batch", purge=True, wait=True)["count"], 1)
    equal(other.next(waiting)["data"]["outcome"], "cancelled")
    equal(client.all("slots")[0]["state"], "idle")
    client.close()
    other.close()
    up.stop()


def test_lines_can_be_read_again_and_followed():
    config("""
  a: {run: [sh, -c, 'for i in 1 2 3 4 5; do echo a$i; done; exec sleep 60']}
  b: {run: [sh, -c, 'echo b >&2; until test -e go; do sleep 0.01; done; echo gone; exec sleep 60']}
""")
    up = Up()
    up.wait_for("a5")
    up.wait_for("b *! b")
    client, other = Client(), Client()
    equal([line["text"] for line in client.all("logs", names=["a"], lines=2)], ["a4", "a5"])
    line = client.all("logs", names=["b"])[0]
    equal([line["kind"], line["name"], line["stream"], line["cut"], line["missed"]],
          ["line", "b", "error", False, 0])
    equal(len(client.all("logs")), 6)
    equal(client.all("logs", lines=0), [])
    request = other.ask("logs", names=["b"], lines=0, follow=True)
    client.one("status")
    Path("go").touch()
    equal(other.next(request)["data"]["text"], "gone")
    other.close()
    events = client.all("events")
    equal([e["sequence"] for e in events], list(range(1, len(events) + 1)))
    equal(client.all("events", after=events[-2]["sequence"]), events[-1:])
    request = client.ask("events", after=events[-1]["sequence"], follow=True)
    equal(Client().one("restart", name="a")["count"], 1)
    data = client.next(request)["data"]
    if data["event"] == "ordered":
        equal(data["reason"], f"POST /v1/tasks/a/restart: done, by user {os.geteuid()} from unix")
        data = client.next(request)["data"]
    equal(data["event"], "attempt_cancelled")
    client.close()
    up.stop()


def test_slow_log_reader_delays_no_other():
    config(f"  flood: {{run: [sh, -c, 'until test -e go; do sleep 0.01; done; {NASTY} flood 3']}}\n"
           "  last: {run: sleep 60, depends_on: {flood: completed}}\n")
    up = Up("-q")
    slow, client = Client(), Client()
    request = slow.ask("logs", follow=True)
    client.one("status")
    Path("go").touch()
    wait_until(lambda: (client.task("last") or {}).get("state") == "running", "the end of it")
    seen = missed = 0
    while seen + missed < 3 * 16 * 1024:
        line = slow.next(request)["data"]
        seen, missed = seen + 1, missed + line["missed"]
    equal(seen + missed, 3 * 16 * 1024)
    client.close()
    slow.close()
    up.stop()


def test_notify_reports_errors():
    def notify(code, text, *words, **env):
        done = subprocess.run([DETENT, "notify", *words], env=environment(env), text=True,
                              capture_output=True, check=False)
        equal(done.returncode, code)
        check(text in done.stderr, done.stderr)
    notify(2, "nothing to report")
    notify(2, "one line", "a\nb")
    notify(3, "NOTIFY_SOCKET is not set", "--ready")
    notify(1, "not the name of a socket", "--ready", NOTIFY_SOCKET="x")
    notify(1, "cannot reach", "--ready", "up", NOTIFY_SOCKET="@nobody-is-here")


def seen_of(one):
    """What is known of something that still runs when a test has failed."""
    shown = one.shown() if hasattr(one, "shown") else getattr(one, "text", "")
    return f"--- {type(one).__name__} {one.process.args}\n{shown}"


def test_output_over_the_rate_is_dropped_in_whole_lines():
    Path("loud.py").write_text(
        "import sys, time\n"
        "end = time.monotonic() + 2.5\n"
        "number = 0\n"
        "while time.monotonic() < end:\n"
        "    for _ in range(50):\n"
        "        print(f'line {number} ' + 'x' * 20)\n"
        "        number += 1\n"
        "    sys.stdout.flush()\n")
    config(f"  loud: {{run: [{sys.executable}, loud.py], output_limit: 1KiB, restart: never}}\n")
    up = Up()
    up.end()
    lines = [line.partition("| ")[2] for line in up.lines if re.search("^loud *. line|^loud *[|]",
                                                                      line)]
    torn = [line for line in lines if not re.fullmatch(r"line \d+ x{20}", line)]
    check(not torn, f"torn lines: {torn[:5]}")
    notices = [line for line in up.lines if "bytes of output were dropped" in line]
    # One a second, and one at the end.
    check(1 <= len(notices) <= 5, "\n".join(notices))
    check(20 <= len(lines) <= 200, f"{len(lines)} lines passed")


def test_files_of_variables_limits_and_a_log():
    Path("a.env").write_text("# one\nFIRST=1\nexport SECOND=\"two words\"\n\nTHIRD='3'\n")
    Path("b.env").write_text("FIRST=other\n")
    Path("logs").mkdir()
    config("""
  web:
    run: [sh, -c, 'echo "$FIRST/$SECOND/$THIRD"; ulimit -n; ulimit -c; ulimit -t; echo oh >&2']
    env_file: [a.env, b.env]
    environment: {THIRD: three}
    limits: {open_files: 77, core: 0B, cpu: 1500ms, memory: 1GiB}
    log: {path: logs/web.log, max_size: 1MiB, keep: 2, max_age: 1d}
    restart: never
""")
    up = Up()
    up.end()
    texts = [line.partition("| ")[2] for line in up.lines if " | " in line]
    equal(texts, ["other/two words/three", "77", "0", "2"])
    log = Path("logs/web.log")
    lines = log.read_text().splitlines()
    check(all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z [|!] ", line) for line in lines),
          lines)
    equal(sorted(line[25:] for line in lines),
          sorted(["| other/two words/three", "| 77", "| 0", "| 2", "! oh"]))
    equal(log.stat().st_mode & 0o777, 0o600)


def test_a_limit_ends_what_exceeds_it():
    config("  a: {run: [sh, -c, 'while :; do :; done'], limits: {cpu: 1s}, restart: never}\n")
    up = Up()
    up.wait_for("a *= failed permanently after 1 attempt: .*(KILL|XCPU)")
    up.end(1)


def test_check_reports_mistakes_in_process_settings():
    config("""
  a: {run: sleep 1, env_file: none.env}
  b: {run: sleep 1, env_file: bad.env}
  c: {run: sleep 1, limits: {cpus: 1}}
  d: {run: sleep 1, log: nowhere/d.log}
  e: {run: sleep 1, log: {max_size: 1MiB}}
  f: {run: sleep 1, schedule: {cron: "0 9 * * *", timezone: Mars/Base}}
  g: {run: sleep 1, schedule: {every: 1h, timezone: Europe/Berlin}}
  h: {run: sleep 1, schedule: {cron: "0 9 * * *", timezone: ../../etc/passwd}}
""")
    Path("bad.env").write_text("A=1\nthis is not it\n")
    done = subprocess.run([DETENT, "check", "detent.yaml"], env=environment(), text=True,
                          capture_output=True, check=False)
    for text in ("'limits' of a task has no key 'cpus'", "'log' needs 'path'",
                 "there is no time zone 'Mars/Base'", "'timezone' needs 'cron'",
                 "'timezone' is the name of a time zone"):
        check(text in done.stderr, f"no {text} in\n{done.stderr}")
    config("""
  a: {run: sleep 1, env_file: none.env}
  b: {run: sleep 1, env_file: bad.env}
  d: {run: sleep 1, log: nowhere/d.log}
  f: {run: sleep 1, schedule: {cron: "0 9 * * *", timezone: Europe/Berlin}}
""")
    done = subprocess.run([DETENT, "check", "detent.yaml"], env=environment(), text=True,
                          capture_output=True, check=False)
    for text in ("none.env: there is no such file", "bad.env: line 2 is not NAME=value",
                 "nowhere: there is no such folder"):
        check(text in done.stderr, f"no {text} in\n{done.stderr}")
    check("timezone" not in done.stderr, done.stderr)


def main(names):
    tests = [(n, f) for n, f in names.items() if n.startswith("test_") and WANTED in n]
    failed = 0
    for name, function in sorted(tests, key=lambda t: inspect.getsourcelines(t[1])[1]):
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                function()
                print(f"ok      {name} ({time.monotonic() - begun:.1f} s)", flush=True)
            except (Failure, OSError, subprocess.SubprocessError, ValueError, KeyError,
                    IndexError, TypeError, StopIteration) as problem:
                failed += 1
                print(f"not ok  {name}\n  {type(problem).__name__}: {problem}", flush=True)
                for one in running:
                    print(seen_of(one), flush=True)
            while running:
                running.pop().kill()
            os.chdir("/")
    print(f"{len(tests)} tests, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main(globals()))
