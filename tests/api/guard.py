#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Permitted requests: hosts, origins, tokens and scopes, and secrets that are never shown.

    guard.py DETENT NASTY_CHILD [PART_OF_A_NAME]
"""
import http.client
import http.server
import json
import os
import re
import secrets
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import shop
from patience import HANG, now
from openapi import operations
from shop import (DETENT, SOCKET, Daemon, Stream, Up, Wire, check, environment, equal,
                  listens, project, start, token, wait_until)
from wire import request

SCOPES = ("read", "send", "admin", "metrics")


def routes():
    """Method, target and scope of every operation; None: open to all."""
    names = {"order": "stop", "change": "retry", "flow_order": "run"}
    for operation in operations():
        target = re.sub(r"{(\w+)}", lambda m: names.get(m[1], "nobody"), operation.path)
        yield operation.method, target, operation.node.get("x-scope")


def allows(scopes, wanted):
    return wanted is None or wanted in scopes or "admin" in scopes


def ask(wire, method, target, **headers):
    """Asks for something that is not there, or whose body is wrong: nothing comes of it."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    body = '{"nonsense": 1}' if method in ("POST", "PUT") else None
    return wire.ask(method, target, body, headers)


def code_of(answer):
    return answer.json["error"]["code"] if answer.status >= 400 else None


def test_every_route_requires_its_scope():
    project(shop.COUNTERS)
    sets = [(scope,) for scope in SCOPES] + [("read", "send")]
    tokens = [token(*scopes) for scopes in sets]
    daemon = Daemon()
    wrong = []
    for scopes, value in zip(sets, tokens):
        wire = daemon.wire(value)
        for method, target, wanted in routes():
            answer = ask(wire, method, target)
            refused = answer.status == 403
            if answer.status == 401 and target != "/v1/session":
                wrong.append(f"{scopes} {method} {target}: 401")
            elif refused == allows(scopes, wanted):
                wrong.append(f"{scopes} {method} {target} ({wanted}): {answer}")
    check(not wrong, "\n  ".join(wrong))
    daemon.stop()


def test_invalid_token_gets_a_401_without_details():
    project(shop.COUNTERS)
    good, expired = token("admin"), token("admin", expires="1s")
    daemon = Daemon()
    wrong = {"none": None, "nothing": "", "other scheme": f"Basic {good}", "bare": good,
             "cut": f"Bearer {good[:-1]}", "longer": f"Bearer {good}A",
             "no such": "Bearer det_aaaaaaaa_" + "A" * 43, "two": f"Bearer {good} {good}",
             "other secret": f"Bearer {good[:13]}" + "A" * 43, "lists": f"Bearer {good},"}
    with Wire(daemon.address) as wire:
        for name, value in wrong.items():
            answer = ask(wire, "GET", "/v1/status", Authorization=value)
            check(answer.status == 401, f"{name}: {answer}")
            check("www-authenticate" in answer.headers, f"{name}: {answer}")
            check(good[:13] not in answer.body.decode(), f"{name}: {answer}")
        # The answer does not reveal whether there is a token of this id.
        said = {ask(wire, "GET", "/v1/status", Authorization=wrong[name]).body
                for name in ("no such", "other secret")}
        equal(len(said), 1)
        for method, target, scope in routes():
            answer = ask(wire, method, target)
            check((answer.status == 401) == (scope is not None), f"{method} {target}: {answer}")
        equal(ask(wire, "GET", f"/v1/status?token={good}").status, 401)
        equal(ask(wire, "GET", f"/v1/status?access_token={good}").status, 401)
        equal(ask(wire, "GET", "/v1/status", Cookie=f"token={good}").status, 401)
        for target in ("/v1/nothing", "/v1/machines/counter/instances/nobody"):
            equal(ask(wire, "GET", target).status, 401)
        equal(ask(wire, "GET", "/v1/status", Authorization=f"Bearer {good}").status, 200)
        equal(ask(wire, "GET", "/v1/status", Authorization=f"bearer {good}").status, 200)
        wait_until(lambda: ask(wire, "GET", "/v1/status", Authorization=f"Bearer {expired}")
                   .status == 401, "it has expired")
    daemon.stop()


def test_a_revoked_token_is_refused_within_a_moment():
    project(shop.COUNTERS)
    daemon = Daemon()
    value = token("read")
    with daemon.wire(value) as wire:
        wait_until(lambda: wire.get("/v1/status").status == 200, "it is known")
        subprocess.run([DETENT, "token", "revoke", value.split("_")[1]], env=environment(),
                       check=True, capture_output=True)
        wait_until(lambda: wire.get("/v1/status").status == 401, "it is known no more")
    daemon.stop()


def test_login_code_is_valid_once():
    project(shop.COUNTERS)
    daemon = Daemon()
    with Wire(daemon.address) as wire:
        for wrong in ("x", daemon.code[:-1] + "~", daemon.code + "A", daemon.code.swapcase()):
            equal(wire.ask("POST", "/v1/session", {"code": wrong}).status, 401)
        answer = wire.ask("POST", "/v1/session", {"code": daemon.code})
        equal((answer.status, sorted(answer.json["scopes"])), (200, sorted(SCOPES)))
        check("no-store" in answer.headers["cache-control"], answer)
        again = wire.ask("POST", "/v1/session", {"code": daemon.code})
        equal((again.status, "token" in again.json), (401, False))
    value = answer.json["token"]
    equal(daemon.wire(value).get("/v1/status").status, 200)
    # A browser stays logged in, and an old link is worth nothing.
    daemon.kill_hard()
    old, daemon = daemon.code, Daemon()
    equal(daemon.wire(value).get("/v1/status").status, 200)
    with Wire(daemon.address) as wire:
        equal(wire.ask("POST", "/v1/session", {"code": old}).status, 401)
    daemon.stop()


def test_sign_out_ends_only_its_own_session():
    project(shop.COUNTERS)
    value = token("admin", name="ci")
    daemon = Daemon()
    with Wire(daemon.address) as wire:
        mine = wire.ask("POST", "/v1/session", {"code": daemon.code}).json["token"]
    with daemon.wire(mine) as wire:
        equal(wire.ask("DELETE", "/v1/session", headers={
            "Sec-Fetch-Site": "cross-site"}).status, 403)
        equal(wire.ask("DELETE", "/v1/session", b"x", {
            "Content-Type": "text/plain"}).status, 415)
    with daemon.wire(mine) as wire:
        equal(wire.ask("DELETE", "/v1/session").status, 200)
        for method, target in (("GET", "/v1/status"), ("DELETE", "/v1/session")):
            equal(wire.ask(method, target).status, 401)
    for wire in (daemon.wire(value), daemon.wire()):
        equal(wire.ask("DELETE", "/v1/session").status, 422)
        equal(wire.get("/v1/status").status, 200)
    listed = outputs_of("token", "list", "--json").decode()
    check('"ci"' in listed and "console" not in listed, listed)
    daemon.stop()


def test_concurrently_redeemed_login_code_is_valid_once():
    project(shop.COUNTERS)
    daemon = Daemon()
    wires = [Wire(daemon.address).open() for _ in range(16)]
    statuses = []
    shop_together(wires, lambda wire: statuses.append(
        wire.ask("POST", "/v1/session", {"code": daemon.code}).status))
    equal(sorted(statuses), [200] + [401] * 15)
    daemon.stop()


def shop_together(wires, work):
    threads = [threading.Thread(target=work, args=(wire,)) for wire in wires]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_only_configured_hosts_are_accepted():
    project(shop.COUNTERS + "")
    Path("detent.yaml").write_text(shop.COUNTERS.replace(
        "rate: unlimited", "rate: unlimited, hosts: [orders.example.org]"))
    value = token("admin")
    daemon = Daemon()
    port = daemon.port
    good = ("localhost", f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}", "LOCALHOST",
            "orders.example.org", f"orders.example.org:{port}", "Orders.Example.org")
    bad = ("evil.example", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil.example",
           "127.0.0.2", "0.0.0.0", "2130706433", "127.1", "[::]", "[::ffff:127.0.0.1]",
           "example.org", "x.orders.example.org", "orders.example.org.", "localhost.")
    targets = ("/", "/livez", "/metrics", "/v1/status", "/v1/events", "/v1/nothing", "/index.html")
    for host in good:
        with daemon.wire(value) as wire:
            check(wire.get("/v1/status", Host=host).status == 200, host)
    for host in bad:
        for target in targets:
            with daemon.wire(value) as wire:
                answer = wire.get(target, Host=host)
                check(answer.status in (400, 421), f"{host} {target}: {answer}")
                check(b"html" not in answer.body, f"{host} {target}: {answer}")
    with daemon.wire(value) as wire:
        answer = wire.ask("POST", "/v1/session", {"code": daemon.code}, {"Host": "evil.example"})
        equal(answer.status, 421)
    with Wire(daemon.address) as wire:
        equal(wire.ask("POST", "/v1/session", {"code": daemon.code}).status, 200)
    daemon.stop()


def test_cross_site_pages_cannot_write():
    project(shop.COUNTERS)
    value = token("admin")
    daemon = Daemon()
    port = daemon.port
    own = f"http://127.0.0.1:{port}"
    start(daemon.wire(), "c-1")
    matrix = [({}, True),
              ({"Origin": own}, True),
              ({"Origin": own, "Sec-Fetch-Site": "same-origin"}, True),
              ({"Sec-Fetch-Site": "same-origin"}, True),
              ({"Sec-Fetch-Site": "none"}, True),
              ({"Sec-Fetch-Site": "cross-site"}, False),
              ({"Sec-Fetch-Site": "same-site"}, False),
              ({"Sec-Fetch-Site": "nonsense"}, False),
              ({"Origin": own, "Sec-Fetch-Site": "cross-site"}, False),
              ({"Origin": "null"}, False),
              ({"Origin": ""}, False),
              ({"Origin": "http://evil.example"}, False),
              ({"Origin": f"http://127.0.0.1:{port}.evil.example"}, False),
              ({"Origin": f"https://127.0.0.1:{port}"}, False),
              ({"Origin": f"http://127.0.0.1:{port + 1 if port < 65535 else 1}"}, False),
              ({"Origin": f"http://localhost:{port}"}, False),
              ({"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, False)]
    target = "/v1/machines/counter/instances/c-1/events"
    sent = 0
    for headers, allowed in matrix:
        with daemon.wire(value) as wire:
            answer = wire.ask("POST", target, {"event": "add", "data": {"number": 1}},
                              {"Host": f"127.0.0.1:{port}", **headers})
            check(answer.status == (200 if allowed else 403), f"{headers}: {answer}")
            sent += allowed
            none = [h for h in answer.headers if h.startswith("access-control")]
            check(not none, f"{headers}: {answer}")
            answer = wire.ask("OPTIONS", target, headers={
                "Origin": "http://evil.example", "Access-Control-Request-Method": "POST"})
            none = [h for h in answer.headers if h.startswith("access-control")]
            check(answer.status >= 400 and not none, f"{answer}")
    equal(daemon.wire().get("/v1/machines/counter/instances/c-1").json["sequence"], sent)
    daemon.stop()


def test_browser_responses_have_security_headers():
    project(shop.COUNTERS)
    daemon = Daemon()
    with Wire(daemon.address) as wire:
        page = wire.get("/")
        policy = page.headers["content-security-policy"]
        for part in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
            check(part in policy, policy)
        check("unsafe-inline" not in policy and "'unsafe-eval'" not in policy, policy)
        for name, value in (("x-content-type-options", "nosniff"),
                            ("referrer-policy", "no-referrer"),
                            ("cross-origin-opener-policy", "same-origin"),
                            ("cross-origin-resource-policy", "same-origin")):
            equal(page.headers.get(name), value)
        for path in ("/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/../../detent.yaml",
                     "/detent.yaml", "/.detent/tokens", "/assets/%2e%2e%2f.detent%2ftokens",
                     "//etc/passwd", "/..%5c..%5cdetent.yaml", "/assets/x%00.js"):
            answer = wire.get(path)
            for part in (b"root:", b"sqlite:", b"sha256"):
                check(part not in answer.body, f"{path}: {answer}")
    for target in ("/livez", "/v1/status", "/v1/nothing"):
        answer = daemon.wire().get(target)
        check(answer.headers.get("x-content-type-options") == "nosniff", f"{target}: {answer}")
    daemon.stop()


def test_only_console_views_return_its_page():
    project(shop.COUNTERS)
    daemon = Daemon()
    with daemon.wire() as wire:
        page = wire.get("/")
        equal(page.status, 200)
        for path in ("/machines/counter", "/machines/counter/instances/c.1", "/a.b/c"):
            equal(wire.get(path).body, page.body)
        for path in ("/robots.txt", "/assets/none.js", "/assets/a/b"):
            equal(wire.get(path).status, 404)
        for method, path in (("OPTIONS", "*"), ("OPTIONS", "/"), ("DELETE", "/machines")):
            check(wire.ask(method, path).status in (400, 405, 415), (method, path))
    equal(daemon.wire().get("/livez").status, 200)
    daemon.stop()


def test_rate_limited_client_gets_retry_after():
    project(shop.COUNTERS.replace("unlimited", "20"))
    busy, other = token("read"), token("read")
    daemon = Daemon()
    with daemon.wire(busy) as wire:
        wire.open()
        for _ in range(300):  # at once, however long the answers take
            wire.send(request("GET", "/v1/status", headers={"Authorization": f"Bearer {busy}"}))
        answers = [wire.answer() for _ in range(300)]
        refused = [a for a in answers if a.status == 429]
        check(refused, "nothing was refused")
        check({a.status for a in answers} == {200, 429}, {a.status for a in answers})
        for answer in refused:
            check(re.fullmatch(r"[1-9]\d*", answer.headers.get("retry-after", "")), answer)
            equal(code_of(answer), "LIMIT")
        # Others are not delayed, nor is a check of liveness.
        equal(daemon.wire(other).get("/v1/status").status, 200)
        equal(Wire(daemon.address).get("/livez").status, 200)
        wait_until(lambda: wire.get("/v1/status").status == 200, "its time has come again")
    daemon.stop()


def guess(daemon, way):
    """How long a wrong token, or code, waits for its answer."""
    begun = time.monotonic()
    with Wire(daemon.address, "det_aaaaaaaa_" + "A" * 43) as wire:
        answer = way(wire)
    check(answer.status == 401 and "www-authenticate" in answer.headers, answer)
    return time.monotonic() - begun


def test_token_guessing_delays_only_the_guesser():
    project(shop.COUNTERS)
    value = token("read")
    daemon = Daemon()
    target, kind = "/v1/machines/counter/instances", {"Content-Type": "application/json"}
    ways = [lambda wire: wire.post(target, {"id": "c"}),
            lambda wire: wire.ask("GET", "/v1/status", b""),
            lambda wire: wire.ask("POST", target, None, {**kind, "Content-Length": "1000"}),
            lambda wire: wire.ask("POST", "/v1/session", {"code": "A" * 22}),
            lambda wire: wire.get("/v1/status")]
    first, spans, over = [], [], threading.Event()

    def guesser():
        first.extend(guess(daemon, ways[-1]) for _ in range(10))
        shop_together(ways, lambda way: spans.append(guess(daemon, way)))
        over.set()
    thread = threading.Thread(target=guesser)
    thread.start()
    others = []
    with daemon.wire(value) as wire:
        while not over.is_set() and thread.is_alive():
            begun = now()
            equal(wire.get("/v1/status").status, 200)
            others.append(now() - begun)
    thread.join()
    # From 1 ms each one waits twice as long as the one before, up to a second.
    check(max(first) >= 0.25, f"nobody has waited: {first}")
    check(len(spans) == len(ways) and min(spans) >= 0.9, f"some have not waited: {spans}")
    check(len(others) > 10 and sorted(others)[len(others) * 9 // 10] < 0.1,
          f"others have waited, too: {len(others)}, {max(others)}")
    # Nobody waits for them at the end: the guess is there before those who ask behind it.
    with Wire(daemon.address) as last:
        begun = now()
        last.send(b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer x\r\n\r\n")
        for _ in range(3):
            equal(Wire(daemon.address).get("/livez").status, 200)
        daemon.stop()
        equal(last.head().status, 401)
        took = now() - begun
        check(took < 0.9, f"it was waited for: {took}")


class Mail(http.server.BaseHTTPRequestHandler):
    """What an effect calls: it keeps the headers, and fails."""
    seen = []

    def do_POST(self):
        Mail.seen.append(self.headers.get("X-Secret"))
        self.send_response(500)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Canaries:
    """Secrets that cannot occur by chance, and the places where they have turned up."""

    def __init__(self):
        self.all = {}

    def new(self, name):
        self.all[name] = f"kanari{secrets.token_hex(8)}"
        return self.all[name]

    def known(self, name, value):
        self.all[name] = value

    def look(self, where, text):
        text = text.decode("latin-1") if isinstance(text, bytes) else text
        for name, value in self.all.items():
            check(value not in text, f"the {name} stands in {where}")


CANARY_PROJECT = """version: 1
store: sqlite:shop.db
http: {{rate: unlimited}}
machines:
  order:
    effects:
      charge_card:
        command: [sh, -c, 'cat >/dev/null; until test -e done; do sleep 0.01; done; exit 1']
        attempts: 1
      send_mail: {{http: "POST http://127.0.0.1:{port}/x", secret: {{X-Secret: "file:mail.secret"}},
                   attempts: 2, backoff: 1ms..1ms}}
  counter: {{effects: {{}}}}
slots:
  batch: {{width: 1}}
tasks:
  ticker: {{run: [sh, -c, 'echo hello; exec sleep 600']}}
"""


def processes_of(daemon):
    """Arguments and environment of everything that it has started."""
    for number in shop.up.children_of(daemon.number):
        for name in ("cmdline", "environ"):
            try:
                yield f"{name} of {number}", Path(f"/proc/{number}/{name}").read_bytes()
            except OSError:
                pass


def outputs_of(*words):
    done = subprocess.run([DETENT, *words], env=environment(), capture_output=True, check=False)
    return done.stdout + done.stderr


def test_secrets_appear_in_no_output():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mail)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    canaries = Canaries()
    project(CANARY_PROJECT.format(port=server.server_address[1]))
    Path("mail.secret").write_text(canaries.new("header of an effect") + "\n")
    os.chmod("mail.secret", 0o600)
    card, mail = canaries.new("card"), canaries.all["header of an effect"]
    bearer = token("admin")
    daemon = Daemon(env={"DETENT_CANARY": canaries.new("variable")})
    canaries.known("code", daemon.code)
    canaries.known("token", bearer.split("_", 2)[2])
    with Wire(daemon.address) as wire:
        redeemed = wire.ask("POST", "/v1/session", {"code": daemon.code}).json["token"]
    canaries.known("token of the console", redeemed.split("_", 2)[2])
    wire = daemon.wire(bearer)
    stream = Stream(SOCKET, "/v1/events?after=0&topics=log,tasks")
    start(wire, "o-1", "order")
    events = "/v1/machines/order/instances/o-1/events"
    equal(wire.post(events, {"event": "pay", "data": {"card": card, "cents": 7}}).status, 200)
    # It is in a request that fails, too, wherever it can be put wrong.
    for body in ({"event": "pay", "data": {"card": card, "cents": 7}},
                 {"event": "pay", "data": {"card": card, "cents": -1}},
                 {"event": "pay", "data": {"card": [card], "cents": 1}},
                 '{"event": "pay", "data": {"card": "' + card + '", "cents": 7'):
        canaries.look("an error", wire.post(events, body).body)
    canaries.look("an error", wire.ask("GET", "/v1/status", headers={
        "Authorization": f"Bearer {bearer}x"}).body)
    wait_until(lambda: len(Mail.seen) == 2, "the effect has failed twice")
    equal(set(Mail.seen), {mail})
    for method, target, _ in routes():
        target = target.replace("/machines/nobody", "/machines/order").replace(
            "instances/nobody", "instances/o-1").replace("tasks/nobody", "tasks/ticker")
        if method == "GET" and target != "/v1/events":
            canaries.look(target, wire.get(target).body)
    canaries.look("history with data",
                  wire.get("/v1/machines/order/instances/o-1/history?data=true").body)
    canaries.look("a log line", daemon.wire().get("/v1/tasks/ticker/logs").body)
    for _ in range(2):
        canaries.look("the stream", json.dumps(stream.until("log").data))
    stream.close()
    variable = canaries.all.pop("variable")
    for where, text in processes_of(daemon):
        canaries.look(where, text)
    canaries.known("variable", variable)
    Path("done").touch()
    for words in (("history", "o-1"), ("history", "o-1", "--json"), ("why", "o-1"), ("get", "o-1"),
                  ("timers",), ("retry", "--list"), ("store", "info"), ("token", "list"),
                  ("status",), ("tasks", "--json"), ("logs", "ticker"), ("diagram", "order.fsm")):
        canaries.look(f"detent {' '.join(words)}", outputs_of(*words))
    daemon.stop()
    canaries.look("its output", "\n".join(daemon.lines))
    link = [line for line in daemon.talk if "Console:" not in line]
    canaries.look("its errors", "\n".join(link))
    tokens = Path(".detent/tokens").read_text()
    canaries.look("the file of tokens", tokens)
    for path in Path(".detent").rglob("*"):
        if path.is_file():
            canaries.look(str(path), path.read_bytes())
    server.shutdown()
    server.server_close()


def audits(daemon, text):
    """The lines of the log about deeds of this kind."""
    lines = [json.loads(line) for line in [*daemon.lines, *daemon.talk] if line.startswith("{")]
    return [line for line in lines if line["component"] == "audit" and text in line["message"]]


def audit_of(daemon, text):
    """What the one line about it says, without when."""
    line, = wait_until(lambda: audits(daemon, text), lambda: f"{text}\n{daemon.shown()}")
    return {key: value for key, value in line.items() if key not in ("time", "component")}


def test_daemon_log_has_the_actor_and_no_secrets():
    canaries = Canaries()
    project(shop.COUNTERS + "log: {format: json, level: debug}\n"
            "tasks: {ticker: {run: sleep 600}, other: {run: sleep 600}}\n")
    value, reader = token("admin", name="ops"), token("read", name="eyes")
    identity = value.split("_")[1]
    canaries.known("token", value.split("_", 2)[2])
    daemon = Up("--listen", "127.0.0.1:0", "--journal", "journal")
    wait_until(listens, "its socket")
    me = os.geteuid()
    with Wire(SOCKET) as wire:
        bearer = f"Bearer {value}"
        equal(wire.get("/v1/status", Authorization=bearer).status, 200)
        wire.get(f"/v1/status?token={value}", Authorization=bearer)
        wire.get("/v1/status", Authorization=f"{bearer}x", Cookie=value, Referer=value)
        wire.ask("POST", "/v1/session", {"code": value})
        equal(wire.post("/v1/tasks/ticker/stop", {}).status, 200)
        equal(wire.post("/v1/tasks/nobody/stop", {}).status, 404)
    url = json.loads(outputs_of("console", "--json"))["url"]
    port = int(re.search(r":(\d+)/", url)[1])
    code = url.partition("#code=")[2]
    canaries.known("code", code)
    with Wire(("127.0.0.1", port), value) as wire:
        equal(wire.post("/v1/tasks/other/stop", {}).status, 200)
        start(wire, "c-1")
        equal(wire.post("/v1/machines/counter/instances/c-1/cancel", {}).status, 200)
        equal(wire.get("/v1/machines/counter/instances/c-1").json["reason"],
              f"by token {identity}")
        session = wire.ask("POST", "/v1/session", {"code": code}).json["token"]
        canaries.known("session", session.split("_", 2)[2])
        equal(wire.get("/v1/status", Host=value).status, 421)
    begun = time.monotonic()
    with Wire(("127.0.0.1", port), reader) as wire:
        equal(wire.post("/v1/tasks/other/stop", {}).status, 403)
        equal(wire.get(f"/v1/{value}").status, 404)
    for _ in range(50):
        with Wire(("127.0.0.1", port)) as wire:
            equal(wire.get(f"/v1/{value}").status, 401)
    most = 20 + int(time.monotonic() - begun)  # 20 at once, and one each second
    outputs_of("restart", "ticker")
    outputs_of("token", "revoke", identity)
    with Wire(("127.0.0.1", port), session) as wire:
        wait_until(lambda: audits(daemon, "(ops) is gone") or wire.get("/v1/status") and None,
                   "the token is gone")
    equal(audit_of(daemon, "/v1/tasks/ticker/stop"), {
        "level": "info", "message": "POST /v1/tasks/ticker/stop", "outcome": "done",
        "status": 200, "uid": me, "peer": "unix"})
    equal(audit_of(daemon, "/v1/tasks/nobody/stop")["outcome"], "failed")
    said = audit_of(daemon, "/v1/tasks/other/stop")
    equal((said["outcome"], said["token"], "uid" in said), ("done", identity, False))
    check(re.fullmatch(r"127\.0\.0\.1:\d+", said["peer"]), said)
    said = audit_of(daemon, "/v1/tasks/{task}/{order}")
    equal((said["outcome"], said["status"], said["token"]),
          ("refused", 403, reader.split("_")[1]))
    equal({line["status"] for line in audits(daemon, "POST /v1/session")}, {401, 200})
    audit_of(daemon, f"token {session.split('_')[1]} (console) is new")
    equal([line["status"] for line in audits(daemon, "GET /v1/status")], [421])
    equal(audit_of(daemon, "/instances/c-1/cancel")["token"], identity)
    restart = audit_of(daemon, "/v1/tasks/ticker/restart")
    equal({key: restart[key] for key in ("outcome", "uid", "peer")},
          {"outcome": "done", "uid": me, "peer": "unix"})
    # Whoever is refused again and again cannot fill a disk.
    equal(len(audits(daemon, "console")), 2)
    check(10 <= len(audits(daemon, "GET unknown")) <= most, daemon.shown())
    os.chmod(".detent/tokens", 0o644)
    with Wire(("127.0.0.1", port), session) as wire:
        wait_until(lambda: wire.get("/v1/status").status == 503, "no token counts")
        wait_until(lambda: "all tokens are rejected until this is fixed" in daemon.shown(),
                   "the rejection is reported")
        os.chmod(".detent/tokens", 0o600)
        wait_until(lambda: wire.get("/v1/status").status == 200, "tokens count again")
    daemon.stop()
    said = "\n".join([*daemon.lines, *daemon.talk])
    equal(said.count("all tokens are rejected until this is fixed"), 1)
    canaries.look("the log", said)
    # What was done is on the disk, too; what was refused is not.
    kept = Path("journal").read_text()
    canaries.look("the journal", kept)
    for words in (f"/v1/tasks/ticker/stop: done, by user {me} from unix",
                  f"/v1/tasks/other/stop: done, by token {identity} from 127.0.0.1:",
                  f"/v1/tasks/ticker/restart: done, by user {me} from unix", "SIGINT: stop: done"):
        check(words in kept, f"{words}\n{kept}")
    check("refused" not in kept, kept)
    # A log is kept, and read by others: the link that lets one in is for a terminal.
    check("#code=" not in said, said)


def certify(name):
    """A certificate that signs itself, and its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                    "-keyout", f"{name}.key", "-out", f"{name}.pem"], check=True,
                   capture_output=True)
    os.chmod(f"{name}.key", 0o600)


def ask_over_tls(port, name, value):
    """The status for a client with this certificate; None: no answer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations("server.pem")
    context.check_hostname = False
    if name:
        context.load_cert_chain(f"{name}.pem", f"{name}.key")
    client = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=HANG)
    try:
        client.request("GET", "/v1/status", headers={"Authorization": f"Bearer {value}"})
        return client.getresponse().status
    except (ssl.SSLError, ConnectionError):
        return None
    finally:
        client.close()


def test_client_certificate_identifies_but_grants_nothing():
    for name in ("server", "alice", "mallory"):
        certify(name)
    project(shop.COUNTERS.replace(
        "{rate: unlimited}",
        "{tls: {certificate: server.pem, key: server.key, clients: alice.pem}}")
        + "log: {format: json}\n")
    value = token("read")
    daemon = Up("--listen", "127.0.0.1:0")
    wait_until(listens, "its socket")
    port = int(re.search(r"https://127\.0\.0\.1:(\d+)/", outputs_of("console").decode())[1])
    equal([ask_over_tls(port, name, value) for name in ("alice", "mallory", None)],
          [200, None, None])
    equal(ask_over_tls(port, "alice", "nonsense"), 401)
    said = audit_of(daemon, "GET /v1/status")
    equal((said["status"], said["subject"], "token" in said), (401, "CN=alice", False))
    daemon.stop()


def test_store_password_is_not_shown():
    canaries = Canaries()
    secret = canaries.new("password")
    text = shop.COUNTERS.replace("sqlite:shop.db", f"postgres://me:{secret}@127.0.0.1:1/nothing")
    project(text)
    done = subprocess.run([DETENT, "up", "--listen", "127.0.0.1:0"], env=environment(),
                          capture_output=True, check=False, timeout=HANG)
    check(done.returncode != 0, done)
    canaries.look("what it says", done.stdout + done.stderr)
    for words in (("check", "detent.yaml"), ("list",), ("store", "info"), ("config",)):
        canaries.look(f"detent {words}", outputs_of(*words))


if __name__ == "__main__":
    sys.exit(shop.main(globals()))
