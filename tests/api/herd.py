#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A crowd of connections in a separate process: some send nothing, some send slowly.

    herd.py PORT IDLE SLOW

It prints `open` when all of them are there, drips a byte of a header into each slow one every tenth
of a second, and opens another one for each that was cut off; `told` when as many were told that
they are too slow as there were at first. When its input ends it prints what has become of them as
JSON: how many idle ones are still open, and what the slow ones were told.
"""
import json
import select
import socket
import sys

HEAD = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


def connect(port):
    one = socket.create_connection(("127.0.0.1", port))
    one.setblocking(False)
    return one


def heard(one):
    """What has come: None is nothing, empty its end."""
    try:
        return one.recv(4096)
    except BlockingIOError:
        return None
    except ConnectionResetError:
        return b""


def slow_one(port, slow):
    one = connect(port)
    one.send(HEAD)
    slow.append(one)


def drip(port, slow, said):
    for one in slow[:]:
        answer = heard(one)
        if answer is None:
            try:
                one.send(b"a")
                continue
            except (BrokenPipeError, ConnectionResetError):
                answer = b""
        status = answer[9:12].decode() or "cut"
        said[status] = said.get(status, 0) + 1
        one.close()
        slow.remove(one)
        slow_one(port, slow)


def main(port, idle_count, slow_count):
    idle = [connect(port) for _ in range(idle_count)]
    slow, said = [], {}
    for _ in range(slow_count):
        slow_one(port, slow)
    print("open", flush=True)
    was_told = False
    while not select.select([sys.stdin], [], [], 0.1)[0]:
        drip(port, slow, said)
        if not was_told and said.get("408", 0) >= slow_count:
            was_told = True
            print("told", flush=True)
    still = sum(heard(one) is None for one in idle)
    print(json.dumps({"idle": still, "said": said}), flush=True)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
