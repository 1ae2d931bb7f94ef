#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""The figures of the documentation, from one run of detent-bench; none is typed manually.

    figures.py run BENCH [--lock FILE] [NAME...]
                             runs every bench, or those named, and replaces their results in
                             figures.json; with the lock file each bench runs while it is locked
    figures.py write ROOT    writes docs/performance.md and the figures of README.md
    figures.py check ROOT    fails unless both files are what `write` would write
    figures.py self-test     checks that a changed digit is found

figures.json: {"machine": {...}, "benches": [{"name", "title", "date", "commit", "busy", "cases"}]};
a case is a line of `detent-bench --json`, whose fields are in bench/README.md.
"""
import fcntl
import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
FIGURES = HERE / "figures.json"
BEGIN, END = "<!-- figures: make figures -->", "<!-- end of figures -->"
UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1, "ns"))
TEXT = """# Performance

<!-- Written by `make figures` from bench/figures.json: do not edit. -->

Each table is one bench of `detent-bench`. It compares detent with a *limit*, which is code written
for this one case, and with *peers*, other software for the same purpose. Every case runs in turn,
round after round. A time is the median of the rounds; *spread* is the range from the 10th to the
90th percentile. The *ratio* is the median of the ratios within each round; it changes less than the
times when the machine is slow. *Allocations* are calls of `malloc()` and the like for one
operation, in all threads.

`make figures` runs the benches and writes this page. [bench/README.md](../bench/README.md)
describes each bench.

## Conditions

{conditions}
{busy}

## Goals

{goals}
"""


def significant(value):
    """Three digits, with commas: 3.64, 54.2, 293, 54,200."""
    if value >= 1000:
        digits = len(str(int(value))) - 3
        return f"{int(round(value, -digits)):,}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"


def duration(nanoseconds):
    for size, unit in UNITS:
        if nanoseconds >= size:
            return f"{significant(nanoseconds / size)} {unit}"
    return f"{nanoseconds:.2f} ns"


def per_second(case):
    return f"{significant(case['per_second'])} a second"


class Figures:
    """The results by bench and case."""

    def __init__(self, data):
        self.data = data
        self.cases = {(bench["name"], case["case"]): case
                      for bench in data["benches"] for case in bench["cases"]}

    def case(self, bench, name):
        return self.cases[bench, name]

    def time(self, bench, name):
        return duration(self.case(bench, name)["median_ns"])

    def rate(self, bench, name):
        return per_second(self.case(bench, name))

    def ratio(self, bench, name):
        return f"{self.case(bench, name)['ratio']:.2f}"


def readme(figures):
    """The five figures of README.md."""
    f = figures
    hand_written = "hand-written SQL, one at a time"
    rows = [
        ("a transition in memory, nothing stored", f.time("step", "the template's machine"),
         f"Boost.MSM {f.time('step', 'Boost.MSM')}, XState {f.time('step', 'XState')}"),
        ("a durable event in SQLite, one sender", f.rate("sqlite", "one sender"),
         f"the same rows with hand-written SQL {f.rate('sqlite', hand_written)}"),
        ("durable events in SQLite, 64 senders", f.rate("sqlite", "64 senders"),
         "64 rows in a transaction with hand-written SQL "
         + f.rate("sqlite", "hand-written SQL, 64 in a transaction")),
        ("first answer after `kill -9`, 1,000,000 instances",
         f.time("million", "killed, until the first answer"), "in a SQLite file"),
        ("restart of a service that exits", f.time("services", "exits: a task"),
         f"runit {f.time('services', 'exits: runit')}, s6 {f.time('services', 'exits: s6')}"),
    ]
    lines = ["| what | detent | for comparison |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def conditions(machine):
    return "\n".join(["| what | |", "|---|---|"] + [f"| {k} | {v} |" for k, v in machine.items()])


def busy(benches):
    """The share of the processors that others used during the run."""
    shares = sorted(bench["busy"] for bench in benches)
    text = (f"\nBefore each bench, other programs used {shares[0]}% to {shares[-1]}% of the "
            f"processors (median {shares[len(shares) // 2]}%).")
    if shares[len(shares) // 2] > 10:
        text += ("\nThe machine was busy: it can do better than these times and rates, and may"
                 " meet more goals.\nThe next run on a quiet machine replaces these figures.")
    return text


def all_goals(benches):
    for bench in benches:
        for case in bench["cases"]:
            for goal in case.get("goals", ()):
                yield bench["name"], case, goal


def goals_text(benches):
    found = list(all_goals(benches))
    missed = [item for item in found if item[2]["met"] is False]
    met = sum(goal["met"] is True for *_, goal in found)
    lines = [f"Of {len(found)} goals {met} were met, {len(missed)} were missed, and "
             f"{len(found) - met - len(missed)} had nothing to compare with."]
    if missed:
        lines += ["", "| bench | case | missed goal | measured |", "|---|---|---|---|"]
        for name, case, goal in missed:
            ratio = f", ratio {significant(case['ratio'])}" if "ratio" in case else ""
            lines.append(f"| [{name}](#{name}) | {case['case']} | {goal['goal']} | "
                         f"{duration(case['median_ns'])}{ratio} |")
    return "\n".join(lines)


def goal_cell(case):
    words = {True: "met", False: "**missed**", None: "not compared"}
    return "; ".join(f"{goal['goal']}: {words[goal['met']]}" for goal in case.get("goals", ()))


def row(case):
    role = {"ours": "**detent**"}.get(case["role"], case["role"])
    if "median_ns" not in case:
        why = case.get("skipped") or "failed: " + case["failed"]
        return f"| {role} | {case['case']} | {why} | | | | | |"
    rate = case.get("per_second")
    cells = [
        role, case["case"], duration(case["median_ns"]),
        f"{duration(case['p10_ns'])} - {duration(case['p90_ns'])}",
        significant(rate) if rate and rate < 1e9 else "",
        f"{significant(case['ratio'])} x {case['against']}" if "ratio" in case else "",
        f"{case['allocations']:.3g}" if "allocations" in case else "", goal_cell(case)]
    return f"| {' | '.join(cells)} |"


def section(bench):
    operation = bench["cases"][0]["operation"]
    kept = [f"{case['case']}: {case['kept_bytes']:,.0f} bytes of memory for each"
            for case in bench["cases"] if case.get("kept_bytes", 0) >= 1]
    lines = [f"\n## {bench['name']}\n", f"{bench['title'][0].upper()}{bench['title'][1:]}.\n",
             f"| role | case | time per {operation} | spread | a second | ratio | allocations "
             "| goals |",
             "|---|---|---|---|---|---|---|---|", *map(row, bench["cases"])]
    if kept:
        lines += ["", *(f"- {line}" for line in kept)]
    return "\n".join(lines)


def page(data):
    benches = data["benches"]
    head = TEXT.format(conditions=conditions(data["machine"]), busy=busy(benches),
                       goals=goals_text(benches))
    dates = ["", "## When", "", "| bench | date | commit | processors used by others |",
             "|---|---|---|---|",
             *(f"| {b['name']} | {b['date']} | {b['commit']} | {b['busy']}% |" for b in benches)]
    return head + "\n".join(map(section, benches)) + "\n" + "\n".join(dates) + "\n"


def with_figures(text, data):
    """README.md with new text between the marks."""
    pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
    block = f"{BEGIN}\n{readme(Figures(data))}\n{END}"
    found, count = re.subn(pattern, lambda _: block, text, flags=re.S)
    if count != 1:
        raise ValueError(f"README.md has {count} blocks of figures")
    return found


def files_of(root, data):
    readme_path = Path(root, "README.md")
    return {Path(root, "docs/performance.md"): page(data),
            readme_path: with_figures(readme_path.read_text(), data)}


def first_line(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "not installed"


def processor():
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), flags=re.M)
    return found[1] if found else platform.machine()


def postgres():
    servers = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return first_line(servers[-1], "--version") if servers else "not installed"


def machine():
    memory = int(re.search(r"MemTotal:\s*(\d+)", Path("/proc/meminfo").read_text())[1])
    release = platform.freedesktop_os_release()
    return {
        "processor": f"{processor()}, {os.cpu_count()} processors",
        "memory": f"{memory / 2**20:.0f} GiB",
        "system": f"{release['PRETTY_NAME']}, Linux {'.'.join(platform.release().split('.')[:2])}",
        "compiler": first_line("gcc", "--version"),
        "PostgreSQL": postgres(),
        "Erlang": first_line("dpkg-query", "-Wf", "${Version}", "erlang-base"),
        "Node.js": first_line("node", "--version"),
    }


def jiffies():
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    return sum(fields), fields[3] + fields[4]


def others_share():
    """The share of the processors that others use, in percent of one idle second."""
    total, idle = jiffies()
    time.sleep(1)
    total, idle = (now - then for now, then in zip(jiffies(), (total, idle)))
    return round(100 * (total - idle) / total)


def measure(bench, name, commit):
    share = others_share()
    text = subprocess.run([bench, "--json", "--only", name], stdout=subprocess.PIPE, text=True,
                          check=False).stdout
    cases = [json.loads(line) for line in text.splitlines()]
    if not cases:
        sys.exit(f"{name}: nothing was measured")
    system = {case.pop("file_system") for case in cases}.pop()
    title = {case.pop("title") for case in cases}.pop()
    for case in cases:
        del case["bench"]
    return system, {"name": name, "title": title, "date": time.strftime("%Y-%m-%d", time.gmtime()),
                    "commit": commit, "busy": share, "cases": cases}


def save(data):
    """One case a line, so that a change can be read."""
    text = json.dumps({"machine": data["machine"]}, indent=1)[:-2] + ',\n "benches": ['
    for i, bench in enumerate(data["benches"]):
        head = json.dumps({key: bench[key] for key in bench if key != "cases"})[:-1]
        cases = ",\n".join("   " + json.dumps(case) for case in bench["cases"])
        text += f"{',' if i else ''}\n  {head}, \"cases\": [\n{cases}]}}"
    FIGURES.write_text(text + "\n ]\n}\n")


def run(bench, names, lock):
    order = subprocess.check_output([bench, "--list"], text=True).split()
    data = json.loads(FIGURES.read_text()) if FIGURES.exists() else {"benches": []}
    found = {item["name"]: item for item in data["benches"] if item["name"] in order}
    commit = first_line("git", "-C", str(HERE), "rev-parse", "--short", "HEAD")
    for name in names or order:
        print(name, flush=True)
        with open(lock or os.devnull, "a", encoding="utf-8") as file:
            if lock:
                fcntl.flock(file, fcntl.LOCK_EX)
            system, found[name] = measure(bench, name, commit)
        data["machine"] = {**machine(), "file system of the stores": system}
        data["benches"] = [found[name] for name in order if name in found]
        save(data)


def self_test():
    case = {"case": "one sender", "role": "ours", "operation": "send", "median_ns": 274725.0,
            "p10_ns": 1.0, "p90_ns": 2.5e6, "rounds": 3, "per_second": 3640.0, "ratio": 1.14,
            "against": "hand-written",
            "goals": [{"goal": "at most 1.25 x hand-written", "met": False}]}
    bench = {"name": "sqlite", "title": "sends", "date": "2026-01-01", "commit": "abc", "busy": 3,
             "cases": [case]}
    data = {"machine": {"processor": "one"}, "benches": [bench]}
    text = page(data)
    for part in ("| 275 us | 1.00 ns - 2.50 ms | 3,640 | 1.14 x hand-written |", "1 were missed",
                 "at most 1.25 x hand-written: **missed**", "3% to 3%"):
        assert part in text, part
    case["per_second"] = 3641.0
    assert page(data) == text  # three digits are shown
    case["per_second"] = 3650.0
    assert page(data) != text
    assert [significant(v) for v in (3.6449, 54.23, 293.4, 54234.0, 1e6)] == [
        "3.64", "54.2", "293", "54,200", "1,000,000"]
    return 0


def main():
    verb, *arguments = sys.argv[1:] or ["help"]
    if verb == "self-test":
        return self_test()
    if verb == "run":
        lock = None
        if "--lock" in arguments:
            at = arguments.index("--lock")
            lock = arguments[at + 1]
            del arguments[at:at + 2]
        run(arguments[0], arguments[1:], lock)
        return 0
    if verb not in ("write", "check"):
        print(__doc__)
        return 2
    stale = 0
    for path, text in files_of(arguments[0], json.loads(FIGURES.read_text())).items():
        if verb == "write":
            path.write_text(text)
        elif path.read_text() != text:
            print(f"{path} is not what bench/figures.json gives: run bench/figures.py write .")
            stale += 1
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
