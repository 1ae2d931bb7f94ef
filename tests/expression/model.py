#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""What expressions mean, in Python: values, operators and functions.

An int is an int, a float a float, a bool a bool, a text a str, a time and a duration are the
classes below, an enum value is an Enum. None is absent.
"""
import datetime
import math
import re
from fractions import Fraction

INT_MIN, INT_MAX = -2**63, 2**64 - 1
UNITS = (("d", 86400 * 10**9), ("h", 3600 * 10**9), ("m", 60 * 10**9), ("s", 10**9),
         ("ms", 10**6), ("us", 10**3), ("ns", 1))


class Failure(Exception):
    """An error of an evaluation, with its code."""


class Absent(Exception):
    """A value that or_else may replace; without it, a failure with the code."""


class Span(int):
    """A duration."""


class Time(int):
    """A wall time."""


class Enum(str):
    """A value of the enum."""


def check_int(value):
    if not INT_MIN <= value <= INT_MAX:
        raise Failure("OVERFLOW")
    return value


def check_span(value, kind):
    if not -2**63 <= value < 2**63:
        raise Failure("OVERFLOW")
    return kind(value)


def check_float(value):
    if not math.isfinite(value):
        raise Failure("OVERFLOW")
    return value


def divide(a, b):
    """Rounded toward zero."""
    if b == 0:
        raise Failure("RANGE")
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def remainder(a, b):
    return a - b * divide(a, b)


def as_float(value):
    return float(value)


def arithmetic(sign, a, b):
    """Two numbers."""
    if type(a) is int and type(b) is int:
        if sign == "/":
            return check_int(divide(a, b))
        if sign == "%":
            return check_int(remainder(a, b))
        return check_int({"+": a + b, "-": a - b, "*": a * b}[sign])
    a, b = as_float(a), as_float(b)
    if sign == "/":
        if b == 0:
            raise Failure("RANGE")
        return check_float(a / b)
    return check_float({"+": a + b, "-": a - b, "*": a * b}[sign])


def span_arithmetic(sign, a, b):
    """Times and durations."""
    if sign in "+-":
        value = int(a) + int(b) if sign == "+" else int(a) - int(b)
        is_time = isinstance(a, Time) != isinstance(b, Time)
        return check_span(value, Time if is_time else Span)
    if sign == "*":
        return check_span(int(a) * int(b), Span)
    if sign == "%":
        return check_span(remainder(int(a), int(b)), Span)
    if isinstance(b, Span):
        return check_int(divide(int(a), int(b)))
    return check_span(divide(int(a), int(b)), Span)


def exact(value):
    return Fraction(value) if isinstance(value, (int, float)) else value


def compare(sign, a, b):
    if isinstance(a, str):
        a, b = a.encode(), b.encode()
    else:
        a, b = exact(a), exact(b)
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]


def whole(value, how):
    if type(value) is int:
        return value
    return check_int(how(Fraction(value)))


def half_away(value):
    size = math.floor(abs(value) + Fraction(1, 2))
    return size if value >= 0 else -size


def format_float(value):
    for digits in (15, 16, 17):
        text = f"{value:.{digits}g}"
        if float(text) == value:
            break
    return text


def format_span(value):
    if value == 0:
        return "0s"
    sign, value = ("-" if value < 0 else ""), abs(int(value))
    text = ""
    for name, unit in UNITS[:3]:
        if value >= unit:
            text += f"{value // unit}{name}"
            value %= unit
    for name, unit in UNITS[3:]:
        if value >= unit:
            fraction = f"{value % unit:0{len(str(unit)) - 1}}".rstrip("0") if unit > 1 else ""
            text += f"{value // unit}{'.' if fraction else ''}{fraction}{name}"
            break
    return sign + text


def moment(value):
    """Seconds of the time, as a date and a time of day, and the nanoseconds that are left."""
    seconds, rest = divmod(int(value), 10**9)
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds), rest


def format_time(value):
    when, rest = moment(value)
    fraction = f".{rest:09}".rstrip("0") if rest else ""
    return f"{when:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def text_of(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Time):
        return format_time(value)
    if isinstance(value, Span):
        return format_span(value)
    if isinstance(value, float):
        return format_float(value)
    return str(value)


def hash_of(value):
    data = value.encode() if isinstance(value, str) else (int(value) % 2**64).to_bytes(8, "little")
    number = 0xcbf29ce484222325
    for byte in data:
        number = (number ^ byte) * 0x100000001b3 % 2**64
    number = (number ^ number >> 33) * 0xff51afd7ed558ccd % 2**64
    number = (number ^ number >> 33) * 0xc4ceb9fe1a85ec53 % 2**64
    return number ^ number >> 33


def letters(text, lower):
    return "".join(c.lower() if lower and "A" <= c <= "Z" else
                   c.upper() if not lower and "a" <= c <= "z" else c for c in text)


def substring(text, start, count=2**63):
    if start < 0 or count < 0:
        raise Failure("RANGE")
    return text[start:start + count]


def parse_int(text):
    if not re.fullmatch(r"-?[0-9]+", text) or not INT_MIN <= int(text) <= INT_MAX:
        raise Absent("MALFORMED")
    return int(text)


def parse_float(text):
    if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        raise Absent("MALFORMED")
    if not math.isfinite(float(text)):
        raise Absent("MALFORMED")
    return float(text)


def start_of(time, span):
    if span <= 0:
        raise Failure("RANGE")
    return check_span(int(time) // int(span) * int(span), Time)


def absolute(value):
    if isinstance(value, Span):
        return check_span(abs(int(value)), Span)
    return abs(value)


def negative(value):
    if isinstance(value, Span):
        return check_span(-int(value), Span)
    return check_int(-value) if type(value) is int else -value


FUNCTIONS = {
    "abs": absolute,
    "floor": lambda x: whole(x, math.floor),
    "ceil": lambda x: whole(x, math.ceil),
    "round": lambda x: whole(x, half_away),
    "int": lambda x: whole(x, math.trunc),
    "float": as_float,
    "text": text_of,
    "hash": hash_of,
    "length": len,
    "lower": lambda text: letters(text, True),
    "upper": lambda text: letters(text, False),
    "trim": lambda text: text.strip(" \t\n\r\f\v"),
    "starts_with": lambda text, part: text.startswith(part),
    "ends_with": lambda text, part: text.endswith(part),
    "contains": lambda text, part: part in text,
    "substring": substring,
    "replace": lambda text, part, by: text.replace(part, by) if part else text,
    "parse_int": parse_int,
    "parse_float": parse_float,
    "start_of": start_of,
    "year": lambda time: moment(time)[0].year,
    "month": lambda time: moment(time)[0].month,
    "day": lambda time: moment(time)[0].day,
    "weekday": lambda time: moment(time)[0].isoweekday(),
    "hour": lambda time: moment(time)[0].hour,
    "minute": lambda time: moment(time)[0].minute,
    "second": lambda time: moment(time)[0].second,
}


def extreme(values, is_max):
    if any(isinstance(value, float) for value in values):
        values = [as_float(value) for value in values]
    best = values[0]
    for value in values[1:]:
        if compare(">" if is_max else "<", value, best):
            best = value
    return best
