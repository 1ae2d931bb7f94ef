#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""JSON as the grammar of RFC 8259 has it, and as it has not: what is read is read the same by all.

    json_cases.py DETENT NASTY_CHILD [PART_OF_A_NAME]

Each case is the body of a start, whose data has one number. What is JSON and an object is taken,
or refused for what it says; anything else is 400, or 422 where it is too deep: nothing happens.
"""
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TREE / "tests/api"), str(TREE / "tests/e2e")]
import shop  # noqa: E402  pylint: disable=wrong-import-position
from shop import Daemon, check, project  # noqa: E402

BODY = '{"id": "%s", "data": {"number": 7}}'
# Numbers that are JSON, and whether our u64 takes them.
NUMBERS = {"0": True, "7": True, "18446744073709551615": True, "18446744073709551616": False,
           "-0": None, "-1": False, "1.5": False, "1e400": False, "1E2": None, "1e-2": False,
           "123456789012345678901234567890": False}
NO_NUMBERS = ("", "+1", "01", "-01", "--1", "-", "1.", ".5", "1.e1", "1e", "1e+", "0x1", "1_0",
              "NaN", "Infinity", "-Infinity", "1 2", "1,", "\uff11", "1;", "'1'", "1//", "tru",
              "True", "nul", "nil", "undefined", "\"a", "\"\\x41\"", "\"\\u12\"", "\"\t\"",
              "\"\\\"", "[1", "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}",
              "{\"a\":1,}", "{,}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{1:1}", "[1}", "{\"a\":1]")


def bodies():
    """(what it is, bytes of a body with its id as %s, whether it is taken; None: either)."""
    for text, taken in NUMBERS.items():
        yield text, '{"id": "%s", "data": {"number": ' + text + "}}", taken
    for text in NO_NUMBERS:
        yield text, '{"id": "%s", "data": {"number": ' + text + "}}", False
    good = BODY
    yield "blanks", " \t\r\n" + good.replace(" ", " \r\n\t ") + "\n \t\r", True
    yield "escaped keys", good.replace('"id"', '"\\u0069\\u0064"'), True
    yield "an escaped slash", '{"id": "%s", "data": {"number": 7}, "\\/": 1}', False
    yield "a key twice", '{"id": "%s", "id": "%s"}', False
    yield "a key twice, escaped", '{"id": "%s", "\\u0069d": "%s"}', False
    yield "a field twice", '{"id": "%s", "data": {"number": 7, "number": 7}}', False
    yield "a field twice, escaped", '{"id": "%s", "data": {"number": 7, "\\u006eumber": 7}}', False
    yield "a surrogate alone", '{"id": "%s", "data": {"\\ud800": 7}}', False
    yield "a comment", "/**/" + good, False
    yield "two objects", good + good.replace("%s", "other"), False
    yield "what follows", good + "x", False
    yield "a NUL", good + "\0", False
    yield "a byte order mark", "\ufeff" + good, False
    yield "an array", "[" + good + "]", False
    yield "deep", '{"id": "%s", "data": {"number": ' + "[" * 10000 + "]" * 10000 + "}}", False
    yield "no end", '{"id": "%s", "data": {"number": 7}', False
    yield "a NUL in a key", '{"id": "%s", "data": {"number\\u0000": 7}}', False


def encoded():
    """Bytes that are no UTF-8."""
    for name, piece in (("a lone byte", b"\xff"), ("an overlong slash", b"\xc0\xaf"),
                        ("an overlong NUL", b"\xe0\x80\x80"), ("a surrogate", b"\xed\xa0\x80"),
                        ("beyond Unicode", b"\xf4\x90\x80\x80"), ("cut off", b"\xe2\x82")):
        yield name, b'{"id": "%s", "data": {"number": 7, "' + piece + b'": 1}}', False


def test_only_valid_json_is_accepted_and_refusals_change_nothing():
    project(shop.COUNTERS)
    daemon = Daemon()
    wire, found = daemon.wire(), []
    cases = [(name, body.encode(), taken) for name, body, taken in bodies()] + list(encoded())
    for number, (name, body, taken) in enumerate(cases):
        identity = f"j-{number}"
        answer = wire.ask("POST", "/v1/machines/counter/instances",
                          body.replace(b"%s", identity.encode()))
        there = wire.get(f"/v1/machines/counter/instances/{identity}").status == 200
        is_taken = answer.status == 201
        is_right = answer.status in (201, 400, 422) and taken in (None, is_taken)
        if not is_right or is_taken != there:
            found.append(f"{name!r}: {answer.status} {answer.body[:120]}")
    check(not found, "\n".join(found))
    daemon.stop()


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
