# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""checksums.py - a SQLite store for tests that change its rows: docs/formats/sql_schema.md."""
import sqlite3

EFFECT = ("instance, sequence, number, effect, from_state, to_state, visit, asked, at, attempts, "
          "last_error, next_at, data, event, payload, reason, trace, origin")
COLUMNS = {
    "timers": "instance, name, machine, visit, due, event, payload, attempts, last_error, next_at, "
              "reason, dead_at",
    "outbox": EFFECT,
    "dead_letters": EFFECT + ", dead_at",
    "schedules": "name, next_at, last_at, token",
    "store": "identity, schema, created_at, program, position, sync",
}


def make_crc_table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = (number >> 1) ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


CRC_TABLE = make_crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def row_checksum(*values):
    data = b""
    for value in values:
        if value is None:
            data += b"\0"
        elif isinstance(value, int):
            data += b"\1" + (value & (2**64 - 1)).to_bytes(8, "little")
        else:
            is_text = isinstance(value, str)
            content = value.encode() if is_text else value
            data += (b"\2" if is_text else b"\3") + len(content).to_bytes(4, "little") + content
    return crc32c(data)


def connect(path, **options):
    """A connection that knows row_checksum()."""
    database = sqlite3.connect(path, isolation_level=None, **options)
    database.create_function("row_checksum", -1, row_checksum)
    return database


def sum_rows(database, *tables):
    """Gives the rows of these tables the checksums of what is in them."""
    for table in tables:
        database.execute(
            f"UPDATE {table} SET checksum = row_checksum('{table}', {COLUMNS[table]})")


def sum_locks(database):
    database.execute("UPDATE instances SET lock_checksum = "
                     "row_checksum('lock', key, fence, lock_owner, lock_until) WHERE fence > 0")
