#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs `detent scenario` end to end: workers in real and in virtual time.

    scenario.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py.
"""
import re
import signal
import sys
import time
from pathlib import Path

import up
from clients import detent, objects
from patience import now
from up import DETENT, check, equal

NAMES = ["simple", "failing", "panic", "slow", "cascade", "timeout", "configerror", "inheritance",
         "concurrent", "communicator", "helloworld", "persistence", "noop", "dynamic"]
LINE = re.compile(r"\d\d:\d\d:\d\d\.\d\d\d (TRACE|DEBUG|INFO |WARN |ERROR) ?[a-z_]+ .*")


class Scenario(up.Up):
    """One `detent scenario run` that runs."""

    def __init__(self, *words):  # pylint: disable=super-init-not-called
        self.start([DETENT, "scenario", "run", *words], None)


def test_scenarios_are_listed():
    done = detent("scenario", "list")
    names = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    equal([name for name in names if name in NAMES], NAMES)
    listed = objects("scenario", "list")
    equal([one["name"] for one in listed], names)
    check(all(one["type"] == "scenario" and one["summary"] and one["duration_ms"] > 0
              for one in listed))


def test_simple_in_real_time():
    began = time.monotonic()
    done = detent("scenario", "run", "simple", "--duration=5s")
    took = time.monotonic() - began
    check(took >= 5, "it ended too early")
    lines = done.stdout.splitlines()
    check(all(LINE.fullmatch(line) for line in lines), done.stdout)
    check(all(" worker=scenario-simple(application)" in line for line in lines), done.stdout)
    equal(sum(" child_adding " in line for line in lines), 3)
    equal(sum(" worker_removed " in line for line in lines), 4)
    # It counts from when its workers are there.
    told = re.search(r"scenario simple: ([0-9.]+)s", done.stderr)
    check(told and 0 < float(told[1]) <= took, done.stderr)


def test_virtual_time_is_repeatable():
    began = now()
    words = ("scenario", "run", "simple", "--virtual", "--duration", "10m", "--log-level", "debug")
    first = detent(*words, "--seed", "7")
    check(now() - began < 20, "ten virtual minutes take too long")
    equal(detent(*words, "--seed=7").stdout, first.stdout)
    check(first.stdout.startswith("00:00:00.000 "), first.stdout[:200])
    check(re.search(r"^00:09:\d\d\.\d\d\d INFO  state_transition ", first.stdout, re.M))
    check(detent(*words, "--seed", "8").stdout != first.stdout, "another seed is another run")


def test_every_scenario_in_virtual_time():
    for name in NAMES:
        done = detent("scenario", "run", name, "--virtual")
        check(f"scenario {name}: " in done.stderr, done.stderr)


def test_scenario_log_levels_filter_lines():
    def levels(*words):
        done = detent("scenario", "run", "failing", "--virtual", *words)
        return {line.split()[1] for line in done.stdout.splitlines()}
    equal(levels("--log-level", "error"), {"ERROR"})
    equal(levels(), {"INFO", "WARN", "ERROR"})
    equal(levels("--log-level", "debug"), {"DEBUG", "INFO", "WARN", "ERROR"})
    equal(levels("--trace"), {"TRACE", "DEBUG", "INFO", "WARN", "ERROR"})


def test_scenario_prints_json_objects():
    found = objects("scenario", "run", "dynamic", "--virtual", "--duration", "10s")
    kinds = {one["type"] for one in found}
    equal(kinds, {"event", "note", "summary"})
    equal(found[-1]["type"], "summary")
    equal(found[-1]["workers_left"], 0)
    moves = [one for one in found if one.get("event") == "state_transition"]
    check(all(one["worker"] and one["id"] and one["from"] and one["to"] and one["reason"]
              for one in moves))
    check(any(one.get("event") == "child_gone" for one in found))


def test_scenario_dumps_its_store():
    done = detent("scenario", "run", "simple", "--virtual", "--dump-store", "--log-level", "error")
    lines = done.stdout.splitlines()
    check(re.fullmatch(r"Deltas: sync ids 1 to \d+", lines[0]), lines[0])
    deltas = [line for line in lines if re.match(r"\[\d+\] \d\d:\d\d:\d\d\.\d\d\d \| ", line)]
    equal([int(line[1:line.index("]")]) for line in deltas], list(range(1, len(deltas) + 1)))
    check(any("| exampleparent/scenario-simple/parent-1 | observed" in line for line in deltas))
    check(any(line.startswith("  + ") for line in lines))
    check(any(re.match(r"  ~ .* -> ", line) for line in lines))
    check(re.fullmatch(r"\d+ deltas, \d+ documents of \d+ workers", lines[-1]), lines[-1])
    check(all(len(line) < 260 for line in lines), "long values are cut")


def test_a_dump_has_no_limit():
    done = detent("scenario", "run", "simple", "--virtual", "--duration", "10m", "--dump-store",
                  "--log-level", "error")
    count = int(re.search(r"^(\d+) deltas, ", done.stdout, re.M)[1])
    check(count > 200, done.stdout[-300:])
    equal(len(re.findall(r"^\[\d+\] ", done.stdout, re.M)), count)


def test_a_dump_as_objects():
    found = objects("scenario", "run", "noop", "--virtual", "--dump-store")
    deltas = [one for one in found if one["type"] == "delta"]
    documents = [one for one in found if one["type"] == "document"]
    equal(found[-1]["type"], "dump")
    equal((found[-1]["deltas"], found[-1]["documents"]), (len(deltas), len(documents)))
    check(all(isinstance(one["document"], dict) for one in documents))


def test_ctrl_c_stops_gracefully():
    scenario = Scenario("concurrent")
    scenario.wait_for("state_transition .*hello-5.* to=running")
    scenario.send(signal.SIGINT)
    scenario.end(0)
    check(any("Stopping" in line for line in scenario.talk), scenario.shown())
    equal(sum(" worker_removed " in line for line in scenario.lines), 6)


def test_sigterm_stops_a_scenario():
    scenario = Scenario("noop", "--duration", "0")
    scenario.wait_for("state_transition .*noop-1.* to=running")
    scenario.send(signal.SIGTERM)
    scenario.end(0)


def test_second_ctrl_c_forces_the_end():
    # Stopping takes no time at all, so both must come at once.
    scenario = Scenario("noop", "--tick", "1s")
    scenario.wait_for("state_transition .*noop-1.* to=running")
    for number in signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT:
        scenario.send(number)
    scenario.end(1)
    check(any("Taking down" in line for line in scenario.talk), scenario.shown())


def test_scenario_mood_can_be_changed():
    scenario = Scenario("helloworld")
    scenario.wait_for("state_transition .*hello.* to=running")
    Path("mood").write_text("sad\n")
    at = scenario.wait_for("state_transition .* to=degraded .*the mood is sad")
    Path("mood").write_text("fine\n")
    scenario.wait_for("state_transition .* to=running", at)
    scenario.send(signal.SIGINT)
    scenario.end(0)


def test_scenario_usage_errors_are_reported():
    run = ("scenario", "run")
    detent(*run, "simpel", code=2, err=["did you mean 'simple'?", "Scenarios: simple, failing"])
    detent(*run, code=2, err="scenario run needs a name")
    detent(*run, "simple", "--duration=-5s", code=2, err="--duration must be a duration")
    detent(*run, "simple", "--tick", "0", code=2, err="--tick must be a duration")
    detent(*run, "simple", "--tick=-1s", code=2, err="--tick must be a duration")
    detent(*run, "simple", "--log-level", "loud", code=2, err="debug info warn error")
    detent(*run, "simple", "--seed", "1", code=2, err="--seed needs --virtual")
    detent("scenario", "play", code=2, err="unknown verb 'play': use list or run")
    detent("scenario", "list", "simple", code=2, err="takes no 'simple'")
    detent("scenario", code=2)


if __name__ == "__main__":
    sys.exit(up.main(globals()))
