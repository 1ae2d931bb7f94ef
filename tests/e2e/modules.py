#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs machines whose functions are in a module, end to end.

    modules.py DETENT NASTY_CHILD COMPILER INCLUDE [PART_OF_A_NAME]

The frame is that of up.py. examples/check has the example with its drill.
"""
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

COMPILER, INCLUDE = sys.argv[3:5]
del sys.argv[3:5]

import up  # noqa: E402
from machines import detent, one  # noqa: E402
from up import PATIENCE, Up, check, equal, patience, wait_until  # noqa: E402

# Longer than an effect takes.
LATE = f"MILLISECONDS({1000 * patience.stretch(1)})"
SPEC = """#define FSM_NAME door
#define FSM_PREFIX DOOR
#define FSM_DATA door_data
RECORD(door_data)
    FIELD(pushes, u32)
    FIELD(color, str(16))
END
RECORD(push)
    FIELD(force, u32)
END
STATE(SHUT, shut, INITIAL)
STATE(OPEN, open)
EVENT(PUSH, push, push)
INTERNAL(SLAM, slam, push)
INTERNAL(RUNG, rung)
GUARD(is_strong)
HOOK(knock)
UPDATE(count)
FILL(softly)
EFFECT(ring, RUNG)
EFFECT(paint)
ON(SHUT, PUSH, OPEN, IF(is_strong), CALL(knock), SET(count), DO(ring, paint))
STAY(OPEN, RUNG)
ON(OPEN, SLAM, SHUT, SET(count))
""" + f"AFTER(OPEN, {LATE}, SLAM, softly)\n"
CODE = """#include <stdio.h>
#include <string.h>
#define FSM_SPEC "door.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "door.fsm"
#include <detent/fsm/define.h>
#include <detent/module.h>
struct house { char folder[256]; unsigned opened; };
static struct house house;
static bool is_strong(const struct det_move *m, const struct door_data *d,
                      const struct door_event *e)
{ (void)d; return det_module_context(m) == &house && e->push.force > 10; }
static int knock(const struct det_move *m, const struct door_data *d, const struct door_event *e)
{ (void)m; (void)d; return e->push.force > 99 ? DET_ERR_INVALID : 0; }
static void count(struct door_data *d, const struct door_event *e) { (void)e; d->pushes++; }
static void softly(const struct det_move *m, const struct door_data *d, struct door_event *e)
{ (void)m; (void)d; e->slam.force = 3; }
static int log_line(const char *text)
{
    char path[300];
    FILE *file;
    snprintf(path, sizeof path, "%s/log", house.folder);
    file = fopen(path, "a");
    fprintf(file, "%s\\n", text);
    return fclose(file);
}
static int ring(struct det_effect_call *c, const struct door_data *d, const struct door_event *e,
                struct door_event *ret)
{
    (void)c; (void)d; (void)e; *ret = door_rung();
    return log_line("ring") ? DET_ERR_IO : DET_EFFECT_PRODUCED;
}
static int paint(struct det_effect_call *c, const struct door_data *d, const struct door_event *e,
                 struct door_event *ret)
{ (void)c; (void)d; (void)e; (void)ret; return log_line("paint"); }
static int open_house(const struct det_module_settings *s, void **ret, struct det_error *error)
{
    if (strlen(s->folder) >= sizeof house.folder) {
        snprintf(error->text, sizeof error->text, "the house is too far away");
        return DET_ERR_LIMIT;
    }
    strcpy(house.folder, s->folder);
    house.opened++;
    *ret = &house;
    return FAILS ? snprintf(error->text, sizeof error->text, "nobody is at home"), DET_ERR_IO : 0;
}
static void close_house(void *context) { log_line(context == &house ? "closed" : "wrong"); }
DET_MODULE("house", DET_MODULE_MACHINES(&door_machine), .open = open_house, .close = close_house);
"""
BELL = """#define FSM_NAME bell
#define FSM_PREFIX BELL
STATE(STILL, still, INITIAL)
EVENT(PRESS, press)
GUARD(is_wired)
STAY(STILL, PRESS, IF(is_wired))
"""
BELL_CODE = """
#define FSM_SPEC "bell.fsm"
#include <detent/fsm/declare.h>
#define FSM_SPEC "bell.fsm"
#include <detent/fsm/define.h>
static bool is_wired(const struct det_move *m, const struct det_empty *d,
                     const struct bell_event *e)
{ (void)d; (void)e; return det_module_context(m) == &house && house.opened == 1; }
"""


def build(code=CODE, output="door.so", *flags):
    Path("door.c").write_text(code)
    done = subprocess.run(
        [COMPILER, "-std=gnu17", "-shared", "-fPIC", "-DFAILS=0", *flags, f"-I{INCLUDE}", "-I.",
         "door.c", "-o", output], capture_output=True, text=True, timeout=PATIENCE, check=False)
    check(done.returncode == 0, done.stderr[:800])
    os.chmod(output, 0o755)


def project(more="", spec=SPEC):
    Path("door.fsm").write_text(spec)
    Path("detent.yaml").write_text(
        f"version: 1\nmachines:\n  door:\n    module: ./door.so\n{more}")


def begin():
    it = Up()
    wait_until(lambda: any("Serves door" in line for line in it.talk)
               or it.process.poll() is not None, "it serves it")
    check(it.process.poll() is None, it.shown())
    return it


def test_guards_hooks_updates_fills_and_effects_come_from_a_module():
    project()
    build()
    detent("check", "detent.yaml")
    it = begin()
    detent("start", "door", "d-1")
    detent("send", "d-1", "push", "--payload", '{"force": 5}', code=6, err="is_strong")
    detent("send", "d-1", "push", "--payload", '{"force": 100}', code=6, err="knock")
    detent("send", "d-1", "push", "--payload", '{"force": 50}')
    it.wait_for("d-1: stays open .rung, by an effect")
    it.wait_for("d-1: open -> shut .slam, by a timer")
    equal(one("get", "d-1")["data"], {"pushes": 2, "color": ""})
    detent("history", "d-1", out="force=3")
    it.stop()
    equal(sorted(Path("log").read_text().split()), ["closed", "paint", "ring"])


def test_project_file_overrides_the_module():
    project("    effects: {paint: {command: [sh, -c, \"cat > painted\"]}}\n")
    build()
    it = begin()
    detent("start", "door", "d-1")
    detent("send", "d-1", "push", "--payload", '{"force": 50}')
    it.wait_for("d-1: stays open")
    wait_until(lambda: Path("painted").exists() and Path("painted").read_text(), "it is painted")
    it.stop()
    check("paint" not in Path("log").read_text(), "the module has painted")


def test_modules_that_do_not_fit_are_refused():
    project()
    build(output="good.so")
    shutil.copy("good.so", "door.so")
    # Whose it is.
    os.chmod("door.so", 0o757)
    for command in ("up",), ("check", "detent.yaml"):
        detent(*command, code=2, err=["4:13", "everybody may write to it", "chmod o-w"])
    os.chmod("door.so", 0o755)
    os.chmod(".", 0o777)
    detent("up", code=2, err="everybody may write to it")
    os.chmod(".", 0o755)
    if os.geteuid() == 0:
        os.chown("door.so", 0, 12345)
        os.chmod("door.so", 0o775)
        detent("check", "detent.yaml", code=2,
               err=["4:13", "its group may write to it", "chmod g-w"])
        os.chmod("door.so", 0o755)
        shutil.chown("door.so", "nobody")
        detent("up", code=2, err="belongs to another user")
    Path("door.so").unlink()
    detent("check", "detent.yaml", code=2, err="No such file")
    # What it is.
    Path("door.so").write_text("no ELF")
    detent("up", code=1, err="door.so cannot be loaded")
    Path("door.so").unlink()
    build("int nothing;", "door.so")
    detent("up", code=1, err="has no symbol det_module")
    build(CODE.replace("DET_MODULE(", "#undef DET_MODULE_ABI\n"
                       "#define DET_MODULE_ABI 7\nDET_MODULE("))
    detent("up", code=1, err="was built with the headers of another detent (7.")
    build(CODE, "door.so", "-UFAILS", "-DFAILS=1")
    detent("up", code=1, err="door.so does not open: nobody is at home")
    # What it defines.
    shutil.copy("good.so", "door.so")
    for old, new, difference in (
            ("shut, INITIAL", "closed, INITIAL", "closed"),
            (LATE, "MILLISECONDS(301)", "MILLISECONDS(301)"),
            ("FIELD(pushes, u32)", "FIELD(pushes, u64)", "pushes"),
            ("IF(is_strong), ", "", "IF(is_strong)")):
        project(spec=SPEC.replace(old, new))
        detent("up", code=1, err=["otherwise than its spec does", difference, "build it again"])
    project()
    Path("detent.yaml").write_text(Path("detent.yaml").read_text().replace("door:", "gate:"))
    Path("gate.fsm").write_text(SPEC.replace("FSM_NAME door", "FSM_NAME gate"))
    detent("up", code=3, err="does not define 'gate'; it defines 'door'")


def test_two_machines_of_one_module_share_its_context():
    Path("bell.fsm").write_text(BELL)
    project("  bell: {module: ././door.so}\n")
    build(CODE.replace("&door_machine", "&door_machine, &bell_machine")
          .replace('DET_MODULE("', BELL_CODE + 'DET_MODULE("'))
    it = begin()
    detent("start", "bell", "b-1")
    detent("send", "b-1", "press")
    it.wait_for("b-1: stays still")
    it.stop()
    equal(Path("log").read_text().split(), ["closed"])


def test_a_project_may_have_several_modules():
    def renamed(text):
        return text.replace("door", "gate").replace("DOOR", "GATE")
    Path("gate.fsm").write_text(renamed(SPEC))
    project("  gate: {module: ./gate.so}\n")
    build(renamed(CODE), "gate.so")
    build()
    it = begin()
    for machine in ("door", "gate"):
        detent("start", machine, f"{machine}-1")
        detent("send", f"{machine}-1", "push", "--payload", '{"force": 50}')
        it.wait_for(f"{machine}-1: shut -> open")
    it.stop()


def test_module_that_cannot_be_reloaded_changes_nothing():
    def push(instance="d-1"):
        detent("send", instance, "push", "--payload", '{"force": 50}')
        it.wait_for(f"{instance}: open -> shut", it.wait_for(f"{instance}: shut -> open"))
        detent("start", "door", f"{instance}-")
    project()
    build()
    shutil.copy("door.so", "kept.so")
    it = begin()
    detent("start", "door", "d-1")
    # What is loaded stays as it was, whoever writes over its file.
    Path("door.so").write_text("no ELF")
    detent("reload", code=2, err=["detent.yaml:4:13", "door.so cannot be loaded",
                                  "nothing was changed"])
    push()
    # One that does not fit is found before anything is closed.
    shutil.copy("kept.so", "door.so")
    other = SPEC + "EVENT(KNOCK, knock)\nSTAY(SHUT, KNOCK)\n"
    project(spec=other)
    detent("reload", code=2, err=["otherwise than its spec does", "nothing was changed"])
    check(not Path("log").read_text().count("closed"), "it was closed")
    # One that does not open gives way to what was there, though no file of that is left.
    build(CODE, "door.so", "-UFAILS", "-DFAILS=1")
    detent("reload", code=1, err=["nobody is at home", "the old file stays in effect"])
    push("d-1-")
    detent("send", "d-1--", "knock", code=2, err="has no event")
    equal(Path("log").read_text().count("closed"), 1)
    build()
    equal(one("reload")["is_right"], True)
    detent("send", "d-1--", "knock")
    it.stop()


VALVE = """#define WORKER_NAME valve
#define WORKER_PREFIX VALVE
#define WORKER_DESIRED valve_desired
#define WORKER_OBSERVED valve_observed
#define WORKER_DEPS valve_deps
RECORD(valve_desired)
    FIELD(place, str(64))
END
RECORD(valve_observed)
    FIELD(is_open, bool)
    FIELD(module_was_opened, bool)
END
STATE(STOPPED, stopped, STOPPED)
STATE(OPENING, opening, STARTING, STOP(STOPPED))
STATE(OPEN,    open,    RUNNING,  STOP(STOPPED))
ACTION(TURN, turn)
"""
VALVE_CODE = """#define WORKER_SPEC "valve.worker"
#include <detent/worker/declare.h>
struct valve_deps { bool is_open; };
#define WORKER_SPEC "valve.worker"
#include <detent/worker/define.h>
#include <detent/module.h>
static int house;
static struct valve_next valve_in_stopped(const struct valve_view *view)
{ (void)view; return valve_goto(VALVE_OPENING, "is to run"); }
static struct valve_next valve_in_opening(const struct valve_view *view)
{
    if (view->observed->is_open)
        return valve_goto(VALVE_OPEN, "is open");
    return valve_do(VALVE_TURN, "is shut");
}
static struct valve_next valve_in_open(const struct valve_view *view)
{ (void)view; return valve_hold("is open"); }
static int valve_collect(struct det_worker_context *context, struct valve_deps *deps,
                         const struct valve_desired *desired, struct valve_observed *observed)
{
    (void)desired;
    observed->is_open = deps->is_open;
    observed->module_was_opened = det_module_worker_context(context) == &house;
    return 0;
}
static int valve_do_turn(struct det_worker_context *context, struct valve_deps *deps,
                      const struct valve_desired *desired)
{ (void)desired; deps->is_open = true; det_worker_count(context, "turns", 1); return 0; }
static int valve_open(struct det_worker_context *context, struct valve_deps *deps)
{ (void)context; deps->is_open = false; return 0; }
static void valve_close(struct valve_deps *deps) { deps->is_open = false; }
static int begin(const struct det_module_settings *settings, void **ret, struct det_error *reterr)
{ (void)settings; (void)reterr; *ret = &house; return 0; }
DET_MODULE("valve", DET_MODULE_WORKERS(&valve_kind), .open = begin);
"""
PLANT = """version: 1
workers:
  name: plant
  modules: {module}
  children:
    - {{name: a, kind: {kind}, config: {{place: here}}}}
"""


def build_valve(code=VALVE_CODE):
    Path("valve.worker").write_text(VALVE)
    Path("valve.c").write_text(code)
    done = subprocess.run(
        [COMPILER, "-std=c17", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{INCLUDE}",
         "-I.", "valve.c", "-o", "valve.so"], capture_output=True, text=True, timeout=PATIENCE,
        check=False)
    check(done.returncode == 0, done.stderr[:800])
    os.chmod("valve.so", 0o755)


def test_kinds_of_workers_come_from_a_module():
    build_valve()
    Path("detent.yaml").write_text(PLANT.format(module="./valve.so", kind="valve"))
    detent("check", "detent.yaml")
    it = Up()
    it.wait_for("state_transition .*a\\(valve\\) .*to=open ")
    observed = one("observed", "a")
    equal((observed["observed"], observed["metrics"]),
          ({"is_open": True, "module_was_opened": True}, {"turns": 1}))
    Path("detent.yaml").write_text(PLANT.format(module="./valve.so", kind="vlave"))
    detent("reload", code=2, err=[":6:23: ", "did you mean 'valve'?", "nothing was changed"])
    it.stop()
    # Kinds of a module are known when it is loaded.
    detent("check", "detent.yaml")
    detent("up", code=2, err=["detent.yaml:6:23", "did you mean 'valve'?"])


def test_modules_without_kinds_are_refused():
    build_valve(VALVE_CODE.replace("DET_MODULE_WORKERS(&valve_kind), ", ""))
    Path("detent.yaml").write_text(PLANT.format(module="./valve.so", kind="valve"))
    detent("up", code=1, err="no machines, workers or flows")
    Path("detent.yaml").write_text(PLANT.format(module="./other.so", kind="valve"))
    detent("check", "detent.yaml", code=2, err="other.so")
    build_valve(VALVE_CODE.replace("valve_kind)", "valve_kind, &valve_kind)"))
    Path("detent.yaml").write_text(PLANT.format(module="[./valve.so]", kind="valve"))
    detent("up", code=4, err="valve")
    os.chmod("valve.so", 0o777)
    detent("check", "detent.yaml", code=2, err="everybody may write to it")


# What its functions do is said by the place of the worker: `crash WHERE HOW` in a file there.
RISKY_CODE = VALVE_CODE.replace("static int house;", """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int house;
static void risk(const char *function, const char *place)
{
    char where[16] = "", how[16] = "";
    FILE *file = fopen(place, "r");
    if (!file || fscanf(file, "%15s %15s", where, how) != 2 || strcmp(where, function) != 0) {
        if (file)
            fclose(file);
        return;
    }
    fclose(file);
    signal(SIGSEGV, SIG_DFL); /* a sanitizer has one of its own */
    if (strcmp(how, "null") == 0)
        *(volatile int *)0 = 1;
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "exit") == 0)
        exit(7);
    while (strcmp(how, "hang") == 0)
        pause();
}
""").replace("    (void)desired;\n    observed->",
             '    risk("collect", desired->place);\n    observed->').replace(
                 "{ (void)desired; deps->is_open = true; det_worker_count",
                     '{ risk("act", desired->place); deps->is_open = true; det_worker_count')
ISOLATED = """version: 1
workers:
  name: plant
  limits: {{tick: 20ms, observe_every: 50ms, observe_timeout: {span}s, action_timeout: {span}s,
           stale_after: {stale}s, collector_timeout: {gone}s}}
  modules: {{path: ./valve.so, isolate: process}}
  children:
    - {{name: a, kind: valve, config: {{place: {folder}/a}}}}
    - {{name: b, kind: valve, config: {{place: {folder}/b}}}}
"""


def isolated(**crashes):
    build_valve(RISKY_CODE)
    span = patience.stretch(2)
    for name, crash in crashes.items():
        Path(name).write_text(crash)
    Path("detent.yaml").write_text(ISOLATED.format(
        folder=os.getcwd(), span=span, stale=span + 8, gone=span + 18))
    detent("check", "detent.yaml")
    return Up()


def hosts(it):
    """The processes of workers, and nothing else, have detent as their parent and this name."""
    done = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(it.number)],
                          capture_output=True, text=True, timeout=PATIENCE, check=False)
    return [int(line.split()[0]) for line in done.stdout.splitlines() if "detent-kind" in line]


def test_isolated_kind_has_one_process_per_worker():
    it = isolated()
    for name in "ab":
        it.wait_for(f"state_transition .*{name}\\(valve\\) .*to=open ")
    equal(len(hosts(it)), 2)
    observed = one("observed", "a")
    equal((observed["observed"], observed["metrics"]),
          ({"is_open": True, "module_was_opened": True}, {"turns": 1}))
    left = hosts(it)
    it.stop()
    check(not any(up.is_there(number) for number in left), "a process is left")


def test_a_crash_of_an_isolated_kind_ends_its_process_alone():
    for where, how, word in (("act", "null", "signal 11"), ("collect", "abort", "signal 6"),
                             ("act", "exit", "exit code 7"), ("act", "hang", "signal 9")):
        it = isolated(a=f"{where} {how}")
        it.wait_for("state_transition .*b\\(valve\\) .*to=open ")
        it.wait_for(f"worker=plant.*a\\(valve\\).*its process .*{word}")
        # Once more, after a delay; then it is put right, and the worker goes on by itself.
        if where == "act":
            it.wait_for(f"action_failed .*a\\(valve\\).*its process .*{word}.* number=2 ")
            check(one("workers", "a")["counts"]["actions_failed"] >= 2, "they are not counted")
        Path("a").unlink()
        it.wait_for("state_transition .*a\\(valve\\) .*to=open ")
        equal((one("workers", "b")["counts"]["actions_failed"], it.process.poll()), (0, None))
        it.stop()


def test_kill_9_of_detent_ends_the_processes_of_isolated_kinds():
    it = isolated()
    it.wait_for("state_transition .*a\\(valve\\) .*to=open ")
    left = hosts(it)
    it.process.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(up.is_there(number) for number in left), "their ends")


HANG = CODE.replace('return log_line("ring") ? DET_ERR_IO : DET_EFFECT_PRODUCED;',
                    'log_line("hangs"); for (;;) pause(); return 0;').replace(
                        "#include <string.h>", "#include <string.h>\n#include <unistd.h>")


def hang(limits):
    project(limits)
    build(HANG)
    it = begin()
    detent("start", "door", "d-1")
    detent("send", "d-1", "push", "--data", '{"force": 50}')
    wait_until(lambda: Path("log").exists() and "hangs" in Path("log").read_text(), "it hangs")
    return it


def test_a_stop_ends_at_its_deadline_while_code_of_a_module_hangs():
    it = hang("limits: {shutdown: 1ms}\n")
    it.send(signal.SIGTERM)
    it.process.wait(PATIENCE)
    it.join()
    equal(it.process.returncode, 5)
    check(any("the stop timed out: durable slots and machines wait for the store, or an "
              "effect runs" in line for line in it.talk), it.shown())
    # The next one runs the effect again.
    build()
    it = begin()
    wait_until(lambda: "ring" in Path("log").read_text(), it.shown)
    it.stop()


def test_second_signal_exits_while_module_code_hangs():
    it = hang("")
    it.send(signal.SIGTERM)
    it.wait_for("repeat to kill them")
    begun = patience.time.monotonic()
    wait_until(lambda: patience.time.monotonic() - begun > 0.4, "some time")
    it.send(signal.SIGTERM)
    begun = patience.now()
    it.process.wait(PATIENCE)
    check(patience.now() - begun < 5, "it took too long")
    it.join()
    equal(it.process.returncode, 5)


if __name__ == "__main__":
    sys.exit(up.main(globals()))
