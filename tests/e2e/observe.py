#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Metrics, traces and the log of a detent that runs, end to end.

    observe.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py. One server of this test is both what the effect calls and the receiver
of traces; promtool judges the metrics.
"""
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import up
from clients import detent
from up import Up, check, equal, wait_until

SOCKET = ".detent/detent.sock"

ORDER = """#define FSM_NAME order
#define FSM_PREFIX ORDER
STATE(OPEN, open, INITIAL)
STATE(CHARGING, charging)
STATE(PAID, paid, FINAL)
STATE(PARKED, parked)
EVENT(PAY, pay)
EVENT(PARK, park)
INTERNAL(LATE, late)
INTERNAL(CHARGED, charged)
EFFECT(charge, CHARGED)
ON(OPEN, PAY, CHARGING, DO(charge))
ON(CHARGING, CHARGED, PAID)
ON(OPEN, PARK, PARKED)
ON(PARKED, LATE, CHARGING, DO(charge))
AFTER(PARKED, MILLISECONDS(1), LATE)
"""
CANARY = "canary-4711"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, dict(self.headers), json.loads(body)))
        status = self.server.statuses.pop(0) if self.path == "/charge" else 200
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


class Server:
    """Charges, as its statuses say, and takes spans."""

    def __init__(self, *statuses):
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self.http.got, self.http.statuses = [], list(statuses)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"

    def requests(self, path):
        return [(headers, body) for where, headers, body in self.http.got if where == path]

    def spans(self):
        return [span for _, body in self.requests("/v1/traces")
                for resource in body["resourceSpans"] for scope in resource["scopeSpans"]
                for span in scope["spans"]]

    def close(self):
        self.http.shutdown()
        self.http.server_close()


class Connection(http.client.HTTPConnection):
    def __init__(self):
        super().__init__("localhost")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(SOCKET)


def ask(token, method, path, body=None, **headers):
    """Status and body of an answer, through the socket in the folder."""
    connection = Connection()
    connection.request(method, path, body and json.dumps(body),
                       {"Authorization": f"Bearer {token}", "Content-Type": "application/json",
                        **headers})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode(), answer.headers
    connection.close()
    return found


def project(server, more=""):
    Path("order.fsm").write_text(ORDER)
    Path("token").write_text(f"Bearer {CANARY}\n")
    Path("detent.yaml").write_text(
        f"version: 1\n{more}traces:\n  endpoint: {server.url}/v1/traces\n"
        "  secret: {Authorization: \"file:token\"}\n"
        "tasks:\n  once: {run: \"false\", restart: on-failure, retries: 1, "
        "backoff: {first: 1ms, max: 1ms}}\n"
        f"machines:\n  order:\n    effects:\n      charge: {{http: \"{server.url}/charge\", "
        "statuses: {200: charged}, backoff: 1ms..1ms}\n")
    return detent("token", "new", "--scope", "read,send,metrics").stdout.strip()


def attributes(span):
    return {item["key"]: next(iter(item["value"].values())) for item in span["attributes"]}


def pay(token):
    """An order that is paid, in a trace of ours."""
    equal(ask(token, "POST", "/v1/machines/order/instances", {"id": "o-1"})[0], 201)
    equal(ask(token, "POST", "/v1/machines/order/instances/o-1/events", {"event": "pay"},
              traceparent=f"00-{TRACE}-{SPAN}-01")[0], 200)
    wait_until(lambda: json.loads(ask(token, "GET", "/v1/machines/order/instances/o-1")[1])
               ["state"] == "paid", "it is paid")


def listens():
    return up.is_listening(SOCKET)


def begin():
    one = Up()
    wait_until(lambda: listens() or one.process.poll() is not None, "the socket")
    check(one.process.poll() is None, one.shown())
    # Who is stopped before that has not failed.
    one.wait_for("failed permanently after 2 attempts")
    return one


def names_of(spans):
    return [span["name"] for span in spans]


def arrive(server, condition):
    """Spans come once a second; at a stop they have two seconds, which a busy machine exceeds."""
    wait_until(lambda: condition(server.spans()), lambda: f"the spans: {names_of(server.spans())}")


def other_ways(token):
    """The other ways to write, each in a trace of ours; the names of their spans by trace."""
    instances = "/v1/machines/order/instances"
    names = {}
    for number, (name, path, body) in enumerate((
            ("start order", instances, {"id": "o-2"}),
            ("send order.pay", f"{instances}/o-2/batch", {"events": [{"event": "pay"}]}),
            ("send order.pay", "/v1/batches", {"sends": [
                {"machine": "order", "id": "o-1", "event": "pay"}]}),
            ("cancel order", f"{instances}/o-2/cancel", {"reason": "x"})), 1):
        names[f"{number:032x}"] = name
        status = ask(token, "POST", path, body, traceparent=f"00-{number:032x}-{SPAN}-01")[0]
        check(status in (200, 201), f"{path}: {status}")
    return names


def test_an_event_is_one_trace_from_its_request_to_what_its_effect_calls():
    server = Server(503, 200, 200)
    token = project(server)
    one = begin()
    pay(token)
    names = other_ways(token)
    arrive(server, lambda spans: set(names) <= {span["traceId"] for span in spans} and
           sum(span["traceId"] == TRACE for span in spans) == 5)
    one.stop(1)  # the task has failed
    equal({span["traceId"]: span["name"] for span in server.spans() if span["kind"] == 2
           and span["traceId"] in names and span["parentSpanId"] == SPAN}, names)
    spans = {span["name"]: span for span in server.spans() if span["traceId"] == TRACE}
    ours = [span for span in server.spans() if span["traceId"] == TRACE]
    send = spans["send order.pay"]
    equal((send["parentSpanId"], send["kind"]), (SPAN, 2))
    equal(attributes(send)["detent.state.to"], "charging")
    check({span["parentSpanId"] for span in ours if span is not send} == {send["spanId"]}, ours)
    attempts = [span for span in ours if span["name"] == "effect charge"]
    equal([attributes(span)["detent.attempt"] for span in attempts], ["1", "2"])
    equal([span.get("status", {}).get("code") for span in attempts], [2, None])
    commits = [attributes(span) for span in ours if span["name"] == "commit"]
    equal([commit["detent.event"] for commit in commits], ["pay", "charged"])
    # Whoever is called is below the attempt that calls.
    equal([headers["traceparent"] for headers, _ in server.requests("/charge")
           if TRACE in headers["traceparent"]],
          [f"00-{TRACE}-{span['spanId']}-01" for span in attempts])
    check(all(headers["Authorization"] == f"Bearer {CANARY}"
              for headers, _ in server.requests("/v1/traces")), "the receiver knows us")
    server.close()


def test_a_timer_begins_a_trace_that_is_linked_to_what_armed_it():
    server = Server(200)
    token = project(server)
    one = begin()
    instances = "/v1/machines/order/instances"
    equal(ask(token, "POST", instances, {"id": "o-1"})[0], 201)
    equal(ask(token, "POST", f"{instances}/o-1/events", {"event": "park"},
              traceparent=f"00-{TRACE}-{SPAN}-01")[0], 200)
    one.wait_for("charging -> paid")
    rows = json.loads(ask(token, "GET", "/v1/log?event=late")[1])["items"]
    arrive(server, lambda spans: "timer order.late" in names_of(spans) and
           names_of(spans).count("commit") >= 4)
    one.stop(1)  # the task has failed
    spans = server.spans()
    send = next(span for span in spans if span["name"] == "send order.park")
    timer = next(span for span in spans if span["name"] == "timer order.late")
    equal(timer["links"], [{"traceId": TRACE, "spanId": send["spanId"]}])
    check("parentSpanId" not in timer and timer["traceId"] != TRACE, timer)
    equal(rows[0]["traceparent"], f"00-{timer['traceId']}-{timer['spanId']}-01")
    equal(sorted(span["name"] for span in spans if span.get("parentSpanId") == timer["spanId"]),
          ["commit", "commit", "effect charge"])
    server.close()


def test_command_begins_its_own_trace():
    server = Server(200)
    project(server)
    one = begin()
    detent("start", "order", "o-1")
    detent("send", "o-1", "pay")
    one.wait_for("charging -> paid")
    arrive(server, lambda spans: "send order.pay" in names_of(spans) and
           names_of(spans).count("commit") >= 3)
    one.stop(1)  # the task has failed
    spans = server.spans()
    send = next(span for span in spans if span["name"] == "send order.pay")
    check("parentSpanId" not in send, send)
    equal(sorted(span["name"] for span in spans if span["traceId"] == send["traceId"]),
          ["commit", "commit", "effect charge", "send order.pay"])
    check("start order" in {span["name"] for span in spans}, spans)
    server.close()


def test_promtool_accepts_the_metrics_of_the_daemon():
    server = Server(503, 200)
    token = project(server)
    one = begin()
    pay(token)
    equal(ask(token, "POST", "/v1/machines/order/instances/o-1/events", {"event": "pay"})[0], 422)
    wait_until(lambda: "detent_restarts_total{task=\"once\"} 1" in ask(token, "GET", "/metrics")[1],
               "the task was tried again")
    status, text, headers = ask(token, "GET", "/metrics")
    equal((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          text=True, check=False)
    equal((done.returncode, done.stdout + done.stderr), (0, ""))
    for line in (
            'detent_transitions_total{machine="order",state="open",event="pay",outcome="goto"} 1',
            'detent_effect_attempts_total{machine="order",effect="charge",result="failed"} 1',
            'detent_effect_attempts_total{machine="order",effect="charge",result="produced"} 1',
            'detent_instances{machine="order",state="paid",status="running"} 1',
            'detent_events_unhandled_total{machine="order",state="paid",event="pay"} 1',
            'detent_effects_pending{machine="order"} 0', "detent_log_dropped_total 0"):
        check(line in text.split("\n"), f"no {line} in\n{text}")
    check("detent_store_bytes 0\n" not in text and "detent_http_requests_total{route=" in text)
    text, headers = ask(token, "GET", "/metrics", Accept="application/openmetrics-text")[1:]
    check(text.endswith("# EOF\n") and "openmetrics" in headers["Content-Type"], text[-100:])
    one.stop(1)  # the task has failed
    server.close()


def test_unreachable_span_receiver_is_reported_once():
    server = Server(200)
    token = project(server)
    server.close()
    lost = Server(200)
    text = Path("detent.yaml").read_text().replace(server.url + "/charge", lost.url + "/charge")
    Path("detent.yaml").write_text(text)
    one = begin()
    pay(token)
    one.wait_for("the receiver of traces is unreachable")
    one.stop(1)  # the task has failed
    equal(len([line for line in one.lines if "receiver of traces" in line]), 1)
    lost.close()


def test_json_log_has_an_object_per_line_and_no_secrets():
    server = Server(503, 200)
    token = project(server, "log: {format: json}\n")
    one = begin()
    pay(token)
    one.stop(1)  # the task has failed
    lines = [json.loads(line) for line in one.lines]
    check(all({"time", "level", "component", "message"} <= line.keys() for line in lines), lines)
    steps = [line["message"] for line in lines if line.get("machine") == "order"]
    check("o-1: open -> charging (pay)" in steps, steps)
    failed = [line for line in lines if "failed, attempt 1: status 503" in line["message"]]
    equal([(line["level"], line["instance"], line["trace_id"]) for line in failed],
          [("warning", "o-1", TRACE)])
    attempts = [span for span in server.spans() if span["name"] == "effect charge"]
    equal(failed[0]["span_id"], attempts[0]["spanId"])
    check({"component": "task", "task": "once"}.items() <=
          next(line for line in lines if line.get("task")).items(), lines)
    for text in (CANARY, token):
        check(text not in one.shown() + "\n".join(one.lines), "a secret is told")
    server.close()


def test_unwritable_log_is_counted_and_stops_nothing():
    server = Server(200)
    token = project(server, "log: {format: json}\n")
    with open("/dev/full", "w", encoding="utf-8") as full:
        process = subprocess.Popen([up.DETENT, "up"], stdout=full, stderr=subprocess.DEVNULL,
                                   env=up.environment())
    try:
        wait_until(listens, "the socket")
        pay(token)
        # The last line may not have been written yet.
        wait_until(lambda: re.search(r"^detent_log_dropped_total [1-9]",
                                     ask(token, "GET", "/metrics")[1], re.MULTILINE),
                   lambda: ask(token, "GET", "/metrics")[1])
    finally:
        process.terminate()
        process.wait(up.PATIENCE)
    server.close()


if __name__ == "__main__":
    sys.exit(up.main(globals()))
