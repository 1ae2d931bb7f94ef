# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""What schemathesis must know of our API and cannot read in openapi.yaml.

A stream has no end. The states, events and records of a machine are known to the server alone: a
request that is good by its schema gets names that are there. And JSON Schema calls 1.0 an integer,
which our server does not: integers are written without a fraction.
"""
import schemathesis

STATES = {"order": "pending", "counter": "counting"}
EVENTS = {"order": "ping", "counter": "finish"}


def is_good(case):
    return case.meta is not None and case.meta.generation.mode.is_positive


def whole(value):
    """The same without fractions that are zero; beyond 64 bits there are no integers."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    return [whole(item) for item in value] if isinstance(value, list) else value


def known(body, machine):
    """A send whose event the machine has, without data, which would have to fit its record."""
    if not isinstance(body, dict):
        return body
    body = {name: value for name, value in body.items() if name not in ("data", "payload")}
    return {**body, "event": EVENTS.get(machine, body["event"])} if "event" in body else body


@schemathesis.hook
def before_call(context, case, kwargs):  # pylint: disable=unused-argument
    query = case.query or {}
    if str(query.get("follow")).lower() == "true":
        query["follow"] = "false"
    if not is_good(case):
        return
    machine = (case.path_parameters or {}).get("machine")
    if "state" in query and machine in STATES:
        query["state"] = STATES[machine]
    if isinstance(case.body, dict):
        case.body = known(whole(case.body), machine)
        if isinstance(case.body.get("events"), list):
            case.body["events"] = [known(item, machine) for item in case.body["events"]]
