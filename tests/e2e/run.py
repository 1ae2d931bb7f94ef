#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs the program end to end.

    run.py DETENT SOURCE_TREE C_COMPILER [--library=FILE] [PART_OF_A_NAME]

With the static library, what the program generates is linked and run, too.

Each function whose name starts with `test_` is one test and gets a fresh folder as its current one.
"""
import fcntl
import inspect
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "lib"))
from patience import HANG, now, wait  # noqa: E402  pylint: disable=wrong-import-position
from terminal import Terminal  # noqa: E402  pylint: disable=wrong-import-position

DETENT = str(Path(sys.argv[1]).resolve())
TREE = Path(sys.argv[2]).resolve()
COMPILER = sys.argv[3]
LIBRARY = next((w.partition("=")[2] for w in sys.argv[4:] if w.startswith("--library=")), None)
WANTED = next((w for w in sys.argv[4:] if not w.startswith("--")), "")
ESCAPE = "\033"

LIGHT = """#define FSM_NAME light
#define FSM_PREFIX LIGHT
STATE(RED, red, INITIAL)
STATE(GREEN, green)
EVENT(GO, go)
INTERNAL(STOPPING, stopping)
ON(RED, GO, GREEN)
ON(GREEN, STOPPING, RED)
AFTER(GREEN, SECONDS(30), STOPPING)
"""
CASES = """machine: light.fsm
cases:
  - name: green lasts half a minute
    steps:
      - {send: go, expect: {state: green, timeout: 30s}}
      - {advance: 30s, expect: {state: red}}
"""


class Failure(Exception):
    """What did not hold."""


# What the address sanitizer says once of a program with fibers.
SANITIZER = re.compile(r"^==\d+==WARNING: ASan doesn't fully support makecontext.*\n", re.MULTILINE)


def detent(*words, code=0, stdin="", env=None, out=None, err=None, text=True):
    """Runs the program; checks its exit code and, if given, parts of what it printed."""
    full = {"PATH": os.environ["PATH"], "HOME": os.getcwd(), "TERM": "xterm",
            "DETENT_LISTEN": "none", **(env or {})}
    done = subprocess.run([DETENT, *words], input=stdin, env=full, timeout=HANG,
                          capture_output=True, text=text, check=False)
    if text:
        done.stderr = SANITIZER.sub("", done.stderr)
    shown = f"detent {' '.join(words)}\n--- stdout\n{done.stdout}\n--- stderr\n{done.stderr}"
    if done.returncode != code:
        raise Failure(f"exit code {done.returncode}, not {code}: {shown[:3000]}")
    for name, wanted, found in (("stdout", out, done.stdout), ("stderr", err, done.stderr)):
        for part in [wanted] if isinstance(wanted, str) else wanted or []:
            if part not in found:
                raise Failure(f"{name} has no {part!r}: {shown[:3000]}")
    return done


def check(condition, text="it does not hold"):
    if not condition:
        raise Failure(text)


def equal(found, wanted):
    check(found == wanted, f"found:\n{found}\nwanted:\n{wanted}")


def objects(done):
    """The JSON Lines of the output."""
    return [json.loads(line) for line in done.stdout.splitlines()]


def write(path, text):
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if isinstance(text, bytes):
        Path(path).write_bytes(text)
    else:
        Path(path).write_text(text)


def compiles(path, *folders):
    """Whether the file compiles without a warning, these folders being on the include path."""
    includes = [f"-I{folder}" for folder in (*folders, TREE / "include")]
    done = subprocess.run([COMPILER, "-std=c17", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                           *includes, str(path)], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"{path}: {done.stderr[:2000]}")


def on_terminal(*words, env=None, columns=0):
    """What the program prints when its output is a terminal; one of 0 columns does not say."""
    full = {"PATH": os.environ["PATH"], "TERM": "xterm", **(env or {})}
    terminal = Terminal([DETENT, *words], full, columns=columns)
    code = terminal.end()
    check(code >= 0, f"ended by signal {-code}: {terminal.text()}")
    return terminal.text()


# The frame.

def test_missing_command_prints_usage_and_fails():
    done = detent(code=2, err=["usage: detent COMMAND", "check", "diagram"])
    equal(done.stdout, "")


def test_help_is_for_every_command_and_topic():
    listed = [o["name"] for o in objects(detent("help", "--json"))]
    check({"new", "check", "fmt", "diagram", "test", "sim", "scenario", "gen", "diff", "replay",
           "migrate", "start", "send", "get", "list", "history", "watch", "why", "timers", "locks",
           "cancel", "retry", "store", "up", "serve", "status", "console", "limits", "notify",
           "tree", "workers", "worker", "desired", "observed", "dump", "tasks", "slots", "logs",
           "submit", "doctor", "jobs", "restart", "drain", "stop", "flow", "journal", "reload",
           "token", "backoff", "version", "help", "completion"} == set(listed),
          str(listed))
    for name in listed:
        one = detent("help", name, out=["usage: detent " + name, "--json", "--color"])
        equal(detent(name, "--help").stdout, one.stdout)
    detent("help", out="usage: detent COMMAND")
    detent("--help", out="usage: detent COMMAND")
    detent("-h", out="usage: detent COMMAND")
    detent("help", "rows", out=["STATE(NAME, wire", "WITHIN(DURATION", "OVERRIDE and their ELSE"])
    detent("help", "rules", out=["duplicate-transition", "unreachable", "first-state",
                                 "Rules about the C source of a worker", "action-retry"])
    detent("help", "rows", out=["ACTION(NAME, wire[, TIMEOUT(DURATION)])", "STOP(STATE)"])
    detent("help", "exit", out="130")
    check(len(objects(detent("help", "rows", "--json"))) > 30)
    check(all(o["severity"] in ("error", "warning", "info")
              for o in objects(detent("help", "rules", "--json"))))
    equal([o["code"] for o in objects(detent("help", "exit", "--json"))],
          [0, 1, 2, 3, 4, 5, 6, 74, 130])
    detent("help", "chekc", code=2, err="did you mean 'check'?")
    detent("help", "ruls", code=2, err="did you mean 'rules'?")
    detent("help", "xyzzy", code=2, err="there is no help for 'xyzzy'")


def test_unknown_commands_get_the_nearest():
    detent("chekc", code=2, err="did you mean 'check'?")
    detent("frobnicate", code=2, err="'detent help' lists them")
    detent("backup", "x.db", code=2, err="no command 'backup'; did you mean 'detent store backup'?")
    detent("format", "x.fsm", code=2, err="no command 'format'; did you mean 'fmt'?")
    detent("help", "format", code=2, err="no help for 'format'; did you mean 'fmt'?")
    detent("--json", "check", "x.fsm", code=2,
           err="options follow the command: detent check --json ...")
    detent("--color", "never", "fmt", code=2, err="follow the command: detent fmt --color ...")
    detent("--strict", code=2, err="options follow a command: detent COMMAND --strict ...")
    detent("check", "--stict", "x", code=2, err=["did you mean --strict?", "detent help check"])
    detent("check", code=2, err="an argument is missing: detent check FILE|FOLDER...")
    detent("version", "x", code=2, err="unexpected argument 'x'")
    detent("diagram", "x", "--format", "png", code=2, err="--format must be one of")
    detent("diagram", "x", "-f", "mermiad", code=2, err="got 'mermiad'; did you mean 'mermaid'?")
    detent("completion", "bsh", code=2, err="use bash, zsh or fish; did you mean 'bash'?")
    detent("gen", "jsn", "x", code=2,
           err="unknown output 'jsn': use c, json or promela; did you mean 'json'?")
    detent("sim", "x", "--seeds", "0", code=2, err="from 1 to")
    detent("bad\033[31m\nword", code=2, err="bad\\x1b[31m")


def test_a_file_of_the_wrong_kind_gets_the_right_command():
    write("light.fsm", LIGHT)
    write("light.test.yaml", CASES)
    detent("test", "light.fsm", code=2, err="this is a spec: detent check light.fsm")
    for words in (["check"], ["fmt"], ["diagram"], ["sim"], ["gen", "c"]):
        detent(*words, "light.test.yaml", code=2,
               err="these are test cases: detent test light.test.yaml")
    detent("light.fsm", code=2, err="is a spec, not a command: detent check light.fsm")
    detent("light.test.yaml", code=2,
           err="is a test file, not a command: detent test light.test.yaml")


def test_version():
    done = detent("version")
    check(re.fullmatch(r"detent \d+\.\d+\.\d+\n", done.stdout))
    for word in ("--version", "-V", "-v"):
        equal(detent(word).stdout, done.stdout)
    equal(objects(detent("version", "--json"))[0]["version"], done.stdout.split()[1])


def test_color_is_used_on_terminals_and_on_demand():
    write("light.fsm", LIGHT.replace("GO, GREEN", "GO, GREN"))
    check(ESCAPE not in detent("check", "light.fsm", code=2).stdout)
    check(ESCAPE in detent("check", "light.fsm", "--color=always", code=2).stdout)
    check(ESCAPE in on_terminal("check", "light.fsm"))
    check(ESCAPE not in on_terminal("check", "light.fsm", "--color", "never"))
    check(ESCAPE not in on_terminal("check", "light.fsm", env={"NO_COLOR": "1"}))
    check(ESCAPE not in on_terminal("check", "light.fsm", env={"TERM": "dumb"}))


def test_lines_fit_the_terminal():
    write("light.fsm", LIGHT + "HOOK(a_hook_with_quite_a_long_name)\nON(RED, GO, RED, "
          "CALL(a_hook_with_quite_a_long_name), DO(an_effect_that_is_not_there), ARM(nothing))\n")
    for columns in (40, 80, 120):
        for name in ("new", "check", "fmt", "diagram", "test", "sim", "gen", "up", "notify",
           "backoff",
                     "completion"):
            lines = on_terminal("help", name, columns=columns, env={"NO_COLOR": "1"}).splitlines()
            wide = [line for line in lines[3:] if len(line) > max(columns, 60)]
            equal((name, columns, wide), (name, columns, []))
        text = on_terminal("check", "light.fsm", columns=columns, env={"NO_COLOR": "1"})
        sources = [line for line in text.splitlines() if re.match(r" *\d* \| ", line)]
        check(len(sources) > 4 and all(len(line) <= columns for line in sources), text)
    check(all(len(line) < 80 for line in detent("help", "test").stdout.splitlines()))


def test_output_that_cannot_be_written_is_a_failure():
    write("light.fsm", LIGHT)
    for words in (["help"], ["version"], ["version", "--json"], ["diagram", "light.fsm"],
                  ["completion", "bash"], ["help", "rules", "--json"],
                  ["gen", "json", "light.fsm"]):
        with open("/dev/full", "w", encoding="utf8") as full:
            done = subprocess.run([DETENT, *words], stdout=full, stderr=subprocess.PIPE, text=True,
                                  check=False)
        equal(done.returncode, 1)
        check("No space left" in done.stderr, done.stderr)
        shell = f'exec "{DETENT}" {" ".join(words)} >&-'
        done = subprocess.run(["bash", "-c", shell], stderr=subprocess.PIPE, text=True, check=False)
        equal(done.returncode, 1)
        check("cannot write" in done.stderr, done.stderr)


def test_closed_pipe_ends_the_program_quietly():
    shell = f'"{DETENT}" help rules | head -1; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
    check(done.stdout.splitlines()[-1] in ("0", "1"), done.stdout)
    equal(done.stderr, "")
    write("light.fsm", LIGHT)
    shell = f'"{DETENT}" sim light.fsm --seeds 1000000 --steps 50 --json | head -1 >/dev/null; ' \
            'echo "${PIPESTATUS[0]}"'
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False,
                          timeout=HANG)
    equal(done.stdout, "1\n")


def test_interrupt_ends_with_130():
    write("light.fsm", LIGHT)
    process = subprocess.Popen([DETENT, "sim", "light.fsm", "--seeds", "1000000", "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANG)
    equal(process.returncode, 130)


def test_interrupted_write_ends_with_130_quietly():
    write("light.fsm", LIGHT)
    for number in range(60):
        detent("start", "light.fsm", f"l-{number}", "--store", "sqlite:a.db")
    for words in (["help", "rules"], ["store", "export", "--store", "sqlite:a.db"]):
        reader, writer = os.pipe()
        size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        check(len(detent(*words).stdout) > size + 4096)
        process = subprocess.Popen([DETENT, *words], stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        pid = process.pid
        check(wait(lambda: waits_in_write(pid, reader, size)), "the pipe is not full")
        process.send_signal(signal.SIGINT)
        process.wait(HANG)
        equal((words, process.returncode, process.stderr.read()), (words, 130, b""))
        os.close(reader)


def waits_in_write(process, reader, size):
    unread = int.from_bytes(fcntl.ioctl(reader, termios.FIONREAD, b"\0" * 4), sys.byteorder)
    state = Path(f"/proc/{process}/stat").read_text(encoding="utf8").rpartition(")")[2].split()[0]
    return unread == size and state == "S"


def test_every_command_prints_json():
    table = (TREE / "src/program/commands/commands.def").read_text()
    # All but man, which is for the build, and kind_host, which detent starts.
    commands = len(re.findall(r"^CLI_COMMAND\((?!man\)|kind_host\))", table, flags=re.M))
    write("light.fsm", LIGHT)
    write("light.test.yaml", CASES)
    write("broken.fsm", LIGHT + "ON(RED, GO, RED)\n")
    write("broken.test.yaml", "machine: light.fsm\ncases: [{}, {name: x, steps: [{}]}]\n")
    write("worse.test.yaml", CASES.replace("light.fsm", "broken.fsm"))
    write("syntax.fsm", "STATE(\n")
    for words, types, code in (
            (["check", "light.fsm"], ["summary"], 0),
            (["check", "broken.fsm"], ["finding", "summary"], 2),
            (["fmt", "light.fsm"], ["file"], 0), (["fmt", "--check", "light.fsm"], ["file"], 1),
            (["fmt", "-w", "light.fsm"], ["file"], 0), (["fmt", "syntax.fsm"], ["problem"], 2),
            (["diagram", "light.fsm"], ["text"], 0),
            (["diagram", "light.fsm", "-f", "svg"], ["text"], 0),
            (["diagram", "light.fsm", "-o", "x"], ["file"], 0),
            (["diagram", "broken.fsm"], ["finding"], 2),
            (["test", "light.test.yaml"], ["case", "coverage", "summary"], 0),
            (["test", "broken.test.yaml"], ["problem", "problem", "summary"], 2),
            (["test", "worse.test.yaml"], ["finding", "summary"], 2),
            (["sim", "light.fsm", "--seed", "1"], ["seed", "coverage", "summary"], 0),
            (["sim", "broken.fsm"], ["finding"], 2), (["gen", "json", "light.fsm"], ["machine"], 0),
            (["gen", "json", "light.fsm", "-o", "out"], ["file"], 0),
            (["gen", "promela", "light.fsm"], ["text"], 0),
            (["gen", "promela", "light.fsm", "-o", "out"], ["file"], 0),
            (["gen", "c", "light.fsm"], ["file", "file"], 0),
            (["gen", "c", "broken.fsm"], ["finding"], 2), (["new", "job"], ["file"] * 4, 0),
            (["new", "job"], ["file"] * 4, 4), (["version"], ["version"], 0),
            (["backoff", "--attempts", "2"], ["attempt", "attempt", "summary"], 0),
            (["help"], ["command"] * commands, 0), (["help", "test"], ["command"], 0),
            (["help", "exit"], ["exit"] * 9, 0), (["completion", "bash"], ["text"], 0),
            (["man"], ["text"], 0)):
        done = detent(*words, "--json", code=code)
        equal((words, [o["type"] for o in objects(done)]), (words, types))
        if code == 0:
            equal((words, done.stderr), (words, ""))
    problem = objects(detent("fmt", "syntax.fsm", "--json", code=2))[0]
    equal((problem["file"], problem["line"]), ("syntax.fsm", 2))
    about = objects(detent("help", "diagram", "--json"))[0]
    check("Mermaid" in about["about"])
    check({"name": "color", "help": "use color: auto, always or never", "argument": "WHEN",
           "choices": "auto always never"} in about["options"], str(about))


# check

def test_check_accepts_valid_files():
    write("light.fsm", LIGHT)
    done = detent("check", "light.fsm", err="1 definition checked: ok")
    equal(done.stdout, "")
    detent("check", "-", stdin=LIGHT, err="1 definition checked: ok")
    equal(objects(detent("check", "light.fsm", "--json")),
          [{"type": "summary", "ok": True, "definitions": 1, "errors": 0, "warnings": 0,
            "unread": 0}])


def test_check_counts_files_that_it_could_not_read():
    write("light.fsm", LIGHT)
    write("large.fsm", LIGHT + "\n" * 300000)
    detent("check", "light.fsm", "large.fsm", code=2,
           err=["larger than 256 KiB", "0 warnings; 1 file could not be read"])
    detent("check", "none.fsm", code=3, err="1 file could not be read")


def test_check_shows_the_place_the_line_and_the_rule():
    write("light.fsm", LIGHT + "ON(RED, GO, RED)\n")
    done = detent("check", "light.fsm", code=2, err="1 error, 0 warnings")
    equal(done.stdout, """light.fsm:10:4: error: RED on GO is already a transition of light: \
to GREEN [duplicate-transition]
   10 | ON(RED, GO, RED)
      |    ^~~
light.fsm:7:4: note: first said here
    7 | ON(RED, GO, GREEN)
      |    ^~~
      = hint: write OVERRIDE(RED, GO, RED) if that is intended
""")
    finding = objects(detent("check", "light.fsm", "--json", code=2))[0]
    equal((finding["rule"], finding["severity"]), ("duplicate-transition", "error"))
    equal((finding["place"]["line"], finding["place"]["column"]), (10, 4))
    equal(finding["other"]["line"], 7)
    detent("check", "-", stdin="STAT(A, a)\n", code=2, out=["<stdin>:1:1: error:", "[unknown-row]"])


def test_one_mistake_is_reported_once_with_a_suggestion():
    for right, wrong, hint in (("INITIAL", "INTIAL", "INITIAL"), ("STATE(R", "STAET(R", "STATE"),
                               ("SECONDS(30)", "SECS(30)", "SECONDS(30)"),
                               ("ON(GREEN", "on(GREEN", "ON"), ("FSM_NAME", "FSM_NAEM", "FSM_NAME"),
                               ("ON(GREEN, STOPPING", "ON(GREEN, STOPING", "STOPPING")):
        write("light.fsm", LIGHT.replace(right, wrong))
        detent("check", "light.fsm", code=2, out=f"= hint: did you mean {hint}?",
               err=": 1 error, 0 warnings")
    for right, wrong in (("STATE(RED, red", "STATE(RED red"), ("EVENT(GO, go)", "EVENT(GO, go"),
                         ("EVENT(GO, go)", "EVENT GO, go)"), ("STATE(RED, red", "STATE(, red")):
        write("light.fsm", LIGHT.replace(right, wrong))
        detent("check", "light.fsm", code=2, err=": 1 error, 0 warnings")
    write("light.fsm", LIGHT.replace("#define FSM_PREFIX LIGHT", ""))
    detent("check", "light.fsm", code=2, out="= hint: add the line: #define FSM_PREFIX LIGHT\n")
    equal(objects(detent("check", "light.fsm", "--json", code=2))[0]["hint"],
          "add the line: #define FSM_PREFIX LIGHT")


def test_wrong_name_in_a_list_is_reported_at_its_definition():
    write("light.fsm", LIGHT + "#define LIGHT_ALL RED, GREN\nEVENT(OFF, off)\n"
          "STOP(ANY(LIGHT_ALL), OFF)\nGROUP(all, LIGHT_ALL)\n")
    done = detent("check", "light.fsm", code=2, err="1 error")
    equal(done.stdout, "light.fsm:10:24: error: GREN is not a state of light [unknown-state]\n"
          "   10 | #define LIGHT_ALL RED, GREN\n      |                        ^~~~\n"
          "light.fsm:12:10: note: the list is used here\n   12 | STOP(ANY(LIGHT_ALL), OFF)\n"
          "      |          ^~~~~~~~~\n      = hint: did you mean GREEN?\n")


def test_check_strict_makes_warnings_fail():
    write("light.fsm", LIGHT + "GUARD(nobody)\n")
    detent("check", "light.fsm", out="warning:", err="0 errors, 1 warning")
    detent("check", "light.fsm", "--strict", code=2)


def test_check_unhandled_shows_a_matrix():
    write("light.fsm", LIGHT)
    done = detent("check", "--unhandled", "light.fsm")
    equal(done.stdout, "       go  stopping\nred    ->  .\ngreen  .   ->\n\n"
          "-> goes to a state, . is an error\n\n")
    rules = {o.get("rule", "")
             for o in objects(detent("check", "--unhandled", "light.fsm", "--json"))} - {""}
    equal(rules, {"unhandled-pair"})


POLICIES = LIGHT + """EVENT(LEND, lend)
EVENT(RING, ring)
EVENT(NOD, nod)
EVENT(OFF, off)
GUARD(is_late)
STAY(GREEN, ANY(LEND, RING, NOD))
STOP(GREEN, OFF, IF(is_late))
ELSE_STAY(GREEN, OFF)
UNHANDLED(LEND, DEFER)
UNHANDLED(RING, IGNORE)
UNHANDLED(NOD, DEAD_LETTER)
"""


def test_the_matrix_shows_policies_and_alternatives():
    write("light.fsm", POLICIES)
    equal(detent("check", "--unhandled", "light.fsm").stdout,
          """       go  stopping  lend   ring    nod   off
red    ->  .         defer  ignore  dead  .
green  .   ->        stay   stay    stay  stop+1

-> goes to a state, stay changes no state, stop ends the instance, . is an
error, ignore is forgotten, defer waits for another state, dead is a dead
letter, +1 counts ELSE rows

""")


def test_a_matrix_that_is_too_wide_is_a_list_by_state():
    write("light.fsm", POLICIES)
    words = ("check", "--unhandled", "light.fsm")
    plain = {"NO_COLOR": "1"}
    check("red    ->  .         defer  ignore  dead  .\n" in
          on_terminal(*words, env=plain, columns=48).replace("\r", ""))
    text = on_terminal(*words, env=plain, columns=24).replace("\r", "")
    equal(text.partition("\n\n")[0], """red
    ->      go
    .       stopping
            off
    defer   lend
    ignore  ring
    dead    nod
green
    .       go
    ->      stopping
    stay    lend ring
            nod
    stop+1  off""")
    check(max(len(line) for line in text.partition("definition")[0].splitlines()) <= 24)


def test_check_of_a_folder_skips_fragments_that_others_include():
    write("a/light.fsm", LIGHT.replace("ON(RED", '#include "part.fsm"\nON(RED'))
    write("a/part.fsm", "STATE(AMBER, amber)\nON(AMBER, GO, RED)\nON(GREEN, GO, AMBER)\n")
    done = detent("check", "a", err="1 definition checked: ok")
    equal(done.stdout, "")
    detent("check", "a/light.fsm", "a/part.fsm", err="a/part.fsm: note: a fragment")
    detent("check", "a/part.fsm", code=2, out="[no-name]")
    write("a/lonely.fsm", "STATE(X, x)\n")
    detent("check", "a", code=2, out="a/lonely.fsm:1:1: error:")


def test_folder_operand_includes_its_files():
    for folder in ("a", "a/b/c", "a/build", "a/node_modules/x", "a/.git"):
        write(folder + "/light.fsm", LIGHT)
        write(folder + "/light.test.yaml", CASES)
    write("a/b/c/light.fsm", LIGHT.replace("GO, GREEN", "GO, GREN"))
    write("a/b/ugly.rec", "RECORD( code )\nFIELD(x,u8)\nEND\n")
    os.symlink("..", "a/b/circle")
    detent("check", "a", code=2, out="a/b/c/light.fsm:7:13: error:", err="2 definitions checked: 1")
    done = detent("test", "a", code=2, out="ok      a/light.test.yaml: green lasts",
                  err=["a/b/c/light.fsm is not a valid", "1 case: 1 passed, 0 failed; 1 file not"])
    equal(done.stdout.count("ok  "), 1)
    equal(detent("fmt", "--check", "a", code=1).stdout.splitlines(),
          ["a/b/c/light.fsm", "a/b/ugly.rec", "a/light.fsm"])
    detent("fmt", "-w", "a")
    detent("fmt", "--check", "a")
    check(LIGHT == Path("a/build/light.fsm").read_text())
    os.chdir("a")
    detent("test", code=2, out="ok      light.test.yaml: ")
    detent("check", "build", "node_modules", err="2 definitions checked: ok")
    os.mkdir("empty")
    for command, kind in (("check", ".fsm, .worker, .flow or detent.yaml"), ("test", ".test.yaml"),
                          ("fmt", ".fsm, .worker, .flow or .rec")):
        detent(command, "empty", code=3, err=f"there is no {kind} file in empty or below it")
    detent("check", "build", "empty", code=3, err=["in empty or below", "1 definition checked"])


LAMP = """#define WORKER_NAME lamp
#define WORKER_PREFIX LAMP

STATE(OFF,      off,      STOPPED)
STATE(WARMING,  warming,  STARTING, STOP(OFF))
STATE(ON,       on,       RUNNING,  STOP(OFF))

ACTION(WARM_UP, warm_up)
"""
LAMP_C = """static struct lamp_next lamp_in_off(const struct lamp_view *view)
{
    return lamp_goto(LAMP_WARMING, "it gets dark");
}
static struct lamp_next lamp_in_warming(const struct lamp_view *view)
{
    if (view->observed->is_warm)
        return lamp_goto(LAMP_ON, "it is warm");
    return lamp_do(LAMP_WARM_UP, "it is cold");
}
"""


def test_a_worker_is_checked_with_its_source():
    write("w/lamp.worker", LAMP)
    detent("fmt", "--check", "w", code=1, out="w/lamp.worker")
    detent("fmt", "-w", "w")
    check("STATE(OFF,     off,     STOPPED)\n" in Path("w/lamp.worker").read_text())
    detent("check", "w", err="1 definition checked: ok")
    write("w/lamp.c", LAMP_C)
    detent("check", "w/lamp.worker", err="1 definition checked: ok")
    write("w/lamp.c", LAMP_C.replace('"it gets dark"', '""'))
    detent("check", "w", code=2, err="1 definition checked: 1 error", out=[
        "w/lamp.c:3:36: error: the reason is empty [reason-empty]", "= why:", "= right:"])
    found = objects(detent("check", "w", "--json", code=2))
    equal([o["type"] for o in found], ["remark", "summary"])
    equal((found[0]["rule"], found[0]["place"]["line"]), ("reason-empty", 3))
    write("w/lamp.c", LAMP_C)
    write("w/more.c", "static int lamp_do_warm_up(void)\n{\n    return fork();\n}\n")
    detent("check", "w/lamp.worker", "w/more.c", code=2, out="[no-thread]")
    detent("check", "w/more.c", code=2, err="also name its .worker file")
    write("w/lamp.worker", LAMP.replace(", STOP(OFF)", "", 1))
    detent("check", "w", code=2, out="w/lamp.worker:5:1: error: WARMING is starting and has no")
    detent("diagram", "w/lamp.worker", code=2, err=["[no-stop]", "is not a valid worker"])
    detent("check", "w/none.worker", code=3, err="none.worker")
    detent("sim", "w/lamp.worker", code=2, err="a worker, not a machine: detent check w/lamp")
    detent("w/lamp.worker", code=2, err="is a worker, not a command: detent check w/lamp.worker")
    detent("check", "w/lamp", code=3, err="w/lamp.worker")


def test_worker_is_drawn_with_the_transitions_of_its_source():
    write("lamp.worker", LAMP)
    done = detent("diagram", "lamp.worker", out=["state STARTING {", "warming --> off: stop"])
    check("it is warm" not in done.stdout)
    write("lamp.c", LAMP_C)
    detent("diagram", "lamp.worker", out=["warming --> on: it is warm", "[*] --> off"])
    detent("diagram", "lamp.worker", "--format", "dot", out='"off" -> "warming"')
    detent("diagram", "lamp.worker", "--trace", "x", code=2, err="lamp.worker is a worker")
    write("light.fsm", LIGHT)
    detent("diagram", "light.fsm", "lamp.c", code=2, err="unexpected argument 'lamp.c'")


FLOW = """#define FLOW_NAME copy
RECORD(row)
FIELD(number, u64)
END
SOURCE(read, row, USE(csv, "{path: in.csv}"))
TRANSFORM(check, row, row)
SINK(write, row, USE(jsonl, "{path: out.jsonl}"))
EDGE(read, check)
EDGE(check, write)
"""


def test_a_flow_is_checked_formatted_and_drawn():
    write("w/copy.flow", FLOW)
    detent("fmt", "--check", "w", code=1, out="w/copy.flow")
    detent("fmt", "-w", "w")
    check("EDGE(read,  check)\n" in Path("w/copy.flow").read_text())
    detent("check", "w", err="1 definition checked: ok")
    detent("diagram", "w/copy.flow", out=['read(["read<br/>csv"])', 'check -->|"row"| write'])
    detent("diagram", "w/copy.flow", "--format", "dot", out='"read" -> "check" [label="row"]')
    detent("diagram", "w/copy.flow", "--trace", "x", code=2, err="copy.flow is a flow")
    detent("sim", "w/copy.flow", code=2, err="a flow, not a machine: detent check w/copy.flow")
    detent("w/copy.flow", code=2, err="is a flow, not a command: detent check w/copy.flow")
    write("w/copy.flow", FLOW.replace("EDGE(check, write)", "EDGE(chek, write)"))
    detent("check", "w", code=2, out=["w/copy.flow:9:6: error: chek is not a stage of this flow",
                                      "did you mean check?"])
    detent("diagram", "w/copy.flow", code=2, err=["[unknown-stage]", "is not a valid flow"])
    write("w/copy.flow", FLOW.replace("{path: in.csv}", "{paht: in.csv}"))
    detent("check", "w", code=2, out=["w/copy.flow:5:30: error: unknown setting 'paht'",
                                      "[bad-connector]"], err="1 error")
    write("w/copy.flow", FLOW.replace("USE(csv", "USE(cvs"))
    detent("check", "w", code=2, out="w/copy.flow:5:23: error: there is no connector 'cvs'")
    write("w/copy.flow", '#include "stages.flow"\n' + FLOW)
    write("w/stages.flow", "SINK(more, row)\nEDGE(read, more)\n")
    detent("check", "w", err="1 definition checked: ok")
    detent("check", "w/copy", code=3, err="w/copy.flow")


def test_c_of_a_flow_compiles_and_grows():
    flow = FLOW.replace("EDGE(check, write)", "STATEFUL(sum, row, row, STATE(row), OPENS)\n"
                        "SINK(keep, row, CURSOR(row), BEGINS, BUFFERED, DRAINS)\n"
                        "SOURCE(tick, row, INFINITE, ACKNOWLEDGES)\nEDGE(tick, sum)\n"
                        "EDGE(sum, keep)\nEDGE(check, write)\nEDGE(check, sum)")
    write("copy.flow", flow)
    equal(detent("gen", "c", "copy.flow").stdout, "copy.h\ncopy.c\n")
    subprocess.run([COMPILER, "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-c", "-I.",
                    f"-I{TREE}/include", "-o", "copy.o", "copy.c"], check=True)
    source = Path("copy.c").read_text()
    check("read" not in re.findall(r"^static int (\w+)", source, re.M))
    detent("gen", "c", "copy.flow", err="it has all functions")
    write("copy.flow", flow + "TRANSFORM(late, row, row)\nEDGE(sum, late)\nEDGE(late, keep)\n")
    detent("gen", "c", "copy.flow", out="static int late(struct det_stage_call *call, const struct",
           err="it lacks 1 of 12 functions")
    detent("gen", "c", "copy.flow", "--append", err="their stubs were added")
    check("static int late(" in Path("copy.c").read_text())
    detent("gen", "json", "copy.flow", code=2, err="only C is generated")
    write("copy.c", "int x;\n")
    detent("gen", "c", "copy.flow", code=4, err="is not the file of a flow")


def test_new_writes_a_flow_that_runs():
    detent("new", "orders", "--from", "flow", err="Next: cd orders && detent flow run orders.flow")
    detent("check", "orders", err="2 definitions checked: ok")
    detent("fmt", "--check", "orders")
    detent("flow", "run", "orders/orders.flow")
    rows = [json.loads(line) for line in Path("orders/orders.jsonl").read_text().splitlines()]
    equal([row["id"] for row in rows], ["o-1", "o-3"])
    detent("new", "while", "--from", "flow", code=2, err="cannot be the name of a flow")
    detent("new", "x", "--from", "flow", "--c", code=2, err="--c needs --from job")


def test_a_project_file_is_checked_like_a_definition():
    write("detent.yaml", "version: 1\ntasks:\n  web: {run: sh -c 'exit 0', timeout: 5s}\n")
    detent("check", "detent.yaml", err="1 definition checked: ok")
    detent("check", ".", err="1 definition checked: ok")
    write("light.fsm", LIGHT)
    detent("check", ".", err="2 definitions checked: ok")
    write("other.yaml", "version: 1\ntasks:\n  web: {run: no-such-program-here, retrys: 3}\n")
    detent("check", "other.yaml", code=2, err=[
        "other.yaml:3:36: error: a task has no key 'retrys'; did you mean 'retries'?",
        "1 definition checked: 1 error, 0 warnings"])
    write("other.yaml", "version: 1\ntasks:\n  web: {run: no-such-program-here}\n")
    done = detent("check", "--json", "other.yaml", code=2)
    problem, summary = [json.loads(line) for line in done.stdout.splitlines()]
    equal((problem["type"], problem["line"], problem["column"]), ("problem", 3, 14))
    equal((summary["errors"], summary["ok"]), (1, False))
    detent("check", "missing.yaml", code=3, err="missing.yaml: there is no such file")
    write("cut.yaml", "version: 1\ntasks:\n" + "".join(f"  t{i}: {{}}\n" for i in range(30)))
    detent("check", "cut.yaml", code=2, err="only the first 20 problems are shown")
    write("tab.yaml", "version: 1\ntasks:\n\tx: 1\n")
    detent("check", "tab.yaml", code=2, err="begins with a tab; use spaces")


def test_bad_input_is_refused_quickly_with_a_message():
    begun = now()
    write("big.fsm", "STATE(A, a)\n" * 900000)
    detent("check", "big.fsm", code=2, err="big.fsm: larger than 256 KiB")
    detent("check", "-", stdin="x" * 10485760, code=2, err="larger than 256 KiB")
    write("brackets.fsm", "ON(" * 13000)
    detent("check", "brackets.fsm", code=2, out="error:")
    write("brackets.test.yaml", "[" * 40960)
    detent("test", "brackets.test.yaml", code=2,
           err="1:65: error: lists and maps are nested more than 64 deep")
    write("loop.fsm", '#include "loop.fsm"\n')
    detent("check", "loop.fsm", code=2, out="[bad-include]")
    write("latin.fsm", b"/* \xff */\n")
    detent("check", "latin.fsm", code=2, out="[not-utf8]")
    write("nul.fsm", b"STATE(A, a)\0\n")
    detent("check", "nul.fsm", code=2, out="[not-utf8]")
    write("empty.fsm", "")
    detent("check", "empty.fsm", code=2, out="[no-name]")
    for row in ("STAY(A,B,c)", "STAT(A, a)", "STATE(A", "EVENT(E,e,r)", "AFTER(A,SECS(1),B)"):
        write("many.fsm", LIGHT + (row + "\n") * 13000)
        detent("check", "many.fsm", code=2, err="only the 200 most severe findings are shown")
    check(now() - begun < 20, f"it took {now() - begun:.1f} s")


def test_missing_files_and_folders_are_reported():
    os.mkdir("folder")
    write("light.fsm", LIGHT)
    for words in (["check"], ["fmt"], ["diagram"], ["sim"], ["gen", "c"], ["gen", "json"],
                  ["test"]):
        detent(*words, "nobody.fsm", code=3, err="nobody.fsm: there is no such file")
    for words in (["diagram"], ["sim"], ["gen", "c"]):
        detent(*words, "folder", code=1, err="folder: is a folder, not a file")
    detent("check", "light.fsm/x.fsm", code=3, err="there is no such file")
    write("light.test.yaml", CASES)
    write("coins.rec", "RECORD(coin) FIELD(cents, u8) END\n")
    detent("check", "light", code=3, err="light: there is no such file; did you mean light.fsm?\n")
    detent("test", "light", code=3, err="no such file; did you mean light.test.yaml?\n")
    detent("fmt", "coins", code=3, err="no such file; did you mean coins.rec?\n")
    detent("check", "nobody", code=3, err="nobody: there is no such file\n")
    os.mkfifo("pipe")
    for words in (["check"], ["fmt"], ["test"], ["diagram", "light.fsm", "--trace"]):
        detent(*words, "pipe", code=1,
               err="pipe: is not a regular file; '-' reads the standard input")
    detent("check", "nobody.fsm", "light.fsm", code=3, err="1 definition checked")
    if os.geteuid() != 0:
        os.chmod("light.fsm", 0)
        detent("check", "light.fsm", code=1, err="Permission denied")


def test_control_characters_in_names_are_escaped():
    write("a\033[2Jb.fsm", LIGHT + "ON(RED, GO, RED)\n")
    done = detent("check", "a\033[2Jb.fsm", code=2, out="a\\x1b[2Jb.fsm:10:4:")
    check(ESCAPE not in done.stdout + done.stderr)
    done = detent("check", "no\033[2J.fsm", code=3, err="no\\x1b[2J.fsm")
    check(ESCAPE not in done.stderr)
    for name in (b"bad\xff.fsm",):
        Path(os.fsdecode(name)).write_text(LIGHT + "ON(RED, GO, RED)\n")
        equal(objects(detent("check", os.fsdecode(name), "--json", code=2))[0]["place"]["file"],
              "bad\\xff.fsm")


# fmt

def test_fmt_prints_checks_and_writes():
    ugly = LIGHT.replace("STATE(RED, red, INITIAL)", "STATE( RED,red ,INITIAL )")
    write("light.fsm", ugly)
    pretty = detent("fmt", "light.fsm").stdout
    check("STATE(RED," in pretty and pretty != ugly)
    equal(detent("fmt", "-", stdin=ugly).stdout, pretty)
    equal(detent("fmt", "-", stdin=pretty).stdout, pretty)
    equal(detent("fmt", "--check", "light.fsm", code=1).stdout, "light.fsm\n")
    equal(Path("light.fsm").read_text(), ugly)
    os.chmod("light.fsm", 0o604)
    os.symlink("light.fsm", "link.fsm")
    equal(detent("fmt", "-w", "link.fsm").stdout, "")
    equal(Path("light.fsm").read_text(), pretty)
    check(os.path.islink("link.fsm"), "the link is gone")
    equal(os.stat("light.fsm").st_mode & 0o777, 0o604)
    detent("fmt", "--check", "light.fsm")
    detent("fmt", "--check", "-w", "light.fsm", code=2,
           err="--check and --write exclude each other")
    equal(objects(detent("fmt", "--check", "light.fsm", "--json"))[0]["formatted"], True)
    equal(objects(detent("fmt", "-", "--json", stdin=ugly))[0]["text"], pretty)
    write("bad.fsm", "STATE(A,\n  a\n")
    detent("fmt", "bad.fsm", code=2, err=["bad.fsm:", "error:"])
    write("latin.fsm", b"STATE(A, a)\n/* \xff */\n")
    detent("fmt", "latin.fsm", code=2, err="latin.fsm:2:4: error: the text is not UTF-8\n")


# diagram

def test_diagrams_of_every_format():
    write("light.fsm", LIGHT)
    detent("sim", "light.fsm", "--seed", "3", "--trace", "run.jsonl")
    firsts = {"mermaid": "stateDiagram-v2", "flowchart": "flowchart", "sequence": "sequenceDiagram",
              "dot": "digraph", "timeline": "digraph", "svg": "<?xml"}
    for name, first in firsts.items():
        done = detent("diagram", "light.fsm", "--format", name, "--trace", "run.jsonl")
        check(done.stdout.startswith(first), f"{name}: {done.stdout[:80]}")
    equal(detent("diagram", "light.fsm", "-f", "svg", "-o", "light.svg").stdout, "")
    check("</svg>" in Path("light.svg").read_text())
    detent("diagram", "light.fsm", "-o", "again.svg")
    equal(Path("again.svg").read_text(), Path("light.svg").read_text())
    detent("diagram", "light.fsm", "-f", "mermaid", "-o", "light.dot")
    check(Path("light.dot").read_text().startswith("stateDiagram-v2"))
    detent("diagram", "light.fsm", "-o", "light.png", code=2, err="cannot draw .png; use .svg")
    text = objects(detent("diagram", "light.fsm", "--json"))[0]["text"]
    equal(text, detent("diagram", "light.fsm").stdout)
    detent("diagram", "-", stdin=LIGHT, out="stateDiagram-v2")
    top = detent("diagram", "light.fsm", "--top-down", "--plain").stdout
    check("direction TB" in top and "timeout" not in top, top)


def test_diagrams_that_cannot_be_drawn():
    write("light.fsm", LIGHT)
    write("other.fsm", LIGHT.replace("FSM_NAME light", "FSM_NAME lamp"))
    write("run.jsonl", "")
    detent("sim", "light.fsm", "--seed", "3", "--trace", "run.jsonl")
    detent("diagram", "light.fsm", "--format", "sequence", code=2,
           err="format sequence needs a run")
    detent("diagram", "light.fsm", "--trace", "nobody", code=3, err="there is no such file")
    detent("diagram", "light.fsm", "--trace", "run.jsonl", "--run", "x", code=3, err="no run 'x'")
    detent("diagram", "other.fsm", "--trace", "run.jsonl", code=2, err="of another machine: light")
    write("bad.jsonl", "{\n")
    detent("diagram", "light.fsm", "--trace", "bad.jsonl", code=2, err="bad.jsonl: line 1:")
    detent("diagram", "light.fsm", "-f", "svg", code=3, env={"PATH": "/nowhere"},
           err="install the package graphviz")
    write("bin/dot", "#!/bin/sh\nexit 7\n")
    os.chmod("bin/dot", 0o755)
    detent("diagram", "light.fsm", "-f", "svg", code=1, err="exit code 7",
           env={"PATH": os.path.abspath("bin") + ":/usr/bin:/bin"})
    detent("diagram", "light.fsm", "-o", "nowhere/x", code=3,
           err="cannot write nowhere/x: there is no folder nowhere\n")
    # A folder that is there is not said to be missing.
    detent("diagram", "light.fsm", "-o", "/proc/x", code=1,
           err="cannot write /proc/x: the folder /proc does not accept new files\n")
    detent("diagram", "light.fsm", "-o", "light.fsm/x", code=1, err="Not a directory")
    write("broken.fsm", LIGHT + "ON(RED, GO, RED)\n")
    detent("diagram", "broken.fsm", code=2,
           err=["[duplicate-transition]", "not a valid definition"])


# test

def test_cases_pass_and_coverage_is_reported():
    write("light.fsm", LIGHT)
    write("light.test.yaml", CASES)
    done = detent("test", err="1 case: 1 passed, 0 failed; 30s of virtual time in ")
    equal(done.stdout, "ok      light.test.yaml: green lasts half a minute\n"
          "coverage of light: 2 of 2 states (100 %), 2 of 2 transitions (100 %)\n")
    lines = objects(detent("test", "--json"))
    equal([o["type"] for o in lines], ["case", "coverage", "summary"])
    equal((lines[0]["ok"], lines[0]["steps"]), (True, 2))
    equal((lines[2]["passed"], lines[2]["virtual_ms"]), (1, 30000))
    equal(detent("test", ".", "--no-coverage").stdout.count("\n"), 1)
    equal(detent("test", "-", stdin=CASES).stdout.splitlines()[0],
          "ok      <stdin>: green lasts half a minute")


def test_every_alternative_of_a_choice_is_a_transition():
    write("light.fsm", LIGHT.replace("ON(RED, GO, GREEN)", """GUARD(is_day)
GUARD(is_late)
ON  (RED, GO, GREEN, IF(is_day))
ELSE(RED, GO, RED)
ELSE_STAY(RED, GO, IF(is_late))"""))
    shown = [line.split("go ")[1] for line in detent("diagram", "light.fsm").stdout.splitlines()
             if ": go " in line]
    equal(shown, ["[is_day]", "[is_late] (stay)", "[else]"])
    ways = json.loads(detent("gen", "json", "light.fsm").stdout)["transitions"]
    equal([(w.get("if"), w.get("else")) for w in ways[:3]],
          [("is_day", None), ("is_late", True), (None, True)])
    write("light.test.yaml", CASES + """  - name: at night
    guards: {is_day: false, is_late: false}
    steps:
      - {send: go, expect: {state: red, outcome: goto}}
""")
    equal(detent("test").stdout.splitlines()[2:], [
        "coverage of light: 2 of 2 states (100 %), 3 of 4 transitions (75 %)",
        "  light.fsm:11:1: not taken: red on go [is_late] (stay)"])
    missed = objects(detent("test", "--json"))[2]["missed_transitions"]
    equal([(m["from"], m["if"], m["line"]) for m in missed], [("red", "is_late", 11)])
    detent("check", "--unhandled", "light.fsm", out="red    ->+2  .")
    detent("diagram", "light.fsm", out="red --> red: go [else]")
    detent("sim", "light.fsm", "--seeds", "3", out="4 of 4 transitions")
    detent("fmt", "--check", "light.fsm", code=1)


def test_a_case_that_fails_is_shown_with_its_place():
    write("light.fsm", LIGHT)
    write("sub/light.test.yaml", CASES.replace("light.fsm", "../light.fsm")
          .replace("state: red", "state: green"))
    done = detent("test", "sub", code=1, err="1 case: 0 passed, 1 failed")
    equal(done.stdout, """not ok  sub/light.test.yaml: green lasts half a minute
  sub/light.test.yaml:6:40: step 2: state is not as expected
    expected: green
    actual:   red
coverage of light: 2 of 2 states (100 %), 2 of 2 transitions (100 %)
""")
    failure = objects(detent("test", "sub", "--json", code=1))[0]["failure"]
    equal((failure["line"], failure["column"], failure["step"]), (6, 40, 2))
    equal((failure["expected"], failure["actual"]), ("green", "red"))


def test_every_failed_expectation_of_a_step_is_reported():
    write("light.fsm", LIGHT)
    write("light.test.yaml", CASES.replace("{state: green, timeout: 30s}",
                                           "{state: red, timeout: none, sequence: 1}"))
    done = detent("test", "--no-coverage", code=1)
    equal(done.stdout.splitlines()[1:], [
        "  light.test.yaml:5:36: step 1: state is not as expected",
        "    expected: red", "    actual:   green",
        "  light.test.yaml:5:50: step 1: timeout is not as expected",
        "    expected: none", "    actual:   30s"])
    failure = objects(detent("test", "--json", code=1))[0]["failure"]
    equal((failure["expected"], failure["step"]), ("red", 1))
    equal([(m["column"], m["expected"]) for m in failure["more"]], [(50, "none")])


def test_untaken_transitions_are_listed_with_their_place():
    write("light.fsm", LIGHT)
    write("light.test.yaml", "machine: light.fsm\ncases: [{name: nothing, steps: []}]\n")
    done = detent("test", out=["1 of 2 states (50 %), 0 of 2 transitions (0 %)",
                               "  not visited: green\n",
                               "  light.fsm:7:1: not taken: red on go -> green\n"])
    check("light.fsm:8:1: not taken: green on stopping -> red" in done.stdout)
    missed = objects(detent("test", "--json"))[1]
    equal(missed["missed_states"], ["green"])
    equal(missed["missed_transitions"][0]["line"], 7)


def test_cases_are_chosen_by_name():
    write("light.fsm", LIGHT)
    write("light.test.yaml", CASES + "  - {name: other, steps: []}\n")
    equal(len([o for o in objects(detent("test", "--filter", "half", "--json"))
               if o["type"] == "case"]), 1)
    detent("test", "--filter", "nowhere", code=3, err="no case name contains 'nowhere'")


def test_invalid_test_files_are_reported_with_their_place():
    write("light.fsm", LIGHT)
    for text, where, sentence in (
            ("machine: light.fsm\ncase: 1\n", "2:1", "did you mean 'cases'?"),
            ("machine: light.fsm\nmachine: x\n", "2:1", "duplicate key"),
            ("machine: &a light.fsm\n", "1:10", "anchors"),
            ("machine: !!str x\n", "1:10", "tags"),
            ("a: *b\n", "1:4", "aliases"),
            (CASES.replace("send: go", "send: stoping"), "5:16", "did you mean 'stopping'?"),
            (CASES.replace("30s}}\n      -", "30x}}\n      -"), "5:52", "expected a duration"),
            (CASES.replace("light.fsm", "lihgt.fsm"), "1:10", "did you mean light.fsm?"),
            ("\tx: 1\n", "1:1", "the line begins with a tab; use spaces")):
        write("x.test.yaml", text)
        detent("test", "x.test.yaml", code=3 if "lihgt" in text else 2,
               err=[f"x.test.yaml:{where}: error: ", sentence])
    write("x.test.yaml", CASES.replace("state: green", "state: gren").replace("state: red", "x: 1")
          + "  - {name: other, stesp: []}\n")
    done = detent("test", "x.test.yaml", code=2, err=["did you mean 'green'?", "no key 'x'",
                                                     "x.test.yaml:7:19: error:", "'steps'?"])
    equal(done.stderr.count("error: "), 3)
    write("x.test.yaml", CASES + "  - {}\n" * 30)
    done = detent("test", "x.test.yaml", code=2, err="only the first 20 problems are")
    equal(done.stderr.count("error: "), 20)
    write("sub/x.test.yaml", CASES.replace("light.fsm", "../lihgt.fsm"))
    detent("test", "sub", code=3, err="sub/x.test.yaml:1:10: error: ../lihgt.fsm: there is no "
           "such file; did you mean ../light.fsm?")
    write("x.test.yaml", CASES.replace("light.fsm", "nobody.fsm"))
    detent("test", "x.test.yaml", code=3, err="nobody.fsm: there is no such file")
    write("x.test.yaml", "# " + "x" * 300000 + "\n" + CASES)
    detent("test", "x.test.yaml", code=2, err="larger than 256 KiB")
    write("x.test.yaml", b"machine: \xff\n")
    detent("test", "x.test.yaml", code=2, err="the text is not UTF-8")


def test_endless_machine_is_stopped():
    write("light.fsm", LIGHT.replace("SECONDS(30)", "MILLISECONDS(1)")
          .replace("ON(GREEN, STOPPING, RED)", "ON(GREEN, STOPPING, GREEN)\nON(GREEN, GO, RED)"))
    write("light.test.yaml", CASES.replace("timeout: 30s", "timeout: 1ms")
          .replace("advance: 30s, expect: {state: red}", "advance: 3650d"))
    detent("test", "--steps-max", "100000", code=1, out="it does not settle")


def test_the_trace_of_a_test_can_be_drawn():
    write("light.fsm", LIGHT)
    write("light.test.yaml", CASES)
    detent("test", "--trace", "run.jsonl")
    lines = [json.loads(line) for line in Path("run.jsonl").read_text().splitlines()]
    equal([o["type"] for o in lines], ["run", "step", "step"])
    equal([o.get("timeout") for o in lines], [None, False, True])
    detent("diagram", "light.fsm", "-f", "sequence", "-t", "run.jsonl", "--run",
           "green lasts half a minute", out="sequenceDiagram")


def test_trace_on_stdout_has_no_other_output():
    write("light.fsm", LIGHT)
    write("light.test.yaml", CASES)
    for words in (["test"], ["test", "--json"], ["sim", "light.fsm", "--seeds", "1"],
                  ["sim", "light.fsm", "--seeds", "1", "--json"]):
        done = detent(*words, "--trace", "-", err="coverage")
        equal({o["type"] for o in objects(done)}, {"run", "step"})
        detent("diagram", "light.fsm", "-f", "sequence", "--trace", "-", stdin=done.stdout,
               out="sequenceDiagram")


def test_summary_follows_the_lines_when_streams_are_merged():
    write("light.fsm", LIGHT)
    write("light.test.yaml", "machine: light.fsm\ncases: [{name: nothing, steps: []}]\n")
    for words, last in ((["test"], "1 case: "), (["sim", "light.fsm", "--seeds", "1", "--steps",
                                                  "1"], "1 seed, ")):
        with open("all", "w", encoding="utf8") as both:
            subprocess.run([DETENT, *words], stdout=both, stderr=both, check=True)
        shown = re.sub("\033\\[[0-9;]*m", "", on_terminal(*words))
        for text in (Path("all").read_text(), shown.replace("\r\n", "\n")):
            lines = text.splitlines()
            check("not taken: " in lines[-2] and lines[-1].startswith(last), text)


# sim

def test_sim_passes_and_is_reproducible():
    write("light.fsm", LIGHT)
    done = detent("sim", "light.fsm", "--seeds", "3", "--steps", "100", out="coverage of light",
                  err="3 seeds, each twice: ok; 300 steps, ")
    lines = objects(detent("sim", "light.fsm", "--seeds", "3", "--steps", "100", "--json"))
    equal([o["type"] for o in lines], ["seed"] * 3 + ["coverage", "summary"])
    again = objects(detent("sim", "light.fsm", "--seeds", "3", "--steps", "100", "--json"))
    equal(lines[:4], again[:4])
    check(lines[4]["ok"] and lines[4]["steps_per_second"] > 0)
    check("2 of 2 states" in done.stdout)


def test_sim_of_every_good_machine_of_the_corpus():
    for path in sorted((TREE / "tests/corpus/good").glob("*.fsm")):
        detent("check", str(path))
        detent("sim", str(path), "--seeds", "2", "--steps", "100", err="each twice: ok")
        detent("fmt", str(path))
        for name in ("mermaid", "flowchart", "dot"):
            detent("diagram", str(path), "-f", name)
        json.loads(detent("gen", "json", str(path)).stdout)


# backoff

def test_backoff_prints_the_schedule_of_a_policy():
    done = detent("backoff", "--first", "100ms", "--max", "1s", "--jitter", "none", "--retries",
                  "6", err=["Jitter none: the delay is the base.\n", "Attempt 7 is the last.\n"])
    equal([line.split() for line in done.stdout.splitlines()[1:]],
          [["1", "-", "-", "0s"], ["2", "100ms", "100ms", "100ms"],
           ["3", "200ms", "200ms", "300ms"], ["4", "400ms", "400ms", "700ms"],
           ["5", "800ms", "800ms", "1.5s"], ["6", "1s", "1s", "2.5s"], ["7", "1s", "1s", "3.5s"]])
    done = detent("backoff", err="Retries are not limited.")
    equal(len(done.stdout.splitlines()), 11)
    equal(len({len(line) for line in done.stdout.splitlines()}), 1)
    check("2   200ms   100ms - 200ms   100ms - 200ms\n" in done.stdout, done.stdout)
    detent("backoff", "--retries", "50", err="Attempt 51 is the last; --attempts shows more.")
    equal(detent("backoff", "--retries", "0", err="Attempt 1 is the last.").stdout.split()[-4:],
          ["1", "-", "-", "0s"])
    for columns in (80, 120):
        text = on_terminal("backoff", "--seed", "1", columns=columns, env={"NO_COLOR": "1"})
        check(all(len(line) <= columns for line in text.splitlines()), text)


def test_backoff_is_exact_as_json_and_repeats_a_seed():
    for jitter, low, high in (("none", 200, 200), ("full", 1, 200), ("equal", 100, 200),
                              ("band", 100, 600), ("decorrelated", 100, 900)):
        words = ["backoff", "--first", "100ms", "--jitter", jitter, "--attempts", "40", "--json"]
        lines = objects(detent(*words, "--seed", "7"))
        equal(lines, objects(detent(*words, "--seed", "7")))
        check(jitter == "none" or lines != objects(detent(*words, "--seed", "8")))
        third = lines[2]
        equal((jitter, third["attempt"], third["base_ns"], third["delay_least_ns"],
               third["delay_most_ns"]), (jitter, 3, 200000000, low * 1000000, high * 1000000))
        for before, line in zip(lines, lines[1:-1]):
            check(line["delay_least_ns"] <= line["drawn_ns"] <= line["delay_most_ns"] <= 30e9)
            for part, delay in (("waited_least_ns", "delay_least_ns"),
                                ("waited_most_ns", "delay_most_ns"),
                                ("drawn_waited_ns", "drawn_ns")):
                equal(line[part], before[part] + line[delay])
        equal(lines[-1], {"type": "summary", "first_ns": 100000000, "max_ns": 30000000000,
                          "factor": 2.0, "jitter": jitter, "retries": None, "attempts": 40})
    lines = objects(detent("backoff", "--first", "0s", "--retries", "2", "--json"))
    equal([line.get("delay_most_ns") for line in lines], [0, 0, 0, None])
    check("drawn_ns" not in lines[0] and lines[-1]["retries"] == 2)


def test_backoff_reports_invalid_policies():
    for words, text in (
            (["--first", "1m", "--max", "30s"],
             "the first delay (1m) is over the longest (30s); raise max"),
            (["--first", "5"], "--first must be a duration (250ms"),
            (["--first=-1s"], "--first must be a duration"),
            (["--max", "0s"], "--max must be a duration (250ms, 1.5s, 1h30m), above 0"),
            (["--max", "4000d"], "at most ten years; got '4000d'"),
            (["--factor", "0.5"], "--factor must be a number of at least 1 (2, 1.5); got '0.5'"),
            (["--factor", "nan"], "got 'nan'"), (["--factor", "1."], "got '1.'"),
            (["--factor", "1e3"], "got '1e3'"), (["--factor", ""], "got ''"),
            (["--factor", "9" * 400], "--factor must be a number"),
            (["--jitter", "ful"], "did you mean 'full'?"),
            (["--retries", "-1"], "--retries must be a whole number"),
            (["--attempts", "0"], "--attempts must be a whole number from 1"),
            (["--seed", "x"], "--seed must be a whole number"), (["x"], "unexpected argument 'x'")):
        equal(detent("backoff", *words, code=2, err=text).stdout, "")
    # The longest there are, without end.
    detent("backoff", "--first", "3650d", "--max", "3650d", "--attempts", "50", out="for ever")


# gen and new

def test_generated_c_compiles_unchanged():
    for path in sorted((TREE / "tests/corpus/good").glob("*.fsm")):
        folder = Path(path.stem)
        detent("gen", "c", str(path), "-o", str(folder), out=f"{folder}/{path.stem}.c\n")
        compiles(folder / (path.stem + ".c"), folder, path.parent)


def test_gen_does_not_overwrite():
    write("light.fsm", LIGHT)
    equal(detent("gen", "c", "light.fsm").stdout, "light.h\nlight.c\n")
    write("light.c", "mine\n")
    os.remove("light.h")
    detent("gen", "c", "light.fsm", code=4,
           err=["light.c already exists and is not the file of a machine; nothing was written",
                "--force overwrites, --output FOLDER writes elsewhere"])
    equal(Path("light.c").read_text(), "mine\n")
    check(not os.path.exists("light.h"), "it was written")
    detent("gen", "c", "light.fsm", "--force")
    check("mine" not in Path("light.c").read_text())
    detent("gen", "json", "light.fsm", "-o", "out", out="out/light.json")
    machine = json.loads(Path("out/light.json").read_text())
    equal([s["name"] for s in machine["states"]], ["red", "green"])
    equal(machine["transitions"][0], {"from": "red", "event": "go", "outcome": "goto",
                                      "to": "green", "file": "light.fsm", "line": 7})
    equal(machine["states"][1]["timeout"]["after_ms"], 30000)
    detent("gen", "json", "light.fsm", "-o", "out", code=4, err="out/light.json already exists;")
    detent("gen", "json", "light.fsm", "-o", "out", "--force")
    detent("gen", "rust", "light.fsm", code=2, err="unknown output 'rust'")


def test_gen_promela_writes_a_step_for_spin():
    write("light.fsm", LIGHT)
    text = detent("gen", "promela", "light.fsm", out=[
        "#define LIGHT_GREEN 1 /* in time: stopping */\n", "byte light_state = LIGHT_RED;\n",
        "inline light_step(event)\n",
        "        :: event == LIGHT_GO ->\n            light_state = LIGHT_GREEN;\n"]).stdout
    detent("gen", "promela", "light.fsm", "-o", "out", out="out/light.pml\n")
    equal(Path("out/light.pml").read_text(), text)
    detent("gen", "promela", "light.fsm", "-o", "out", code=4,
           err="out/light.pml already exists;")
    detent("gen", "promela", "light.fsm", "-o", "out", "--force")
    detent("gen", "promla", "light.fsm", code=2, err="did you mean 'promela'?")


def test_gen_c_adds_only_the_stubs_that_are_missing():
    write("light.fsm", LIGHT + "HOOK(ring)\nSTAY(RED, STOPPING, CALL(ring))\n")
    detent("gen", "c", "light.fsm", out="light.h\nlight.c\n")
    detent("gen", "c", "light.fsm", err=["light.h: kept", "light.c is kept: it has all functions"])
    mine = Path("light.c").read_text().replace("return 0;", "return 0; /* mine */").rstrip("\n")
    write("light.c", mine + "\n/* static bool open(void) {} */")
    before = Path("light.c").read_text()
    write("light.fsm", LIGHT + "HOOK(ring)\nHOOK(open)\nEFFECT(phone)\nGUARD(may)\n"
          "STAY(RED, STOPPING, IF(may), CALL(ring), DO(phone))\nENTRY(RED, open)\n")
    done = detent("gen", "c", "light.fsm", err="light.c is kept: it lacks 3 of 4 functions; these")
    equal(re.findall(r"^static \w+ (\w+)\(", done.stdout, re.M), ["may", "open", "phone"])
    equal(Path("light.c").read_text(), before)
    kept = objects(detent("gen", "c", "light.fsm", "--json"))
    equal([(o["file"], o["state"]) for o in kept], [("light.h", "kept"), ("light.c", "kept")])
    equal((kept[1]["missing"], kept[1]["stubs"]), (["may", "open", "phone"], done.stdout))
    os.remove("light.h")
    detent("gen", "c", "light.fsm", "--append", out="light.h\nlight.c\n",
           err="it lacks 3 of 4 functions; their stubs were added at its end")
    after = Path("light.c").read_text()
    check(after.startswith(before + "\n") and after.endswith(done.stdout), after)
    compiles("light.c", ".")
    equal(detent("gen", "c", "light.fsm", "--append").stdout, "")
    equal(Path("light.c").read_text(), after)
    equal([o["state"] for o in objects(detent("gen", "c", "light.fsm", "--force", "--json"))],
          ["written", "written"])


def test_a_new_machine_passes_everything_at_once():
    """Also under a name that a record of the spec has, and as long as a name may be."""
    long_name = "x" * 64
    for name, extra, transitions, cases in (
            ("job", [], 6, 6), ("order", [], 8, 7), (long_name, ["--from", "order"], 8, 7),
            ("card_payment", ["--from", "order"], 8, 7)):
        done = detent("new", name, *extra, err=f"Next: cd {name} && detent up")
        equal(done.stdout.split(), [f"{name}/{file}" for file in (
            f"{name}.fsm", "detent.yaml", f"{name}.test.yaml", "README.md")])
        os.chdir(name)
        detent("check", "--strict", ".", err="ok")
        equal(detent("fmt", name + ".fsm").stdout, Path(name + ".fsm").read_text())
        detent("test", out=f"{transitions} of {transitions} transitions (100 %)",
               err=f"{cases} cases: {cases} passed")
        detent("sim", name + ".fsm", "--seeds", "2", "--steps", "50")
        os.chdir("..")
    detent("new", "tea", "--from", "ordr", code=2, err="did you mean 'order'?")
    detent("new", "tea", "--c", "--from", "order", code=2, err="order has no C program")
    check(not Path("tea").exists(), "a folder was made")


def test_a_new_machine_overwrites_nothing():
    detent("new", "job")
    done = detent("new", "job", code=4, err=[
        "job/job.fsm already exists\n", "job/README.md already exists\n",
        "nothing was written: choose another name, or move job away\n"])
    check("gen c" not in done.stderr, done.stderr)
    detent("new", "job", "--c", code=4,
           err="'detent gen c job/job.fsm -o job' generates C for the existing machine.\n")
    equal(sorted(os.listdir("job")), ["README.md", "detent.yaml", "job.fsm", "job.test.yaml"])
    there = objects(detent("new", "job", "--json", code=4))
    equal([(o["file"], o["state"]) for o in there][0], ("job/job.fsm", "there"))
    os.mkdir("half")
    write("half/Makefile", "")
    detent("new", "half", "--c", code=4, err="half/Makefile already exists\n")
    equal(os.listdir("half"), ["Makefile"])
    detent("new", "Job", code=2, err="cannot be the name of a machine")
    detent("new", "../x", code=2, err="cannot be the name of a machine")
    detent("new", "while", code=2, err="it is a keyword of C")
    write("plain", "")
    detent("new", "plain", code=4, err="is not a folder")
    equal([o["file"] for o in objects(detent("new", "more", "--json"))][0], "more/more.fsm")


def test_generated_c_stubs_do_not_block_the_machine():
    write("light.fsm", LIGHT + "EFFECT(ask, STOPPING)\nEFFECT(tell)\n"
          "STAY(RED, STOPPING, DO(ask, tell))\n")
    detent("gen", "c", "light.fsm")
    ask, tell = re.findall(r"static int (?:ask|tell)\(.*?\n}", Path("light.c").read_text(), re.S)
    check("return DET_ERR_UNSUPPORTED;" in ask and "light_stopping(" in ask, ask)
    check("return DET_EFFECT_DONE;" in tell, tell)
    write("sim.c", '#include "light.h"\nint main(void)\n{\n    struct det_sim *sim = 0;\n'
          "    return det_sim_open(0, &sim, 0);\n}\n")
    compiles("light.c", ".")
    compiles("sim.c", ".")


def test_a_new_c_program_compiles():
    detent("new", "job", "--c", out=["job/Makefile", "job/job_test.c"],
           err="Next: cd job && make run test")
    for name in ("job.c", "main.c", "job_test.c"):
        compiles("job/" + name, "job")
    readme = Path("job/README.md").read_text()
    for word in ("main.c", "make run", "make test", "job_test.c"):
        check(word in readme, f"the README has no {word}")


def test_comments_of_a_new_readme_are_aligned():
    for name, extra in (("job", []), ("a_much_longer_name", ["--c"]), ("order", []),
                        ("copies", ["--from", "flow"])):
        detent("new", name, *extra)
        text = Path(name, "README.md").read_text()
        blocks = [block.strip().splitlines() for block in text.split("```")[1::2]]
        for commands in blocks:
            columns = {line.index(" # ") for line in commands if " # " in line}
            equal((name, len(columns) <= 1), (name, True))
        check(max(map(len, blocks)) > 3 and "@" not in text, text)


def make(*words, code=0, out=()):
    """Runs make in the current folder; the library is found as if it was installed."""
    write("bin/pkg-config", "#!/bin/sh\n"
          'case "$1" in\n'
          f'--cflags) echo "-I{TREE}/include" ;;\n'
          f'--variable=libdir) echo "{Path(LIBRARY).parent}" ;;\n'
          f'*) echo "{LIBRARY} -lsqlite3 -lpq -lsodium -lpthread -lm" ;;\nesac\n')
    os.chmod("bin/pkg-config", 0o755)
    path = f"{os.path.abspath('bin')}:{Path(DETENT).parent}:{os.environ['PATH']}"
    done = subprocess.run(["make", f"CC={COMPILER}", *words], env={"PATH": path}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    check(done.returncode == code, f"exit code {done.returncode}: {done.stdout}")
    for part in out:
        check(part in done.stdout, f"no {part!r} in {done.stdout}")
    return done.stdout


def test_a_new_c_program_runs_and_its_test_passes():
    if not LIBRARY:
        return
    line = "cd && detent new coffee --c && cd coffee && make run test\n"
    check(line in (TREE / "docs/start.md").read_text(), "docs/start.md says something else")
    detent("new", "coffee", "--c")
    os.chdir("coffee")
    text = make("run", out=["1 definition checked: ok", "coffee-1 is working", "coffee-1 is done"])
    check(text.index("definition checked") < text.index("main.c"), text)
    make("test", out=["6 cases: 6 passed", "ok      after a day it is cancelled"])
    text = Path("coffee_test.c").read_text().replace("COFFEE_CANCELLED", "COFFEE_DONE")
    write("coffee_test.c", text)
    make("test", code=2, out=["not ok  after a day it is cancelled"])
    write("main.c", Path("main.c").read_text().replace("return run(", "return run(runtime) + run("))
    make("run", code=2, out=["EXISTS: a coffee called coffee-1 already exists"])
    write("coffee.fsm", Path("coffee.fsm").read_text() + "ON(DONE, BEGN, DONE)\n")
    text = make("run", code=2, out=["did you mean BEGIN?"])
    check("main.c" not in text.split("BEGIN?")[1], text)


# completion and man

def test_bash_loads_the_completion_and_completes():
    write("light.fsm", LIGHT)
    script = f"""set -eu
eval "$("{DETENT}" completion bash)"
complete_words() {{
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _detent; echo "${{COMPREPLY[*]}}"
}}
complete_words detent ch
complete_words detent check --st
complete_words detent diagram --format se
complete_words detent diagram li
complete_words detent completion z
complete_words detent help ru
complete_words detent help di
complete_words detent diagram --format =
complete_words detent diagram --format = se
complete_words detent check --color = al
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    equal(done.stderr, "")
    equal(done.stdout, "check\n--strict\nsequence\nlight.fsm\nzsh\nrules\ndiagram diff\n"
          "mermaid flowchart sequence dot timeline svg\nsequence\nalways\n")


def test_completion_of_other_shells():
    for shell in ("zsh", "fish"):
        text = detent("completion", shell).stdout
        for name in ("check", "diagram", "--strict" if shell == "zsh" else "-l strict"):
            check(name in text, f"{shell} has no {name}")
        if subprocess.run(["which", shell], capture_output=True, check=False).returncode == 0:
            subprocess.run([shell, "-n"], input=text, text=True, check=True)
    detent("completion", "tcsh", code=2, err="use bash, zsh or fish")
    equal(objects(detent("completion", "fish", "--json"))[0]["command"], "completion")


def test_the_manual_page_is_clean():
    text = detent("man").stdout
    check(text.startswith(".TH DETENT 1") and ".SS \"detent check" in text)
    if subprocess.run(["which", "groff"], capture_output=True, check=False).returncode == 0:
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=text, text=True,
                              capture_output=True, check=False)
        equal(done.stderr, "")


def main():
    tests = [(n, f) for n, f in globals().items() if n.startswith("test_") and WANTED in n]
    failed = 0
    for name, function in sorted(tests, key=lambda t: inspect.getsourcelines(t[1])[1]):
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                function()
                print(f"ok      {name}")
            except (Failure, OSError, subprocess.SubprocessError, ValueError, KeyError,
                    IndexError, StopIteration) as problem:
                failed += 1
                print(f"not ok  {name}\n  {type(problem).__name__}: {problem}")
            os.chdir("/")
    print(f"{len(tests)} tests, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
