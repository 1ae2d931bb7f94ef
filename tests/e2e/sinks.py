#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Sinks of a flow that is killed with SIGKILL again and again: each row is in each target once.

    sinks.py DETENT [KILLS]

Targets are SQLite, CSV, JSON lines and a journal; a second flow reads the journal, and is killed,
too.
"""
import json
import os
import random
import sqlite3
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "lib"))
from killed_flow import TooLate, run_killed  # noqa: E402  pylint: disable=wrong-import-position

DETENT = str(Path(sys.argv[1]).resolve())
KILLS = int(next(iter(sys.argv[2:]), "16"))
ROWS = 200000

RECORD = """
RECORD(reading)
    FIELD(id,      u64)
    FIELD(sensor,  str(32))
    FIELD(celsius, f64)
END
"""
WRITE = """#define FLOW_NAME write
""" + RECORD + """
SOURCE(rows, reading, USE(csv, "{path: in.csv}"))
SINK(store, reading, USE(sqlite, "{path: out.db, table: readings, create: true}"))
SINK(text,  reading, USE(csv, "{path: out.csv}"))
SINK(lines, reading, USE(jsonl, "{path: out.jsonl}"))
SINK(log,   reading, USE(journal, "{path: log, stream: warm}"))
EDGE(rows, store)
EDGE(rows, text)
EDGE(rows, lines)
EDGE(rows, log)
"""
READ = """#define FLOW_NAME read
""" + RECORD + """
SOURCE(rows, reading, USE(journal, "{path: log, stream: warm, format: json, once: true}"))
SINK(lines, reading, USE(jsonl, "{path: again.jsonl}"))
EDGE(rows, lines)
"""


def expect(what, found):
    if found != list(range(ROWS)):
        sys.exit(f"{what}: {len(found)} rows, {len(set(found))} of them distinct, of {ROWS}")


def ids_of_lines(path):
    return [json.loads(line)["id"] for line in Path(path).read_text().splitlines()]


def kill_in(folder):
    os.chdir(folder)
    Path("in.csv").write_text("id,sensor,celsius\n" + "".join(
        f"{i},s{i % 97},{i / 2}\n" for i in range(ROWS)))
    Path("write.flow").write_text(WRITE)
    Path("read.flow").write_text(READ)
    killed = run_killed(DETENT, "write", KILLS)
    rows = sqlite3.connect("out.db").execute("SELECT id FROM readings ORDER BY rowid")
    expect("sqlite", [row[0] for row in rows])
    lines = Path("out.csv").read_text().splitlines()
    expect("csv", [int(line.split(",")[0]) for line in lines[1:]])
    expect("jsonl", ids_of_lines("out.jsonl"))
    killed += run_killed(DETENT, "read", KILLS // 2)
    expect("journal", ids_of_lines("again.jsonl"))
    print(f"sinks: {killed} kills, {ROWS} rows once in each target")


def main():
    random.seed(os.environ.get("SEED"))
    for _ in range(20):
        with tempfile.TemporaryDirectory() as folder:
            try:
                kill_in(folder)
                return
            except TooLate:
                continue
            finally:
                os.chdir("/")
    sys.exit("20 times a run was killed after its end")


main()
