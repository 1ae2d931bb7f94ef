#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors

"""run.py DETENT SOURCE WORK [SPECS] - the models of tests/models, checked by Spin.

1. What `detent gen promela` makes is the table: Spin steps every spec of the corpus through all
   states, events and answers of guards, and each step is compared with `detent gen json`.
2. Each model is searched exhaustively, over the table made from the spec that runs. Its rows must
   all have been taken, but for those that are named here as out of its reach.
3. Each broken variant of a model must be found out.

SPECS is the folder of the specs; src/task, src/runtime and src/program/daemon of SOURCE unless
it is given. Exit code
77: no spin."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

SKIPPED = 77
# A search that is cut off proves nothing.
DEPTH = 1000000
# The programs that were made so far.
BUILT = set()

# model, what is defined, formulas (none: safety, with assertions and ends)
RUNS = [
    ("actor", {"TASKS": 2, "LIMIT": 1}, []),
    ("actor", {"TASKS": 3, "LIMIT": 1}, []),
    ("actor", {"TASKS": 3, "LIMIT": 2}, []),
    ("actor", {"LIVE": 1}, ["a_cancelled_task_is_done_in_the_end", "nobody_waits_for_ever"]),
    ("slot", {"WIDTH": 1, "SUBMISSIONS": 5}, []),
    ("slot", {"WIDTH": 2, "SUBMISSIONS": 5}, []),
    ("slot", {"WIDTH": 1, "SUBMISSIONS": 4, "ORDERS": 2, "REMOVALS": 2, "DEPTH": 0}, []),
    ("slot", {"WIDTH": 1, "SUBMISSIONS": 4, "WIDTHS": 2}, []),
    ("slot", {"WIDTH": 2, "SUBMISSIONS": 4, "FAILURES": 2}, ["-l"]),
    ("lease", {"ROLE": 1}, []),
    ("lease", {"ROLE": 2}, []),
    ("lease", {"ROLE": 3}, []),
    ("lease", {"ROLE": 3, "NODES": 3}, []),
]
# model, variant, what else is defined, formula
BROKEN = [("actor", n, {}, None) for n in range(1, 7)]
BROKEN += [("actor", 7, {"LIVE": 1}, "nobody_waits_for_ever")]
BROKEN += [("slot", n, {"WIDTH": 1}, None) for n in range(1, 8)]
BROKEN += [("slot", 8, {"WIDTH": 2, "WIDTHS": 1}, None)]
BROKEN += [("lease", n, {"ROLE": 1}, None) for n in (1, 2, 4, 7)]
BROKEN += [("lease", n, {"ROLE": 2}, None) for n in (4, 7)]
BROKEN += [("lease", n, {"ROLE": 3}, None) for n in (3, 4, 5, 6)]
# Rows that no run can take, with the reason.
UNTAKEN = {
    "actor": {},
    "slot": {
        "SLOT_CLOSING SLOT_UNSTARTED": "nothing starts there, and who fails to start fails at once",
        "SLOT_TERMINATING SLOT_UNSTARTED else": "the one that is told to stop is an owner still",
    },
    "lease": {},
}


def fail(text):
    print(f"not ok  {text}")
    raise SystemExit(1)


def run(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode:
        fail(f"{' '.join(words)}:\n{done.stdout}{done.stderr}")
    return done.stdout


# The generated step beside the table.

def call_names(machine):
    """What the model defines for the rows of this machine, guards apart."""
    kinds = (("call", "hooks"), ("set", "updates"), ("do", "effects"))
    for kind, key in kinds:
        for item in machine[key]:
            yield f"{kind}_{item['name'] if isinstance(item, dict) else item}"
    for timer in machine["timers"]:
        yield f"arm_{timer['name']}"
        yield f"disarm_{timer['name']}"


def answers_of(guards):
    """All answers of few guards; of many, all alike and all but one alike."""
    if len(guards) <= 4:
        return list(itertools.product((0, 1), repeat=len(guards)))
    found = []
    for rest in (0, 1):
        found.append((rest,) * len(guards))
        for one in range(len(guards)):
            found.append(tuple(1 - rest if i == one else rest for i in range(len(guards))))
    return found


def driver(machine, answers):
    """A model that makes every step once and prints what it did."""
    name, guards = machine["name"], machine["guards"]
    stops = any(t["outcome"] == "stop" for t in machine["transitions"])
    choices = "\n".join(
        f"        :: n == {number} -> skip;" + "".join(f" g_{g} = {a};" for g, a in
                                                       zip(guards, answer))
        for number, answer in enumerate(answers))
    return "\n".join([
        *(f"bool g_{g};\n#define {name}_guard_{g}() g_{g}" for g in guards),
        f'#include "{name}_table.pml"',
        *(f'inline {name}_{call}() {{ printf(" {call}@%d", {name}_state) }}'
          for call in call_names(machine)),
        f"""init {{
    int n, s, e;
    for (n : 0 .. {len(answers) - 1}) {{
        if
{choices}
        fi;
        for (s : 0 .. {len(machine["states"]) - 1}) {{
            for (e : 0 .. {len(machine["events"]) - 1}) {{
                {name}_state = s;
                {name}_unhandled = false;
                {f"{name}_stopped = false;" if stops else ""}
                printf("STEP %d %d %d :", n, s, e);
                {name}_step(e);
                printf(" = %d %d %d\\n", {name}_state, {name}_unhandled,
                       {f"{name}_stopped" if stops else "0"})
            }}
        }}
    }}
}}
"""])


def step_of(machine, state, event, answer):
    """What one step does, from the definition as data."""
    states, events = machine["states"], machine["events"]
    names = [s["name"] for s in states]
    ways = [t for t in machine["transitions"]
            if t["from"] == names[state] and t["event"] == events[event]["name"]]
    way = next((t for t in ways if "if" not in t or answer[t["if"]]), None)
    if way is None:
        unhandled = bool(ways) or events[event]["unhandled"] != "ignore"
        return [], state, unhandled, False
    to = names.index(way["to"])
    calls = []
    if way["outcome"] != "stay" and states[state]["exit"]:
        calls.append(f"call_{states[state]['exit']}@{state}")
    if "call" in way:
        calls.append(f"call_{way['call']}@{state}")
    if way["outcome"] == "goto" and states[to]["entry"]:
        calls.append(f"call_{states[to]['entry']}@{to}")
    if "set" in way:
        calls.append(f"set_{way['set']}@{to}")
    for key in ("disarm", "arm", "do"):
        calls += [f"{key}_{name}@{to}" for name in way.get(key, [])]
    return calls, to, False, way["outcome"] == "stop"


def check_table(detent, spec, work):
    """Every step of one spec, as Spin makes it. Returns how many there were."""
    machine = json.loads(run([detent, "gen", "json", str(spec)]))
    name = machine["name"]
    answers = answers_of(machine["guards"])
    (work / f"{name}_table.pml").write_text(run([detent, "gen", "promela", str(spec)]))
    (work / "driver.pml").write_text(driver(machine, answers))
    steps = 0
    for line in run(["spin", "-T", "driver.pml"], cwd=work).splitlines():
        made = re.fullmatch(r"\s*STEP (\d+) (\d+) (\d+) :(.*) = (\d+) (\d) (\d)", line)
        if not made:
            continue
        number, state, event = (int(made[i]) for i in (1, 2, 3))
        found = (made[4].split(), int(made[5]), made[6] == "1", made[7] == "1")
        wanted = step_of(machine, state, event, dict(zip(machine["guards"], answers[number])))
        if found != wanted:
            fail(f"{spec.name}: state {state}, event {event}, guards {answers[number]}:\n"
                 f"  the table says {wanted}\n  Spin does      {found}")
        steps += 1
    wanted = len(answers) * len(machine["states"]) * len(machine["events"])
    if steps != wanted:
        fail(f"{spec.name}: {steps} of {wanted} steps were made")
    return steps


# The models.

def count_rows(table):
    """The table with a count of every row that is taken, which C keeps beside the search, and the
    names of the rows."""
    lines, rows, made = table.splitlines(), [], []
    state = event = None
    for number, line in enumerate(lines):
        made.append(line)
        opened = re.fullmatch(r"\s*:: (.*) ->", line)
        if not opened:
            continue
        if "_state == " in opened[1]:
            state, event = opened[1].split("== ")[1], None
        elif opened[1].startswith("event == "):
            event = opened[1].split("== ")[1]
        following = lines[number + 1].strip()
        if event and following != "if" and not following.endswith("_unhandled = true;"):
            guard = re.search(r"_guard_(\w+)", opened[1])
            made.append(f"c_code {{ taken[{len(rows)}]++; }};")
            rows.append(f"{state} {event}" + (f" {guard[1]}" if guard else
                                              " else" if opened[1] == "else" else ""))
    show = (f"c_decl {{\nstatic unsigned long taken[{len(rows)}];\n"
            "static void __attribute__((destructor)) show_taken(void)\n{\n"
            f"    for (int i = 0; i < {len(rows)}; i++)\n"
            '        if (!taken[i])\n            printf("UNTAKEN %d\\n", i);\n}\n};\n')
    return show + "\n".join(made) + "\n", rows


def build(work, model, defines, flags):
    """The program that searches, which is made once: it asks for BROKEN when it runs. Optimised it
    would take longer to make than it saves, and clang makes it in less than half of gcc's time."""
    words = [f"-D{key}={value}" for key, value in defines.items()]
    name = "_".join(["pan", model, *words, *flags])
    if name not in BUILT:
        run(["spin", "-a", *words, f"{model}.pml"], cwd=work)
        compiler = shutil.which("clang") or "cc"
        run([compiler, "-O0", "-w", "-DVECTORSZ=2048", *flags, "-o", name, "pan.c"], cwd=work)
        BUILT.add(name)
    return f"./{name}"


def search(work, program, words, broken=0):
    """The output of one search; its exit code says nothing."""
    words = [program, f"-m{DEPTH}", "-w22", *words]
    done = subprocess.run(words, cwd=work, capture_output=True, text=True, check=False,
                          env={**os.environ, "BROKEN": str(broken)})
    errors = re.search(r"errors: (\d+)", done.stdout)
    states = re.search(r"(\d+) states, stored", done.stdout)
    if not errors or not states or "depth too small" in done.stdout:
        fail(f"{' '.join(words)}:\n{done.stdout}{done.stderr}")
    said = re.search(r"^pan:1: (.*)", done.stdout, re.M)
    untaken = {int(n) for n in re.findall(r"^UNTAKEN (\d+)", done.stdout, re.M)}
    return int(errors[1]), int(states[1]), said[1] if said else "", untaken


def flags_of(formula):
    if formula is None:
        return ["-DSAFETY"], []
    if formula == "-l":
        return ["-DNP", "-DNOREDUCE"], ["-l"]
    return ["-DNOREDUCE", "-DNFAIR=5"], ["-a", "-f", "-N", formula]


def name_of(model, defines, formula):
    what = {None: "", "-l": ", no cycles"}.get(formula, f", {formula}")
    return f"{model} {' '.join(f'{k}={v}' for k, v in defines.items())}{what}"


def check_model(work, model, defines, formula):
    """One search, which must find nothing. Returns its states, and the rows that it never took."""
    flags, words = flags_of(formula)
    program = build(work, model, defines, flags)
    errors, states, said, untaken = search(work, program, words)
    if errors:
        fail(f"{name_of(model, defines, formula)}: {said}")
    print(f"ok      {name_of(model, defines, formula)}: {states} states")
    return states, untaken


def check_rows(model, rows, untaken):
    """Every row was taken by some search, but for those that cannot be."""
    found = {rows[i] for i in untaken}
    excused = set(UNTAKEN[model])
    if found != excused:
        fail(f"{model}: rows that no search takes: {sorted(found - excused)}; rows that are said "
             f"to be out of reach, and are not: {sorted(excused - found)}")
    print(f"ok      {model}: {len(rows) - len(found)} of {len(rows)} rows taken")


def check_broken(work, model, variant, defines, formula):
    flags, words = flags_of(formula)
    program = build(work, model, defines, flags)
    errors, _, said, _ = search(work, program, words, variant)
    defines = {"BROKEN": variant, **defines}
    if not errors:
        fail(f"{name_of(model, defines, formula)}: nothing was found")
    print(f"ok      {name_of(model, defines, formula)}: found, {said[:70]}")


def main():
    detent, source, work = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    folders = ([Path(sys.argv[4])] if len(sys.argv) > 4 else
               [source / "src/task", source / "src/runtime", source / "src/program/daemon"])
    began = time.monotonic()
    if not shutil.which("spin"):
        print("skip: there is no spin")
        return SKIPPED
    work.mkdir(parents=True, exist_ok=True)
    for spec in [*sorted((source / "tests/corpus/good").glob("*.fsm")),
                 *(spec for folder in folders for spec in sorted(folder.glob("*.fsm")))]:
        print(f"ok      {spec.name}: {check_table(detent, spec, work)} steps as in the table")
    total, tables = 0, {}
    for model in UNTAKEN:
        spec = next(path for folder in folders if (path := folder / f"{model}.fsm").exists())
        table, rows = count_rows(run([detent, "gen", "promela", str(spec)]))
        (work / f"{model}_table.pml").write_text(table)
        shutil.copy(source / f"tests/models/{model}.pml", work)
        tables[model] = [rows, set(range(len(rows)))]
    for model, defines, formulas in RUNS:
        for formula in formulas or [None]:
            states, untaken = check_model(work, model, defines, formula)
            total += states
            tables[model][1] &= untaken
    for model, (rows, untaken) in tables.items():
        check_rows(model, rows, untaken)
    for broken in BROKEN:
        check_broken(work, *broken)
    print(f"{len(RUNS)} configurations, {total} states, {len(BROKEN)} broken variants found, "
          f"{time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
