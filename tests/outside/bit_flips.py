#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""bit_flips.py - damage in every table of a SQLite store is found by `detent store verify`.

    tests/outside/bit_flips.py [--quick] [--seed N] [--program PATH]

A store with rows in every table is made of tests/schema. Then, each time in a copy of it:
  1. one bit of every column of every row is flipped by an UPDATE;
  2. all rows of a table that belong to instances are deleted;
  3. one bit of the file is flipped, at random places.
A flip that changes the content of a table must be found: verify exits with something else than 0,
or refuses to open the store. The checksums are computed here again, after
docs/formats/sql_schema.md. The last line says how many were not found; then the exit code is 1.
"""
import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests", "lib"))
from checksums import connect  # noqa: E402  pylint: disable=wrong-import-position

# What is no part of what happens: who looked on, and nodes, of which a file has none.
EXEMPT = {("events", "trace"), ("timers", "owner"), ("outbox", "owner"), ("dead_letters", "owner")}
# Its rows are covered by the hash of the chain instead of a checksum of their own.
CHAINED = {"events"}
OWNED = ["timers", "outbox", "dead_letters", "deferred", "answers", "events"]


def add_rows(database):
    """Rows in the tables that the stores of tests/schema have empty."""
    database.executescript("""
        INSERT INTO schedules VALUES ('nightly', 5, 3, 7, 0);
        UPDATE schedules SET checksum = row_checksum('schedules', name, next_at, last_at, token);
        INSERT INTO jobs (queue, id, task, body, state, due_at, attempts, owner, submitted_at,
            ended_at, reason, lost, checksum)
            VALUES ('mail', 'j-1', 'send', x'7b7d', 'delayed', 9, 2, 'n-1', 4, 0, 'it broke', 1, 0);
        UPDATE jobs SET checksum = row_checksum('jobs', queue, id, task, body, state, due_at,
            attempts, owner, submitted_at, ended_at, reason, lost);
        INSERT INTO documents VALUES ('a', 'link', 'spec', 1, 1, 10, 11, '{"n":1}', 0);
        UPDATE documents SET checksum = row_checksum('documents', id, kind, role, sync, version,
            created_at, updated_at, text);
        INSERT INTO deltas VALUES (1, 11, 'link', 'a', 'spec', 'created', 1, 17,
            '{"added":{"n":1}}', 0);
        UPDATE deltas SET checksum = row_checksum('deltas', sync, at, kind, id, role, change,
            version, size, text);
        UPDATE store SET sync = 1;
        UPDATE store SET checksum = row_checksum('store', identity, schema, created_at, program,
            position, sync);
        INSERT INTO renames VALUES (1, 'other', 'state', 'old', 'new', 1, 1, 0);
        UPDATE renames SET checksum = row_checksum('renames', number, machine, kind, old_name,
            new_name, batch, position);
    """)


def make_store(program, path):
    with open(os.path.join(ROOT, "tests/schema/5.sqlite.sql"), encoding="utf-8") as file:
        text = file.read()
    database = connect(path)
    database.executescript(text)
    database.close()
    run = subprocess.run([program, "store", "upgrade", "--store", f"sqlite:{path}"],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(f"the store cannot be made: {run.stderr}")
    database = connect(path)
    add_rows(database)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def verify(program, path):
    run = subprocess.run([program, "store", "verify", "--store", f"sqlite:{path}"],
                         capture_output=True, text=True, check=False)
    return run.returncode, run.stdout + run.stderr


def tables_of(database):
    names = [name for (name,) in database.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
    columns = {name: [(row[1], row[5]) for row in database.execute(f"PRAGMA table_info({name})")]
               for name in names}
    bare = {name for name, cells in columns.items()
            if "checksum" not in [cell for cell, _ in cells]} - CHAINED
    if bare:
        sys.exit(f"bit_flips: no checksum covers the rows of {', '.join(sorted(bare))}")
    return columns


def dump(path, tables):
    """The content of all tables but what is exempt; None: it cannot be read."""
    try:
        database = connect(path)
        content = []
        for table, columns in tables.items():
            wanted = [name for name, _ in columns if (table, name) not in EXEMPT]
            rows = database.execute(f"SELECT {', '.join(wanted)} FROM {table} NOT INDEXED")
            content.append((table, sorted(repr(row) for row in rows)))
        database.close()
        return content
    except (sqlite3.Error, UnicodeError, OverflowError):
        return None


def flipped(value, chance):
    if value is None:
        return None
    if isinstance(value, int):
        number = (value ^ (1 << chance.randrange(40))) & (2**63 - 1)
        return number
    data = bytearray(value.encode() if isinstance(value, str) else value)
    if not data:
        return None
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(3)
    return data.decode("utf-8", "replace") if isinstance(value, str) else bytes(data)


class Trial:
    def __init__(self, program, seed, is_quick):
        self.program, self.is_quick, self.seed = program, is_quick, seed
        self.chance = random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="detent-flips-")
        self.good, self.copy = f"{self.folder}/good.db", f"{self.folder}/copy.db"
        make_store(program, self.good)
        database = connect(self.good)
        self.tables = tables_of(database)
        database.close()
        self.flips = self.missed = self.deleted = self.changed = 0

    def fresh(self):
        for suffix in ("-wal", "-shm", ".lock", ".mark"):
            if os.path.exists(self.copy + suffix):
                os.unlink(self.copy + suffix)
        shutil.copyfile(self.good, self.copy)

    def judge(self, what):
        code, said = verify(self.program, self.copy)
        if code == 0:
            self.missed += 1
            print(f"not found: {what}: {said.strip()}")

    def is_alone(self, key):
        """Whether nothing hangs on the key of an instance: then another one is as good."""
        database = connect(self.good)
        tables = [table for table, columns in self.tables.items()
                  if "instance" in [name for name, _ in columns]]
        count = sum(database.execute(f"SELECT count(*) FROM {table} WHERE instance = ?",
                                     [key]).fetchone()[0] for table in tables)
        database.close()
        return count == 0

    def flip_column(self, table, columns, row, column):
        if (table, column) == ("instances", "key") and self.is_alone(row[0]):
            return
        # An order in a queue, and no part of the checksum: a retry changes it. Where the file is
        # damaged, its indexes say another one.
        if (table, column) == ("jobs", "key"):
            return
        keys = [name for name, place in columns if place] or [columns[0][0]]
        names = [name for name, _ in columns]
        value = row[names.index(column)]
        other = flipped(value, self.chance)
        if other is None or other == value:
            return
        self.fresh()
        database = connect(self.copy)
        where = " AND ".join(f"{key} IS ?" for key in keys)
        try:
            database.execute(f"UPDATE {table} SET {column} = ? WHERE {where}",
                             [other] + [row[names.index(key)] for key in keys])
        except sqlite3.IntegrityError:
            return
        finally:
            database.close()
        self.flips += 1
        self.judge(f"{table}.{column}: {value!r} became {other!r}")

    def flip_columns(self):
        database = connect(self.good)
        content = {table: database.execute(f"SELECT * FROM {table}").fetchall()
                   for table in self.tables}
        database.close()
        for table, columns in self.tables.items():
            if not content[table]:
                sys.exit(f"the store has no row in {table}")
            rows = content[table][-1:] if self.is_quick else content[table]
            for row in rows:
                for column, _ in columns:
                    if (table, column) not in EXEMPT:
                        self.flip_column(table, columns, row, column)

    def delete_rows(self):
        for table in OWNED:
            self.fresh()
            database = connect(self.copy)
            database.execute(f"DELETE FROM {table}")
            database.close()
            self.deleted += 1
            self.judge(f"all rows of {table} deleted")

    def flip_file(self, count):
        good = dump(self.good, self.tables)
        size = os.path.getsize(self.good)
        for _ in range(count):
            place, bit = self.chance.randrange(size), self.chance.randrange(8)
            self.fresh()
            with open(self.copy, "r+b") as file:
                file.seek(place)
                byte = file.read(1)[0]
                file.seek(place)
                file.write(bytes([byte ^ (1 << bit)]))
            if dump(self.copy, self.tables) == good:
                continue
            self.changed += 1
            for suffix in ("-wal", "-shm"):
                if os.path.exists(self.copy + suffix):
                    os.unlink(self.copy + suffix)
            self.judge(f"bit {bit} of byte {place}")

    def run(self, count):
        code, said = verify(self.program, self.good)
        if code:
            sys.exit(f"the store that was made is not whole: {said}")
        self.flip_columns()
        self.delete_rows()
        self.flip_file(count)
        shutil.rmtree(self.folder)
        print(f"seed {self.seed}: {self.flips} columns flipped, {self.deleted} tables emptied, "
              f"{count} bits of the file flipped, of which {self.changed} changed content: "
              f"{self.missed} not found")
        return 1 if self.missed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one row of each table, 30 bits")
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--program", default=os.path.join(ROOT, "build/release/detent"))
    args = parser.parse_args()
    if not os.path.exists(args.program):
        print(f"skipped: {args.program} is not there; build it, or say --program")
        return 77
    return Trial(args.program, args.seed, args.quick).run(30 if args.quick else 400)


if __name__ == "__main__":
    sys.exit(main())
