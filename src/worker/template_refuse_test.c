/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_refuse_test.c - what templates are refused, where and with which words. */
#include "worker/template_test.h"

static void missing_template_variable_is_an_error(void **state)
{
    static const struct bad_row rows[] = {
        { "{{ .IPP }}", DET_ERR_NOT_FOUND,
          "config, line 1, column 4: .IPP: there is no 'IPP'; did you mean 'IP'?" },
        { "a\nb: {{ .prot }}", DET_ERR_NOT_FOUND,
          "config, line 2, column 7: .prot: there is no 'prot'; did you mean 'PORT'?" },
        { "ö {{ .XYZZY_XYZZY }}", DET_ERR_NOT_FOUND,
          "line 1, column 6: .XYZZY_XYZZY: there is no 'XYZZY_XYZZY'; there is: IP, PORT, " },
        { "{{ .global.sit }}", DET_ERR_NOT_FOUND,
          ".global.sit: there is no 'sit'; did you mean 'site'?" },
        { "{{ .global.nowhere_near }}", DET_ERR_NOT_FOUND, "there is: site, count" },
        { "{{ .VOID.x }}", DET_ERR_NOT_FOUND, "there is nothing in it" },
        { "{{ $.nothing_like_it }}", DET_ERR_NOT_FOUND, "there is no 'nothing_like_it'" },
        { "{{ if .MISSING }}a{{ end }}", DET_ERR_NOT_FOUND, "'MISSING'" },
        { "{{ range .MISSING }}a{{ end }}", DET_ERR_NOT_FOUND, "'MISSING'" },
        { "{{ with .MISSING }}a{{ end }}", DET_ERR_NOT_FOUND, "'MISSING'" },
        { "{{ .MISSING | default 3 }}", DET_ERR_NOT_FOUND, "'MISSING'" },
        { "{{ range .DEVICES }}{{ .IP }}{{ end }}", DET_ERR_NOT_FOUND, "there is: name, port" },
        { "{{ .DEEP.x.q.z }}", DET_ERR_NOT_FOUND, ".DEEP.x.q: there is no 'q'" },
        { "{{ .PORT.x }}", DET_ERR_TYPE, ".PORT.x: expected a map with 'x', found a number" },
        { "{{ .NOTHING.x }}", DET_ERR_TYPE, "expected a map with 'x', found null" },
        { "{{ range .LIST }}{{ .name }}{{ end }}", DET_ERR_TYPE,
          "expected a map with 'name', found text" },
        { "{{ and .ON .MISSING }}", DET_ERR_NOT_FOUND, "'MISSING'" },
    };

    CHECK_BAD(state, rows);
}

static void template_functions_refuse_wrong_types(void **state)
{
    static const struct bad_row rows[] = {
        { "{{ eq .PORT \"502\" }}", DET_ERR_TYPE,
          "line 1, column 4: eq: a number and text cannot be compared" },
        { "{{ ne .ON 1 }}", DET_ERR_TYPE, "a truth value and a number" },
        { "{{ eq .LIST .LIST }}", DET_ERR_TYPE, "a list and a list cannot be compared" },
        { "{{ lt .ON .OFF }}", DET_ERR_TYPE, "cannot be compared" },
        { "{{ gt .NOTHING 1 }}", DET_ERR_TYPE, "null and a number cannot be compared" },
        { "{{ len .PORT }}", DET_ERR_TYPE, "a number has no length" },
        { "{{ index .LIST 3 }}", DET_ERR_RANGE, "the list has 3 elements, counted from 0" },
        { "{{ index .LIST -1 }}", DET_ERR_RANGE, "none at -1" },
        { "{{ index .LIST \"a\" }}", DET_ERR_TYPE, "the index of a list must be a whole number" },
        { "{{ index .MAP 1 }}", DET_ERR_TYPE, "the key of a map is text" },
        { "{{ index .PORT 1 }}", DET_ERR_TYPE, "a number has no elements" },
        { "{{ index .MAP \"none\" \"x\" }}", DET_ERR_TYPE, "null has no elements" },
        { "{{ printf \"%x\" 1 }}", DET_ERR_MALFORMED,
          "printf supports only %s, %d, %v, %q and %%" },
        { "{{ printf \"%5d\" 1 }}", DET_ERR_MALFORMED, "printf supports only" },
        { "{{ printf \"%\" }}", DET_ERR_MALFORMED, "printf supports only" },
        { "{{ printf \"%d\" }}", DET_ERR_MALFORMED, "fewer values" },
        { "{{ printf \"x\" 1 }}", DET_ERR_MALFORMED, "more values" },
        { "{{ printf \"%d\" .IP }}", DET_ERR_TYPE, "%d is for a whole number, not for text" },
        { "{{ printf \"%d\" .RATIO }}", DET_ERR_TYPE, "not for a fraction" },
        { "{{ printf \"%s\" .PORT }}", DET_ERR_TYPE, "%s is for text, not for a number" },
        { "{{ printf \"%q\" .PORT }}", DET_ERR_TYPE, "%q is for text" },
        { "{{ printf .PORT }}", DET_ERR_TYPE, "the first value of printf is text" },
        { "{{ range .PORT }}{{ end }}", DET_ERR_TYPE, "range: expected a list or a map" },
        { "{{ range .IP }}{{ end }}", DET_ERR_TYPE, "found text" },
    };

    CHECK_BAD(state, rows);
}

static void syntax_is_refused(void **state)
{
    static const struct bad_row rows[] = {
        { "{{ .IP", DET_ERR_MALFORMED, "config, line 1, column 1: this {{ has no }}" },
        { "a\n  {{ .IP }", DET_ERR_MALFORMED, "line 2, column 10: unexpected '}'" },
        { "{{", DET_ERR_MALFORMED, "this {{ has no }}" },
        { "{{}}", DET_ERR_MALFORMED, "{{ }} is empty" },
        { "{{ }}", DET_ERR_MALFORMED, "{{ }} is empty" },
        { "{{ - }}", DET_ERR_MALFORMED, "unexpected '-'" },
        { "{{ IP }}", DET_ERR_MALFORMED,
          "there is no function 'IP'; a variable begins with a point" },
        { "{{ lenn .IP }}", DET_ERR_MALFORMED, "did you mean 'len'?" },
        { "{{ .IP .PORT }}", DET_ERR_MALFORMED, "line 1, column 8: a value follows a value" },
        { "{{ .IP | }}", DET_ERR_MALFORMED, "a value is missing before the end of the action" },
        { "{{ | .IP }}", DET_ERR_MALFORMED, "a value is missing before '|'" },
        { "{{ .IP | .PORT }}", DET_ERR_MALFORMED, "expected a function after |, found a value" },
        { "{{ .IP | 3 }}", DET_ERR_MALFORMED, "expected a function after |, found a value" },
        { "{{ (.IP }}", DET_ERR_MALFORMED, "has no matching ); close it" },
        { "{{ .IP) }}", DET_ERR_MALFORMED, "this ) has no matching (" },
        { "{{ () }}", DET_ERR_MALFORMED, "a value is missing before ')'" },
        { "{{ eq 1 }}", DET_ERR_MALFORMED, "eq needs two or more values" },
        { "{{ eq }}", DET_ERR_MALFORMED, "eq needs" },
        { "{{ not 1 2 }}", DET_ERR_MALFORMED, "not needs one value" },
        { "{{ 1 | not 2 }}", DET_ERR_MALFORMED, "not needs one value" },
        { "{{ and }}", DET_ERR_MALFORMED, "and needs" },
        { "{{ eq len .IP 3 }}", DET_ERR_MALFORMED, "in parentheses: (len ...)" },
        { "{{ $x }}", DET_ERR_MALFORMED, "there is no $x here; declare it first" },
        { "{{ $port := 1 }}{{ $prot }}", DET_ERR_MALFORMED, "did you mean $port" },
        { "{{ $x = 1 }}", DET_ERR_MALFORMED, "there is no $x here; declare it with :=" },
        { "{{ $ := 1 }}", DET_ERR_MALFORMED, "name the variable" },
        { "{{ if .ON }}{{ $x := 1 }}{{ end }}{{ $x }}", DET_ERR_MALFORMED, "there is no $x here" },
        { "{{ if .ON }}{{ $x := 1 }}{{ else }}{{ $x }}{{ end }}", DET_ERR_MALFORMED, "no $x" },
        { "{{ range $v := .LIST }}{{ end }}{{ $v }}", DET_ERR_MALFORMED, "there is no $v here" },
        { "{{ range $i, $v .LIST }}{{ end }}", DET_ERR_MALFORMED, "expected ':='" },
        { "{{ range $i, $v, $w := .LIST }}{{ end }}", DET_ERR_MALFORMED, "expected ':='" },
        { "{{ $x, $y := .LIST }}", DET_ERR_MALFORMED, "there is no $x here" },
        { "{{ if }}a{{ end }}", DET_ERR_MALFORMED, "a value is missing before the end" },
        { "{{ if .ON }}a", DET_ERR_MALFORMED, "line 1, column 1: this if has no {{ end }}" },
        { "x\n{{ range .LIST }}{{ if .ON }}{{ end }}", DET_ERR_MALFORMED,
          "line 2, column 1: this range has no {{ end }}" },
        { "{{ end }}", DET_ERR_MALFORMED, "this end has no if" },
        { "{{ else }}", DET_ERR_MALFORMED, "this else has no if" },
        { "{{ if .ON }}{{ else }}{{ else }}{{ end }}", DET_ERR_MALFORMED, "this else has no if" },
        { "{{ if .ON }}{{ else .IP }}{{ end }}", DET_ERR_MALFORMED, "expected }} after else" },
        { "{{ range .LIST }}{{ else if .ON }}{{ end }}", DET_ERR_MALFORMED, "expected }} after" },
        { "{{ if .ON }}{{ end 1 }}", DET_ERR_MALFORMED, "expected }} after end" },
        { "{{ quoted 1 }}{{ end }}", DET_ERR_MALFORMED, "expected }} after quoted" },
        { "{{ quoted }}{{ else }}{{ end }}", DET_ERR_MALFORMED, "this else has no if" },
        { "{{ .IP, .PORT }}", DET_ERR_MALFORMED, "found ','" },
        { "{{ .IP := 1 }}", DET_ERR_MALFORMED, "found ':='" },
        { "{{ \"abc }}", DET_ERR_MALFORMED, "the text has no end; close it with \"" },
        { "{{ `abc }}", DET_ERR_MALFORMED, "close it with `" },
        { "{{ \"a\\x\" }}", DET_ERR_MALFORMED, "line 1, column 6: unknown escape" },
        { "{{ 12ab }}", DET_ERR_MALFORMED, "'12ab' is not a number" },
        { "{{ 99999999999999999999 }}", DET_ERR_MALFORMED, "the number does not fit 64 bits" },
        { "{{ .IP + 1 }}", DET_ERR_MALFORMED, "unexpected '+'" },
        { "{{ .IP == 1 }}", DET_ERR_MALFORMED, "found '='" },
        { "{{ /* x }}", DET_ERR_MALFORMED, "unexpected '/'" },
        { "{{/* x }}", DET_ERR_MALFORMED, "the comment has no end" },
        { "{{/* x */ .IP }}", DET_ERR_MALFORMED, "a comment is a separate action" },
        { "{{ template \"x\" }}", DET_ERR_MALFORMED, "template is not supported" },
        { "{{ define \"x\" }}{{ end }}", DET_ERR_MALFORMED, "define is not supported" },
        { "{{ range .LIST }}{{ break }}{{ end }}", DET_ERR_MALFORMED, "break is not supported" },
        { "{{ and 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 }}", DET_ERR_MALFORMED, "more than 15" },
    };

    CHECK_BAD(state, rows);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(missing_template_variable_is_an_error),
        CASE(template_functions_refuse_wrong_types),
        CASE(syntax_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
