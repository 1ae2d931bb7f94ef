#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""What is left of the tasks when `detent up` is killed, and what the next one does about it.

    orphans.py DETENT NASTY_CHILD [PART_OF_A_NAME]

The contract: attempt n+1 never starts while attempt n lives. The frame is that of up.py.
"""
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
# pylint: disable=wrong-import-position
import up  # noqa: E402
from machines import carried_parcel  # noqa: E402
from up import (DETENT, GUARD, Up, all_children_of, check, environment, equal, is_there, name_of,
                wait_until)  # noqa: E402

RECORD = Path(".detent/processes")
BOOT = 8
SLOT = 512
# Writes its number into a file of its own, then stays.
STAY = "[sh, -c, 'echo $$ > {0}.new; mv {0}.new {0}; exec sleep 600']"
# A grandchild in a session of its own; it outlives its parent and ignores SIGTERM and SIGHUP.
LEAVE = ("[sh, -c, 'setsid {1}sh -c \"trap : TERM HUP; echo \\$\\$ > {0}.new; mv {0}.new {0}; "
         "while :; do sleep 600; done\" & exec sleep 600']")


def number_in(name):
    path = Path(name)
    wait_until(path.exists, f"{name}, the number of a process")
    return int(path.read_text())


def guard_of(number):
    return wait_until(lambda: next((n for n in all_children_of(number) if name_of(n) == GUARD), 0),
                      "its guard")


def kill(number):
    os.kill(number, signal.SIGKILL)


def gone(*numbers):
    wait_until(lambda: not any(is_there(n) for n in numbers), f"the end of {numbers}")


def forget(*names):
    for name in names:
        Path(name).unlink()


def kill_all(one, *more):
    """The supervisor and others, in an instant: none sees the other's end."""
    numbers = [one.number, *more]
    for number in numbers:
        os.kill(number, signal.SIGSTOP)
    for number in reversed(numbers):
        kill(number)
    one.process.wait()


def crash(one):
    kill(one.number)
    one.process.wait()


def test_tasks_die_with_a_detent_that_is_killed():
    up.config(f"  a: {{run: {STAY.format('a')}}}\n  b: {{run: {STAY.format('b')}}}\n")
    one = Up()
    numbers = number_in("a"), number_in("b")
    crash(one)
    gone(*numbers)
    forget("a", "b")
    two = Up()
    check(number_in("a") not in numbers, "it was started again")
    two.stop()
    check("left running" not in two.shown(), two.shown())
    equal(RECORD.stat().st_size, 0)
    equal(RECORD.stat().st_mode & 0o777, 0o600)


def test_port_is_free_after_a_killed_daemon():
    """The server that failed for ever on the port of its own orphan."""
    script = Path("server.py")
    script.write_text("import os, socket, sys, time\n"
                      "s = socket.socket(socket.AF_UNIX)\n"
                      "s.bind('\\0' + sys.argv[1])\n"
                      "print('bound', flush=True)\n"
                      "time.sleep(600)\n")
    name = f"detent-orphans-{os.getpid()}"
    up.config(f"  web: {{run: [{sys.executable}, server.py, {name}], restart: never}}\n")
    for _ in range(5):
        one = Up()
        one.wait_for("web .*bound")
        crash(one)
    one = Up()
    one.wait_for("web .*bound")
    one.stop()


def test_grandchildren_die_too_also_those_that_left_their_session():
    up.config(f"  a: {{run: {LEAVE.format('a', '')}}}\n")
    one = Up()
    number = number_in("a")
    check(os.getsid(number) != os.getsid(one.number), "it has a session of its own")
    crash(one)
    gone(number)


def test_process_with_a_cleared_environment_dies_with_its_cgroup():
    up.config(f"  a: {{run: {LEAVE.format('a', 'env -i PATH=$PATH ')}}}\n")
    one = Up()
    number = number_in("a")
    cgroup = RECORD.read_bytes()[112:SLOT].rstrip(b"\0").decode()
    if not cgroup:
        print("skipped: there is no cgroup that we may make children of")
        one.stop()
        return
    crash(one)
    gone(number)
    wait_until(lambda: not os.path.exists(cgroup), "the end of the cgroup")


def test_killed_guard_process_is_replaced():
    up.config(f"  a: {{run: {LEAVE.format('a', '')}}}\n")
    one = Up()
    number = number_in("a")
    guard = guard_of(one.number)
    kill(guard)
    one.wait_for("the guard process was killed")
    check(guard_of(one.number) != guard, "it is another")
    crash(one)
    gone(number)


def test_next_start_ends_leftovers_if_the_guard_was_killed_too():
    up.config(f"  a: {{run: {LEAVE.format('b', '')}}}\n  c: {{run: {STAY.format('c')}}}\n",
              "limits: {shutdown: 1s}\n")
    one = Up()
    left, tied = number_in("b"), number_in("c")
    kill_all(one, guard_of(one.number))
    # The kernel ends the child itself; nobody ends what has left it.
    gone(tied)
    check(is_there(left), "nobody was there to end it")
    forget("b", "c")
    two = Up()
    number_in("c")
    check(not is_there(left), "it still lives while the next attempt runs")
    two.wait_for(f"ending process {left} \\(sh\\), left running by an earlier detent")
    two.stop()


def test_kept_process_is_ended_by_the_next_daemon():
    up.config(f"  a: {{run: {STAY.format('a')}, ends_with_us: false}}\n"
              f"  b: {{run: {STAY.format('b')}}}\n")
    one = Up()
    kept, tied = number_in("a"), number_in("b")
    guard = guard_of(one.number)
    crash(one)
    gone(tied, guard)
    check(is_there(kept), "it goes on")
    forget("a")
    two = Up()
    check(number_in("a") != kept, "it was started again")
    check(not is_there(kept), "it still lives while the next attempt runs")
    two.wait_for(f"ending process {kept} \\(sh -c echo .*\\), left running by an earlier detent")
    two.stop()
    gone(int(Path("a").read_text()))


def test_stop_also_ends_kept_processes():
    up.config(f"  a: {{run: {STAY.format('a')}, ends_with_us: false}}\n")
    one = Up()
    number = number_in("a")
    one.stop()
    check(not is_there(number), "it still lives")


def change_record(offset, data):
    with RECORD.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def kept_task():
    """A task that outlives its detent."""
    up.config(f"  a: {{run: {STAY.format('a')}, ends_with_us: false}}\n")
    one = Up()
    number = number_in("a")
    guard = guard_of(one.number)
    crash(one)
    gone(guard)
    forget("a")
    return number


def test_reused_process_number_is_not_killed():
    kept = kept_task()
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        slots = RECORD.read_bytes()[SLOT:]
        at = next(i for i in range(0, len(slots), 64)
                  if struct.unpack_from("II", slots, i) == (2, kept))
        # The record names the number of somebody else, who has started at another time.
        change_record(SLOT + at + 4, struct.pack("I", stranger.pid))
        two = Up()
        number_in("a")
        check(is_there(stranger.pid), "a stranger was killed")
        two.stop()
        check(is_there(stranger.pid), "a stranger was killed")
    finally:
        stranger.kill()
        stranger.wait()
    # It was found by its environment.
    gone(kept)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def test_record_from_before_a_reboot_kills_nothing():
    """The boot id is another: what has the numbers of the record now is somebody else's."""
    kept = kept_task()
    change_record(BOOT, b"00000000-0000-0000-0000-000000000000")
    data = RECORD.read_bytes()
    change_record(104, struct.pack("I", crc32c(data[:104] + data[112:SLOT])))
    two = Up()
    number_in("a")
    check(is_there(kept), "it was ended, but the record is of another boot")
    two.stop()
    kill(kept)


def test_damaged_record_is_refused_with_a_message():
    kept = kept_task()
    change_record(60, b"\xff")
    done = subprocess.run([DETENT, "up"], env=environment(), capture_output=True, text=True,
                          timeout=up.PATIENCE, check=False)
    check(done.returncode != 0 and "is damaged; find such processes with ps" in done.stderr,
          done.stderr)
    check(not Path("a").exists() and is_there(kept), "it was started a second time")
    # One from before the boot says nothing about now.
    os.utime(RECORD, (1, 1))
    two = Up()
    number_in("a")
    two.stop()
    kill(kept)


def test_a_second_detent_in_another_folder_is_left_alone():
    for name in ("one", "two"):
        Path(name).mkdir()
    numbers = []
    runs = []
    for name in ("one", "two"):
        os.chdir(name)
        up.config(f"  a: {{run: {LEAVE.format('a', '')}}}\n")
        runs.append(Up())
        numbers.append(number_in("a"))
        os.chdir("..")
    crash(runs[0])
    gone(numbers[0])
    os.chdir("one")
    forget("a")
    again = Up()
    number_in("a")
    again.stop()
    check(is_there(numbers[1]), "the other's task was killed")
    os.chdir("../two")
    runs[1].stop()
    gone(numbers[1])
    os.chdir("..")


def test_a_detent_below_another_dies_with_all_it_has_started():
    Path("below").mkdir()
    os.chdir("below")
    up.config(f"  a: {{run: {LEAVE.format('a', '')}}}\n")
    os.chdir("..")
    up.config(f"  inner: {{run: [{DETENT}, up, ./below], environment: {{DETENT_LISTEN: none}}}}\n")
    one = Up()
    number = number_in("below/a")
    crash(one)
    gone(number)


def test_processes_of_workers_and_what_they_start_die_too():
    Path("detent.yaml").write_text(
        "version: 1\nworkers:\n  name: plant\n  children:\n    - name: p\n      kind: process\n"
        f"      config: {{folder: {os.getcwd()}, argv: {LEAVE.format('a', '')}}}\n")
    one = Up()
    number = number_in("a")
    kill_all(one)
    gone(number)


def test_commands_of_effects_and_what_they_start_die_too():
    one = carried_parcel(f"{{command: {LEAVE.format('a', '')}, timeout: 10m}}")
    number = number_in("a")
    crash(one)
    gone(number)


if __name__ == "__main__":
    sys.exit(up.main(globals()))
