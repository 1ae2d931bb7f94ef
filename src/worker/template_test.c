/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_test.c - the language of templates, row by row: what is rendered, and that nothing hangs
 * or grows without bound. */
#include "worker/template_test.h"

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

static void template_trimming_and_comments_are_rendered(void **state)
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

static void template_with_and_variables_are_rendered(void **state)
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
    assert_non_null(strstr(fixture->error.text, "one action has more than 128 values"));
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

static void templates_are_bounded_in_steps_and_size(void **state)
{
    static const struct bad_row rows[] = {
        { "{{ range $.LONG }}{{ range $.LONG }}{{ end }}{{ end }}", DET_ERR_LIMIT,
          "takes more than 1000000 steps" },
        { "{{ range .LONG }}{{ range $.LONG }}{{ . }}{{ end }}{{ end }}", DET_ERR_LIMIT,
          "the result is larger than 1024 KiB" },
        { "{{ range .LONG }}{{ $x := json $.LONG }}{{ end }}", DET_ERR_LIMIT,
          "functions and blocks exceed" },
        { "{{ range .LONG }}{{ $x := index $.LONG 4999 }}{{ $y := index $.LONG 4999 }}{{ $z := "
          "index $.LONG 4999 }}{{ end }}",
          DET_ERR_LIMIT, "takes more than 1000000 steps" },
        { "{{ $s := json .LONG }}{{ range .LONG }}{{ if eq (len $s) 1 }}{{ end }}{{ end }}",
          DET_ERR_LIMIT, "takes more than 1000000 steps" },
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

static void allocation_failure_is_reported(void **state)
{
    det_test_each_failure(use_all, *state);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(values),
        CASE(template_trimming_and_comments_are_rendered),
        CASE(conditions),
        CASE(loops),
        CASE(template_with_and_variables_are_rendered),
        CASE(comparisons),
        CASE(functions),
        CASE(depth_is_bounded),
        CASE(parentheses_are_bounded),
        CASE(templates_are_bounded_in_steps_and_size),
        CASE(size_is_bounded),
        CASE(one_template_renders_many_times),
        CASE(allocation_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
