#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""A communicator of a detent.yaml, and a worker of a module that sends and receives through it.

    communicator.py DETENT NASTY_CHILD COMPILER INCLUDE [PART_OF_A_NAME]

The frame is that of up.py; the relay is below. INCLUDE has the headers that are installed.
"""
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

COMPILER, INCLUDE = sys.argv[3:5]
del sys.argv[3:5]

import up  # noqa: E402
from machines import detent, objects, one  # noqa: E402
from up import PATIENCE, Up, check, equal, wait_until  # noqa: E402

SPEC = """#define WORKER_NAME echo
#define WORKER_PREFIX ECHO
#define WORKER_OBSERVED echo_observed
#define WORKER_DEPS echo_deps
RECORD(echo_observed)
    FIELD(answered, u32)
END
STATE(STOPPED, stopped, STOPPED)
STATE(RUNNING, running, RUNNING, STOP(STOPPED))
ACTION(ANSWER, answer)
"""
CODE = """#include <stdio.h>
#define WORKER_SPEC "echo.worker"
#include <detent/worker/declare.h>
#include <detent/channel.h>
struct echo_deps { struct det_channel *channel; unsigned answered; };
#define WORKER_SPEC "echo.worker"
#include <detent/worker/define.h>
#include <detent/module.h>
static int echo_open(struct det_worker_context *context, struct echo_deps *deps)
{
    deps->channel = det_worker_inherited(context, DET_CHANNEL_NAME);
    return det_channel_send(deps->channel, &(struct det_message){ .content = "began" }, 0);
}
static void echo_close(struct echo_deps *deps) { (void)deps; }
static int echo_collect(struct det_worker_context *context, struct echo_deps *deps,
                        const struct det_empty *desired, struct echo_observed *observed)
{ (void)context; (void)desired; observed->answered = deps->answered; return 0; }
static struct echo_next echo_in_stopped(const struct echo_view *view)
{ (void)view; return echo_goto(ECHO_RUNNING, "start wanted"); }
static struct echo_next echo_in_running(const struct echo_view *view)
{ (void)view; return echo_do(ECHO_ANSWER, "answers what has come"); }
static void answer(void *user, const struct det_message *message)
{
    struct echo_deps *deps = user;
    char text[64];
    snprintf(text, sizeof text, "answer to %s", message->content);
    if (det_channel_send(deps->channel, &(struct det_message){
            .instance = message->instance, .content = text, .trace_id = message->trace_id },
            0) == 0)
        deps->answered++;
}
static int echo_do_answer(struct det_worker_context *context, struct echo_deps *deps,
                          const struct det_empty *desired)
{
    (void)context; (void)desired;
    while (det_channel_receive(deps->channel, 0, answer, deps) == 0)
        ;
    return 0;
}
DET_MODULE("echo", DET_MODULE_WORKERS(&echo_kind));
"""
QUICK = "  limits: {tick: 20ms, observe_every: 50ms}\n"
PLANT = f"version: 1\nworkers:\n  name: plant\n{QUICK}"


class Relay:
    """Logs everybody in who knows the token, and keeps what is pushed."""

    def __init__(self):
        relay = self
        self.waiting, self.pushed, self.logins = [], [], []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

            def say(self, status, value=None, **headers):
                body = json.dumps(value).encode() if value is not None else b""
                self.send_response(status)
                for name, text in headers.items():
                    self.send_header(name.replace("_", "-"), text)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):  # pylint: disable=invalid-name
                messages, relay.waiting = relay.waiting, []
                self.say(200, {"messages": messages})

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if self.path.endswith("/login"):
                    relay.logins.append(self.headers["Authorization"])
                    self.say(200, {"uuid": "u-1", "name": "press"}, Set_Cookie="token=t-1; Path=/")
                else:
                    relay.pushed += json.loads(body)["messages"]
                    self.say(200, {})

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def contents(self):
        return [message["content"] for message in self.pushed]


def build():
    Path("echo.worker").write_text(SPEC)
    Path("echo.c").write_text(CODE)
    done = subprocess.run(
        [COMPILER, "-std=c17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{INCLUDE}",
         "-I.", "echo.c", "-o", "echo.so"], capture_output=True, text=True, timeout=PATIENCE,
        check=False)
    check(done.returncode == 0, done.stderr[:800])
    os.chmod("echo.so", 0o755)


def begin(**env):
    it = Up(env=env)
    it.wait_for("state_transition .*plant.* to=running")
    return it


def states():
    return {worker["name"]: worker["state"] for worker in objects("workers")}


def is_syncing():
    return states().get("communicator") == "syncing"


def test_a_worker_of_a_module_sends_and_receives_through_a_communicator():
    relay = Relay()
    build()
    Path("detent.yaml").write_text(
        f"{PLANT}  modules: ./echo.so\n  children:\n"
        "    - {name: echo, kind: echo}\n"
        f"    - {{name: relay, kind: communicator, config: {{relay_url: {relay.url}, "
        "auth_token: abc}}\n")
    detent("check", "detent.yaml")
    it = Up()
    wait_until(lambda: relay.contents() == ["began"], lambda: f"{relay.pushed} {it.shown()}")
    relay.waiting = [{"instance": "u-1", "content": "hello", "traceId": "t-7"}]
    wait_until(lambda: len(relay.pushed) == 2, lambda: f"{relay.pushed} {it.shown()}")
    equal({key: relay.pushed[1][key] for key in ("instance", "content", "traceId")},
          {"instance": "u-1", "content": "answer to hello", "traceId": "t-7"})
    # It is the worker's now, and not logged.
    equal(it.index("message_received"), -1)
    it.stop()


def test_unreceived_messages_are_logged():
    relay = Relay()
    relay.waiting = [{"instance": "u-1", "content": "hello"}]
    Path("detent.yaml").write_text(
        f"{PLANT}  children:\n    - {{name: relay, kind: communicator}}\n")
    it = Up(env={"API_URL": relay.url, "AUTH_TOKEN": "abc"})
    it.wait_for("message_received .*content=hello")
    it.stop()


def test_environment_variables_add_and_remove_a_communicator():
    relay = Relay()
    Path("detent.yaml").write_text(PLANT)
    both = {"API_URL": relay.url, "AUTH_TOKEN": "a secret"}
    it = begin(**both, USE_FSMV2_TRANSPORT="true")
    wait_until(is_syncing, it.shown)
    check(relay.logins[0].startswith("Bearer ") and "a secret" not in relay.logins[0],
          relay.logins)
    check("a secret" not in json.dumps(one("desired", "communicator")), "the token is shown")
    it.stop()
    # What was asked for once stays, though the variable is gone or makes no sense; the token was
    # recorded nowhere.
    check(b"a secret" not in Path("detent.db").read_bytes(), "the token is in the store")
    it = begin()
    it.wait_for("action_failed .*relay_url is missing: set it in the config, or API_URL")
    it.stop()
    it = begin(**both, USE_FSMV2_TRANSPORT="maybe")
    it.wait_for("USE_FSMV2_TRANSPORT is 'maybe': it must be true or false")
    wait_until(is_syncing, it.shown)
    it.stop()
    it = begin(**both, USE_FSMV2_TRANSPORT="false")
    wait_until(lambda: "communicator" not in states(), it.shown)
    it.stop()


if __name__ == "__main__":
    sys.exit(up.main(globals()))
