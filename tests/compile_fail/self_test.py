#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright the detent authors
"""What must not compile and does not, but for another reason than it says, is reported.

    self_test.py COMPILER ROOT
"""
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
import run  # noqa: E402

SOURCE = """/* expect: undeclared_thing */
int f(void);
int f(void)
{{
#ifndef MENDED
    {wrong}
#else
    {right}
#endif
}}
"""

SPEC = """/* expect: no-initial | {words} | is initial */
#define FSM_NAME bell
#define FSM_PREFIX BELL

STATE(QUIET, quiet, INITIAL)
EVENT(RING, ring)
ON(QUIET, {event}, QUIET)
"""


def source(folder, wrong, right="return 0;"):
    path = folder / "tried.c"
    path.write_text(SOURCE.format(wrong=wrong, right=right), encoding="utf-8")
    return path


def a_source_fails_with_the_expected_message(compiler, root, folder):
    """An example that fails to compile for another reason is a finding."""
    def judge(*words):
        return run.bad_source(compiler, root, source(folder, *words), folder) or ""
    assert judge("return undeclared_thing;") == ""
    assert "does not say 'undeclared_thing'" in judge("return another_thing;")
    assert "compiles, but must not" in judge("return 0;")
    # What is wrong elsewhere, too, shows when the line in question is mended.
    assert "must compile when mended" in judge("return undeclared_thing;", "return another_thing;")


def a_spec_fails_with_the_expected_message(compiler, root, folder):
    def judge(words, event):
        path = folder / "tried.fsm"
        path.write_text(SPEC.format(words=words, event=event), encoding="utf-8")
        return run.bad_spec(compiler, root, path, folder) or ""
    assert judge("RINGS", "RINGS") == ""
    assert "does not say 'QUITE'" in judge("QUITE", "RINGS")
    assert "compiles, but must not" in judge("RINGS", "RING")


def main():
    compiler, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    for test in (a_source_fails_with_the_expected_message,
                 a_spec_fails_with_the_expected_message):
        with tempfile.TemporaryDirectory() as folder:
            test(compiler, root, pathlib.Path(folder))
        print(f"ok {test.__name__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
