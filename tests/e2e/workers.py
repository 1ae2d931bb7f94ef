#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs the workers of a detent.yaml, end to end: the tree, reload, workers by hand, kill -9.

    workers.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py.
"""
import json
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import up
from machines import detent, objects, one, run
from observe import ask, listens
from reload import ORDER
from up import Client, Up, check, equal, wait_until

QUICK = "  limits: {tick: 20ms, observe_every: 50ms}\n"
PLANT = """version: 1
workers:
  name: plant
{more}{quick}  children:
    - name: press
      kind: examplechild
      config: {{address: "{{{{ .IP }}}}", device: "{{{{ .global.site }}}}"}}
      variables: {{IP: {ip}}}
    - name: line
      kind: application
      children:
        - {{name: a, kind: examplechild, config: {{address: a}}}}
        - {{name: b, kind: helloworld}}
{children}"""
HELLO = "    - {name: hello, kind: helloworld}\n"


def plant(ip="10.0.0.7", site="north", children=HELLO, quick=QUICK, more=""):
    """A detent.yaml with a tree of workers."""
    Path("detent.yaml").write_text(PLANT.format(
        ip=ip, children=children, quick=quick, more=f"  globals: {{site: {site}}}\n{more}"))


def simple(children, more="", quick=QUICK):
    Path("detent.yaml").write_text(
        f"version: 1\nworkers:\n  name: plant\n{quick}{more}  children:\n{children}")


def workers(*words):
    return {worker["id"]: worker for worker in objects("workers", *words)}


def wait_state(name, state):
    """The worker, once it is there."""
    def look():
        done = run("workers", name, "--json")
        found = [json.loads(line) for line in done.stdout.splitlines()]
        return found[0] if found and found[0]["state"] == state else None
    return wait_until(look, f"{name} in {state}")


def wait_gone(name):
    wait_until(lambda: run("workers", name, "--json").returncode == 3, f"the end of {name}")


def test_worker_tree_is_supervised_and_shown():
    simple("    - name: press\n      kind: examplechild\n"
           "      config: {address: '{{ .IP }}:502', device: a}\n" + HELLO,
           more="  variables: {IP: 10.0.0.7}\n")
    it = Up()
    it.wait_for("workers = state_transition .*press.* to=connected")
    wait_state("hello", "running")
    detent("workers", out=["plant", "|- press", "`- hello", "connected", "running"])
    detent("workers", "press", out="plant/press")
    detent("status", out=["workers    3\n", "3 running"])
    equal(one("status")["workers"]["running"], 3)
    found = workers()
    equal(list(found), ["plant", "plant/press", "plant/hello"])
    press = found["plant/press"]
    equal((press["worker_kind"], press["phase"], press["freshness"], press["depth"],
           press["by_hand"], press["counts"]["startups"]),
          ("examplechild", "running", "fresh", 1, False, 1))
    detent("desired", "press", out=["plant/press (examplechild): connected", "10.0.0.7:502"])
    equal(one("desired", "plant/press")["desired"], {"address": "10.0.0.7:502", "device": "a"})
    detent("observed", "press", out=["observed ", "is_connected", "true"])
    observed = one("observed", "hello")
    equal((observed["observed"]["hello_said"], observed["metrics"]["hellos_said"]), (True, 1))
    detent("workers", "press", "--history", out=["connect done", "stopped -> trying_to_connect"])
    equal(objects("workers", "press", "--history")[0]["to"], "connected")
    detent("dump", out=["plant/press", "10.0.0.7:502", "deltas"])
    dump = objects("dump")
    check([o["sync"] for o in dump if o["type"] == "delta"][0] == 1, dump[:2])
    last = dump[-1]["sync_latest"]
    check(all(o["sync"] > last - 3 for o in objects("dump", "--since", str(last - 3))
              if o["type"] == "delta"), "older ones are shown")
    equal({o["id"] for o in objects("dump", "--below", "plant/press") if o["type"] == "document"},
          {"plant/press"})
    it.stop()
    check(it.index("worker_removed worker=plant\\(application\\)$") >= 0, it.shown())
    detent("workers", code=3, err="no detent is running here")


def test_worker_config_errors_have_their_place():
    cases = (("    - {name: a, kind: examplechld}\n", ":5:23: ", "did you mean 'examplechild'?"),
             ("    - name: a\n      kind: noop\n      confg: {}\n", ":7:7: ", "config"),
             ("    - {name: a, kind: noop}\n    - {name: a, kind: noop}\n", ":6:", "'a'"),
             ("    - name: a\n      kind: examplechild\n      config: {address: '{{ .IQ }}'}\n",
              ":7:", "IQ"),
             ("    - name: a\n      kind: examplechild\n      config: {adress: x}\n", ":7:",
              "address"),
             ("    - {name: a, kind: noop, run_in: [runing]}\n", ":5:", "running"))
    for children, place, part in cases:
        simple(children, quick="")
        for words in (("check", "detent.yaml"), ("up",)):
            detent(*words, code=2, err=[f"detent.yaml{place}", part])
    for limits, place, part in (("{tick: 5s}", ":4:11: ", "tick must be at most observe_every"),
                                ("{stale_afte: 1s}", ":4:", "stale_after"),
                                ("{action_threads: 0}", ":4:", "action_threads")):
        simple(HELLO, quick=f"  limits: {limits}\n")
        detent("check", "detent.yaml", code=2, err=[f"detent.yaml{place}", part])
    simple(HELLO, more="  globals: [a]\n", quick="")
    detent("check", "detent.yaml", code=2, err="globals")
    simple(HELLO, more="  variables: {global: 1}\n", quick="")
    detent("check", "detent.yaml", code=2, err="global")
    simple(HELLO)
    it = Up()
    it.wait_for("hello.* to=running")
    detent("workers", "helo", code=3, err="did you mean 'hello'?")
    detent("desired", "plant/helo", code=3, err="did you mean 'plant/hello'?")
    detent("observed", "nothing-like-it", code=3, err="there is no worker")
    detent("worker", "put", "x", code=2, err="--kind")
    detent("worker", "put", "x", "--kind", "nop", code=3, err="did you mean 'noop'?")
    detent("worker", "put", "x/y", "--kind", "noop", code=3, err="there is no worker plant/x")
    detent("worker", "put", "hello", "--kind", "noop", code=4, err="in its own spec")
    detent("worker", "put", "x", "--kind", "examplechild", "--config", "-", code=2, err="adress",
           stdin="adress: x\n")
    detent("worker", "put", "x", "--kind", "noop", "--run-in", "walking", code=2, err="walking")
    detent("worker", "rm", "hello", code=2, err="in the spec of its parent")
    detent("worker", "rm", "x", code=3, err="there is no worker")
    detent("worker", "paint", "hello", code=2, err="put rm restart")
    detent("worker", "rm", "hello", "--kind", "noop", code=2, err="does not take --kind")
    detent("workers", "--history", code=2, err="--history needs a worker")
    it.stop()


def test_workers_command_fails_without_workers():
    up.config(up.SLEEPER)
    it = Up()
    it.wait_for("sleeper *= started")
    detent("workers", code=2, err="has no workers")
    it.stop()


def test_orders():
    simple(HELLO + "    - {name: press, kind: examplechild, config: {address: a}}\n")
    it = Up()
    wait_state("press", "connected")
    detent("worker", "disable", "press", err="plant/press: is disabled")
    check(wait_state("press", "stopped")["disabled"], "it is not disabled")
    # That is on the disk.
    it.send(signal.SIGKILL)
    it.process.wait()
    it = Up()
    wait_state("hello", "running")
    check(wait_state("press", "stopped")["disabled"], "it is forgotten that it rests")
    detent("worker", "enable", "press", err="is enabled")
    wait_state("press", "connected")
    equal(one("worker", "restart", "hello")["id"], "plant/hello")
    wait_until(lambda: workers()["plant/hello"]["counts"]["restarts"] == 1, "a restart")
    wait_state("hello", "running")
    it.stop()


def test_worker_that_does_not_stop_in_time_is_forced_down():
    simple("    - {name: press, kind: examplechild, config: {address: a}}\n",
           quick="  limits: {tick: 1s, observe_every: 1s, stop_grace: 1ms}\n")
    it = Up()
    wait_state("press", "connected")
    it.stop(5)
    # The child may just have made it; its parent, which waits for it, has not.
    check(it.index("graceful_shutdown_timeout .*plant") >= 0, it.shown())
    check(it.index("did not stop in time and (was|were) taken down") >= 0, it.shown())


def reload(*words, code=0):
    return one("reload", *words, code=code)


def items(answer):
    return [(i["change"], i["name"], i["needs_restart"]) for i in answer["items"]]


def test_a_reload_changes_the_tree_while_it_runs():
    plant()
    it = Up()
    wait_state("press", "connected")
    wait_state("hello", "running")
    moves = workers()["plant/hello"]["counts"]["transitions"]
    plant(ip="10.0.0.8", site="south", children=HELLO + "    - {name: new, kind: noop}\n")
    wanted = [("changed", "children", False), ("changed", "globals", False)]
    equal(items(reload("--plan")), wanted)
    equal(items(reload()), wanted)
    wait_until(lambda: one("desired", "press")["desired"] ==
               {"address": "10.0.0.8", "device": "south"}, "the new desired state")
    wait_state("new", "running")
    equal(workers()["plant/hello"]["counts"]["transitions"], moves)
    plant(ip="10.0.0.8", site="south", children="")
    reload()
    wait_gone("hello")
    wait_gone("new")
    # What the supervisor is made of stays.
    plant(ip="10.0.0.8", site="south", children="", quick="  limits: {tick: 30ms}\n")
    equal(items(reload()), [("changed", "limits", True)])
    equal(items(reload()), [("changed", "limits", True)])
    # What is wrong changes nothing.
    before = Path("detent.yaml").read_text()
    for bad, part in ((before.replace("examplechild", "nosuchkind"), "nosuchkind"),
                      (before.replace(".IP", ".IQ"), "IQ"),
                      (before.replace("      kind: examplechild\n", ""), "kind")):
        Path("detent.yaml").write_text(bad)
        detent("reload", code=2, err=[part, "nothing was changed"])
        check("plant/press" in workers(), "it is gone")
    Path("detent.yaml").write_text("version: 1\ntasks:\n  a: {run: sleep 60}\n")
    reload()
    wait_until(lambda: list(workers()) == ["plant"], "all are gone")
    it.stop()


def test_workers_are_added_to_a_file():
    up.config(up.SLEEPER)
    it = Up()
    it.wait_for("sleeper *= started")
    Path("detent.yaml").write_text(
        f"version: 1\ntasks:\n{up.SLEEPER}workers:\n{QUICK}  children:\n{HELLO}")
    equal(items(reload()), [("added", "children", False), ("added", "limits", False)])
    wait_state("root/hello", "running")
    equal(items(reload()), [])
    up.config(up.SLEEPER)
    equal(items(reload()), [("removed", "children", False), ("removed", "limits", True)])
    wait_gone("hello")
    it.stop()
    # Where others have the store, it takes a restart.
    head = "version: 1\nstore: sqlite:detent.db\nslots: {batch: {durable: yes}}\n"
    Path("detent.yaml").write_text(head)
    it = Up()
    wait_until(lambda: run("slots").returncode == 0, "it is up")
    Path("detent.yaml").write_text(f"{head}workers:\n  children:\n{HELLO}")
    equal(items(reload()), [("added", "children", True)])
    detent("workers", code=2, err="has no workers")
    it.stop()
    it = Up()
    wait_state("root/hello", "running")
    it.stop()


def test_manual_workers_survive_a_kill():
    simple(HELLO)
    it = Up()
    wait_state("hello", "running")
    detent("worker", "put", "extra", "--kind", "examplechild", "--variables", "{IP: 10.9.9.9}",
           "--config", "-", stdin="address: '{{ .IP }}'\n")
    detent("worker", "put", "extra/below", "--kind", "noop", "--disabled")
    wait_state("extra", "connected")
    check(workers()["plant/extra"]["by_hand"], "it is of the file")
    check(not any("{{ .IP }}" in json.dumps(o) for o in objects("dump")), "a config is shown")
    check(any("{{ .IP }}" in json.dumps(o) for o in objects("dump", "--reveal")), "not revealed")
    it.send(signal.SIGKILL)
    it.process.wait()
    it = Up()
    wait_state("extra", "connected")
    equal(one("desired", "extra")["desired"]["address"], "10.9.9.9")
    check(wait_state("extra/below", "stopped")["disabled"], "it runs")
    equal(workers()["plant/extra"]["counts"]["startups"], 2)
    # Changed, and taken away.
    detent("worker", "put", "extra", "--kind", "examplechild", "--config", "-",
           stdin="address: there\n")
    wait_until(lambda: one("desired", "extra")["desired"]["address"] == "there", "the change")
    detent("worker", "rm", "extra")
    it.send(signal.SIGKILL)
    it.process.wait()
    it = Up()
    wait_state("hello", "running")
    equal(list(workers()), ["plant", "plant/hello"])
    it.stop()


def judge_store():
    """Deltas have no gaps and none twice; documents are what their deltas make of them."""
    dump = objects("dump")
    deltas = [o for o in dump if o["type"] == "delta"]
    syncs = [o["sync"] for o in deltas]
    equal(syncs, list(range(1, len(syncs) + 1)))
    versions, texts = {}, {}
    for delta in deltas:
        key = delta["kind"], delta["id"], delta["role"]
        if delta["change"] == "dropped":
            versions.pop(key)
            texts.pop(key)
            continue
        equal(delta["version"], versions.get(key, 0) + 1)
        versions[key] = delta["version"]
        text = texts.setdefault(key, {})
        change = delta.get("delta") or delta.get("changes")
        for name in change.get("removed", {}):
            text.pop(name)
        text.update(change.get("added", {}))
        text.update({name: pair["new"] for name, pair in change.get("modified", {}).items()})
    documents = {(o["kind"], o["id"], o["role"]): o for o in dump if o["type"] == "document"}
    equal(set(documents), set(versions))
    for key, document in documents.items():
        equal((key, document["version"], document["document"]),
              (key, versions[key], texts[key]))
    return {i: o["document"]["startups"] for (_, i, role), o in documents.items()
            if role == "identity"}


def test_worker_tree_recovers_from_kill_9_at_any_time():
    chance = random.Random(7)
    before = {}
    for turn in range(12):
        plant(ip=f"10.0.0.{turn}", children=HELLO if turn % 2 else "")
        it = Up()
        # Anywhere from before the first worker to a tree that stands.
        pattern = ("In another terminal", "child_adding .*press", "worker_added .*press",
                   "desired_changed .*press", "to=trying_to_connect", "to=connected",
                   "child_adding .*line.*/", "to=running")[chance.randrange(8)]
        wait_until(lambda p=pattern: it.index(p) >= 0 or
                   any(re.search(p, line) for line in it.talk), f"{pattern}\n{it.shown()}")
        it.send(signal.SIGKILL)
        it.process.wait()
        startups = judge_store()
        for name, count in startups.items():
            check(before.get(name, 0) <= count <= before.get(name, 0) + 1,
                  f"{name} was begun {count} times, before {before.get(name, 0)}")
        check(set(before) - set(startups) <= {"plant/hello"}, f"{before} {startups}")
        before = startups
    plant(ip="10.1.1.1")
    it = Up()
    wait_state("press", "connected")
    wait_state("hello", "running")
    equal(one("desired", "press")["desired"]["address"], "10.1.1.1")
    for name in "plant", "plant/press":
        equal(workers()[name]["counts"]["startups"], before[name] + 1)
    it.stop()
    judge_store()


def test_machines_and_slots_share_their_store():
    Path("detent.yaml").write_text(
        "version: 1\nslots: {batch: {durable: yes}}\nstore: sqlite:all.db\n"
        f"workers:\n  name: plant\n{QUICK}  children:\n{HELLO}")
    it = Up()
    wait_state("hello", "running")
    detent("submit", "batch", "--wait", "--", "true")
    it.stop()
    check(Path("all.db").exists() and not Path("detent.db").exists(), "another store")


def test_machines_are_reopened_while_workers_continue():
    def project(effect):
        Path("detent.yaml").write_text(
            "version: 1\nmachines:\n  order:\n    effects:\n"
            f"      charge: {{command: [{effect}]}}\n"
            f"workers:\n  name: plant\n{QUICK}  children:\n{HELLO}")
    Path("order.fsm").write_text(ORDER)
    project("'true'")
    it = Up()
    wait_state("hello", "running")
    detent("start", "order", "o-1")
    moves = workers()["plant/hello"]["counts"]
    for turn in range(3):
        project(f"echo, '{turn}'")
        equal(items(reload()), [("changed", "order", False)])
        detent("start", "order", f"p-{turn}")
        observations = workers()["plant/hello"]["counts"]["observations"]
        wait_until(lambda n=observations: workers()["plant/hello"]["counts"]["observations"] > n,
                   "it is observed")
    equal(workers()["plant/hello"]["counts"]["transitions"], moves["transitions"])
    detent("worker", "put", "late", "--kind", "noop")
    wait_state("late", "running")
    it.stop()


def test_metrics_and_a_log_of_json():
    Path("detent.yaml").write_text(
        "version: 1\nhttp: {socket: 'yes'}\nlog: {format: json}\n"
        f"workers:\n  name: plant\n{QUICK}  children:\n{HELLO}"
        "    - {name: bad, kind: examplefailing, config: {should_fail: true}}\n")
    token = detent("token", "new", "--scope", "metrics").stdout.strip()
    it = Up()
    wait_state("hello", "running")
    wait_until(listens, "the API")
    wanted = ('detent_workers{phase="running"}',
              'detent_worker_transitions_total{kind="helloworld"',
              'detent_worker_actions_total{kind="helloworld",action="say_hello",result="done"} 1',
              'action="connect",result="failed"', "detent_worker_action_duration_seconds_count",
              'detent_worker_observations_total{result="done"}', "detent_worker_tick_seconds",
              'detent_worker_value{kind="helloworld",worker="plant/hello",name="hellos_said"} 1')
    text = wait_until(
        lambda: next((t for t in [ask(token, "GET", "/metrics")[1]]
                      if all(part in t for part in wanted)), None), "the metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          text=True, check=False)
    equal((done.returncode, done.stdout, done.stderr), (0, "", ""))
    lines = [json.loads(line) for line in it.lines]
    found = next(line for line in lines if line["component"] == "worker"
                 and line["message"] == "state_transition" and line.get("to") == "running"
                 and line["id"] == "plant/hello")
    equal((found["level"], found["worker"], found["from"]),
          ("info", "plant(application)/hello(helloworld)", "trying_to_start"))
    it.stop()


if __name__ == "__main__":
    sys.exit(up.main(globals()))
