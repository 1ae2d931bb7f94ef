#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs flows, end to end: `detent flow`, the flows of a detent.yaml, kill -9, streams.

    flows.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py.
"""
import json
import signal
import subprocess
import sys
from pathlib import Path

import up
from machines import detent, objects, one, run
from up import DETENT, Up, check, environment, equal, wait_until

sys.path.append(str(Path(__file__).resolve().parents[1] / "api"))
from wire import Stream, Wire  # noqa: E402  pylint: disable=wrong-import-position

SOCKET = ".detent/detent.sock"
COPY = """#define FLOW_NAME copy
RECORD(sale)
    FIELD(n, u64)
    FIELD(card, str(20), SENSITIVE)
END
SOURCE(read, sale, USE(csv, "{path: in.csv}"))
SINK(write, sale, USE(jsonl, "{path: out.jsonl, existing: replace}"))
EDGE(read, write)
"""
COUNT = """#define FLOW_NAME count
RECORD(item)
    FIELD(n, u64)
END
SOURCE(make, item, USE(generate, "{count: 1000000, rate: 20000, fields: {n: n}}"))
TRANSFORM(even, item, item, USE(filter, "{where: 'n % 2 = 0'}"))
SINK(write, item, USE(jsonl, "{path: even.jsonl}"))
EDGE(make, even)
EDGE(even, write)
"""


def files(rows="n,card\n1,4242\n2,4243\n"):
    Path("copy.flow").write_text(COPY)
    Path("count.flow").write_text(COUNT)
    Path("in.csv").write_text(rows)


def project(flows):
    files()
    Path("detent.yaml").write_text(f"version: 1\nflows:\n{flows}")


def written(name="out.jsonl"):
    return [json.loads(line) for line in Path(name).read_text().splitlines()]


def flows(*words):
    return {flow["name"]: flow for flow in objects("flow", "ls", *words)}


def wait_state(name, *states):
    return wait_until(lambda: next((f for f in [flows().get(name)] if f and f["state"] in states),
                                   None), f"{name} in {states}")


def test_a_flow_runs_to_its_end_and_says_what_it_did():
    files("n,card\n1,4242\nmany,4242\n3,4242\n")
    detent("flow", "run", "copy.flow",
           err=["copy completed: 2 rows in, 2 out, 1 rejected",
                "rejected by read: 1: detent flow tap read.errors --file copy.flow "
                "--state ./.detent/flows/copy\n",
                "journal: ./.detent/flows/copy/000001"])
    equal([row["n"] for row in written()], [1, 3])
    summary = objects("flow", "run", "copy.flow")[-1]
    equal((summary["type"], summary["outcome"], summary["run"], summary["rejected"]),
          ("summary", "completed", 2, 1))
    equal(one("flow", "ls")["state"], "completed")
    rows = objects("flow", "tap", "read", "--file", "copy.flow")
    equal([(row["kind"], row.get("value")) for row in rows],
          [("data", {"n": 1, "card": "{redacted}"}), ("data", {"n": 3, "card": "{redacted}"}),
           ("end", None)])
    bad = one("flow", "tap", "copy", "read.errors")
    equal(bad["why"], "deserialization")
    check("line 3" in bad["text"], bad)
    facts = [row["fact"] for row in objects("flow", "tap", "system", "--from", "1")]
    equal((facts[0], facts[-1]), ("opened", "completed"))
    detent("flow", "tap", "nonsense", code=3, err="there is no stream 'nonsense'\n")
    detent("flow", "tap", "copy", "reed", code=3,
           err="there is no stream 'reed'; did you mean 'read'?")
    unknown = "copy: no values are shown: the definition is unknown: add --file"
    detent("flow", "tap", "copy", "read", err=unknown)
    for words in (["read", "--file", "copy.flow"], ["system"], ["nonsense"]):
        check(unknown not in run("flow", "tap", "copy", *words).stderr, words)
    detent("flow", "tap", "read.errors", "--file", "copy.flow", "--state", "./.detent/flows/copy")


def test_the_summary_says_where_rejected_rows_are():
    Path("in.csv").write_text("n\n1\nmany\n300\n")
    Path("small.flow").write_text("""#define FLOW_NAME small
RECORD(item)
    FIELD(n, u64)
END
RECORD(byte)
    FIELD(n, u8)
END
SOURCE(read, item, USE(csv, "{path: in.csv}"))
TRANSFORM(cut, item, byte, USE(map, "{set: {n: 'n'}}"))
SINK(write, byte, USE(jsonl, "{path: out.jsonl}"))
EDGE(read, cut)
EDGE(cut, write)
""")
    words = "--file small.flow --state ./.detent/flows/small"
    done = detent("flow", "run", "small.flow")
    lines = [line for line in done.stderr.splitlines() if line.startswith("rejected by")]
    equal(lines, [f"rejected by read: 1: detent flow tap read.errors {words}",
                  f"rejected by cut: 1: detent flow tap cut {words}"])
    for line, where in zip(lines, ("line 3", "rejected")):
        detent(*line.split(": detent ")[1].split(), out=where)
    detent("flow", "run", "small.flow", "write.existing=replace", "--durability", "memory",
           err="rejected by cut: 1\n")


def test_settings_of_the_command_line_replace_those_of_the_file():
    files()
    Path("other.csv").write_text("n,card\n7,1\n")
    detent("flow", "run", "copy.flow", "read.path=other.csv", "--durability", "memory",
           err="1 row in")
    equal([row["n"] for row in written()], [7])
    check(not Path(".detent").exists(), "a flow in memory leaves nothing")
    detent("flow", "run", "copy.flow", "read.pat=x", code=2, err="unknown setting 'pat'")
    Path("wrong.flow").write_text(COPY.replace("{path: in.csv}", "{path orders.csv}"))
    detent("flow", "run", "wrong.flow", code=2,
           err="unknown setting 'path orders.csv'; the settings are path, ")
    detent("flow", "run", "copy.flow", "rad.path=x", code=2, err="did you mean 'read'?")
    detent("flow", "run", "copy.flow", "path=x", code=2, err="STAGE.KEY=VALUE")
    detent("flow", "run", "copy.flow", "read.path=a", "read.path=b", code=2, err="given twice")
    detent("flow", "run", "gone.flow", code=3)
    detent("flow", "runn", code=2, err="did you mean 'run'?")
    detent("flow", "ls", "--fresh", code=2, err="does not take --fresh")


def test_a_failed_flow_exits_with_1_and_says_why():
    files()
    detent("flow", "run", "copy.flow", "read.path=gone.csv", code=1, err="gone.csv")
    equal(one("flow", "ls")["state"], "failed")
    detent("flow", "run", "copy.flow", err="copy: resumes the failed run, which has 0 rows")


def test_definitions_are_checked_with_the_project():
    project("  copy: {stages: {read: {pat: x}}}\n  gone: {}\n")
    done = run("check", "detent.yaml")
    equal(done.returncode, 2)
    check("unknown setting 'pat'" in done.stderr + done.stdout, done)
    check("gone.flow: there is no such flow" in done.stderr, done)


def test_an_interrupted_run_is_resumed_where_it_was():
    files()
    with subprocess.Popen([DETENT, "flow", "run", "count.flow", "--json"], text=True,
                          env=environment(), stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            if json.loads(line).get("rows_out", 0) > 1000:
                process.send_signal(signal.SIGINT)
                break
        last = [json.loads(line) for line in process.stdout][-1]
    equal((process.returncode, last["outcome"]), (130, "stopped"))
    equal([row["n"] for row in written("even.jsonl")], list(range(2, 2 * last["rows_out"] + 1, 2)))
    detent("flow", "run", "count.flow", "make.count=30000", err="resumes the interrupted run")
    equal([row["n"] for row in written("even.jsonl")], list(range(2, 30001, 2)))


def test_a_killed_run_is_resumed_with_each_row_once():
    files()
    for limit in (1000, 5000, 9000):
        with subprocess.Popen([DETENT, "flow", "run", "count.flow"], env=environment(),
                              stderr=subprocess.DEVNULL) as process:
            wait_until(lambda most=limit: Path("even.jsonl").exists() and
                       Path("even.jsonl").read_bytes().count(b"\n") > most, "its rows")
            process.kill()
    detent("flow", "run", "count.flow", "make.count=40000")
    equal([row["n"] for row in written("even.jsonl")], list(range(2, 40001, 2)))


def test_a_second_process_is_refused():
    files()
    with subprocess.Popen([DETENT, "flow", "run", "count.flow"], env=environment(),
                          stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: Path("even.jsonl").exists(), "the first rows")
        detent("flow", "run", "count.flow", code=4, err="another process runs this flow")
        equal(one("flow", "ls")["state"], "open")
        process.kill()


def test_up_runs_its_flows_and_takes_orders():
    project("  copy: {}\n"
            "  count: {stages: {make: {count: 100000000}}}\n"
            "  held: {file: copy.flow, start: manual, stages: {write: {path: held.jsonl}}}\n")
    it = Up()
    wait_state("copy", "completed")
    wait_state("count", "running")
    wait_state("held", "ready")
    equal(len(written()), 2)
    detent("flow", "ls", out=["copy", "completed", "running", "ready"])
    detent("flow", "top", "count", out=["make", "even", "generate", "filter"])
    equal({(e["from"], e["to"]) for e in objects("flow", "lag", "count")},
          {("make", "even"), ("even", "write")})
    detent("flow", "run", "held", err="held:")
    wait_state("held", "completed")
    detent("flow", "run", "held", "read.path=x", code=2, err="only with a .flow file")
    detent("flow", "stop", "count", err="count: stopped")
    equal(flows()["count"]["state"], "stopped")
    detent("flow", "stop", "count", "--cancel", err="count: stopped")
    detent("flow", "run", "count")
    wait_state("count", "running")
    detent("flow", "stop", "nonsense", code=3, err="there is no flow 'nonsense'")
    detent("flow", "tap", "read", code=2, err="the project has 3 flows")
    for words, near in ((["reed"], "read"), (["reed.errors"], "read.errors"),
                        (["reed", "--follow"], "read")):
        detent("flow", "tap", "copy", *words, code=3,
               err=f"the flow 'copy' has no stream '{words[0]}'; did you mean '{near}'?")
    equal(objects("flow", "tap", "copy", "read", "--from", "1")[0]["value"],
          {"n": 1, "card": "{redacted}"})
    it.stop()
    found = flows()
    equal((found["count"]["state"], found["copy"]["state"]), ("stopped", "completed"))
    # Without the daemon, the definition comes from detent.yaml.
    equal(objects("flow", "tap", "copy", "read")[0]["value"]["n"], 1)
    equal({e["lag"] for e in objects("flow", "lag", "copy")}, {0})


def test_a_killed_daemon_continues_its_flows_with_each_row_once():
    project("  count: {stages: {make: {count: 30000}}}\n")
    for limit in (1000, 6000):
        it = Up()
        wait_until(lambda most=limit: Path("even.jsonl").exists() and
                   Path("even.jsonl").read_bytes().count(b"\n") > most, "its rows")
        it.send(signal.SIGKILL)
        it.process.wait()
        it.join()
    it = Up()
    wait_state("count", "completed")
    equal([row["n"] for row in written("even.jsonl")], list(range(2, 30001, 2)))
    it.stop()


def test_reload_adds_removes_and_changes_flows():
    project("  count: {stages: {make: {count: 100000000}}}\n  copy: {}\n")
    it = Up()
    wait_state("count", "running")
    wait_state("copy", "completed")
    detent("reload", err="No changes")
    Path("detent.yaml").write_text(
        "version: 1\nflows:\n  count: {stages: {make: {count: 100000000, rate: 100}}}\n"
        "  more: {file: copy.flow, stages: {write: {path: more.jsonl}}}\n")
    detent("reload", out=["flow count: changed", "flow more: added", "flow copy: removed"])
    wait_state("more", "completed")
    equal(wait_state("count", "running")["run"], 1)
    equal(set(flows()), {"count", "more"})
    # A changed .flow file counts, although detent.yaml has not changed.
    Path("copy.flow").write_text(COPY.replace("in.csv", "in2.csv"))
    Path("in2.csv").write_text("n,card\n9,1\n")
    detent("reload", out="flow more: changed")
    wait_until(lambda: [row["n"] for row in written("more.jsonl")] == [9], "the new rows")
    Path("detent.yaml").write_text("version: 1\nflows:\n  count: {stages: {mak: {}}}\n")
    detent("reload", code=2, err="did you mean 'make'?")
    equal(flows()["count"]["state"], "running")
    it.stop()


def test_a_failing_flow_is_opened_again_after_a_delay():
    project("  copy: {backoff: {first: 50ms, max: 100ms}, stages: {read: {path: late.csv}}}\n"
            "  never: {file: copy.flow, restart: never, stages: {read: {path: no}}}\n")
    it = Up()
    equal(wait_state("never", "failed")["restarts"], 0)
    wait_until(lambda: flows()["copy"]["restarts"] > 1, "its restarts")
    Path("late.csv").write_text("n,card\n5,1\n")
    wait_state("copy", "completed")
    equal([row["n"] for row in written()], [5])
    check("no" in flows()["never"]["reason"], flows()["never"])
    it.stop()


def test_a_stream_resumes_without_gaps_also_in_the_next_run():
    project("  copy: {start: manual}\n")
    it = Up()
    wait_state("copy", "ready")
    detent("flow", "run", "copy")
    wait_state("copy", "completed")
    target = "/v1/flows/copy/stream?stream=read"
    stream = Stream(SOCKET, target + "&after=1~0")
    first = [stream.next() for _ in range(2)]
    equal([event.data["value"]["n"] for event in first], [1, 2])
    stream.wire.close()
    Path("in.csv").write_text("n,card\n3,1\n")
    detent("flow", "run", "copy")
    wait_until(lambda: flows()["copy"]["run"] == 2 and
               flows()["copy"]["state"] == "completed", "the second run")
    stream = Stream(SOCKET, target, last=first[0].id)
    seen = [stream.next() for _ in range(4)]
    equal([event.name for event in seen], ["row", "row", "run", "row"])
    equal([event.id.partition("~")[0] for event in seen], ["1", "1", "2", "2"])
    equal(seen[3].data["value"], {"n": 3, "card": "{redacted}"})
    stream.wire.close()
    wire = Wire(SOCKET)
    page = wire.get("/v1/flows/copy/rows?stream=read&run=1&limit=1").json
    equal((page["items"][0]["value"]["n"], page["run"]), (1, 1))
    rest = wire.get(f"/v1/flows/copy/rows?stream=read&run=1&after={page['next']}").json
    equal([row["kind"] for row in rest["items"]], ["data", "end"])
    back = wire.get("/v1/flows/copy/rows?backward=true&run=1&limit=3").json
    positions = [row["position"] for row in back["items"]]
    equal(positions, sorted(positions, reverse=True))
    more = wire.get(f"/v1/flows/copy/rows?backward=true&run=1&after={back['next']}").json
    check(all(row["position"] < positions[-1] for row in more["items"]), more)
    it.stop()


WARM = """#define FLOW_NAME warm
RECORD(reading)
    FIELD(sensor, str(16))
    FIELD(celsius, f64)
END
SOURCE(read, reading)
TRANSFORM(hot, reading, reading, USE(filter, "{where: 'celsius > 30'}"))
TRANSFORM(half, reading, reading, USE(map, "{set: {celsius: 'celsius / 2.0'}}"))
SINK(print, reading)
EDGE(read, hot)
EDGE(hot, half)
EDGE(half, print)
"""
CASES = """flow: warm.flow
cases:
  - name: only hot readings are printed
    steps:
      - rows: {read: [{sensor: oven, celsius: 31}, {sensor: freezer, celsius: -20}]}
        expect: {rows: {hot: [{celsius: 31}], print: [{sensor: oven}]}, end: none}
      - end: read
        expect: {rows: {print: []}, end: completed}
  - name: a crash loses nothing
    steps:
      - rows: {read: [{sensor: oven, celsius: 40}]}
      - crash: true
      - rows: {read: [{sensor: oven, celsius: 42}]}
      - advance: 7d
      - end: [read]
        expect: {rows: {print: [{celsius: 20}, {celsius: 21}]}, end: completed,
                 rejected: {half: []}}
  - name: a flow is stopped
    steps:
      - stop: cancel
        expect: {end: cancelled, reason: cancel}
"""


def test_cases_of_a_flow_run_in_virtual_time():
    Path("warm.flow").write_text(WARM)
    Path("warm.flow.test.yaml").write_text(CASES)
    detent("test", out="ok      warm.flow.test.yaml: a crash loses nothing",
           err=["rows have reached 4 of 4 stages", "3 cases: 3 passed", "7d"])
    equal(objects("test", "--filter", "stopped")[-2]["missed"], ["read", "hot", "half", "print"])
    Path("warm.flow.test.yaml").write_text(
        CASES.replace("{sensor: oven}]}, end", "{sensor: own}]}, end"))
    detent("test", code=1, out=['rows of print are not as expected', '[{"sensor": "own"}]',
                                '[{"sensor":"oven","celsius":15.5}]'])
    for old, new, wanted in (
            ("read: [{sens", "rad: [{sens", "did you mean 'read'?"),
            ("celsius: 31}", "celsius: hot}", "expected a number"),
            ("end: read", "end: print", "'print' is not a source"),
            ("advance: 7d", "advance: 7x", "expected a duration"),
            ("end: none", "end: nine", "did you mean 'none'?"),
            ("warm.flow", "wrm.flow", "did you mean warm.flow?")):
        Path("warm.flow.test.yaml").write_text(CASES.replace(old, new, 1))
        done = run("test")
        check(done.returncode in (2, 3) and wanted in done.stderr, (wanted, done))


def test_metrics_of_flows_are_valid():
    project("  copy: {}\n")
    it = Up()
    wait_state("copy", "completed")
    wanted = ('detent_flow_events_total{flow="copy",stage="read",direction="out"} 2',
              'detent_flow_events_total{flow="copy",stage="write",direction="in"} 2',
              'detent_flows{state="completed"} 1')
    wire = Wire(SOCKET)
    text = wait_until(lambda: next((t for t in [wire.get("/metrics").body.decode()]
                                    if all(part in t for part in wanted)), None), "the metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          text=True, check=False)
    equal((done.returncode, done.stdout, done.stderr), (0, "", ""))
    it.stop()


if __name__ == "__main__":
    sys.exit(up.main(globals()))
