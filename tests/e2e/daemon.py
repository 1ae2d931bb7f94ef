#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs what makes a daemon of `detent`, end to end: tokens, folders without a file, `serve`.

    daemon.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The frame is that of up.py.
"""
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import up
from machines import GUARDED, ORDER, PARCEL, detent, objects, one, run
from up import DETENT, PATIENCE, Up, check, environment, equal, wait_until

TASK = "version: 1\ntasks:\n  a: {run: sleep 60}\n"
TOKEN = re.compile(r"det_([a-km-np-z2-9]{8})_([A-Za-z0-9_-]{43})\n")


def project(text=TASK):
    Path("detent.yaml").write_text(text)


def test_a_token_is_printed_once_and_kept_as_a_hash():
    project()
    done = detent("token", "new", "--name", "ci", "--scope", "read,metrics", "--expires", "30d",
                  err="read,metrics; expires")
    found = TOKEN.fullmatch(done.stdout)
    check(found, done.stdout)
    text = Path(".detent/tokens").read_text()
    check(found[2] not in text and hashlib.sha256(found[2].encode()).hexdigest() in text, text)
    equal(os.stat(".detent/tokens").st_mode & 0o777, 0o600)
    token = one("token", "list")
    equal((token["id"], token["name"], token["scopes"]), (found[1], "ci", ["read", "metrics"]))
    detent("token", "list", out=[found[1], "read,metrics"])
    made = one("token", "new", "--expires", "never")
    equal((made["expires"], made["scopes"]), (None, ["read", "send"]))
    check(TOKEN.fullmatch(made["token"] + "\n"), made)
    equal(one("token", "revoke", found[1])["type"], "revoked")
    equal([token["id"] for token in objects("token", "list")], [made["id"]])
    detent("token", "revoke", made["id"], out="revoked")
    detent("token", "list", err="There are no tokens")


def test_token_command_errors_are_reported():
    detent("token", "list", code=3, err="there is no detent.yaml here")
    project()
    detent("token", "nwe", code=2, err="did you mean 'new'?")
    detent("token", "new", "x", code=2, err="write the name as --name NAME")
    detent("token", "revoke", code=2, err="needs the id")
    detent("token", "revoke", "nobody", code=3, err="there is no token 'nobody'")
    detent("token", "new", "--scope", "write", code=2, err="read, send, admin and metrics")
    detent("token", "new", "--name", "a b", code=2, err="letters, digits")
    detent("token", "new", "--expires", "soon", code=2, err="expires")
    detent("token", "new")
    os.chmod(".detent/tokens", 0o640)
    detent("token", "list", code=6, err="chmod 600")
    os.chmod(".detent/tokens", 0o600)
    Path(".detent/tokens").write_text("{}\n")
    detent("token", "list", code=1, err="line 1 is damaged")


class Serve(Up):
    """One `detent serve`; root must confirm that it is intended."""

    def __init__(self, *words, env=None, **more):
        root = ["--allow-root"] if os.geteuid() == 0 and "--user" not in words else []
        self.start([DETENT, "serve", *root, *words], env, **more)


class Supervisor:
    """What systemd is to a service: a socket that hears news."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("notify.sock")
        self.socket.settimeout(PATIENCE)
        self.env = {"NOTIFY_SOCKET": str(Path("notify.sock").resolve())}

    def hear(self, part):
        """The first message that has the line."""
        while True:
            message = self.socket.recv(4096).decode()
            if part in message.split("\n"):
                return message


def test_a_folder_of_specs_is_served():
    Path("parcel.fsm").write_text(PARCEL)
    one_up = Up()
    wait_until(lambda: any("Serves parcel" in line for line in one_up.talk), "it serves it")
    detent("start", "parcel", "p-1")
    detent("send", "p-1", "move")
    one_up.wait_for("p-1: here -> there")
    one_up.stop()
    # It is where it was, and commands find it without a detent.
    detent("get", "p-1", out="there")
    check(Path("detent.db").exists())


def test_folder_can_be_given_as_an_argument():
    Path("shop").mkdir()
    detent("up", "./shop", code=3, err="has no detent.yaml and no spec")
    detent("up", "nowhere/at/all", code=3, err="No such file")
    Path("shop/parcel.fsm").write_text(PARCEL)
    one_up = Up("shop")
    wait_until(lambda: any("Serves parcel" in line for line in one_up.talk), "it serves it")
    detent("start", "-C", "shop", "parcel", "p-1")
    one_up.stop()
    check(Path("shop/detent.db").exists())
    # In a project a word is a task, and a path is a folder.
    project("version: 1\ntasks:\n  shop: {run: echo from the task, restart: never}\n")
    detent("up", "shop", out="from the task")
    check(run("up", "shopp").returncode == 3)


def test_unservable_specs_are_refused_with_a_remedy():
    Path("order.fsm").write_text(ORDER)
    done = detent("up", code=2, err=["order.fsm requests effects", "charge_card: {command: ["])
    Path("detent.yaml").write_text(
        done.stderr[done.stderr.index("version: 1"):].replace("./charge_card", "true"))
    detent("check", "detent.yaml")
    Path("detent.yaml").unlink()
    Path("order.fsm").write_text(GUARDED)
    detent("up", code=2, err="has functions in C (guard has_key)")
    Path("order.fsm").write_text(PARCEL)
    Path("other.fsm").write_text(PARCEL)
    detent("up", code=2, err="order.fsm and other.fsm both define 'parcel'")


def test_file_without_anything_to_run_serves_its_specs():
    project("version: 1\nstore: sqlite:parcels.db\nlog: {level: error}\n")
    detent("check", "detent.yaml", code=2,
           err="needs 'tasks', 'machines', 'workers', 'flows' or a durable slot")
    Path("parcel.fsm").write_text(PARCEL)
    detent("check", "detent.yaml")
    detent("start", "parcel", "p-1")
    check(Path("parcels.db").exists())
    project("version: 1\nmachines: {}\n")
    detent("check", "detent.yaml", code=2,
           err="needs 'tasks', 'machines', 'workers', 'flows' or a durable slot")


def test_specs_next_to_tasks_are_served_without_affecting_them():
    project(TASK.replace("sleep 60", "[sh, -c, \"echo runs; exec sleep 60\"]"))
    for name, text in (("parcel", PARCEL), ("order", ORDER), ("guarded", GUARDED),
                       ("broken", "STATE("), ("twin", PARCEL.replace("parcel", "twin")),
                       ("other", PARCEL.replace("parcel", "twin"))):
        Path(f"{name}.fsm").write_text(text)
    it = Up()
    it.wait_for(r"a +\| runs")
    wait_until(lambda: "In another terminal" in "".join(it.talk), "all of what it says")
    said = "\n".join(it.talk)
    for part in ("Serves parcel from sqlite:",
                 "order.fsm is not served: its effects have no commands. List it",
                 "guarded.fsm is not served: ", "broken.fsm is not served: it is not a valid",
                 "twin.fsm is not served: another spec here has a definition of the same name"):
        check(part in said, f"no '{part}' in {said}")
    equal(said.count("Serves"), 1)
    detent("start", "parcel", "p-1")
    detent("send", "p-1", "move")
    # One that asks for effects by now is not served any more; an empty list leaves specs alone.
    Path("order.fsm").write_text(PARCEL.replace("parcel", "order"))
    answer = one("reload")
    equal([(i["change"], i["name"]) for i in answer["items"]], [("changed", "order")])
    detent("start", "order", "o-1")
    it.stop()
    project(Path("detent.yaml").read_text() + "machines: []\n")
    it = Up()
    it.wait_for(r"a +\| runs")
    wait_until(lambda: "In another terminal" in "".join(it.talk), "all of what it says")
    check(not any("served" in line or "Serves" in line for line in it.talk), it.talk)
    it.stop()


def test_serve_notifies_its_service_manager():
    project("version: 1\ntasks:\n  a: {run: 'true', restart: never}\n")
    supervisor = Supervisor()
    # No work is left, and it continues.
    daemon = Serve(env={**supervisor.env, "WATCHDOG_USEC": "20000"})
    check("STATUS=1 task, " in supervisor.hear("READY=1"))
    for _ in range(3):
        supervisor.hear("WATCHDOG=1")
    wait_until(lambda: [t["state"] for t in objects("tasks")] == ["completed"], "it has ended")
    check(daemon.process.poll() is None)
    daemon.send(signal.SIGTERM)
    supervisor.hear("STOPPING=1")
    daemon.end()
    # Where it is no terminal, it speaks JSON.
    found = [json.loads(line) for line in daemon.lines]
    check(all(line["time"] and line["level"] == "info" for line in found), daemon.shown())
    check(("task", "a", "completed") in [(line["component"], line.get("task"), line["message"])
                                         for line in found], daemon.shown())
    check(any(line["message"].startswith("ready: ") and ": 1 task, " in line["message"]
              for line in found), daemon.shown())


def test_the_watchdog_of_another_process_is_not_fed():
    project()
    supervisor = Supervisor()
    daemon = Serve(env={**supervisor.env, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"})
    supervisor.hear("READY=1")
    daemon.send(signal.SIGTERM)
    equal(supervisor.socket.recv(4096).decode().split("\n")[0], "STOPPING=1")
    daemon.end()


def test_serve_logs_in_the_configured_format():
    project("version: 1\nlog: {format: text}\ntasks:\n  a: {run: echo hello}\n")
    daemon = Serve()
    daemon.wait_for(r"^\d{4}-.* a +\| hello")
    daemon.stop()
    daemon = Serve("--log", "json")
    place = daemon.wait_for('"message":"hello"')
    line = json.loads(daemon.lines[place])
    equal((line["component"], line["task"], line["stream"]), ("output", "a", "output"))
    daemon.stop()
    # Less important lines are not shown.
    project("version: 1\nlog: {level: warning}\ntasks:\n"
            "  a: {run: echo hello, restart: never}\n  b: {run: 'false', restart: never}\n")
    daemon = Serve()
    daemon.wait_for('"level":"warning"')
    daemon.stop(1)
    check(not any("hello" in line or "info" in line for line in daemon.lines), daemon.shown())


def test_unsafe_settings_are_refused():
    project(TASK + "http: {listen: \"0.0.0.0:0\"}\n")
    open_up = {"DETENT_LISTEN": ""}
    for command in ("up",), ("serve", "--allow-root"):
        detent(*command, code=6, err="can be reached from other machines, and there is no TLS",
               env=open_up)
    detent("up", "--listen", "[::]:0", code=6, err="[::]:0 can be reached")
    detent("up", "--listen", "nowhere", code=2, err="an address is")
    project(TASK + "http: {listen: \"0.0.0.0:0\", tls: {certificate: c.pem, key: k.pem}}\n")
    detent("up", code=3, err="k.pem", env=open_up)
    Path("k.pem").touch(0o640)
    detent("up", code=6, err="others can read or write this private key", env=open_up)
    os.chmod("k.pem", 0o600)
    detent("up", code=6, err="there is no token yet", env=open_up)
    detent("token", "new", "--expires", "1s")
    os.chmod(".detent/tokens", 0o604)
    detent("up", code=6, err="chmod 600")
    project(TASK)
    os.chmod(".detent/tokens", 0o600)
    os.chmod(".", 0o777)
    detent("serve", "--allow-root", code=6, err="everybody may write to this folder")
    os.chmod(".", 0o755)
    if os.geteuid() == 0:
        detent("serve", code=6, err="--user NAME changes the user")
        detent("serve", "--user", "nobody-here", code=3, err="there is no user 'nobody-here'")


def test_world_writable_file_is_refused():
    """It says what is run, as root perhaps."""
    project(TASK)
    os.chmod(".", 0o755)
    os.chmod("detent.yaml", 0o666)
    for command in ("up", "serve"):
        detent(command, *(["--allow-root"] if command == "serve" else []), code=6,
               err="detent.yaml: everybody may change it")
    os.chmod("detent.yaml", 0o644)
    os.chmod(".", 0o777)
    detent("up", code=6, err="everybody may write to this folder, and so replace detent.yaml")
    os.chmod(".", 0o755)


def finding(word):
    return [(level, word in text) for level, text in findings(6)]


def test_root_refuses_a_file_that_others_can_write():
    """A group or an owner other than root could have root run anything."""
    if os.geteuid() != 0:
        print("skipped: only root can give a file to another group")
        return
    commands = ("up",), ("serve", "--allow-root")
    project("version: 1\ntasks:\n  a: {run: 'true', restart: never}\n")
    for path, what in (("detent.yaml", "detent.yaml: its group may change it"),
                       (".", "its group may write to this folder, and so replace detent.yaml")):
        os.chmod(path, 0o775)
        os.chown(path, 0, 12345)
        for command in commands:
            detent(*command, code=6, err=[what, "chmod g-w"])
        check(("unsafe", True) in finding(what), what)
        os.chown(path, 0, 0)
        detent("up")
        os.chmod(path, 0o755)
    for path in "detent.yaml", ".":
        os.chown(path, 12345, 0)
        for command in commands:
            detent(*command, code=6, err="its owner is user 12345, who could change what runs")
        check(("unsafe", True) in finding("its owner is user 12345"), path)
        os.chown(path, 0, 0)
    # As a stranger's in /tmp.
    os.chmod(".", 0o1777)
    detent("up")
    os.chown("detent.yaml", 12345, 12345)
    detent("up", code=6, err="its owner is user 12345")


def test_reload_refuses_a_file_that_others_can_write():
    """What was safe at the start may not be by now."""
    project(TASK)
    os.chmod(".", 0o755)
    daemon = Serve()
    daemon.wait_for("ready: ")
    Path("detent.yaml").write_text(TASK + "  more: {run: sleep 600}\n")
    os.chmod("detent.yaml", 0o666)
    detent("reload", code=2, err=["detent.yaml: everybody may change it", "nothing was changed"])
    os.chmod("detent.yaml", 0o644)
    if os.geteuid() == 0:
        os.chown("detent.yaml", 12345, 0)
        detent("reload", code=2, err="its owner is user 12345, who could change what runs")
        os.chown("detent.yaml", 0, 0)
    check("more" not in [task["name"] for task in objects("tasks")])
    detent("reload")
    check("more" in [task["name"] for task in objects("tasks")])
    daemon.stop()


def test_root_refuses_a_spec_that_others_can_write():
    """Without a detent.yaml the folder says what runs."""
    if os.geteuid() != 0:
        print("skipped: only root can give a folder to another user")
        return
    Path("door.fsm").write_text("#define FSM_NAME door\n#define FSM_PREFIX DOOR\n"
                                "STATE(SHUT, shut, INITIAL)\nSTATE(OPEN, open)\n"
                                "EVENT(PUSH, push)\nON(SHUT, PUSH, OPEN)\nON(OPEN, PUSH, SHUT)\n")
    os.chmod(".", 0o777)
    detent("up", code=6, err="everybody may write to this folder")
    os.chmod(".", 0o755)
    os.chown(".", 12345, 0)
    detent("up", code=6, err="its owner is user 12345, who could change what runs")
    os.chown(".", 0, 0)


def test_token_created_by_root_keeps_the_project_owner():
    if os.geteuid() != 0:
        print("skipped: only root can act for another user")
        return
    project(TASK)
    Path(".detent").mkdir(mode=0o700, exist_ok=True)
    for path in ".", ".detent", "detent.yaml":
        os.chown(path, 12345, 12345)
    detent("token", "new")
    for name in "tokens", "tokens.lock":
        equal(os.stat(f".detent/{name}").st_uid, 12345)


def test_users_may_share_files_with_their_own_group():
    """Debian's umask of 002 makes all files so."""
    if os.geteuid() != 0:
        print("skipped: only root can become another user")
        return
    project("version: 1\ntasks:\n  a: {run: id -u, restart: never}\n")
    shutil.copy(DETENT, "program")  # that of the build may be in a closed folder
    command = {"args": ["./program", "up"], "user": 65534, "group": 65534, "extra_groups": [],
               "check": False, "capture_output": True, "text": True}
    for path in ".", "detent.yaml":
        os.chown(path, 65534, 65534)
        os.chmod(path, 0o775)
    done = subprocess.run(**command)
    check(done.returncode == 0 and "65534" in done.stdout, done)
    os.chown("detent.yaml", 65534, 12345)
    done = subprocess.run(**command)
    check(done.returncode == 6 and "its group may change it" in done.stderr, done)


def test_token_folder_must_not_be_a_link():
    project(TASK)
    Path("elsewhere").mkdir(0o700)
    Path(".detent").symlink_to("elsewhere")
    detent("token", "new", code=6, err="is not a folder, but a link")
    detent("token", "list", code=6, err="is not a folder, but a link")
    equal(os.listdir("elsewhere"), [])
    Path(".detent").unlink()
    Path(".detent").mkdir()
    os.chmod(".detent", 0o777)
    detent("token", "new", code=6, err="others may write to it; run chmod 700 on it")


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def findings(code):
    found = [(f["level"], f["text"]) for f in objects("doctor", code=code)]
    return [(level, text) for level, text in found if "running as root" not in text]


def test_doctor_reports_unsafe_settings():
    project(TASK + "store: sqlite:shop.db\n")
    os.chmod(".", 0o755)
    equal(findings(0), [])
    Path("shop.db").touch(0o666)
    os.chmod("shop.db", 0o644)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", "k.pem", "-out", "c.pem", "-days", "20", "-subj", "/CN=shop")
    os.chmod("k.pem", 0o600)
    project(TASK + "store: sqlite:shop.db\nhttp: {listen: '0.0.0.0:0', rate: "
            "unlimited, tls: {certificate: c.pem, key: k.pem}}\n")
    detent("token", "new", "--scope", "admin", "--expires", "never", "--name", "root")
    detent("token", "new", "--expires", "6d", "--name", "brief")
    found = findings(6)
    equal({level for level, text in found if "shop.db" not in text}, {"careless"})
    check(("unsafe", True) in [(level, "shop.db" in text) for level, text in found], found)
    words = ("shop.db: mode 0644 lets other users read or write", "certificate expires soon, 20",
             "http.rate is unlimited", "(root) may do everything", "(brief) expires soon")
    for word in words:
        check(sum(word in text for _, text in found) == 1, f"{word}: {found}")
    equal(len(found), len(words))
    # What serve refuses, it says as well, and all of it.
    os.chmod("detent.yaml", 0o666)
    os.chmod("k.pem", 0o644)
    os.chmod(".detent/tokens", 0o644)
    os.chmod("shop.db", 0o666)
    openssl("x509", "-in", "c.pem", "-signkey", "k.pem", "-days", "-1", "-out", "c.pem")
    found = findings(6)
    for word in ("detent.yaml: everybody may change it",
                 "others can read or write this private key",
                 ".detent/tokens: others may read",
                 "shop.db: mode 0666 lets other users read or write",
                 "the certificate has expired"):
        check(("unsafe" in [level for level, text in found if word in text]), f"{word}: {found}")
    detent("doctor", code=6, out="unsafe    ")


def test_doctor_names_every_file_with_instance_data():
    project(TASK + "store: sqlite:data/shop.db\n")
    Path("order.fsm").write_text(ORDER)
    Path("data").mkdir()
    os.chmod(".", 0o755)
    detent("start", "order.fsm", "o-1", "--store", "sqlite:data/shop.db")
    detent("store", "backup", "--store", "sqlite:data/shop.db", "monday")
    detent("store", "export", "--store", "sqlite:data/shop.db", "all.jsonl")
    names = ["data/shop.db", "data/shop.db.mark", "data/shop.db.lock", "monday", "all.jsonl"]
    for name in ("data/shop.db-wal", "data/shop.db-shm"):
        Path(name).touch(0o600)
        names.append(name)
    Path("notes.txt").write_text("nothing of ours")
    Path("data/shop.dbx").write_text("nothing of ours")
    equal(findings(0), [])
    for name in names:
        os.chmod(name, 0o640)
    found = findings(6)
    for name in names:
        check(sum(f"/{name}: mode 0640 lets other users read or write the data of instances; "
                  "run: chmod 600" in text for _, text in found) == 1, f"{name}: {found}")
    equal(len(found), len(names))


def test_the_doctor_names_a_store_that_its_user_cannot_open():
    if os.geteuid() != 0:
        print("skipped: only root can give a file to another user")
        return
    user = {"strace": ["setpriv", "--reuid=65534", "--regid=65533", "--clear-groups"]}
    project(TASK)
    Path("order.fsm").write_text(ORDER)
    for path in (".", "detent.yaml"):
        os.chown(path, 65534, 65533)
    os.chmod(".", 0o755)
    detent("start", "order.fsm", "o-1", "--store", "sqlite:detent.db")
    names = sorted(path.name for path in Path(".").glob("detent.db*"))
    equal(names, ["detent.db", "detent.db.lock", "detent.db.mark"])
    for name in names:
        made = os.stat(name)
        equal((name, made.st_uid, made.st_gid, made.st_mode), (name, 65534, 65533, 0o100600))
    detent("doctor", err="Nothing unsafe was found.", **user)
    detent("list", "--store", "sqlite:detent.db", out="o-1", **user)
    check(not any("detent.db" in text for _, text in findings(6)))
    for name in names:
        os.chown(name, 0, 0)
    found = findings(6)
    for name in names:
        whole = f"{os.getcwd()}/{name}"
        check(("unsafe", f"{whole}: a file of the store belongs to user 0, but its folder to user "
               f"65534; sudo chown 65534:65533 {whole}") in found, found)
        detent("doctor", code=6, **user,
               out=f"{whole}: user 65534 may not read and write this file of the store, it "
               f"belongs to user 0; sudo chown 65534:65533 {whole}\n")
        os.chown(name, 65534, 65533)
    # The message does not advise root to give away the target of a link.
    os.rename("detent.db.mark", "mark")
    Path("roots").write_text("a secret")
    os.symlink("roots", "detent.db.mark")
    check(not any("detent.db.mark" in text for _, text in findings(6)))
    os.rename("mark", "detent.db.mark")
    os.chmod("detent.db", 0o400)
    detent("doctor", code=6, out="mode 0400 does not let its owner read and write", **user)
    project(TASK + "store: sqlite:data/shop.db\n")
    Path("data").mkdir(mode=0o700)
    detent("doctor", code=6, out=f"{os.getcwd()}/data: user 65534 may not enter or write to "
           "the folder of the store; sudo chown 65534:65533", **user)
    # A folder of root's in which others make files is theirs as much.
    Path("data/shop.db").touch(0o600)
    os.chown("data/shop.db", 65534, 65533)
    check(("careless", True) in [(level, "data/shop.db: a file of the store belongs to" in text)
                                 for level, text in findings(6)])
    os.chmod("data", 0o770)
    check(not any("shop.db" in text for _, text in findings(6)))
    os.chown("data", 65532, 65533)
    check(not any("shop.db" in text for _, text in findings(6)))


def test_a_file_of_variables_that_others_may_change_is_refused():
    project(TASK.replace("{", "{env_file: web.env, "))
    os.chmod(".", 0o755)
    Path("web.env").write_text("A=1\n")
    os.chmod("web.env", 0o646)
    for words in (("up",), ("check", "detent.yaml")):
        detent(*words, code=2, err="web.env: everybody may change the file")
    check(("unsafe", True) in [(level, "web.env: everybody may" in text)
                               for level, text in findings(6)])
    os.chmod("web.env", 0o664)
    if os.geteuid() != 0:
        return
    os.chown("web.env", 0, 12345)
    detent("check", "detent.yaml", code=2, err="web.env: its group may change the file")
    os.chmod("web.env", 0o600)
    os.chown("web.env", 12345, 12345)
    detent("check", "detent.yaml", code=2, err="web.env: the file belongs to another user")
    os.chown("detent.yaml", 12345, 12345)
    detent("check", "detent.yaml")


def test_file_must_be_owned_by_root_or_the_user():
    if os.geteuid() != 0:
        print("skipped: only root can give a file to another user")
        return
    project("version: 1\ntasks:\n  a: {run: [sh, -c, \"id -un; exec sleep 60\"]}\n")
    shutil.chown(".", "nobody")
    shutil.chown("detent.yaml", "nobody")
    detent("serve", "--allow-root", code=6, err="detent.yaml: its owner is user 65534, who could")
    detent("doctor", code=6, out="its owner is user 65534")
    daemon = Serve("--user", "nobody", "--log", "text")
    daemon.wait_for(r"a +\| nobody")
    daemon.stop()
    shutil.chown("detent.yaml", "daemon")
    detent("serve", "--user", "nobody", code=6, err="detent.yaml: its owner is user 1, who could")


def test_serve_becomes_another_user():
    if os.geteuid() != 0:
        return
    project("version: 1\ntasks:\n  a: {run: [sh, -c, \"id -un; echo $HOME; exec sleep 60\"]}\n")
    Path("parcel.fsm").write_text(PARCEL)
    shutil.chown(".", "nobody")
    for folder in Path.cwd().parents:
        check(os.stat(folder).st_mode & 1, f"{folder} is closed")
    daemon = Serve("--user", "nobody", "--log", "text")
    daemon.wait_for(r"a +\| nobody")
    daemon.wait_for(r"a +\| /nonexistent")
    rights = Path(f"/proc/{daemon.number}/status").read_text()
    equal(rights.count("\t65534" * 4), 2)
    # Others of this user, as its own tasks are, cannot read its memory.
    equal(os.stat(f"/proc/{daemon.number}/mem").st_uid, 0)
    done = subprocess.run(["cat", f"/proc/{daemon.number}/environ"], user="nobody", cwd="/",
                          check=False, capture_output=True, text=True)
    check("Permission denied" in done.stderr, done)
    child = up.children_of(daemon.number)[0]
    equal(os.stat(f"/proc/{child}/mem").st_uid, 65534)
    equal(Path(".detent").owner(), "nobody")
    detent("tasks", out="running")
    daemon.stop()


def test_invalid_inherited_sockets_are_refused():
    project()
    env = {"LISTEN_FDS": "1"}
    done = subprocess.run(["sh", "-c", "LISTEN_PID=$$ exec $0 up 3</dev/null", DETENT],
                          env=environment(env), capture_output=True, text=True, check=False)
    check(done.returncode == 2, done.stderr)
    check("descriptor 3 is not a listening socket" in done.stderr, done.stderr)
    # Those of somebody else do not count.
    one_up = Up(env={"LISTEN_FDS": "1", "LISTEN_PID": "1"})
    one_up.wait_for("a")
    one_up.stop()


def test_only_the_default_port_falls_back_to_the_next():
    project()
    try:
        other = socket.create_server(("127.0.0.1", 7788))
    except OSError:
        other = None  # somebody else has it, which will do
    try:
        taken = "127.0.0.1:7788 is taken"
        by_option, by_variable = ["--listen", "127.0.0.1:7788"], {"DETENT_LISTEN": "127.0.0.1:7788"}
        for words, env in ((by_option, None), ([], by_variable)):
            refused = Up(*words, env=env)
            check(refused.process.wait(PATIENCE) != 0, refused.shown())
            refused.join()
            check(taken in refused.shown() and "use another address" in refused.shown(),
                  refused.shown())
        moved = Up(env={"DETENT_LISTEN": ""})
        moved.wait_for(f"{taken}.*: listens on [0-9]+")
        moved.stop()
    finally:
        if other:
            other.close()


class Given(Up):
    """A `detent serve` with a socket that was opened before it."""

    def __init__(self, listener):
        number = listener.fileno()
        self.start(["sh", "-c", f"LISTEN_PID=$$ LISTEN_FDS=1 exec $0 $@ 3<&{number}", DETENT,
                    "serve", *(["--allow-root"] if os.geteuid() == 0 else [])], None,
                   pass_fds=(number,))


def ask(port, path="/livez"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
        return answer.status


def test_inherited_socket_outlives_a_killed_daemon():
    project()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        first = Given(listener)
        equal(ask(port), 200)
        first.send(signal.SIGKILL)
        first.process.wait()
        # No process listens, and no client is refused: the next process answers it.
        waits = socket.create_connection(("127.0.0.1", port), PATIENCE)
        waits.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        second = Given(listener)
        check(waits.recv(100).startswith(b"HTTP/1.1 200 "), "it is not answered")
        waits.close()
        second.stop()


def test_systemd_unit_is_restricted():
    tool = shutil.which("systemd-analyze")
    if not tool:
        return
    unit = Path(__file__).resolve().parents[2] / "packaging/detent.service"
    done = subprocess.run([tool, "security", "--offline=true", unit], capture_output=True,
                          text=True, check=False)
    level = re.search(r"Overall exposure level.*: ([\d.]+)", done.stdout)
    check(level and float(level[1]) <= 2.0, done.stdout[-300:] + done.stderr)


def test_status_reports_what_runs_and_where():
    project()
    detent("status", code=3, err="no detent is running here")
    detent("console", code=3, err="no detent is running here")
    for listen, has_api in ("127.0.0.1:0", True), ("none", False):
        daemon = Serve("--listen", listen, "--log", "text")
        wait_until(lambda: run("status").returncode == 0, "it answers")
        status = json.loads(detent("status", "--json").stdout)
        equal((status["state"], bool(status["api"])), ("running", has_api))
        detent("status", out="is running, for")
        if has_api:
            link = detent("console").stdout.strip()
            check(re.fullmatch(re.escape(status["api"]) + "/#code=[A-Za-z0-9_-]{22}", link), link)
            check(link != detent("console").stdout.strip(), "a code is good for two")
        else:
            detent("console", code=3, err="no address is open for browsers")
        daemon.stop()
    names = [json.loads(line)["name"] for line in detent("limits", "--json").stdout.splitlines()]
    check({"body_max", "connections_max", "sse_queue", "states"} <= set(names), names)
    detent("limits", out="http.limits.body_max")


if __name__ == "__main__":
    sys.exit(up.main(globals()))
