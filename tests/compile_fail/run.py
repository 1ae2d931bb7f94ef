#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Feeds good and bad specs and sources to a compiler and holds it to its words.

    run.py COMPILER ROOT [NAME...]

tests/corpus/good/*.fsm       must compile without a warning
tests/corpus/bad/*.fsm        must not compile; the first line is
                              /* expect: rule-id | words of the compiler | words of detent */
tests/corpus/worker/good/*.worker and bad/*.worker: the same for workers
tests/corpus/flow/good/*.flow and bad/*.flow: the same for flows; `(compiles)` instead of the words
                              of the compiler: only detent can know that it is wrong
tests/compile_fail/**/*.c     must not compile; the first line is /* expect: words */
                              and, for what is only a warning by default, -Werror: before them;
                              and must compile once the marked line is mended: the line between
                              #ifndef MENDED and #else is wrong, the one after #else is right
The templates must refuse other languages than C11 and later with one sentence.

The specs name C functions; their bodies are made up here, so that the spec is all there is to say.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

WARNINGS = ("-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes "
            "-Wmissing-prototypes -Wundef -Wvla -Wcast-qual -Werror").split()

BODIES = {
    "GUARD": "static bool {f}(const struct det_move *move, const struct {data} *data,\n"
             "    const struct {m}_event *event)\n"
             "{{\n    (void)move; (void)data; (void)event;\n    return true;\n}}\n",
    "HOOK": "static int {f}(const struct det_move *move, const struct {data} *data,\n"
            "    const struct {m}_event *event)\n"
            "{{\n    (void)move; (void)data; (void)event;\n    return 0;\n}}\n",
    "UPDATE": "static void {f}(struct {data} *data, const struct {m}_event *event)\n"
              "{{\n    (void)data; (void)event;\n}}\n",
    "FILL": "static void {f}(const struct det_move *move, const struct {data} *data,\n"
            "    struct {m}_event *event)\n"
            "{{\n    (void)move; (void)data; (void)event;\n}}\n",
    "EFFECT": "static int {f}(struct det_effect_call *call, const struct {data} *data,\n"
              "    const struct {m}_event *event, struct {m}_event *ret)\n"
              "{{\n    (void)call; (void)data; (void)event; (void)ret;\n"
              "    return DET_EFFECT_DONE;\n}}\n",
}

# Those of a component, which get its context.
COMPONENT_BODIES = {
    "GUARD": "static bool {f}(const struct {c} *context, const struct {m}_event *event)\n"
             "{{\n    (void)context; (void)event;\n    return true;\n}}\n",
    "HOOK": "static int {f}(struct {c} *context, const struct {m}_event *event)\n"
            "{{\n    (void)context; (void)event;\n    return 0;\n}}\n",
    "EFFECT": "static int {f}(struct {c} *context, const struct {m}_event *event,\n"
              "    struct {m}_event *ret)\n"
              "{{\n    (void)context; (void)event; (void)ret;\n    return DET_EFFECT_DONE;\n}}\n",
    "DISPATCH": "static int {f}(struct {c} *context, struct {m}_event *ret)\n"
                "{{\n    (void)context; (void)ret;\n    return DET_DIRECTIVE_CONTINUE;\n}}\n",
    "COMPLETION": "static int {f}(struct {c} *context, const struct det_component_end *end)\n"
                  "{{\n    (void)context; (void)end;\n    return 0;\n}}\n",
    "INVARIANT": "static bool {f}(const struct {c} *context)\n"
                 "{{\n    (void)context;\n    return true;\n}}\n",
}


def whole_text(path, seen=()):
    """The spec with its fragments, without comments."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    for name in re.findall(r'#\s*include\s+"([^"]+)"', text):
        inner = path.parent / name
        if inner.exists() and inner not in seen and len(seen) < 16:
            text += "\n" + whole_text(inner, seen + (inner,))
    return text


def program(path, folder):
    """A C file that declares and defines the machine of a spec."""
    text = whole_text(path)
    name = re.search(r"#\s*define\s+FSM_NAME\s+(\w+)", text)
    data = re.search(r"#\s*define\s+FSM_DATA\s+(\w+)", text)
    source = ""
    for index, used in enumerate(re.findall(r'\bUSES\(\s*"([^"]+)"\s*\)', text)):
        source += f'#define REC_SPEC "{used}"\n#include <detent/rec/declare.h>\n'
    context = re.search(r"#\s*define\s+FSM_CONTEXT\s+(\w+)", text)
    handler = re.search(r"#\s*define\s+FSM_HANDLER\s+(\w+)", text)
    source += f'#define FSM_SPEC "{path.name}"\n#include <detent/fsm/declare.h>\n'
    if context:
        member = f"const struct {handler[1]} *handler; " if handler else ""
        source += f"struct {context[1]} {{ {member}struct det_component component; }};\n"
    source += f'#define FSM_SPEC "{path.name}"\n#include <detent/fsm/define.h>\n'
    bodies = COMPONENT_BODIES if context else BODIES
    rows = "GUARD|HOOK|UPDATE|FILL|EFFECT|COMPLETION|INVARIANT"
    functions = re.findall(r"\b(" + rows + r")\(\s*(\w+)", text)
    functions += re.findall(r"\b(DISPATCH)\(.*,\s*(?:POLL|IGNORE)\s*,\s*(\w+)", text)
    done = set()
    for row, function in functions:
        if function not in done and row in bodies:
            source += bodies[row].format(f=function, m=name[1] if name else "m",
                                         data=data[1] if data else "det_empty",
                                         c=context[1] if context else "c")
        done.add(function)
    target = folder / (path.stem + ".c")
    target.write_text(source, encoding="utf-8")
    return target


def worker_program(path, folder):
    """A C file that declares and defines the worker of a spec, with bodies for its functions."""
    text = whole_text(path)
    words = dict(re.findall(r"#\s*define\s+WORKER_(\w+)[ \t]*(\w*)", text))
    name, empty = words.get("NAME", "w"), "det_empty"
    deps, desired, observed = (words.get(w, empty) for w in ("DEPS", "DESIRED", "OBSERVED"))
    source = ""
    for used in re.findall(r'\bUSES\(\s*"([^"]+)"\s*\)', text):
        source += f'#define REC_SPEC "{used}"\n#include <detent/rec/declare.h>\n'
    source += f'#define WORKER_SPEC "{path.name}"\n#include <detent/worker/declare.h>\n'
    if deps != empty:
        source += f"struct {deps} {{ int used; }};\n"
    source += f'#define WORKER_SPEC "{path.name}"\n#include <detent/worker/define.h>\n'
    context = f"struct det_worker_context *context, struct {deps} *deps"
    bodies = [(f"struct {name}_next {name}_in_{wire}", f"const struct {name}_view *view",
               f'{name}_hold("because")')
              for wire in dict.fromkeys(re.findall(r"\bSTATE\(\s*\w+\s*,\s*(\w+)", text))]
    bodies += [(f"int {name}_do_{wire}", f"{context}, const struct {desired} *desired", "0")
               for wire in dict.fromkeys(re.findall(r"\bACTION\(\s*\w+\s*,\s*(\w+)", text))]
    if "BLIND" not in words:
        bodies.append((f"int {name}_collect", f"{context}, const struct {desired} *desired, "
                       f"struct {observed} *observed", "0"))
    if deps != empty:
        bodies += [(f"int {name}_open", context, "0"),
                   (f"void {name}_close", f"struct {deps} *deps", "")]
    if "CONFIG" in words or "DERIVE" in words:
        bodies.append((f"int {name}_derive", "struct det_derive *derive, const struct "
                       f"{words.get('CONFIG', desired)} *config, struct {desired} *desired", "0"))
    if "CHILDREN" in words:
        bodies.append((f"int {name}_children", f"const struct {name}_view *view, "
                       "struct det_children *children", "0"))
    for head, parameters, answer in bodies:
        used = "".join(f"    (void){p.split('*')[-1].strip()};\n" for p in parameters.split(","))
        source += f"static {head}({parameters})\n{{\n{used}    return {answer};\n}}\n"
    target = folder / (path.stem + "_worker.c")
    target.write_text(source, encoding="utf-8")
    return target


def flow_program(path, folder):
    """A C file that declares and defines the flow of a spec, with bodies for its functions."""
    text = whole_text(path)
    source = ""
    for used in re.findall(r'\bUSES\(\s*"([^"]+)"\s*\)', text):
        source += f'#define REC_SPEC "{used}"\n#include <detent/rec/declare.h>\n'
    source += f'#define FLOW_SPEC "{path.name}"\n#include <detent/flow/declare.h>\n'
    source += f'#define FLOW_SPEC "{path.name}"\n#include <detent/flow/define.h>\n'
    for match in re.finditer(r"\b(SOURCE|TRANSFORM|STATEFUL|JOIN|SINK)\(([^()]*(?:\([^()]*"
                             r"(?:\([^()]*\)[^()]*)*\)[^()]*)*)\)", text):
        kind, row = match[1], match[2]
        if re.search(r"\bUSE\(", row):
            continue
        names = [name.strip() for name in re.sub(r"\(.*?\)", "", row).split(",")] + ["x"] * 4
        call, stage = "struct det_stage_call *call", names[0]
        cursor = re.search(r"\bCURSOR\((\w+)\)", row)
        state = re.search(r"\bSTATE\((\w+)\)", row)
        typed = f", struct {cursor[1]} *cursor" if cursor else ""
        bodies = {
            "SOURCE": [("", call + typed)],
            "TRANSFORM": [("", f"{call}, const struct {names[1]} *in")],
            "STATEFUL": [("", f"{call}, struct {state[1] if state else 'x'} *state, "
                              f"const struct {names[1]} *in"),
                         ("_result", f"{call}, struct {state[1] if state else 'x'} *state")],
            "JOIN": [("", f"{call}, const struct {names[1]} *reference, "
                          f"const struct {names[2]} *in")],
            "SINK": [("", f"{call}{typed}, const struct {names[1]} *in")],
        }[kind]
        bodies += [(f"_{name}", call) for name, word in (("open", "OPENS"), ("close", "OPENS"),
                                                         ("drain", "DRAINS"))
                   if re.search(rf"\b{word}\b", row)]
        if "BEGINS" in row and cursor:
            bodies.append(("_begin", call + typed))
        if "BUFFERED" in row:
            bodies.append(("_flush", call + typed))
        if "ACKNOWLEDGES" in row:
            bodies.append(("_acknowledged", call + ", uint64_t sequence"))
        for suffix, parameters in bodies:
            used = "".join(f"    (void){p.split()[-1].strip('*')};\n"
                           for p in parameters.split(","))
            is_void = suffix in ("_close", "_acknowledged")
            source += (f"static {'void' if is_void else 'int'} {stage}{suffix}({parameters})\n"
                       f"{{\n{used}{'' if is_void else '    return 0;'}\n}}\n")
    target = folder / (path.stem + "_flow.c")
    target.write_text(source, encoding="utf-8")
    return target


def compiled(compiler, root, source, include, extra):
    command = [compiler, "-std=c17", "-c", "-o", "/dev/null", "-fdiagnostics-color=never",
               f"-I{include}", f"-I{root / 'include'}", *extra, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=600)
    return done.returncode == 0, done.stderr


def expectation(path):
    first = path.read_text(encoding="utf-8", errors="replace").split("\n", 1)[0]
    match = re.search(r"expect:\s*(.*?)\s*\*/", first)
    return match[1] if match else None


def program_of(path):
    return {".worker": worker_program, ".flow": flow_program}.get(path.suffix, program)


def good_spec(compiler, root, path, folder):
    source = program_of(path)(path, folder)
    ok, words = compiled(compiler, root, source, path.parent,
                         [*WARNINGS, "-Wno-unused-function"])
    return None if ok else f"{path.name}: must compile, but:\n{words}"


def bad_spec(compiler, root, path, folder):
    expected = expectation(path)
    if not expected or expected.count("|") != 2:
        return f"{path.name}: the first line must be /* expect: rule | compiler | detent */"
    wanted = expected.split("|")[1].strip()
    source = program_of(path)(path, folder)
    ok, words = compiled(compiler, root, source, path.parent, [])
    if wanted == "(compiles)" and path.suffix == ".flow":
        return None if ok else f"{path.name}: must compile, but:\n{words[:2000]}"
    if ok:
        return f"{path.name}: compiles, but must not"
    if wanted not in words:
        return f"{path.name}: does not say '{wanted}':\n{words[:2000]}"
    return None


def bad_source(compiler, root, path, folder):
    wanted = expectation(path)
    if not wanted:
        return f"{path.name}: the first line must be /* expect: words */"
    includes = ["-I" + str(path.parent)]
    _, is_warning, wanted = wanted.rpartition("-Werror: ")
    ok, words = compiled(compiler, root, path, folder, includes + ["-Werror"] * bool(is_warning))
    if ok:
        return f"{path.name}: compiles, but must not"
    if not any(w in words for w in wanted.split("|")):
        return f"{path.name}: does not say '{wanted}':\n{words[:2000]}"
    ok, words = compiled(compiler, root, path, folder,
                         [*includes, "-DMENDED", *WARNINGS, "-Wno-unused-function"])
    return None if ok else f"{path.name}: must compile when mended, but:\n{words[:2000]}"


def wrong_language(compiler, root, path, folder):
    """The template says for what it is, and nothing else, to a compiler of another language."""
    template = str(path.relative_to(root / "include"))
    source = folder / template.replace("/", "_").replace(".h", ".txt")
    source.write_text('#define FSM_SPEC "door.fsm"\n#define REC_SPEC "door.fsm"\n'
                      '#define WORKER_SPEC "door.fsm"\n#define FLOW_SPEC "door.fsm"\n'
                      f"#include <{template}>\n", encoding="utf-8")
    for language in (["-xc", "-std=c90"], ["-xc", "-std=c99"], ["-xc++", "-std=c++11"],
                     ["-xc++", "-std=c++20"]):
        ok, words = compiled(compiler, root, source, root / "tests/compile_fail/api", language)
        if ok or "a spec becomes code in C11 or later only" not in words or \
                len(re.findall(r"\berror:", words)) != 1:
            return f"{template}: does not say, in {language[1]}, for what it is:\n{words[:2000]}"
    return None


def main():
    compiler, root, names = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
    corpus, here = root / "tests/corpus", root / "tests/compile_fail"
    work = [(good_spec, p) for p in sorted((corpus / "good").glob("*.fsm"))
            if "FSM_NAME" in p.read_text(encoding="utf-8")]
    work += [(bad_spec, p) for p in sorted((corpus / "bad").glob("*.fsm"))
             if expectation(p) is not None or "FSM_NAME" in p.read_text(encoding="utf-8")]
    workers = corpus / "worker"
    work += [(good_spec, p) for p in sorted((workers / "good").glob("*.worker"))]
    work += [(bad_spec, p) for p in sorted((workers / "bad").glob("*.worker"))]
    flows = corpus / "flow"
    work += [(good_spec, p) for p in sorted((flows / "good").glob("*.flow"))]
    work += [(bad_spec, p) for p in sorted((flows / "bad").glob("*.flow"))]
    work += [(bad_source, p) for p in sorted(here.glob("*/*.c"))]
    work += [(wrong_language, root / "include/detent" / name)
             for name in ("fsm/declare.h", "fsm/define.h", "rec/declare.h",
                          "worker/declare.h", "worker/define.h",
                          "flow/declare.h", "flow/define.h")]
    if names:
        work = [(check, p) for check, p in work if p.stem in names]
    with tempfile.TemporaryDirectory() as folder:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            found = list(pool.map(
                lambda item: item[0](compiler, root, item[1], pathlib.Path(folder)), work))
    problems = [f for f in found if f]
    print("\n".join(problems))
    print(f"{compiler}: {len(work) - len(problems)} of {len(work)} as expected")
    return 1 if problems or not work else 0


if __name__ == "__main__":
    sys.exit(main())
