#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""Checks the rules of the tree that a compiler does not: see RULES.

tidy.py              checks the tree this file stands in
tidy.py --self-test  checks that each rule reports its bad snippet, bad/<rule>/, and nothing else,
                     and that good/ is clean

A file that DETENT_WORDS names holds words, one per line, that may not occur anywhere in the tree.
The list itself stays outside: it would be the first file to break the rule.
"""
import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parent.parent

RULES = {
    "layers": "a folder of src/ includes only what src/LAYERS allows",
    "system-header": "headers of the operating system only where src/LAYERS says system",
    "line-length": "at most 100 columns, but in lists (.def), whose rows are one fact each",
    "function-length": "at most 70 lines from { to }",
    "file-length": "at most 700 lines; a warning from 500",
    "struct-fields": "at most 40 fields in a struct of the library or the program, functions not "
    "counted: fields that change together are a separate struct",
    "banned-call": "a call that cannot be used safely",
    "sleep-in-test": "a test waits for an event, not for time",
    "one-place": "fsync and rename in one file of src/os, where their order is kept",
    "single-gateway": "only the machine's own folder, the runtime, the workers and the program "
    "step a machine and run its effects; for components only supervise/gateway.c",
    "plural": "a counted noun has its plural from det_plural() and the like: never '1 tasks'",
    "spdx": "two lines of SPDX head, then a sentence that describes the file",
    "file-name": "a file's first comment begins with its name; comments name files that exist",
    "extern-c": "a public header with functions has DET_BEGIN and DET_END",
    "tab": "no tab",
    "space": "no space at the end of a line, a newline at the end of the file",
    "plain-words": "documentation, public headers and the code of PLAIN_ROOMS name the thing: no "
    "phrase of RIDDLES",
    "todo": "no note of work left",
    "banner": "no banner art",
    "machine-path": "no path of a developer's machine",
    "word": "no word of the list that DETENT_WORDS names",
}

LINE_MAX = 100
FUNCTION_MAX = 70
FILE_MAX = 700
FILE_WARN = 500
FIELDS_MAX = 40
BANNED = "sprintf vsprintf strcpy strcat atoi atol atoll atof system popen alloca gets strtok"
SLEEP = "sleep usleep nanosleep clock_nanosleep thrd_sleep"
ONE_PLACE = "fsync fdatasync sync_file_range rename renameat renameat2"
GATEWAY = re.compile(
    r"\b(det_machine_(?:step|choice))\s*\(|(?:->|\.)(table\s*\[)|"
    r"machine(?:->|\.)(effects\s*\[(?!\w*\]\.name))"
)
GATEWAY_FOLDERS = {("src", "machine"), ("src", "runtime"), ("src", "worker"), ("src", "program")}
GATEWAY_FILE = Path("src/supervise/gateway.c")
SYSTEM = re.compile(
    r"(sys|linux|asm|net|netinet|arpa)/.*|(pthread|threads|unistd|time|fcntl|signal|poll|dirent|"
    r"dlfcn|spawn|sched|semaphore|netdb|pwd|grp|termios|ucontext|syslog|uv)\.h"
)
# In a message: a number, perhaps the total, and then a word that is always a plural. A word that
# ends in an s need not be one.
COUNT = r"%[0-9]*(?:hh?|ll?|z|j)?[ud] "
PLURAL = re.compile(
    rf"{COUNT}(?:of {COUNT})?(?!(?:is|was|has|does|as|its|ms|us|ns|process|(?:follow|fit)s)\b)"
    r"(?:[a-z]+s|are|have|were)\b[^;]*(?:;(?!\n)[^;]*)*"
)
# Limits are more than one, and so are counts that exceed them.
MANY = re.compile(
    r"\b[A-Z]+_[A-Z_]*(?:MAX|DEADLINE|PENDING)\b|\b(?:about|at most|more than|up to|1 to)\b|== 1 \?"
)
# Phrases that make a reader guess who or what is meant. The remedy is the noun: holder, readers,
# desired state, published, after, manually created. bad/plain-words has an example of each.
RIDDLE_PHRASES = (
    r"who (?:comes|has|reads|runs|waits|asks|follows|sends|wants)",
    r"of whom",
    r"what is (?:told|put|due|below|above|wanted|asked)",
    r"what (?:became|becomes|has become) of",
    r"(?:is|are|was|were) told",
    r"any more",
    r"behind (?:it|them|all)",
    r"shall be",
    r"by hand",
    r"(?:some|no)body else",
    r"(?:said|stands? (?:here|there)) twice",
    r"begins? anew",
    r"comes? to (?:its|their|an) (?:own )?end",
    r"for want of",
    r"half done",
    r"sits",
    r"dear",
    r"deeds?",
    r"heirs?",
    r"crews?",
    r"riddles?",
)
RIDDLES = re.compile(rf"\b({'|'.join(RIDDLE_PHRASES)})\b", re.I)
FILE_IN_COMMENT = re.compile(r"(?<![\w./<-])(\w[\w/]*/\w+\.(?:c|h|def|fsm))\b")
GENERATED = {Path("docs/performance.md")}
# The rooms whose comments and messages are clean. The list grows until it is all of src/.
PLAIN_ROOMS = (
    "base os record json machine flow observe yaml http auth terminal kinds config inspect "
    "transfer testing codegen client store runtime supervise task worker daemon api commands "
    "journal"
).split()
HEAD = "/* SPDX-License-Identifier: MIT\n * Copyright the detent authors */\n\n/* "
CODE = {".c", ".h", ".def", ".fsm"}
WIDE = {".def", ".md", ".json", ".txt", ".js", ".yaml"}
TEXT = CODE | {".py", ".sh", ".cmake", ".txt", ".json", ".yaml", ".yml", ".md", ".in", ".js", ""}
SKIP = {".git", "build", "node_modules", "corpus", "__pycache__"}


def is_test(path):
    """A suite, or the cases that several suites share: x_test.c, x_cases.h."""
    return path.parts[0] == "tests" or re.search(r"_(test|cases)\.[ch]$", path.name) is not None


def call_pattern(names):
    """Matches a call of one of the functions, but not of a member or of a longer name."""
    return re.compile(r"(?<![\w.>])(?:__builtin_)?(" + "|".join(names.split()) + r")\s*\(")


BANNED_CALL, SLEEP_CALL, ONE_PLACE_CALL = map(call_pattern, (BANNED, SLEEP, ONE_PLACE))


def read_layers(path):
    """The folders in order, each with the set of folders it may include and its marks."""
    layers = {}
    for line in path.read_text().splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        allowed = set(layers)
        for word in words[1:]:
            if word.startswith("only="):
                allowed = set(filter(None, word[5:].split(",")))
        layers[words[0]] = (allowed | {words[0]}, set(words[1:]))
    return layers


def room_of(path):
    """The name in LAYERS of the folder that a file of src/ is in."""
    return path.parts[2 if path.parts[1] == "program" else 1]


def blank(match):
    """Comments and literals become spaces, so that lines keep their numbers."""
    return re.sub(r"[^\n]", " ", match.group())


def strip(text):
    """The code without comments, strings and characters."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, text, flags=re.S)


def flat(text, opening, closing):
    """Returns the text with a NUL for each pair of these brackets and its content."""
    while True:
        shorter = re.sub(rf"{opening}[^{opening}{closing}]*{closing}", "\0", text)
        if shorter == text:
            return text
        text = shorter


def count_fields(body):
    """The fields between the braces of a struct; those of a struct or union without a name, too."""
    count = 0
    while match := re.search(r"\b(?:struct|union)\s*\{([^{}]*)\}\s*;", body):
        count += count_fields(match[1])
        body = body[: match.start()] + body[match.end() :]
    for declaration in flat(re.sub(r"^\s*#.*$", "", body, flags=re.M), "{", "}").split(";"):
        is_function = re.search(r"\(\s*\*\s*\w+\s*\)\s*\(", declaration)
        if declaration.strip() and not is_function:
            count += 1 + flat(flat(declaration, r"\(", r"\)"), r"\[", r"\]").count(",")
    return count


class Check:
    """One run over one tree."""

    def __init__(self, root, words):
        self.root = root
        self.layers = read_layers(TREE / "src" / "LAYERS")
        self.words = words
        self.findings = []
        self.warnings = []
        self.one_place = {}

    def report(self, rule, path, number, text):
        assert rule in RULES
        self.findings.append((rule, f"{path}:{number}: {rule}: {text}"))

    def run(self):
        for path in self.files():
            text = (self.root / path).read_text(errors="replace")
            self.check_text(path, text)
            if path.suffix in CODE:
                self.check_code(path, text)
            if path.suffix == ".md" and path not in GENERATED:
                self.check_words(path, text)
            # A snippet that must not compile starts with the message it expects instead.
            if path.suffix in {".c", ".h"} and not text.startswith((HEAD, "/* expect: ")):
                self.report("spdx", path, 1, RULES["spdx"])
            if path.suffix in CODE and not is_test(path):
                self.check_file_names(path, text)
        if len(self.one_place) > 1:
            for path, (number, name) in self.one_place.items():
                self.report("one-place", path, number, f"{name}: more than one file calls such")
        return self

    def files(self):
        for folder, folders, names in os.walk(self.root):
            here = Path(folder).relative_to(self.root)
            folders[:] = sorted(set(folders) - SKIP)
            if here == Path("tests/tidy"):
                folders.clear()
            for name in sorted(names):
                if Path(name).suffix in TEXT and not name.startswith(".git"):
                    yield here / name

    def check_text(self, path, text):
        """Checks the rules for every text file."""
        if text and not text.endswith("\n"):
            self.report("space", path, text.count("\n") + 1, "no newline at the end of the file")
        for number, line in enumerate(text.splitlines(), 1):
            if line.rstrip() != line:
                self.report("space", path, number, "space at the end of the line")
            if "\t" in line and path.name != "Makefile":
                self.report("tab", path, number, RULES["tab"])
            if re.search(r"(^|[\s\"'=(])/(home|root|work|Users)/\w", line):
                self.report("machine-path", path, number, RULES["machine-path"])
            for word in self.words:
                if re.search(r"\b" + re.escape(word) + r"\b", line, re.I):
                    self.report("word", path, number, "a word of the list")
            if len(line) > LINE_MAX and path.suffix not in WIDE:
                self.report("line-length", path, number, f"{len(line)} columns")

    def check_words(self, path, text):
        """Checks prose only: code and output are quoted as they are."""
        prose = re.sub(r"^```.*?^```$|`[^`\n]*`", blank, text, flags=re.M | re.S)
        for number, line in enumerate(prose.splitlines(), 1):
            for match in RIDDLES.finditer(line):
                self.report("plain-words", path, number, match.group())

    def check_code_words(self, path, text):
        """Checks comments and strings; a phrase may span two lines."""
        is_room = path.parts[0] == "src" and room_of(path) in PLAIN_ROOMS
        if is_test(path) or not (is_room or path.parts[0] == "include"):
            return
        for match in re.finditer(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', text, re.S):
            number = text.count("\n", 0, match.start()) + 1
            words = re.sub(r"\n\s*\*?\s*", " ", match.group())
            for riddle in RIDDLES.finditer(words):
                self.report("plain-words", path, number, riddle.group())

    def check_file_names(self, path, text):
        own = re.match(r"(?s).{0,120}?^/\* (\w+\.(?:c|h|def|fsm)) - ", text, re.M)
        if own and own[1] != path.name:
            self.report("file-name", path, 4, f"{own[1]} is not the name of this file")
        for match in re.finditer(r"/\*.*?\*/", text, re.S):
            for name in FILE_IN_COMMENT.finditer(match.group()):
                if not self.is_file_of_tree(path, name[1]):
                    number = text.count("\n", 0, match.start() + name.start()) + 1
                    self.report("file-name", path, number, f"there is no {name[1]}")

    def is_file_of_tree(self, path, name):
        """A name is relative to the root, an include folder, or a folder above the file's own."""
        tops = [self.root / top for top in ("", "include", "include/detent", "src", "src/program")]
        tops += [self.root / folder for folder in path.parents]
        return any((top / name).exists() for top in tops)

    def check_code(self, path, text):
        """Checks the rules for C and spec files."""
        code = strip(text)
        lines = text.count("\n")
        if lines > FILE_MAX:
            self.report("file-length", path, lines, f"{lines} lines")
        elif lines > FILE_WARN:
            self.warnings.append(f"{path}: {lines} lines, think of splitting it")
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(r"\b(TODO|FIXME)\b", line):
                self.report("todo", path, number, RULES["todo"])
            if re.match(r"\s*(/\*|\*|//)\s?[*=#/-]{4,}\s*(\*/)?$", line):
                self.report("banner", path, number, RULES["banner"])
        self.check_code_words(path, text)
        self.check_functions(path, code)
        self.check_structs(path, code)
        self.check_plurals(path, text)
        self.check_calls(path, code)
        self.check_includes(path, text)
        if path.parts[0] == "include" and re.search(r"^(?!#).*\bDET_API\b", code, re.M):
            if not re.search(r"^DET_BEGIN$.*^DET_END$", code, re.M | re.S):
                self.report("extern-c", path, 1, RULES["extern-c"])

    def check_functions(self, path, code):
        """In this format only the body of a function has its braces in the first column."""
        start = None
        for number, line in enumerate(code.splitlines(), 1):
            if line.startswith("{"):
                start = number
            elif line.startswith("}") and start:
                if number - start + 1 > FUNCTION_MAX:
                    self.report("function-length", path, start, f"{number - start + 1} lines")
                start = None

    def check_structs(self, path, code):
        if path.parts[0] not in {"src", "include"}:
            return
        structs = r"^(?:static |typedef )*struct ?(\w*)\s*\{(.*?)^\}"
        for match in re.finditer(structs, code, re.M | re.S):
            fields = count_fields(match[2])
            if fields > FIELDS_MAX:
                number = code.count("\n", 0, match.start()) + 1
                name = match[1] or "a struct"
                self.report("struct-fields", path, number, f"{name} has {fields} fields")

    def check_plurals(self, path, text):
        """A message may begin on the line before, so the whole statement is searched."""
        if path.parts[0] != "src" or is_test(path):
            return
        for match in PLURAL.finditer(text):
            start = max(text.rfind(end, 0, match.start()) for end in (";", "{", "}"))
            if not MANY.search(text, start + 1, match.end()):
                number = text.count("\n", 0, match.start()) + 1
                self.report("plural", path, number, match.group().split('"')[0])

    def check_calls(self, path, code):
        test = is_test(path)
        may_step = (
            test
            or path.parts[0] != "src"
            or path.parts[:2] in GATEWAY_FOLDERS
            or path == GATEWAY_FILE
        )
        for number, line in enumerate(code.splitlines(), 1):
            for match in GATEWAY.finditer(line) if not may_step else ():
                self.report("single-gateway", path, number, match[1] or match[2] or match[3])
            for match in BANNED_CALL.finditer(line):
                self.report("banned-call", path, number, match.group(1))
            for match in SLEEP_CALL.finditer(line) if test else ():
                self.report("sleep-in-test", path, number, match.group(1))
            for match in ONE_PLACE_CALL.finditer(line) if not test else ():
                if path.parts[:2] == ("src", "os"):
                    self.one_place.setdefault(path, (number, match.group(1)))
                else:
                    self.report("one-place", path, number, match.group(1))

    def check_includes(self, path, text):
        is_src = path.parts[0] == "src" and len(path.parts) > 2
        test = is_test(path)
        if not is_src and path.parts[0] != "include":
            return
        allowed, marks = self.layers.get(room_of(path) if is_src else "", (set(), set()))
        for number, line in enumerate(text.splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*([<"])([^">]*)', line)
            if not match:
                continue
            sign, name = match.groups()
            folder = name.split("/")[0] if "/" in name else ""
            if sign == '"' and folder not in allowed and not (test and folder in {"", "lib"}):
                owner = room_of(path) if is_src else "a public header"
                self.report("layers", path, number, f"{owner} may not include {name}")
            if sign == "<" and SYSTEM.fullmatch(name) and "system" not in marks and not test:
                self.report("system-header", path, number, name)


def missing_phrases(found):
    """Returns the number of phrases without an example among the found ones."""
    missing = [
        phrase
        for phrase in RIDDLE_PHRASES
        if not any(re.fullmatch(phrase, text, re.I) for text in found)
    ]
    for phrase in missing:
        print(f"bad/plain-words has no example of: {phrase}")
    return len(missing)


def self_test():
    """Every rule must report its own snippet and only that; returns the number of
    faults. The rule on phrases must find an example of each phrase."""
    faults = 0
    for rule in RULES:
        findings = Check(HERE / "bad" / rule, ["forbiddenword"]).run().findings
        found = {name for name, _ in findings}
        if found != {rule}:
            print(f"bad/{rule} must be reported by {rule} alone, but was by: {sorted(found)}")
            faults += 1
        if rule == "plain-words":
            faults += missing_phrases([text.rsplit(": ", 1)[1] for _, text in findings])
    good = Check(HERE / "good", ["forbiddenword"]).run().findings
    for _, text in good:
        print(f"good/{text}")
    faults += len(good)
    print(f"tidy: {len(RULES)} rules tried, {faults} faults")
    return faults


def main():
    if sys.argv[1:] == ["--self-test"]:
        return 1 if self_test() else 0
    words = []
    if os.environ.get("DETENT_WORDS"):
        words = Path(os.environ["DETENT_WORDS"]).read_text().split()
    check = Check(TREE, words).run()
    for text in check.warnings:
        print(f"warning: {text}")
    for _, text in check.findings:
        print(text)
    print(f"tidy: {len(check.findings)} findings, {len(check.warnings)} warnings")
    return 1 if check.findings else 0


if __name__ == "__main__":
    sys.exit(main())
