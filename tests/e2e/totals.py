#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Totals of a flow that is killed with SIGKILL again and again: those of one that is not.

    totals.py DETENT

A stage adds up rows by customer, another one keeps the best customers; a database, and files with
every row that was emitted, are the same at the end as those of an undisturbed run, and as totals
that are calculated here. TOTALS_KILLS is the least number of kills; TOTALS_POSTGRES the URL of a
database that gets the totals, too; SEED makes the times of the kills other ones.
"""
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "lib"))
from killed_flow import TooLate, run_killed  # noqa: E402  pylint: disable=wrong-import-position

DETENT = str(Path(sys.argv[1]).resolve())
KILLS = int(os.environ.get("TOTALS_KILLS", "24"))
POSTGRES = os.environ.get("TOTALS_POSTGRES", "")
ROWS = 60000 if KILLS < 100 else 400000
KILLS_OF_A_ROUND = 40
EMISSIONS = "EMIT_ALWAYS", "EMIT_EVERY(7)"
FILES = "totals.csv", "best.csv"
PLACES = 5

FLOW = """#define FLOW_NAME totals

RECORD(sale)
    FIELD(customer, str(16))
    FIELD(cents,    i64)
    FIELD(weight,   f64)
END
RECORD(account)
    FIELD(customer, str(16))
    FIELD(sales,    u64)
    FIELD(total,    i64)
    FIELD(mean,     f64)
    FIELD(low,      i64)
    FIELD(high,     i64)
    FIELD(weight,   f64)
END
RECORD(place)
    FIELD(place,    u32)
    FIELD(customer, str(16))
    FIELD(total,    i64)
END

SOURCE(make, sale, USE(generate, "{count: %(rows)d, fields: {customer: \\"'c' + text(n %% 97)\\","
                                 " cents: n * 7919 %% 1000 - 300, weight: random}}"))
STATEFUL(add, sale, account, KEY("customer"), %(emission)s,
         USE(aggregate, "{set: {sales: count(), total: sum(cents), mean: avg(cents),"
                        " low: min(cents), high: max(cents), weight: sum(weight)}}"))
STATEFUL(best, account, place, EMIT_EVERY(50),
         USE(top, "{rows: %(places)d, score: total, of: customer, rank: place}"))
SINK(store, account,
     USE(sqlite, "{path: totals.db, table: totals, key: [customer], create: true}"))
SINK(text, account, USE(csv, "{path: totals.csv}"))
SINK(show, place, USE(csv, "{path: best.csv}"))
EDGE(make, add)
EDGE(add, store)
EDGE(add, text)
EDGE(add, best)
EDGE(best, show)
"""
SERVER = """
SINK(server, account, USE(postgres, "{url: '%s', table: %s, key: [customer], create: true}"))
EDGE(add, server)
"""


def calculate():
    """The whole numbers of each customer: number of rows, sum, smallest and largest."""
    amounts = defaultdict(list)
    for n in range(1, ROWS + 1):
        amounts[f"c{n % 97}"].append(n * 7919 % 1000 - 300)
    return sorted((customer, len(cents), sum(cents), sum(cents) / len(cents), min(cents),
                   max(cents)) for customer, cents in amounts.items())


def read_database():
    with sqlite3.connect("totals.db") as database:
        return database.execute("SELECT customer, sales, total, mean, low, high, weight "
                                "FROM totals ORDER BY customer").fetchall()


def read_server(table):
    run = subprocess.run(["psql", "-AtX", "-d", POSTGRES, "-c",
                          "SELECT customer, sales, total, mean, low, high, weight FROM "
                          f'{table} ORDER BY customer COLLATE "C"'],
                         capture_output=True, text=True, check=True)
    return run.stdout


def read_files(emission):
    """All lines; what is emitted together at the end of the input comes in any order, and so the
    places before the last ones differ, too."""
    totals, best = (Path(path).read_text().splitlines() for path in FILES)
    if emission == "EMIT_ALWAYS":
        return {"totals.csv": totals, "best.csv": best}
    return {"totals.csv": sorted(totals), "best.csv": best[-PLACES:]}


def run_flow(emission, name, kills):
    """Runs the flow in a folder of its own. Returns its results and how often it was killed."""
    folder = Path(name)
    folder.mkdir()
    table = f"totals_{os.getpid()}_{name}"
    flow = FLOW % {"rows": ROWS, "emission": emission, "places": PLACES}
    (folder / "totals.flow").write_text(flow + (SERVER % (POSTGRES, table) if POSTGRES else ""))
    os.chdir(folder)
    killed = run_killed(DETENT, "totals", kills)
    results = {"sqlite": read_database(), **read_files(emission)}
    if POSTGRES:
        results["postgres"] = read_server(table)
    os.chdir("..")
    return results, killed


def compare(emission, killed, wanted, found):
    for name, result in wanted.items():
        if found[name] != result:
            sys.exit(f"{emission}, {killed} kills: {name} is not that of an undisturbed run")


def main():
    random.seed(os.environ.get("SEED"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        undisturbed = {}
        for i, emission in enumerate(EMISSIONS):
            undisturbed[emission], _ = run_flow(emission, f"still_{i}", 0)
            if [row[:6] for row in undisturbed[emission]["sqlite"]] != calculate():
                sys.exit(f"{emission}: the totals are wrong")
        total = rounds = started = 0
        while total < KILLS or rounds < len(EMISSIONS):
            emission = EMISSIONS[rounds % len(EMISSIONS)]
            kills = min(KILLS_OF_A_ROUND, KILLS // len(EMISSIONS))
            started += 1
            try:
                found, killed = run_flow(emission, f"round_{started}", kills)
            except TooLate:
                os.chdir(folder)
                continue
            compare(emission, killed, undisturbed[emission], found)
            total += killed
            rounds += 1
        os.chdir("/")
        print(f"totals: {total} kills in {rounds} runs of {ROWS} rows, equal to undisturbed ones")


main()
