#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Scopes: routes.def, openapi.yaml, docs/formats/tokens.md and the server agree.

    scopes.py DETENT NASTY_CHILD [PART_OF_A_NAME]
"""
import re
import sys

import shop
from openapi import METHODS, TREE, operations
from shop import Daemon, Wire, check, equal, project, token

SCOPES = ("read", "send", "admin", "metrics")
ROUTE = re.compile(r'^API_ROUTE\((\w+), "([^"]+)", (\w+), ', re.MULTILINE)
ROW = re.compile(r"^\| `?(none|read|send|admin|metrics)`? \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
# Writes to instances; what else is written is for admins.
TO_INSTANCES = {"start", "send", "send_all", "batch", "cancel", "retry"}
# Writes that change nothing but what is the caller's own.
OWN = {"redeem", "sign_out", "check_definition"}


def routes():
    """Scope by method and path, as the server is made of it."""
    text = (TREE / "src/program/api/routes.def").read_text()
    return {(method, path): scope.lower() for method, path, scope in ROUTE.findall(text)}


def listed(operation):
    return operation.node.get("x-scope", "public")


def test_the_table_and_the_contract_name_the_same_operations_and_scopes():
    equal({(o.method, o.path): listed(o) for o in operations()}, routes())
    for operation in operations():
        equal(operation.node.get("security") == [], listed(operation) == "public")


def test_the_docs_name_the_same_operations_for_each_scope():
    text = (TREE / "docs/formats/tokens.md").read_text()
    found = {scope: set(re.findall(r"`(\w+)`", names)) for scope, names in ROW.findall(text)}
    expected = {}
    for operation in operations():
        scope = listed(operation).replace("public", "none")
        expected.setdefault(scope, set()).add(operation.name)
    equal(found, expected)


def test_writes_to_instances_are_send_and_other_writes_admin():
    for operation in operations():
        if operation.method != "GET" and operation.name not in OWN:
            equal((operation.name, listed(operation)),
                  (operation.name, "send" if operation.name in TO_INSTANCES else "admin"))


def test_every_operation_is_open_to_its_scope_and_to_no_other():
    project(shop.COUNTERS + "workers: {children: []}\n")
    values = {scope: token(scope) for scope in SCOPES}
    daemon = Daemon()
    found = []
    for operation in operations():
        words = {"order": "stop", "change": "retry", "flow_order": "run"}
        target = re.sub(r"{(\w+)}", lambda m: words.get(m[1], "nobody"), operation.path)
        if operation.name == "events":
            target += "?after=nonsense"
        # A body that is refused, so that nothing comes of it.
        body = {"nonsense": 1} if operation.method in ("POST", "PUT") else None
        for scope in (None, *SCOPES):
            # A token that ends its session is invalid afterwards; none of these has one.
            with Wire(daemon.address, values.get(scope)) as wire:
                status = wire.ask(operation.method, target, body).status
            may = listed(operation) in ("public", scope) or scope == "admin"
            expected = "let in" if may else "401" if scope is None else "403"
            seen = str(status) if status in (401, 403) else "let in"
            if operation.name == "redeem":
                seen = "let in" if status == 400 else str(status)
            if seen != expected:
                found.append(f"{operation.name} with {scope}: {status}, not {expected}")
    check(not found, "\n".join(found))
    daemon.stop()


def test_unknown_operations_need_a_token():
    project(shop.COUNTERS)
    value = token("metrics")
    daemon = Daemon()
    for method in METHODS:
        for target, status in (("/v1/nonsense", 404), ("/v1/tokens", 404), ("/metrics", 405)):
            if method == "GET" and status == 405:
                continue
            with Wire(daemon.address) as wire:
                equal(wire.ask(method, target, {} if method != "GET" else None).status, 401)
            with Wire(daemon.address, value) as wire:
                equal(wire.ask(method, target, {} if method != "GET" else None).status, status)
    daemon.stop()


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
