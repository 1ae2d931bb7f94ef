#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Runs what the documentation shows, so that it is true.

    snippets.py COMPILER ROOT BUILD [PAGE...]     README.md, docs/**/*.md, or the pages given
    snippets.py --self-test COMPILER ROOT BUILD   bad/*.md must be reported as their first line says

What a fence means, by its language. A page has a folder of its own; fences are done from the top.

    any, after a line `<!-- file: NAME -->`   is written to NAME
    any, after a line `<!-- part -->`         is not complete, and only read by people
    c         a program: compiled with our warnings as errors, and run; it must exit with 0
    sh        commands of docs/start.md that a new user types; tests/e2e/first.py runs them
    text      free text; after a line `<!-- output -->` what the program before it has printed
    console   lines `$ command`, and under each exactly what it prints; a line `...` stands for any
              number of lines. detent, cc and pkg-config are there
    json      a JSON document, or one in each line
    flow, fsm, rec, worker, yaml   one of the two marks is needed
    mermaid, dot       drawings

Every relative link must lead to a file, and every #anchor to a heading.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "lib"))
from patience import HANG  # noqa: E402  pylint: disable=wrong-import-position

WARNINGS = ("-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes "
            "-Wmissing-prototypes -Wundef -Wvla -Wcast-qual -Wformat=2 -Wswitch-enum "
            "-Wimplicit-fallthrough -Wnull-dereference -Werror").split()
MARKED_ONLY = {"flow", "fsm", "rec", "worker", "yaml"}
DRAWINGS = {"mermaid", "dot"}
TIMEOUT = HANG


class Wrong(Exception):
    """What is wrong with a fence, and on which of its lines."""

    def __init__(self, text, line=0):
        super().__init__(text)
        self.line = line


class Fence:
    def __init__(self, language, mark, number):
        self.language, self.mark, self.number, self.lines = language, mark, number, []

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"


def read_fences(text):
    """The fences of a page with the mark before each; an open one at the end is an error."""
    fences, current, mark = [], None, None
    for number, line in enumerate(text.splitlines(), 1):
        if current is not None:
            if line.strip() == "```":
                fences.append(current)
                current = None
            else:
                current.lines.append(line)
        elif line.startswith("```"):
            current = Fence(line[3:].strip(), mark, number)
            mark = None
        elif line.strip():
            match = re.fullmatch(r"<!-- (.*) -->", line.strip())
            mark = match[1] if match else None
    if current is not None:
        raise Wrong("the fence is never closed", current.number)
    return fences


def without_fences(text):
    return re.sub(r"^```.*?^```$", lambda m: "\n" * m[0].count("\n"), text, flags=re.M | re.S)


def anchors(text):
    """The anchors of the headings, as they are made on the usual sites."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", without_fences(text), flags=re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        found.add(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-"))
    return found


def check_links(path, text):
    prose = without_fences(text)
    for match in re.finditer(r"\[[^]\n]*\]\(([^)\s]+)\)", prose):
        target, _, anchor = match[1].partition("#")
        number = prose.count("\n", 0, match.start()) + 1
        if re.match(r"[a-z]+:", target):
            continue
        file = (path.parent / target).resolve() if target else path
        if not file.exists():
            yield number, f"the link {match[1]} leads nowhere"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            yield number, f"there is no heading for #{anchor} in {target or 'this page'}"


def matches(expected, actual):
    """Whether the lines are the same, where `...` stands for any lines."""
    if "..." not in expected:
        return expected == actual
    at = expected.index("...")
    if expected[:at] != actual[:at] or len(actual) < at:
        return False
    rest = expected[at + 1:]
    return any(matches(rest, actual[i:]) for i in range(at, len(actual) + 1))


class Page:
    """One page in its folder."""

    def __init__(self, compiler, root, build, path, folder):
        self.compiler, self.root, self.path, self.folder = compiler, root, path, folder
        self.build, self.output, self.count = build, None, 0
        self.environment = dict(
            os.environ, PATH=f"{build}:{os.environ['PATH']}", NO_COLOR="1", TERM="dumb",
            LC_ALL="C.UTF-8", HOME=str(folder), LD_LIBRARY_PATH=str(build),
            PKG_CONFIG_PATH=str(folder / ".pkgconfig"))

    def describe_package(self):
        """detent.pc of the build folder, so that commands can be shown as users type them."""
        place = self.folder / ".pkgconfig"
        place.mkdir()
        (place / "detent.pc").write_text(
            "Name: detent\nDescription: the build\nVersion: 0\n"
            f"Cflags: -I{self.root / 'include'}\nLibs: -L{self.build} -ldetent\n")

    def run(self, command, **more):
        done = subprocess.run(command, cwd=self.folder, env=self.environment, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", **more)
        return done.returncode, done.stdout

    def do_c(self, fence):
        self.count += 1
        source, program = f".snippet{self.count}.c", f".snippet{self.count}"
        (self.folder / source).write_text(fence.text)
        code, words = self.run([
            self.compiler, "-std=c17", "-D_GNU_SOURCE", "-O1", *WARNINGS, "-I.",
            f"-I{self.root / 'include'}", "-o", program, source, str(self.build / "libdetent.a"),
            "-lsqlite3", "-lpq", "-lsodium", "-lyaml", "-lpthread", "-lm"])
        if code:
            raise Wrong("the program does not compile:\n" + words)
        code, self.output = self.run(["./" + program])
        if code:
            raise Wrong(f"the program exits with {code}:\n{self.output}")

    def do_console(self, fence):
        if not fence.lines or not fence.lines[0].startswith("$ "):
            raise Wrong("a console begins with `$ command`", 1)
        starts = [i for i, line in enumerate(fence.lines) if line.startswith("$ ")]
        for start, end in zip(starts, [*starts[1:], len(fence.lines)]):
            expected = fence.lines[start + 1:end]
            _, words = self.run(["sh", "-c", fence.lines[start][2:]])
            if not matches(expected, words.splitlines()):
                raise Wrong(f"`{fence.lines[start]}` prints:\n{words}", start + 1)

    def do_text(self, fence):
        if fence.mark == "output" and (self.output or "").splitlines() != fence.lines:
            raise Wrong(f"the program before it prints:\n{self.output}")

    def do_json(self, fence):
        try:
            json.loads(fence.text)
        except json.JSONDecodeError:
            try:
                for line in filter(str.strip, fence.lines):
                    json.loads(line)
            except json.JSONDecodeError as error:
                raise Wrong(f"this is not JSON: {error}") from None

    def do(self, fence):
        language = fence.language
        known = {"c": self.do_c, "console": self.do_console, "text": self.do_text,
                 "json": self.do_json}
        if language == "sh" and self.path == self.root / "docs/start.md":
            return
        if language not in known and language not in MARKED_ONLY | DRAWINGS:
            raise Wrong(f"there is no fence of the language `{language}`")
        if fence.mark == "part":
            return
        if fence.mark and fence.mark.startswith("file: "):
            target = (self.folder / fence.mark[6:].strip()).resolve()
            if self.folder.resolve() not in target.parents:
                raise Wrong("the file lies outside of the page's folder")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(fence.text)
        elif language in MARKED_ONLY:
            raise Wrong(f"a fence of {language} needs <!-- file: NAME --> or <!-- part -->")
        elif language in known:
            known[language](fence)

    def check(self):
        """Yields (line, text) for all that is wrong."""
        text = self.path.read_text(encoding="utf-8")
        yield from check_links(self.path, text)
        self.describe_package()
        try:
            fences = read_fences(text)
        except Wrong as wrong:
            yield wrong.line, str(wrong)
            return
        for fence in fences:
            try:
                self.do(fence)
            except Wrong as wrong:
                yield fence.number + wrong.line, str(wrong)
            except subprocess.TimeoutExpired:
                yield fence.number, f"it takes more than {TIMEOUT} s"


def check_page(compiler, root, build, path):
    with tempfile.TemporaryDirectory() as folder:
        return list(Page(compiler, root, build, path, Path(folder)).check())


def self_test(compiler, root, build):
    """Every bad page is reported once, in the words of its first line; the good one is not."""
    faults = 0
    for path in sorted((Path(__file__).resolve().parent / "self").glob("*.md")):
        found = check_page(compiler, root, build, path)
        match = re.match(r"<!-- expect: (.*) -->", path.read_text())
        wanted = [match[1]] if match else []
        if len(found) != len(wanted) or any(w not in t for w, (_, t) in zip(wanted, found)):
            print(f"{path.name}: expected {wanted}, found {found}")
            faults += 1
    print(f"snippets: {faults} faults in the self-test")
    return 1 if faults else 0


def main():
    arguments = sys.argv[1:]
    is_self_test = arguments[:1] == ["--self-test"]
    compiler, root, build, *names = arguments[is_self_test:]
    root, build = Path(root).resolve(), Path(build).resolve()
    if is_self_test:
        return self_test(compiler, root, build)
    paths = [Path(name).resolve() for name in names] or [
        *sorted(root.glob("*.md")), *sorted((root / "docs").rglob("*.md")),
        *sorted((root / "examples").rglob("*.md"))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: check_page(compiler, root, build, path), paths))
    for path, found in zip(paths, results):
        for line, text in found:
            name = path.relative_to(root) if root in path.parents else path
            print(f"{name}:{line}: {text}")
    wrong = sum(map(len, results))
    print(f"snippets: {len(paths)} pages, {wrong} findings")
    return 1 if wrong or not paths else 0


if __name__ == "__main__":
    sys.exit(main())
