/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_test.c - the language of templates, row by row: what is rendered, what is refused and
 * with which words, and that nothing hangs or grows without bound. */
#include "worker/template.h"

#include "lib/test.h"

static const char data[] = "IP: 10.0.0.7\n"
                           "PORT: 502\n"
                           "RATIO: 1.5\n"
                           "WHOLE: 2.0\n"
                           "ON: true\n"
                           "OFF: false\n"
                           "NAME: 'line \"A\"'\n"
                           "EMPTY: ''\n"
                           "NOTHING: null\n"
                           "ZERO: 0\n"
                           "BIG: 18446744073709551615\n"
                           "LOW: -7\n"
                           "UMLAUT: größe\n"
                           "LIST: [a, b, c]\n"
                           "NUMBERS: [3, 1, 2]\n"
                           "NESTED: [[1, 2], [], [3]]\n"
                           "NONE: []\n"
                           "MAP: {b: 2, a: 1, c: 3}\n"
                           "VOID: {}\n"
                           "DEEP: {x: {y: {z: found}}}\n"
                           "DEVICES: [{name: d1, port: 1}, {name: d2, port: 2}]\n"
                           "global: {site: north, count: 3}\n"
                           "internal: {id: plant/press, parent_id: plant}\n"
                           "location_path: acme.north\n";

struct fixture {
    struct det_arena arena;
    struct det_datum *root;
    struct det_buffer buffer;
    struct det_error error;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    det_arena_init(&fixture->arena, NULL);
    assert_int_equal(
        det_datum_from_yaml(
            &fixture->arena, "data", data, sizeof data - 1, &fixture->root, &fixture->error),
        0);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    det_arena_deinit(&fixture->arena);
    det_buffer_deinit(&fixture->buffer);
    free(fixture);
    return 0;
}

static int render(struct fixture *fixture, const char *text, size_t size)
{
    struct det_template *template = NULL;
    int r;

    det_buffer_clear(&fixture->buffer);
    r = det_template_open(NULL, "config", text, size, &template, &fixture->error);
    if (r == 0)
        r = det_template_render(template, fixture->root, &fixture->buffer, &fixture->error);
    det_template_close(template);
    return r;
}

struct row {
    const char *template, *result;
};

static void check(struct fixture *fixture, const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int r = render(fixture, rows[i].template, strlen(rows[i].template));

        if (r < 0)
            fail_msg("%s: %s", rows[i].template, fixture->error.text);
        if (strcmp(det_buffer_text(&fixture->buffer), rows[i].result) != 0)
            fail_msg(
                "%s: '%s' instead of '%s'", rows[i].template, det_buffer_text(&fixture->buffer),
                rows[i].result);
    }
}
#define CHECK(state, rows) check(*(state), rows, sizeof(rows) / sizeof((rows)[0]))

static void values(void **state)
{
    static const struct row rows[] = {
        { "", "" },
        { "plain", "plain" },
        { "a { b } } { c", "a { b } } { c" },
        { "{{ .IP }}", "10.0.0.7" },
        { "{{.IP}}", "10.0.0.7" },
        { "{{\n.IP\n}}", "10.0.0.7" },
        { "{{ .IP }}:{{ .PORT }}", "10.0.0.7:502" },
        { "{{ .global.site }}", "north" },
        { "{{ .internal.id }}", "plant/press" },
        { "{{ .location_path }}", "acme.north" },
        { "{{ .DEEP.x.y.z }}", "found" },
        { "{{ $.DEEP.x.y.z }}", "found" },
        { "{{ (.DEEP.x).y.z }}", "found" },
        { "{{ ((.DEEP).x.y).z }}", "found" },
        { "{{ .RATIO }} {{ .WHOLE }}", "1.5 2.0" },
        { "{{ .ON }} {{ .OFF }}", "true false" },
        { "{{ .NOTHING }}", "null" },
        { "{{ .EMPTY }}", "" },
        { "{{ .BIG }} {{ .LOW }}", "18446744073709551615 -7" },
        { "{{ .UMLAUT }}", "größe" },
        { "{{ .NAME }}", "line \"A\"" },
        { "{{ .LIST }}", "[\"a\", \"b\", \"c\"]" },
        { "{{ .MAP }}", "{\"b\": 2, \"a\": 1, \"c\": 3}" },
        { "{{ .NONE }}{{ .VOID }}", "[]{}" },
        { "{{ 12 }}{{ -3 }}{{ 0x1f }}{{ 1.50 }}", "12-3311.5" },
        { "{{ \"text\" }}{{ `raw \\n` }}", "textraw \\n" },
        { "{{ \"a\\tb\\n\\\"c\\\" \\\\ \\'\" }}", "a\tb\n\"c\" \\ '" },
        { "{{ \"{{\" }} x {{ \"}}\" }}", "{{ x }}" },
        { "{{ true }}{{ false }}{{ nil }}", "truefalsenull" },
        { "{{ . | len }}", "24" },
        { "{{ (1) }}", "1" },
        { "{{ ((((2)))) }}", "2" },
    };

    CHECK(state, rows);
}

static void trimming_and_comments(void **state)
{
    static const struct row rows[] = {
        { "a {{- 1 -}} b", "a1b" },
        { "a {{ 1 -}} b", "a 1b" },
        { "a {{- 1 }} b", "a1 b" },
        { "a\n\t {{- 1 -}} \r\n b", "a1b" },
        { "{{- 1 -}}", "1" },
        { "{{ 1 -}}\n{{- 2 }}", "12" },
        { "{{-3}}", "-3" },
        { "{{- -3 -}}", "-3" },
        { "a {{/* nothing */}} b", "a  b" },
        { "a {{- /* }} nothing */ -}} b", "ab" },
        { "{{/* a\nb */}}x", "x" },
        { "{{- /* c */ -}}\n\n x", "x" },
        { "{{ if true -}} a {{- end }} b", "a b" },
        { "x{{ $a := 1 -}}\n y", "xy" },
    };

    CHECK(state, rows);
}

static void conditions(void **state)
{
    static const struct row rows[] = {
        { "{{ if .ON }}a{{ end }}", "a" },
        { "{{ if .OFF }}a{{ end }}", "" },
        { "{{ if .OFF }}a{{ else }}b{{ end }}", "b" },
        { "{{ if .ON }}a{{ else }}b{{ end }}", "a" },
        { "{{ if .OFF }}a{{ else if .ON }}b{{ else }}c{{ end }}", "b" },
        { "{{ if .OFF }}a{{ else if .ZERO }}b{{ else }}c{{ end }}", "c" },
        { "{{ if .OFF }}a{{ else if .OFF }}b{{ else if .PORT }}c{{ else }}d{{ end }}", "c" },
        { "{{ if .OFF }}a{{ else if .OFF }}b{{ end }}.", "." },
        { "{{ if .EMPTY }}a{{ else }}b{{ end }}", "b" },
        { "{{ if .NOTHING }}a{{ else }}b{{ end }}", "b" },
        { "{{ if .NONE }}a{{ else }}b{{ end }}", "b" },
        { "{{ if .VOID }}a{{ else }}b{{ end }}", "b" },
        { "{{ if 0.0 }}a{{ else }}b{{ end }}", "b" },
        { "{{ if .BIG }}a{{ else }}b{{ end }}", "a" },
        { "{{ if .LIST }}a{{ else }}b{{ end }}", "a" },
        { "{{ if .MAP }}a{{ else }}b{{ end }}", "a" },
        { "{{ if .ON }}{{ if .OFF }}a{{ else }}b{{ end }}{{ else }}c{{ end }}", "b" },
        { "{{ if .OFF }}{{ if .ON }}a{{ end }}{{ else }}{{ if .ON }}c{{ end }}{{ end }}", "c" },
        { "{{ if $x := .PORT }}{{ $x }}{{ end }}", "502" },
        { "{{ if $x := .ZERO }}{{ $x }}{{ else }}none{{ end }}", "none" },
        { "{{ if .OFF }}{{ .DEEP.x.y.z }}{{ end }}", "" },
        { "{{ if and .ON .PORT }}a{{ end }}", "a" },
        { "{{ if (eq .PORT 502) }}a{{ end }}", "a" },
        { "{{ if .PORT | eq 502 }}a{{ end }}", "a" },
    };

    CHECK(state, rows);
}

static void loops(void **state)
{
    static const struct row rows[] = {
        { "{{ range .LIST }}{{ . }},{{ end }}", "a,b,c," },
        { "{{ range .NONE }}x{{ end }}", "" },
        { "{{ range .NONE }}x{{ else }}none{{ end }}", "none" },
        { "{{ range .NOTHING }}x{{ else }}none{{ end }}", "none" },
        { "{{ range .VOID }}x{{ else }}none{{ end }}", "none" },
        { "{{ range .LIST }}x{{ else }}none{{ end }}.", "xxx." },
        { "{{ range $i, $v := .LIST }}{{ $i }}={{ $v }} {{ end }}", "0=a 1=b 2=c " },
        { "{{ range $v := .LIST }}{{ $v }}{{ . }}{{ end }}", "aabbcc" },
        { "{{ range .MAP }}{{ . }}{{ end }}", "123" },
        { "{{ range $k, $v := .MAP }}{{ $k }}{{ $v }}{{ end }}", "a1b2c3" },
        { "{{ range $v := .MAP }}{{ $v }}{{ end }}", "123" },
        { "{{ range .DEVICES }}{{ .name }}:{{ .port }} {{ end }}", "d1:1 d2:2 " },
        { "{{ range .DEVICES }}{{ $.IP }}/{{ .name }} {{ end }}", "10.0.0.7/d1 10.0.0.7/d2 " },
        { "{{ range .NESTED }}[{{ range . }}{{ . }}{{ else }}-{{ end }}]{{ end }}", "[12][-][3]" },
        { "{{ range $i, $a := .NESTED }}{{ range $j, $b := $a }}{{ $i }}{{ $j }}{{ $b }} "
          "{{ end }}{{ end }}",
          "001 012 203 " },
        { "{{ range .NUMBERS }}{{ if gt . 1 }}{{ . }}{{ end }}{{ end }}", "32" },
        { "{{ range (index .NESTED 0) }}{{ . }}{{ end }}", "12" },
        { "{{ range $.LIST }}{{ with $.DEEP }}{{ .x.y.z }}{{ end }}{{ . }}{{ end }}",
          "foundafoundbfoundc" },
        { "{{ range .LIST -}}\n  {{ . }}\n{{- end }}", "abc" },
        { "{{ $n := 0 }}{{ range .NUMBERS }}{{ $n = . }}{{ end }}{{ $n }}", "2" },
        { "{{ range .LIST }}{{ $x := . }}{{ $x }}{{ end }}", "abc" },
        { "{{ range .LIST }}{{ end }}{{ .IP }}", "10.0.0.7" },
    };

    CHECK(state, rows);
}

static void with_and_variables(void **state)
{
    static const struct row rows[] = {
        { "{{ with .DEEP.x }}{{ .y.z }}{{ end }}", "found" },
        { "{{ with .EMPTY }}a{{ else }}{{ .PORT }}{{ end }}", "502" },
        { "{{ with .EMPTY }}a{{ end }}b", "b" },
        { "{{ with .PORT }}{{ . }}{{ end }}{{ .IP }}", "50210.0.0.7" },
        { "{{ with $x := .DEEP.x.y }}{{ $x.z }}{{ .z }}{{ end }}", "foundfound" },
        { "{{ with .DEEP }}{{ with .x }}{{ .y.z }}{{ end }}{{ .x.y.z }}{{ end }}", "foundfound" },
        { "{{ $x := 3 }}{{ $x }}", "3" },
        { "{{ $x := 3 }}{{ $x = 4 }}{{ $x }}", "4" },
        { "{{ $x := .MAP }}{{ $x.a }}", "1" },
        { "{{ $x := 1 }}{{ if .ON }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}", "21" },
        { "{{ $x := 1 }}{{ if .ON }}{{ $x = 2 }}{{ end }}{{ $x }}", "2" },
        { "{{ $x := 1 }}{{ $x := \"two\" }}{{ $x }}", "two" },
        { "{{ $x:=1 }}{{ $y := $x }}{{ $x = 5 }}{{ $y }}", "1" },
        { "{{ $größe := 1 }}{{ $größe }}", "1" },
        { "{{ quoted }}a\"{{ .NAME }}\\{{ end }}", "\"a\\\"line \\\"A\\\"\\\\\"" },
        { "{{ quoted }}{{ end }}", "\"\"" },
        { "{{ quoted }} {{- range .LIST }}{{ . }}\n{{ end }}{{ end }}", "\"a\\nb\\nc\\n\"" },
    };

    CHECK(state, rows);
}

static void comparisons(void **state)
{
    static const struct row rows[] = {
        { "{{ eq .PORT 502 }}", "true" },
        { "{{ eq .PORT 502.0 }}", "true" },
        { "{{ eq .PORT 1 2 502 }}", "true" },
        { "{{ eq .PORT 1 2 3 }}", "false" },
        { "{{ eq .IP \"10.0.0.7\" }}", "true" },
        { "{{ eq .IP \"10.0.0.8\" }}", "false" },
        { "{{ eq .ON true }}", "true" },
        { "{{ eq .NOTHING nil }}", "true" },
        { "{{ eq .PORT nil }}", "false" },
        { "{{ ne .PORT nil }}", "true" },
        { "{{ ne .PORT 502 }}", "false" },
        { "{{ ne .IP \"x\" }}", "true" },
        { "{{ eq .BIG 18446744073709551615 }}", "true" },
        { "{{ gt .BIG 9223372036854775807 }}", "true" },
        { "{{ lt .LOW .BIG }}", "true" },
        { "{{ lt 1 2 }} {{ lt 2 2 }} {{ lt 3 2 }}", "true false false" },
        { "{{ le 1 2 }} {{ le 2 2 }} {{ le 3 2 }}", "true true false" },
        { "{{ gt 1 2 }} {{ gt 2 2 }} {{ gt 3 2 }}", "false false true" },
        { "{{ ge 1 2 }} {{ ge 2 2 }} {{ ge 3 2 }}", "false true true" },
        { "{{ lt 1.5 2 }} {{ gt .RATIO 1 }}", "true true" },
        { "{{ lt \"a\" \"b\" }} {{ ge \"a\" \"b\" }}", "true false" },
        { "{{ lt \"a\" \"ab\" }}", "true" },
        { "{{ 2 | lt 1 }}", "true" },
        { "{{ not .ON }} {{ not .EMPTY }}", "false true" },
        { "{{ not (eq 1 2) }}", "true" },
    };

    CHECK(state, rows);
}

static void functions(void **state)
{
    static const struct row rows[] = {
        { "{{ and .ON .PORT }}", "502" },
        { "{{ and .ZERO .PORT }}", "0" },
        { "{{ and .ON 1 2 3 }}", "3" },
        { "{{ or .ZERO .PORT }}", "502" },
        { "{{ or .ZERO .EMPTY }}", "" },
        { "{{ or .PORT .MISSING }}", "502" },
        { "{{ and .OFF .MISSING }}", "false" },
        { "{{ and .OFF (eq .MISSING.x 1) }}", "false" },
        { "{{ if and .ON (or .OFF (and .PORT .IP)) }}a{{ end }}", "a" },
        { "{{ .PORT | and .ON }}", "502" },
        { "{{ .PORT | or .OFF }}", "502" },
        { "{{ len .IP }} {{ len .LIST }} {{ len .MAP }} {{ len .EMPTY }}", "8 3 3 0" },
        { "{{ .UMLAUT | len }}", "7" },
        { "{{ index .LIST 1 }}", "b" },
        { "{{ index .MAP \"c\" }}", "3" },
        { "{{ index .MAP \"none\" }}", "null" },
        { "{{ index . \"PORT\" }}", "502" },
        { "{{ index .NESTED 2 0 }}", "3" },
        { "{{ index .DEVICES 1 \"name\" }}", "d2" },
        { "{{ (index .DEVICES 0).name }}", "d1" },
        { "{{ index . \"NOT_SAID\" | default 7 }}", "7" },
        { "{{ default 7 (index . \"NOT_SAID\") }}", "7" },
        { "{{ .PORT | default 7 }}", "502" },
        { "{{ .EMPTY | default \"x\" }}", "x" },
        { "{{ default 1 .ZERO }}", "1" },
        { "{{ quote .IP }} {{ .PORT | quote }}", "\"10.0.0.7\" \"502\"" },
        { "{{ quote .NAME }}", "\"line \\\"A\\\"\"" },
        { "{{ quote .NOTHING }}", "\"null\"" },
        { "{{ json .IP }} {{ json .PORT }} {{ json .LIST }}",
          "\"10.0.0.7\" 502 [\"a\", \"b\", \"c\"]" },
        { "{{ json .NAME }}", "\"line \\\"A\\\"\"" },
        { "{{ printf \"%s:%d\" .IP .PORT }}", "10.0.0.7:502" },
        { "{{ printf \"%v %v %v\" .ON .RATIO .LIST }}", "true 1.5 [\"a\", \"b\", \"c\"]" },
        { "{{ printf \"%q\" .NAME }}", "\"line \\\"A\\\"\"" },
        { "{{ printf \"100%%\" }}", "100%" },
        { "{{ printf \"x\" }}", "x" },
        { "{{ .PORT | printf \"%s-%d\" .IP }}", "10.0.0.7-502" },
        { "{{ .PORT | printf \"%d\" | quote }}", "\"502\"" },
        { "{{ printf (printf \"%s%s\" \"%\" \"d\") 3 }}", "3" },
        { "{{ .IP | printf \"tcp://%s\" | printf \"%s/\" }}", "tcp://10.0.0.7/" },
        { "{{ (printf \"%s\" \"x\") | quote | quote }}", "\"\\\"x\\\"\"" },
        { "{{ eq (len .LIST) 3 }}", "true" },
        { "{{ eq (.LIST | len) (index .NUMBERS 0) }}", "true" },
    };

    CHECK(state, rows);
}

struct bad_row {
    const char *template;
    int code;
    const char *text;
};

static void check_bad(struct fixture *fixture, const struct bad_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int r = render(fixture, rows[i].template, strlen(rows[i].template));

        if (r != rows[i].code)
            fail_msg("%s: %d (%s)", rows[i].template, r, fixture->error.text);
        if (!strstr(fixture->error.text, rows[i].text))
            fail_msg("%s: %s", rows[i].template, fixture->error.text);
    }
}
#define CHECK_BAD(state, rows) check_bad(*(state), rows, sizeof(rows) / sizeof((rows)[0]))

static void missing_is_an_error(void **state)
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
        { "{{ .PORT.x }}", DET_ERR_TYPE, ".PORT.x: 'x' is looked for in a number, not in a map" },
        { "{{ .NOTHING.x }}", DET_ERR_TYPE, "is looked for in null" },
        { "{{ range .LIST }}{{ .name }}{{ end }}", DET_ERR_TYPE, "is looked for in text" },
        { "{{ and .ON .MISSING }}", DET_ERR_NOT_FOUND, "'MISSING'" },
    };

    CHECK_BAD(state, rows);
}

static void functions_refuse(void **state)
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
        { "{{ index .LIST \"a\" }}", DET_ERR_TYPE, "the index of a list is a whole number" },
        { "{{ index .MAP 1 }}", DET_ERR_TYPE, "the key of a map is text" },
        { "{{ index .PORT 1 }}", DET_ERR_TYPE, "a number has no elements" },
        { "{{ index .MAP \"none\" \"x\" }}", DET_ERR_TYPE, "null has no elements" },
        { "{{ printf \"%x\" 1 }}", DET_ERR_MALFORMED, "printf knows %s, %d, %v, %q and %%" },
        { "{{ printf \"%5d\" 1 }}", DET_ERR_MALFORMED, "printf knows" },
        { "{{ printf \"%\" }}", DET_ERR_MALFORMED, "printf knows" },
        { "{{ printf \"%d\" }}", DET_ERR_MALFORMED, "fewer values" },
        { "{{ printf \"x\" 1 }}", DET_ERR_MALFORMED, "more values" },
        { "{{ printf \"%d\" .IP }}", DET_ERR_TYPE, "%d is for a whole number, not for text" },
        { "{{ printf \"%d\" .RATIO }}", DET_ERR_TYPE, "not for a fraction" },
        { "{{ printf \"%s\" .PORT }}", DET_ERR_TYPE, "%s is for text, not for a number" },
        { "{{ printf \"%q\" .PORT }}", DET_ERR_TYPE, "%q is for text" },
        { "{{ printf .PORT }}", DET_ERR_TYPE, "the first value of printf is text" },
        { "{{ range .PORT }}{{ end }}", DET_ERR_TYPE, "range goes over a list or a map" },
        { "{{ range .IP }}{{ end }}", DET_ERR_TYPE, "and this is text" },
    };

    CHECK_BAD(state, rows);
}

static void syntax_is_refused(void **state)
{
    static const struct bad_row rows[] = {
        { "{{ .IP", DET_ERR_MALFORMED, "config, line 1, column 1: this {{ has no }}" },
        { "a\n  {{ .IP }", DET_ERR_MALFORMED, "line 2, column 10: '}' means nothing here" },
        { "{{", DET_ERR_MALFORMED, "this {{ has no }}" },
        { "{{}}", DET_ERR_MALFORMED, "there is nothing between {{ and }}" },
        { "{{ }}", DET_ERR_MALFORMED, "there is nothing between" },
        { "{{ - }}", DET_ERR_MALFORMED, "'-' means nothing here" },
        { "{{ IP }}", DET_ERR_MALFORMED, "there is no function 'IP'; a variable has a point" },
        { "{{ lenn .IP }}", DET_ERR_MALFORMED, "did you mean 'len'?" },
        { "{{ .IP .PORT }}", DET_ERR_MALFORMED,
          "line 1, column 8: a value cannot stand behind a value" },
        { "{{ .IP | }}", DET_ERR_MALFORMED, "a value is missing before the end of the action" },
        { "{{ | .IP }}", DET_ERR_MALFORMED, "a value is missing before '|'" },
        { "{{ .IP | .PORT }}", DET_ERR_MALFORMED, "behind a | stands a function" },
        { "{{ .IP | 3 }}", DET_ERR_MALFORMED, "behind a | stands a function" },
        { "{{ (.IP }}", DET_ERR_MALFORMED, "has no ); close it" },
        { "{{ .IP) }}", DET_ERR_MALFORMED, "this ) has no (" },
        { "{{ () }}", DET_ERR_MALFORMED, "a value is missing before ')'" },
        { "{{ eq 1 }}", DET_ERR_MALFORMED, "eq wants two or more values" },
        { "{{ eq }}", DET_ERR_MALFORMED, "eq wants" },
        { "{{ not 1 2 }}", DET_ERR_MALFORMED, "not wants one value" },
        { "{{ 1 | not 2 }}", DET_ERR_MALFORMED, "not wants one value" },
        { "{{ and }}", DET_ERR_MALFORMED, "and wants" },
        { "{{ eq len .IP 3 }}", DET_ERR_MALFORMED, "stands in parentheses: (len ...)" },
        { "{{ $x }}", DET_ERR_MALFORMED, "there is no $x here; declare it before" },
        { "{{ $port := 1 }}{{ $prot }}", DET_ERR_MALFORMED, "did you mean $port" },
        { "{{ $x = 1 }}", DET_ERR_MALFORMED, "there is no $x here; declare it with :=" },
        { "{{ $ := 1 }}", DET_ERR_MALFORMED, "give the variable a name" },
        { "{{ if .ON }}{{ $x := 1 }}{{ end }}{{ $x }}", DET_ERR_MALFORMED, "there is no $x here" },
        { "{{ if .ON }}{{ $x := 1 }}{{ else }}{{ $x }}{{ end }}", DET_ERR_MALFORMED, "no $x" },
        { "{{ range $v := .LIST }}{{ end }}{{ $v }}", DET_ERR_MALFORMED, "there is no $v here" },
        { "{{ range $i, $v .LIST }}{{ end }}", DET_ERR_MALFORMED, "':=' was expected" },
        { "{{ range $i, $v, $w := .LIST }}{{ end }}", DET_ERR_MALFORMED, "':=' was expected" },
        { "{{ $x, $y := .LIST }}", DET_ERR_MALFORMED, "there is no $x here" },
        { "{{ if }}a{{ end }}", DET_ERR_MALFORMED, "a value is missing before the end" },
        { "{{ if .ON }}a", DET_ERR_MALFORMED, "line 1, column 1: this if has no {{ end }}" },
        { "x\n{{ range .LIST }}{{ if .ON }}{{ end }}", DET_ERR_MALFORMED,
          "line 2, column 1: this range has no {{ end }}" },
        { "{{ end }}", DET_ERR_MALFORMED, "this end belongs to no if" },
        { "{{ else }}", DET_ERR_MALFORMED, "this else belongs to no if" },
        { "{{ if .ON }}{{ else }}{{ else }}{{ end }}", DET_ERR_MALFORMED, "this else belongs" },
        { "{{ if .ON }}{{ else .IP }}{{ end }}", DET_ERR_MALFORMED, "}} was expected behind else" },
        { "{{ range .LIST }}{{ else if .ON }}{{ end }}", DET_ERR_MALFORMED, "expected behind" },
        { "{{ if .ON }}{{ end 1 }}", DET_ERR_MALFORMED, "}} was expected behind end" },
        { "{{ quoted 1 }}{{ end }}", DET_ERR_MALFORMED, "}} was expected behind quoted" },
        { "{{ quoted }}{{ else }}{{ end }}", DET_ERR_MALFORMED, "this else belongs" },
        { "{{ .IP, .PORT }}", DET_ERR_MALFORMED, "',' cannot stand here" },
        { "{{ .IP := 1 }}", DET_ERR_MALFORMED, "':=' cannot stand here" },
        { "{{ \"abc }}", DET_ERR_MALFORMED, "the text has no end; close it with \"" },
        { "{{ `abc }}", DET_ERR_MALFORMED, "close it with `" },
        { "{{ \"a\\x\" }}", DET_ERR_MALFORMED, "line 1, column 6: there is no such escape" },
        { "{{ 12ab }}", DET_ERR_MALFORMED, "'12ab' is no number" },
        { "{{ 99999999999999999999 }}", DET_ERR_MALFORMED, "beyond what 64 bits hold" },
        { "{{ .IP + 1 }}", DET_ERR_MALFORMED, "'+' means nothing here" },
        { "{{ .IP == 1 }}", DET_ERR_MALFORMED, "'=' cannot stand here" },
        { "{{ /* x }}", DET_ERR_MALFORMED, "'/' means nothing here" },
        { "{{/* x }}", DET_ERR_MALFORMED, "the comment has no end" },
        { "{{/* x */ .IP }}", DET_ERR_MALFORMED, "a comment is an action of its own" },
        { "{{ template \"x\" }}", DET_ERR_MALFORMED, "there is no template here" },
        { "{{ define \"x\" }}{{ end }}", DET_ERR_MALFORMED, "there is no define here" },
        { "{{ range .LIST }}{{ break }}{{ end }}", DET_ERR_MALFORMED, "there is no break here" },
        { "{{ and 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 }}", DET_ERR_MALFORMED, "more than 15" },
    };

    CHECK_BAD(state, rows);
}

static int render_repeated(
    struct fixture *fixture, const char *part, size_t count, const char *middle, const char *end)
{
    struct det_buffer text = { .allocator = NULL };
    int r;

    for (size_t i = 0; i < count; i++)
        det_buffer_append_text(&text, part);
    det_buffer_append_text(&text, middle);
    for (size_t i = 0; i < count; i++)
        det_buffer_append_text(&text, end);
    r = render(fixture, det_buffer_text(&text), text.size);
    det_buffer_deinit(&text);
    return r;
}

static void depth_is_bounded(void **state)
{
    assert_int_equal(render_repeated(*state, "{{ if .ON }}", 64, "x", "{{ end }}"), 0);
    assert_int_equal(render_repeated(*state, "{{ if .ON }}", 65, "x", "{{ end }}"), DET_ERR_LIMIT);
    assert_int_equal(render_repeated(*state, "{{ with .LIST }}", 1, "x", "{{ end }}"), 0);
    assert_int_equal(
        render_repeated(*state, "{{ with $.LIST }}{{ range . }}", 20, "", "{{ end }}{{ end }}"),
        DET_ERR_LIMIT);
    assert_int_equal(render_repeated(*state, "{{ quoted }}", 15, "\"", "{{ end }}"), 0);
    assert_int_equal(render_repeated(*state, "{{ quoted }}", 64, "\"", "{{ end }}"), DET_ERR_LIMIT);
    assert_int_equal(render_repeated(*state, "{{ $x := 1 }}", 64, "", ""), 0);
    assert_int_equal(render_repeated(*state, "{{ $x := 1 }}", 65, "", ""), DET_ERR_LIMIT);
}

static void parentheses_are_bounded(void **state)
{
    struct fixture *fixture = *state;
    struct det_buffer text = { .allocator = NULL };

    for (size_t count = 62; count <= 66; count++) {
        det_buffer_clear(&text);
        det_buffer_append_text(&text, "{{ ");
        for (size_t i = 0; i < count; i++)
            det_buffer_append_text(&text, "(and 1 ");
        det_buffer_append_text(&text, "2");
        for (size_t i = 0; i < count; i++)
            det_buffer_append_text(&text, ")");
        det_buffer_append_text(&text, " }}");
        assert_int_equal(render(fixture, text.data, text.size), count <= 63 ? 0 : DET_ERR_LIMIT);
    }
    det_buffer_clear(&text);
    det_buffer_append_text(&text, "{{ ");
    for (size_t i = 0; i < 60; i++)
        det_buffer_append_text(&text, "(index 1 2 3 ");
    assert_int_equal(render(fixture, text.data, text.size), DET_ERR_LIMIT);
    assert_non_null(strstr(fixture->error.text, "more than 128 values in one action"));
    det_buffer_deinit(&text);
}

static void put_long_list(struct fixture *fixture, struct det_datum *root, uint32_t count)
{
    struct det_datum *list = det_datum_new(&fixture->arena, DET_DATUM_LIST);

    for (uint32_t i = 0; i < count; i++)
        det_datum_append(
            &fixture->arena, list, NULL, det_datum_new_text(&fixture->arena, "0123456789"));
    det_datum_append(&fixture->arena, root, "LONG", list);
}

static void nothing_hangs(void **state)
{
    static const struct bad_row rows[] = {
        { "{{ range $.LONG }}{{ range $.LONG }}{{ end }}{{ end }}", DET_ERR_LIMIT,
          "it takes more than 1000000 steps" },
        { "{{ range .LONG }}{{ range $.LONG }}{{ . }}{{ end }}{{ end }}", DET_ERR_LIMIT,
          "the result is larger than 1024 KiB" },
        { "{{ range .LONG }}{{ $x := json $.LONG }}{{ end }}", DET_ERR_LIMIT,
          "comes to more than" },
        { "{{ range .LONG }}{{ $x := index $.LONG 4999 }}{{ $y := index $.LONG 4999 }}{{ $z := "
          "index $.LONG 4999 }}{{ end }}",
          DET_ERR_LIMIT, "it takes more than 1000000 steps" },
        { "{{ $s := json .LONG }}{{ range .LONG }}{{ if eq (len $s) 1 }}{{ end }}{{ end }}",
          DET_ERR_LIMIT, "it takes more than 1000000 steps" },
    };
    struct fixture *fixture = *state;

    fixture->root = det_datum_new(&fixture->arena, DET_DATUM_MAP);
    put_long_list(fixture, fixture->root, 5000);
    CHECK_BAD(state, rows);
}

static void size_is_bounded(void **state)
{
    struct fixture *fixture = *state;
    char *text = malloc(DET_TEMPLATE_SIZE_MAX + 1);

    memset(text, 'x', DET_TEMPLATE_SIZE_MAX + 1);
    assert_int_equal(render(fixture, text, DET_TEMPLATE_SIZE_MAX), 0);
    assert_int_equal(fixture->buffer.size, DET_TEMPLATE_SIZE_MAX);
    assert_int_equal(render(fixture, text, DET_TEMPLATE_SIZE_MAX + 1), DET_ERR_LIMIT);
    free(text);
}

static void one_template_renders_many_times(void **state)
{
    static const char text[] = "{{ range $i, $v := .LIST }}{{ $i }}{{ $v }}{{ end }}{{ .PORT }}";
    struct fixture *fixture = *state;
    struct det_template *template;

    assert_int_equal(
        det_template_open(NULL, "config", text, sizeof text - 1, &template, &fixture->error), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            det_template_render(template, fixture->root, &fixture->buffer, &fixture->error), 0);
    assert_string_equal(det_buffer_text(&fixture->buffer), "0a1b2c5020a1b2c5020a1b2c502");
    det_template_close(template);
}

static int use_all(struct det_test_memory *memory, void *argument)
{
    static const char text[] =
        "{{ range $k, $v := .MAP }}{{ printf \"%s %v\" $k $v | quote }}{{ end }}"
        "{{ quoted }}{{ .IP }}{{ end }}{{ if or .OFF (eq .PORT 502) }}{{ json .LIST }}{{ end }}";
    struct fixture *fixture = argument;
    struct det_buffer buffer = { .allocator = &memory->allocator };
    struct det_template *template = NULL;
    struct det_error error = { 0 };
    int r;

    r = det_template_open(&memory->allocator, "config", text, sizeof text - 1, &template, &error);
    if (r == 0)
        r = det_template_render(template, fixture->root, &buffer, &error);
    if (r < 0) {
        assert_int_equal(error.code, DET_ERR_NO_MEMORY);
        assert_non_null(strstr(error.text, "config: "));
    } else {
        assert_string_equal(
            det_buffer_text(&buffer), "\"a 1\"\"b 2\"\"c 3\"\"10.0.0.7\"[\"a\", \"b\", \"c\"]");
    }
    det_template_close(template);
    det_buffer_deinit(&buffer);
    return r;
}

static void no_memory_is_told(void **state)
{
    det_test_each_failure(use_all, *state);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(values),
        CASE(trimming_and_comments),
        CASE(conditions),
        CASE(loops),
        CASE(with_and_variables),
        CASE(comparisons),
        CASE(functions),
        CASE(missing_is_an_error),
        CASE(functions_refuse),
        CASE(syntax_is_refused),
        CASE(depth_is_bounded),
        CASE(parentheses_are_bounded),
        CASE(nothing_hangs),
        CASE(size_is_bounded),
        CASE(one_template_renders_many_times),
        CASE(no_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
