#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Evaluates random expressions over random rows with oracle.c and with model.py.

compare.py ORACLE        EXPRESSION_TIMES sets the number (5000), EXPRESSION_SEED the seed
"""
import json
import math
import os
import random
import subprocess
import sys

import model
from model import Absent, Enum, Failure, Span, Time

HUES = ["red", "green", "dark-blue"]
WIDTHS = {"a": (0, 8), "b": (0, 16), "c": (0, 32), "d": (0, 64), "in": (0, 8),
          "e": (1, 8), "f": (1, 16), "g": (1, 32), "h": (1, 64), "limit": (1, 32)}
CAPACITIES = {"title": 20, "note": 12}
IF, OR, AND, NOT, COMPARISON, SUM, PRODUCT, NEGATE, OR_ELSE, PRIMARY = range(10)
INTS = [0, 1, 2, 3, 7, 10, 100, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**53, 2**53 + 1,
        2**62, 2**63 - 1, 2**63, 2**64 - 1]
FLOATS = [0.0, 0.5, 1.0, 1.5, 2.5, 0.1, 3.7e10, 1e18, 9007199254740993.0, 1e19, 1e300, 5e-324]
TEXTS = ["", "a", "b", "abc", "ABC", "red", "green", " x ", "12", "-7", "1.5", "héé", "日本",
         "it's", 'say "hi"', "a\\b", "a,b,a", "99999999999999999999", "1e3", "Z\t"]
SPANS = ["0s", "1ns", "1s", "90s", "1h30m", "1.5s", "7d", "250ms", "36500d"]
SPAN_VALUES = [0, 1, 10**9, 90 * 10**9, 5400 * 10**9, 1500000000, 7 * 86400 * 10**9,
               250 * 10**6, 36500 * 86400 * 10**9]


class Node:
    """A piece of text, how tightly it binds, and what it means for a row."""

    def __init__(self, text, precedence, value, constants=None, is_constant=False):
        self.text, self.precedence, self.value = text, precedence, value
        self.is_constant = is_constant
        # The largest parts that the compiler evaluates itself.
        self.constants = constants if constants is not None else [value] if is_constant else []

    def at(self, precedence):
        return self.text if self.precedence >= precedence else f"({self.text})"


def combine(text, precedence, value, nodes):
    is_constant = all(node.is_constant for node in nodes)
    constants = [value] if is_constant else [part for node in nodes for part in node.constants]
    return Node(text, precedence, value, constants, is_constant)


def quote(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\t", "\\t") + "'"


def find(row, path):
    """The value at a path, whose parts are names and indexes; None is absent."""
    for part in path:
        if isinstance(part, int):
            if part >= len(row):
                raise Absent("RANGE")
            row = row[part]
        else:
            row = row.get(part)
        if row is None:
            raise Absent("ABSENT")
    return row


class Generator:
    def __init__(self, rng):
        self.rng, self.known = rng, []

    def choose(self, *makers):
        return self.rng.choice(makers)()

    def make(self, kind, depth):
        return getattr(self, "make_" + kind)(depth if depth > 0 else 0)

    # Values.

    def literal(self, kind):
        rng = self.rng
        if kind == "int":
            value = rng.choice(INTS)
            return Node(str(value), PRIMARY, lambda row: value, is_constant=True)
        if kind == "float":
            value = rng.choice(FLOATS)
            text = repr(value)
            return Node(text, PRIMARY, lambda row: value, is_constant=True)
        if kind == "bool":
            value = rng.random() < .5
            return Node("true" if value else "false", PRIMARY, lambda row: value, is_constant=True)
        if kind == "text":
            value = rng.choice(TEXTS)
            return Node(quote(value), PRIMARY, lambda row: value, is_constant=True)
        if kind == "time":
            value = Time(rng.choice([0, 10**18, 1769853600 * 10**9, -10**15 + 1]))
            return Node(f"time('{model.format_time(value)}')", PRIMARY, lambda row: value,
                        is_constant=True)
        i = rng.randrange(len(SPANS))
        return Node(SPANS[i], PRIMARY, lambda row: Span(SPAN_VALUES[i]), is_constant=True)

    def path(self, kind):
        """A path that is always present, its parts, its text."""
        rng = self.rng
        names = {
            "int": ["a", "b", "c", "d", "e", "f", "g", "h", "piece.pieces", "`in`"],
            "float": ["x", "y"],
            "bool": ["yes"],
            "text": ["title", "piece.label"],
            "time": ["at"],
            "enum": ["tone", "piece.tone"],
        }[kind]
        text = rng.choice(names)
        wrap = {"time": Time, "enum": Enum}.get(kind, lambda x: x)
        parts = text.replace("`", "").split(".")
        return Node(text, PRIMARY, lambda row: wrap(find(row, parts)), [])

    def absent_path(self, kind):
        """A path that may be absent, or a text that may be no number."""
        rng = self.rng
        choices = {
            "int": ["limit", "spare.pieces", "#pieces.pieces", "#numbers"],
            "float": ["piece.weight", "#pieces.weight", "spare.weight", "#ratios"],
            "text": ["note", "spare.label", "#pieces.label", "#words"],
            "time": ["due"],
            "enum": ["shade", "#tones", "#pieces.tone"],
        }[kind]
        text = rng.choice(choices)
        wrap = {"time": Time, "enum": Enum}.get(kind, lambda x: x)
        if text[0] != "#":
            return Node(text, PRIMARY, lambda row: wrap(find(row, text.split("."))), [])
        name, *rest = text[1:].split(".")
        if rng.random() < .3:
            index = self.make_int(1)
        else:
            number = rng.randrange(4)
            index = Node(str(number), PRIMARY, lambda row: number, is_constant=True)

        def value(row):
            number = index.value(row)
            if not 0 <= number < len(row[name]):
                raise Absent("RANGE")
            return wrap(find(row[name][number], rest))
        tail = "".join("." + part for part in rest)
        return Node(f"{name}[{index.text}]{tail}", PRIMARY, value, index.constants)

    def parsed(self, kind, depth):
        text = self.make("text", depth - 1)
        function = "parse_int" if kind == "int" else "parse_float"
        return combine(f"{function}({text.text})", PRIMARY,
                       lambda row: model.FUNCTIONS[function](text.value(row)), [text])

    def or_else(self, kind, depth):
        left = self.absent_path(kind)
        if kind in ("int", "float") and self.rng.random() < .3:
            left = self.parsed(kind, depth)
            if left.is_constant:
                left = self.absent_path(kind)
        right = self.make(kind, depth - 1)

        def value(row):
            try:
                return left.value(row)
            except Absent:
                return right.value(row)
        form = (f"coalesce({left.text}, {right.text})", PRIMARY)
        if self.rng.random() < .7:
            form = (f"{left.at(PRIMARY)} or_else {right.at(NEGATE)}", OR_ELSE)
        return Node(*form, value, left.constants + right.constants)

    def known_path(self, kind):
        """A path that is known to be present here."""
        nodes = [node for known, node in self.known if known == kind]
        return self.rng.choice(nodes) if nodes else self.path(kind)

    def choice(self, kind, depth):
        kept = list(self.known)
        condition, asked = self.make("bool", depth - 1), None
        if self.rng.random() < .4:
            asked = self.rng.choice(["int", "float", "text", "time", "enum"])
            path = self.absent_path(asked)
            condition = self.has(path)
            self.known.append((asked, path))
        first = self.make(kind, depth - 1)
        self.known = kept
        second = self.make(kind, depth - 1)

        def value(row):
            part = first if condition.value(row) else second
            result = part.value(row)
            return result
        return Node(f"if {condition.text} then {first.text} else {second.text}", IF, value,
                    condition.constants + first.constants + second.constants)

    def has(self, path):
        def value(row):
            try:
                path.value(row)
                return True
            except Absent:
                return False
        return Node(f"has({path.text})", PRIMARY, value, path.constants)

    def common(self, kind, depth):
        if depth <= 0:
            return self.choose(lambda: self.path(kind), lambda: self.known_path(kind),
                               lambda: self.literal(kind))
        makers = [lambda: self.path(kind), lambda: self.literal(kind),
                  lambda: self.choice(kind, depth), lambda: self.known_path(kind)]
        if kind != "bool":
            makers.append(lambda: self.or_else(kind, depth))
        return self.rng.choice(makers)()

    def binary(self, sign, precedence, left, right, apply):
        def divisor(row):
            if right.value(row) == 0:
                raise Failure("RANGE")
        node = self.plain_binary(sign, precedence, left, right, apply)
        if sign in "/%" and right.is_constant and not left.is_constant:
            node.constants.append(divisor)
        return node

    def plain_binary(self, sign, precedence, left, right, apply):
        return combine(f"{left.at(precedence)} {sign} {right.at(precedence + 1)}", precedence,
                       lambda row: apply(sign, left.value(row), right.value(row)), [left, right])

    def call(self, name, *nodes):
        return combine(f"{name}({', '.join(node.text for node in nodes)})", PRIMARY,
                       lambda row: model.FUNCTIONS[name](*[node.value(row) for node in nodes]),
                       nodes)

    def extremes(self, kind, depth):
        nodes = [self.make(kind, depth - 1) for _ in range(self.rng.randint(2, 3))]
        is_max = self.rng.random() < .5
        return combine(f"{'max' if is_max else 'min'}({', '.join(node.text for node in nodes)})",
                       PRIMARY, lambda row: model.extreme([n.value(row) for n in nodes], is_max),
                       nodes)

    def negated(self, kind, depth):
        node = self.make(kind, depth - 1)
        return combine(f"-{node.at(NEGATE)}", NEGATE,
                       lambda row: model.negative(node.value(row)), [node])

    # Types.

    def make_int(self, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < .3:
            return self.common("int", depth)

        def sums():
            sign = rng.choice("+-*/%")
            return self.binary(sign, SUM if sign in "+-" else PRODUCT,
                               self.make("int", depth - 1), self.make("int", depth - 1),
                               model.arithmetic)

        def counts():
            name = rng.choice(["pieces", "words", "numbers"])
            return Node(f"count({name})", PRIMARY, lambda row: len(row[name]), [])
        return self.choose(
            sums, sums, sums, counts, lambda: self.negated("int", depth),
            lambda: self.extremes("int", depth),
            lambda: self.call("abs", self.make("int", depth - 1)),
            lambda: self.call(rng.choice(["floor", "ceil", "round", "int"]),
                              self.make("float", depth - 1)),
            lambda: self.call("length", self.make("text", depth - 1)),
            lambda: self.call("hash", self.make(rng.choice(["text", "int", "time", "span"]),
                                                depth - 1)),
            lambda: self.call(rng.choice(["year", "month", "day", "weekday", "hour", "minute",
                                          "second"]), self.make("time", depth - 1)),
            lambda: self.binary("/", PRODUCT, self.make("span", depth - 1),
                                self.make("span", depth - 1), model.span_arithmetic))

    def make_float(self, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < .3:
            return self.common("float", depth)

        def sums():
            sign = rng.choice("+-*/")
            kinds = rng.choice([("float", "float"), ("int", "float"), ("float", "int")])
            return self.binary(sign, SUM if sign in "+-" else PRODUCT,
                               self.make(kinds[0], depth - 1), self.make(kinds[1], depth - 1),
                               model.arithmetic)
        return self.choose(
            sums, sums, lambda: self.negated("float", depth),
            lambda: self.call("float", self.make("int", depth - 1)),
            lambda: self.call("abs", self.make("float", depth - 1)),
            lambda: self.extremes("float", depth))

    def conjunction(self, depth):
        is_and = self.rng.random() < .5
        kept = list(self.known)
        left = self.make("bool", depth - 1)
        if self.rng.random() < .4:
            kind = self.rng.choice(["int", "text", "time", "enum"])
            path = self.absent_path(kind)
            asked = self.has(path)
            left = asked if is_and else Node(f"not {asked.text}", NOT,
                                             lambda row: not asked.value(row), asked.constants)
            self.known.append((kind, path))
        right = self.make("bool", depth - 1)
        self.known = kept
        level = AND if is_and else OR

        def value(row):
            if is_and:
                return left.value(row) and right.value(row)
            return left.value(row) or right.value(row)
        return Node(f"{left.at(level)} {'and' if is_and else 'or'} {right.at(level + 1)}", level,
                    value, left.constants + right.constants)

    def comparison(self, depth):
        rng = self.rng
        kind = rng.choice(["int", "int", "float", "mixed", "text", "time", "span", "bool", "enum"])
        signs = ["==", "!="] if kind in ("bool", "enum") else ["==", "!=", "<", "<=", ">", ">="]
        if kind == "enum":
            left, right = self.make_enum(depth - 1), self.make_enum(depth - 1)
            if rng.random() < .5:
                right = Node(quote(rng.choice(HUES)), PRIMARY, None, [])
                right.value = (lambda word: lambda row: word)(right.text[1:-1])
        elif kind == "mixed":
            left, right = self.make("int", depth - 1), self.make("float", depth - 1)
            if rng.random() < .5:
                left, right = right, left
        else:
            left, right = self.make(kind, depth - 1), self.make(kind, depth - 1)
        sign = rng.choice(signs)
        return combine(f"{left.at(SUM)} {sign} {right.at(SUM)}", COMPARISON,
                       lambda row: model.compare(sign, left.value(row), right.value(row)),
                       [left, right])

    def member(self, depth):
        rng = self.rng
        kind = rng.choice(["int", "text", "float"])
        node = self.make(kind, depth - 1)
        is_negated = rng.random() < .3
        word = "not in" if is_negated else "in"
        if rng.random() < .4:
            name = {"int": "numbers", "text": "words", "float": "ratios"}[kind]
            return Node(f"{node.at(SUM)} {word} {name}", COMPARISON, lambda row:
                        any(model.compare("==", node.value(row), e) for e in row[name])
                        != is_negated if row[name] else [node.value(row), is_negated][1],
                        node.constants)
        elements = [self.literal(kind) for _ in range(rng.randint(1, 9))]
        text = ", ".join(element.text for element in elements)
        return combine(f"{node.at(SUM)} {word} [{text}]", COMPARISON, lambda row: any(
            model.compare("==", value, element.value(row))
            for value in [node.value(row)] for element in elements) != is_negated, [node])

    def make_bool(self, depth):
        if depth <= 0 or self.rng.random() < .2:
            return self.common("bool", depth)

        def inverted():
            node = self.make("bool", depth - 1)
            return combine(f"not {node.at(NOT)}", NOT, lambda row: not node.value(row), [node])
        return self.choose(
            lambda: self.conjunction(depth), lambda: self.conjunction(depth),
            lambda: self.comparison(depth), lambda: self.comparison(depth),
            lambda: self.member(depth), inverted,
            lambda: self.has(self.absent_path(self.rng.choice(["int", "text", "enum"]))),
            lambda: self.call(self.rng.choice(["starts_with", "ends_with", "contains"]),
                              self.make("text", depth - 1), self.make("text", depth - 1)))

    def make_text(self, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < .3:
            return self.common("text", depth)
        return self.choose(
            lambda: self.binary("+", SUM, self.make("text", depth - 1),
                                self.make("text", depth - 1), lambda sign, a, b: a + b),
            lambda: self.call("text", self.make(
                rng.choice(["int", "float", "bool", "time", "span", "enum"]), depth - 1)),
            lambda: self.call(rng.choice(["lower", "upper", "trim"]), self.make("text", depth - 1)),
            lambda: self.call("substring", self.make("text", depth - 1), self.make("int", 0)),
            lambda: self.call("substring", self.make("text", depth - 1), self.make("int", 0),
                              self.make("int", 0)),
            lambda: self.call("replace", self.make("text", depth - 1), self.make("text", 0),
                              self.make("text", 0)),
            lambda: self.extremes("text", depth))

    def make_time(self, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < .3:
            return self.common("time", depth)
        return self.choose(
            lambda: self.binary(rng.choice("+-"), SUM, self.make("time", depth - 1),
                                self.make("span", depth - 1), model.span_arithmetic),
            lambda: self.binary("+", SUM, self.make("span", depth - 1),
                                self.make("time", depth - 1), model.span_arithmetic),
            lambda: self.call("start_of", self.make("time", depth - 1),
                              self.make("span", depth - 1)),
            lambda: self.extremes("time", depth))

    def make_span(self, depth):
        rng = self.rng
        if depth <= 0 or rng.random() < .3:
            return self.literal("span") if depth <= 0 or rng.random() < .7 else self.choice(
                "span", depth)
        return self.choose(
            lambda: self.binary("-", SUM, self.make("time", depth - 1),
                                self.make("time", depth - 1), model.span_arithmetic),
            lambda: self.binary(rng.choice("+-"), SUM, self.make("span", depth - 1),
                                self.make("span", depth - 1), model.span_arithmetic),
            lambda: self.binary(rng.choice("*/"), PRODUCT, self.make("span", depth - 1),
                                self.make("int", depth - 1), model.span_arithmetic),
            lambda: self.binary("*", PRODUCT, self.make("int", depth - 1),
                                self.make("span", depth - 1),
                                lambda sign, a, b: model.span_arithmetic(sign, b, a)),
            lambda: self.binary("%", PRODUCT, self.make("span", depth - 1),
                                self.make("span", depth - 1), model.span_arithmetic),
            lambda: self.negated("span", depth), lambda: self.extremes("span", depth),
            lambda: self.call("abs", self.make("span", depth - 1)))

    def make_enum(self, depth):
        if depth <= 0:
            return self.path("enum")
        return self.choose(lambda: self.path("enum"), lambda: self.or_else("enum", depth),
                           lambda: self.choice("enum", depth), lambda: self.known_path("enum"))


def random_int(rng, is_signed, bits):
    low, high = (-2**(bits - 1), 2**(bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    return rng.choice([low, high, low + 1, 0, 1, 2, 3, rng.randint(low, high),
                       rng.randint(max(low, -9), 9), min(high, 10)])


def random_float(rng):
    return rng.choice(FLOATS + [-value for value in FLOATS[1:]] + [rng.uniform(-1e3, 1e3)])


def fitting(rng, capacity):
    return rng.choice([text for text in TEXTS if len(text.encode()) <= capacity])


def random_part(rng):
    part = {"label": fitting(rng, 8), "pieces": random_int(rng, 1, 32), "tone": rng.choice(HUES)}
    if rng.random() < .5:
        part["weight"] = random_float(rng)
    return part


def random_row(rng):
    row = {name: random_int(rng, *WIDTHS[name]) for name in "abcdefgh"}
    row |= {"x": random_float(rng), "y": random_float(rng), "yes": rng.random() < .5,
            "at": rng.choice([0, 10**18, -10**18, 1769853600 * 10**9, rng.randint(-2**62, 2**62),
                              2**63 - 1, -2**63]),
            "title": fitting(rng, 20), "tone": rng.choice(HUES), "piece": random_part(rng),
            "blob": "aGk=", "in": random_int(rng, 0, 8),
            "pieces": [random_part(rng) for _ in range(rng.randint(0, 3))],
            "words": [fitting(rng, 6) for _ in range(rng.randint(0, 3))],
            "numbers": [random_int(rng, 1, 64) for _ in range(rng.randint(0, 4))],
            "tones": [rng.choice(HUES) for _ in range(rng.randint(0, 3))],
            "ratios": [random_float(rng) for _ in range(rng.randint(0, 2))]}
    optional = {"limit": random_int(rng, 1, 32), "note": fitting(rng, 12),
                "spare": random_part(rng), "due": rng.randint(-2**62, 2**62),
                "shade": rng.choice(HUES)}
    return row | {name: value for name, value in optional.items() if rng.random() < .5}


def as_json(row):
    """Times are texts in JSON."""
    return json.dumps(row | {name: model.format_time(row[name]) for name in ("at", "due")
                             if name in row}, ensure_ascii=False)


def describe(value):
    """The line that the oracle prints for a value."""
    if isinstance(value, bool):
        return f"bool {int(value)}"
    if isinstance(value, Time):
        return f"time {int(value)}"
    if isinstance(value, Span):
        return f"duration {int(value)}"
    if isinstance(value, Enum):
        return f"enum {value}"
    if isinstance(value, float):
        return f"float {value.hex()}"
    if isinstance(value, int):
        return f"int {value}"
    return f"text {value.encode().hex()}"


TARGETS = {"int": ["a", "b", "c", "d", "e", "f", "g", "h", "limit", "piece.pieces"],
           "float": ["x"], "bool": ["yes"], "text": ["title", "note", "piece.label", "tone"],
           "time": ["at", "due"], "enum": ["tone", "shade"]}


def stored(row, field, value):
    """The row after the value was stored."""
    row = json.loads(json.dumps(row))
    *path, name = field.split(".")
    at = row
    for part in path:
        at = at[part]
    if field == "piece.pieces":
        width = (1, 32)
    else:
        width = WIDTHS.get(name)
    if width and not (-2**(width[1] - 1) if width[0] else 0) <= value < 2**(width[1] - width[0]):
        raise Failure("RANGE")
    if name == "tone" and value not in HUES:
        raise Failure("RANGE")
    capacity = {"title": 20, "note": 12, "label": 8}.get(name)
    if capacity and len(value.encode()) > capacity:
        raise Failure("RANGE")
    at[name] = float(value) if name == "x" else value
    return row


def expect(node, row, field):
    try:
        value = node.value(row)
        if field == "-":
            return describe(value)
        return stored(row, field, value)
    except Failure as failure:
        return f"error {failure}"
    except Absent as absent:
        # An optional result is absent; inside of an expression it is an error.
        return f"miss {absent}"


def constant_fails(node, row):
    for value in node.constants:
        try:
            value(row)
        except (Failure, Absent):
            return True
    return False


def same(expected, line, node, row):
    """Whether the answer of the oracle is right."""
    code = (line.split() + [""])[1]
    if line.startswith("compile"):
        if "is not a value of hue" in line:
            return expected == "error RANGE"
        return "never" in line or code == "LIMIT" or constant_fails(node, row) or (
            code in ("TYPE", "RANGE") and node.is_constant)
    if isinstance(expected, str) and expected.startswith("miss"):
        return line == "absent" or line.startswith("error")
    if isinstance(expected, str) and expected.startswith("error"):
        return line.startswith("error") and code == expected.split()[1]
    if isinstance(expected, str):
        if expected.startswith("float") and line.startswith("float"):
            a, b = float.fromhex(expected[6:]), float.fromhex(line[6:])
            return a == b and math.copysign(1, a) == math.copysign(1, b)
        return line == expected
    return line.startswith("stored ") and json.loads(line[7:]) == json.loads(as_json(expected))


def main():
    seed = int(os.environ.get("EXPRESSION_SEED", "1"))
    times = int(os.environ.get("EXPRESSION_TIMES", "5000"))
    rng = random.Random(seed)
    cases, lines = [], []
    while len(cases) < times:
        kind = rng.choice(["int", "float", "bool", "text", "time", "span", "enum"])
        node, row = Generator(rng).make(kind, rng.randint(1, 5)), random_row(rng)
        if len(node.text.encode()) > 4000:
            continue
        field = rng.choice(TARGETS[kind]) if kind in TARGETS and rng.random() < .3 else "-"
        cases.append((node, row, field))
        lines += [as_json(row), field, node.text]
    run = subprocess.run([sys.argv[1]], input="\n".join(lines) + "\n", text=True, check=True,
                         stdout=subprocess.PIPE)
    answers = run.stdout.splitlines()
    assert len(answers) == len(cases), (len(answers), len(cases))
    faults, counts = 0, {}
    for (node, row, field), line in zip(cases, answers):
        expected = expect(node, row, field)
        counts[line.split()[0]] = counts.get(line.split()[0], 0) + 1
        if not same(expected, line, node, row):
            faults += 1
            if faults <= 10:
                print(f"{node.text}\n  row      {as_json(row)}\n  field    {field}\n"
                      f"  expected {expected}\n  got      {line}")
    print(f"expression: seed {seed}, {times} tried, {faults} faults; {counts}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
