/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_test.c - the YAML of a tree of workers into specs. */
#define REC_SPEC "worker/derive_test.rec"
#include <detent/rec/declare.h>

#include <detent/worker.h>

#include "worker/spec.h"

#include "lib/test.h"

struct fixture {
    struct det_test_memory memory;
    struct det_spec spec;
    struct det_error error;
};

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    det_test_memory_init(&fixture->memory);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    det_spec_deinit(&fixture->spec);
    det_test_memory_deinit(&fixture->memory);
    free(fixture);
    return 0;
}

static struct det_spec *read(struct fixture *fixture, const char *yaml)
{
    det_spec_deinit(&fixture->spec);
    if (det_workers_spec_read(
            &fixture->spec, &fixture->memory.allocator, yaml, strlen(yaml), &fixture->error) != 0)
        fail_msg("%s", fixture->error.text);
    return &fixture->spec;
}

static void a_tree_is_read(void **state)
{
    const struct det_spec *spec = read(
        *state, "variables: {IP: 10.0.0.7}\n"
                "location: {enterprise: acme}\n"
                "children:\n"
                "  - name: press\n"
                "    kind: machine\n"
                "    config: |\n"
                "      address: {{ .IP }}\n"
                "    variables: {PORT: 502}\n"
                "    location: [{type: line, value: '4'}]\n"
                "    run_in: [running, degraded]\n"
                "    disabled: true\n"
                "    children:\n"
                "      - {name: valve, kind: valve}\n"
                "      - name: pump\n"
                "        kind: pump\n"
                "        children: [{name: motor, kind: motor}]\n"
                "  - {name: oven, kind: machine, disabled: false, run_in: []}\n");
    static const struct {
        const char *name, *kind;
        uint32_t parent;
    } rows[] = {
        { "press", "machine", DET_SPEC_ROOT },
        { "valve", "valve", 0 },
        { "pump", "pump", 0 },
        { "motor", "motor", 2 },
        { "oven", "machine", DET_SPEC_ROOT },
    };

    assert_int_equal(spec->count, 5);
    for (uint32_t i = 0; i < spec->count; i++) {
        assert_string_equal(spec->children[i].name, rows[i].name);
        assert_string_equal(spec->children[i].kind, rows[i].kind);
        assert_int_equal(spec->children[i].parent, rows[i].parent);
    }
    assert_null(spec->root.config);
    assert_string_equal(det_datum_get(spec->root.variables, "IP")->text, "10.0.0.7");
    assert_string_equal(spec->root.location.levels[DET_LOCATION_ENTERPRISE], "acme");
    assert_string_equal(spec->children[0].spec.config, "address: {{ .IP }}\n");
    assert_int_equal(det_datum_get(spec->children[0].spec.variables, "PORT")->as.number, 502);
    assert_string_equal(spec->children[0].spec.location.levels[DET_LOCATION_LINE], "4");
    assert_int_equal(spec->children[0].run_in_count, 2);
    assert_string_equal(spec->children[0].run_in[1], "degraded");
    assert_int_equal(spec->children[0].line, 4);
    assert_true(spec->children[0].is_disabled);
    assert_int_equal(spec->children[4].run_in_count, 0);
    assert_false(spec->children[4].is_disabled);
}

static void empty_spec_has_no_children(void **state)
{
    static const char *const rows[] = {
        "", "# nothing\n", "{}", "children: []\n", "children:\n", "variables:\nlocation: ~\n",
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(read(*state, rows[i])->count, 0);
}

static struct pump_config derive(struct fixture *fixture, const char *yaml)
{
    static const struct det_worker_kind kind = { .name = "pump",
                                                 .desired = { .get = pump_config_record } };
    static const struct det_worker_identity identity = { .id = "root/a", .name = "a" };
    const struct det_spec *spec = read(fixture, yaml);
    struct det_scope_values globals, scope;
    struct pump_config desired;
    struct det_derivation what = {
        .kind = &kind, .identity = &identity, .spec = &spec->children[0].spec, .scope = &scope
    };

    assert_int_equal(det_scope_values_init(&globals, NULL, "{g: [x, y]}", NULL), 0);
    assert_int_equal(det_scope_values_below(&scope, NULL, &globals, &spec->root), 0);
    if (det_derive_desired(NULL, &what, &desired, NULL, &fixture->error) != 0)
        fail_msg("%s\n%s", fixture->error.text, spec->children[0].spec.config);
    det_scope_values_deinit(&scope);
    det_scope_values_deinit(&globals);
    return desired;
}

/* A number stays a number, and text stays text, whatever it contains. */
static void templates_work_in_the_texts_of_a_map(void **state)
{
    const struct pump_config desired = derive(
        *state,
        "variables: {IP: 'a: \"b\" \\ # c', PORT: 502, OFF: false}\n"
        "children:\n"
        "  - name: a\n"
        "    kind: pump\n"
        "    config:\n"
        "      address: 'tcp://{{ .IP }}'\n"
        "      port: '{{ .PORT }}'\n"
        "      id: '{{- .IP -}}'\n"
        "      place: \"{{ if .OFF }}a{{ else }}b\\n{{ end }}\"\n"
        "      site: '{{ index .global.g 1 | printf \"%s}}%s\" (printf \"(%d)\" .PORT) }}'\n"
        "      names: '{{ .global.g }}'\n"
        "      note: 'no: template \"here\"'\n");

    assert_string_equal(desired.address, "tcp://a: \"b\" \\ # c");
    assert_int_equal(desired.port, 502);
    assert_string_equal(desired.id, "a: \"b\" \\ # c");
    assert_string_equal(desired.place, "b\n");
    assert_string_equal(desired.site, "(502)}}y");
    assert_int_equal(desired.names_count, 2);
    assert_string_equal(desired.names[1], "y");
    assert_string_equal(desired.note, "no: template \"here\"");
}

static void maps_may_range_and_declare(void **state)
{
    const struct pump_config desired = derive(
        *state, "children:\n"
                "  - name: a\n"
                "    kind: pump\n"
                "    config:\n"
                "      address: '{{ range .global.g }}{{ . }},{{ end }}'\n"
                "      id: '{{ $x := 1 }}'\n"
                "      place: '{{ .location_path }} {{ .internal.id }}'\n"
                "      names: ['{{ index .global.g 0 }}', '{{ quote 1 }}']\n"
                "      site: ' {{ 1 }}'\n"
                "    location: {site: s}\n");

    assert_string_equal(desired.address, "x,y,");
    assert_string_equal(desired.id, "");
    assert_string_equal(desired.place, "s root/a");
    assert_string_equal(desired.names[0], "x");
    assert_string_equal(desired.names[1], "\"1\"");
    assert_string_equal(desired.site, " 1");
}

static void invalid_input_is_reported(void **state)
{
    static const struct {
        const char *yaml;
        int code;
        const char *text;
    } rows[] = {
        { "a: [", DET_ERR_MALFORMED, "workers, line " },
        { "- 1", DET_ERR_INVALID, "workers, line 1, column 1: expected a map with children" },
        { "childrn: []", DET_ERR_INVALID,
          "the root has no key 'childrn'; did you mean 'children'?" },
        { "xyzzy: 1", DET_ERR_INVALID, "it has variables, location, children" },
        { "children: {a: 1}", DET_ERR_INVALID,
          "children: expected a list, - name: ..., found a "
          "map" },
        { "children: [a]", DET_ERR_INVALID,
          "a child: expected a map, {name: a, kind: b}, found "
          "text" },
        { "children: [{name: a}]", DET_ERR_INVALID, "say 'kind: ...'" },
        { "children: [{kind: a}]", DET_ERR_INVALID, "say 'name: ...'" },
        { "children: [{name: ~, kind: a}]", DET_ERR_INVALID, "say 'name: ...'" },
        { "children: [{name: 1, kind: a}]", DET_ERR_INVALID,
          "name: expected text, found a number" },
        { "children: [{name: a/b, kind: a}]", DET_ERR_INVALID,
          "name has 1 to 64 of the characters A-Z a-z 0-9" },
        { "children: [{name: '', kind: a}]", DET_ERR_INVALID, "name has 1 to" },
        { "children: [{name: a, kind: 'b c'}]", DET_ERR_INVALID, "kind has 1 to" },
        { "children: [{name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, "
          "kind: a}]",
          DET_ERR_INVALID, "1 to 64" },
        { "children: [{name: a, kind: b, confg: 1}]", DET_ERR_INVALID, "did you mean 'config'?" },
        { "children: [{name: a, kind: b, xyzzy: 1}]", DET_ERR_INVALID, "it has name, kind" },
        { "children: [{name: a, kind: b, config: 1}]", DET_ERR_INVALID,
          "config, line 1, column 39: expected a map or a text" },
        { "children: [{name: a, kind: b, config: [1]}]", DET_ERR_INVALID, "a map or a text" },
        { "children: [{name: a, kind: b, disabled: 1}]", DET_ERR_INVALID,
          "disabled: expected true or false, found a number" },
        { "children: [{name: a, kind: b, run_in: x}]", DET_ERR_INVALID, "run_in: expected a list" },
        { "children: [{name: a, kind: b, run_in: [1]}]", DET_ERR_INVALID, "names of states" },
        { "children: [{name: a, kind: b, run_in: [x, x]}]", DET_ERR_INVALID,
          "duplicate state 'x'" },
        { "children: [{name: a, kind: b, variables: {global: 1}}]", DET_ERR_INVALID,
          "the name 'global' is reserved" },
        { "children: [{name: a, kind: b, location: {x: 1}}]", DET_ERR_INVALID, "no level 'x'" },
        { "variables: {internal: 1}", DET_ERR_INVALID, "the name 'internal' is reserved" },
        { "location: 1", DET_ERR_INVALID, "expected a map of levels" },
        { "children:\n- {name: a, kind: x}\n- {name: b, kind: x}\n- {name: a, kind: y}\n",
          DET_ERR_INVALID, "line 4, column 10: the name 'a' is used by a sibling, on line 2" },
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int r = det_workers_spec_read(
            &fixture->spec, &fixture->memory.allocator, rows[i].yaml, strlen(rows[i].yaml),
            &fixture->error);

        if (r != rows[i].code || !strstr(fixture->error.text, rows[i].text))
            fail_msg("%s: %d: %s", rows[i].yaml, r, fixture->error.text);
        assert_int_equal(fixture->spec.count, 0);
    }
}

/* Equal names are distinguished by their parents. */
static void children_of_different_parents_may_share_a_name(void **state)
{
    const struct det_spec *spec = read(
        *state, "children:\n"
                "- {name: a, kind: x, children: [{name: c, kind: y}]}\n"
                "- {name: b, kind: x, children: [{name: c, kind: y}]}\n");

    assert_int_equal(spec->count, 4);
    assert_int_equal(spec->children[3].parent, 2);
    assert_int_equal(spec->children[1].hash, spec->children[3].hash);
}

static void depth_is_bounded(void **state)
{
    struct fixture *fixture = *state;

    for (unsigned depth = 15; depth <= 17; depth++) {
        struct det_buffer text = { .allocator = NULL };
        int r;

        for (unsigned i = 0; i < depth; i++)
            det_buffer_append_text(
                &text, i ? ", children: [{name: a, kind: b" : "children: [{name: a, kind: b");
        for (unsigned i = 0; i < depth; i++)
            det_buffer_append_text(&text, "}]");
        r = det_workers_spec_read(
            &fixture->spec, &fixture->memory.allocator, text.data, text.size, &fixture->error);
        assert_int_equal(r, depth <= DET_WORKER_DEPTH_MAX ? 0 : DET_ERR_INVALID);
        assert_int_equal(fixture->spec.count, r == 0 ? depth : 0);
        det_spec_deinit(&fixture->spec);
        det_buffer_deinit(&text);
    }
}

static void many_children_are_read_quickly(void **state)
{
    struct det_buffer text = { .allocator = NULL };

    det_buffer_append_text(&text, "children:\n");
    for (int i = 0; i < 10000; i++)
        det_buffer_format(&text, "- {name: w%d, kind: x, variables: {I: %d}}\n", i, i);
    assert_int_equal(read(*state, text.data)->count, 10000);
    det_buffer_deinit(&text);
}

/* 21: what is not said differently is not judged again. */
static void the_order_of_keys_is_not_part_of_a_hash(void **state)
{
    static const struct {
        const char *first, *second;
        bool is_equal;
    } rows[] = {
        { "config: {a: 1, b: {c: 2, d: 3}}", "config: {b: {d: 3, c: 2}, a: 1}", true },
        { "config: {a: 1, b: 2}", "config: {a: 2, b: 1}", false },
        { "config: {a: [1, 2]}", "config: {a: [2, 1]}", false },
        { "config: {a: '{{ .X }}', b: 2}", "config: {b: 2, a: '{{ .X }}'}", true },
        /* A text is what it says; with a template in it, its order may count. */
        { "config: 'a: 1\n\n  \n'", "config: {a: 1}", true },
        { "config: '{a: 1, b: 2}'", "config: '{b: 2, a: 1}'", true },
        { "config: '{a: {{ .X }}, b: 2}'", "config: '{b: 2, a: {{ .X }}}'", false },
        { "config: 'a: ['", "config: 'a:  ['", false },
        { "variables: {A: 1, B: 2}", "variables: {B: 2, A: 1}", true },
        { "location: {site: a, line: b}", "location: {line: b, site: a}", true },
        { "run_in: [up, down]", "run_in: [down, up]", true },
        { "run_in: [up, down]", "run_in: [up]", false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct det_user_spec first;
        char text[200];
        uint64_t hash;

        snprintf(text, sizeof text, "children: [{name: a, kind: b, %s}]", rows[i].first);
        hash = read(*state, text)->children[0].hash;
        first = ((struct fixture *)*state)->spec.children[0].spec;
        memset(&((struct fixture *)*state)->spec.children[0].spec, 0, sizeof first);
        snprintf(text, sizeof text, "children: [{name: a, kind: b, %s}]", rows[i].second);
        if ((read(*state, text)->children[0].hash == hash) != rows[i].is_equal)
            fail_msg("%s and %s", rows[i].first, rows[i].second);
        if (!strstr(text, "run_in"))
            assert_int_equal(
                det_user_spec_equal(&first, &((struct fixture *)*state)->spec.children[0].spec),
                rows[i].is_equal);
        det_user_spec_deinit(&first);
    }
}

static void child_hash_excludes_its_children(void **state)
{
    static const char *const rows[] = {
        "{name: a, kind: b}",
        "{name: a, kind: c}",
        "{name: b, kind: a}",
        "{name: a, kind: b, disabled: true}",
        "{name: a, kind: b, run_in: [x]}",
        "{name: a, kind: b, run_in: [x, y]}",
        "{name: a, kind: b, run_in: [xy]}",
        "{name: a, kind: b, config: {x: 1}}",
        "{name: a, kind: b, variables: {x: 1}}",
        "{name: a, kind: b, location: {site: x}}",
    };
    uint64_t hashes[sizeof rows / sizeof rows[0]];
    char text[160];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(text, sizeof text, "children: [%s]", rows[i]);
        hashes[i] = read(*state, text)->children[0].hash;
        for (size_t j = 0; j < i; j++)
            assert_true(hashes[i] != hashes[j]);
    }
    assert_true(
        read(*state, "children: [{kind: b, name: a, children: [{name: z, kind: z}]}]")
            ->children[0]
            .hash == hashes[0]);
}

static void states_are_those_of_the_parent(void **state)
{
    static const struct det_worker_state states[] = { { .name = "stopped" },
                                                      { .name = "starting" },
                                                      { .name = "running" } };
    static const struct det_worker_kind kind = { .name = "line",
                                                 .states = states,
                                                 .state_count = 3 };
    struct fixture *fixture = *state;
    const struct det_spec *spec = read(
        fixture, "children:\n- {name: a, kind: b, run_in: [running, starting]}\n"
                 "- {name: b, kind: b}\n- {name: c, kind: b, run_in: [runing]}\n"
                 "- {name: d, kind: b, run_in: [xyzzy]}\n");
    uint64_t bits = 0;

    assert_int_equal(det_spec_run_in(&spec->children[0], &kind, &bits, &fixture->error), 0);
    assert_int_equal(bits, DET_IN(1) | DET_IN(2));
    assert_int_equal(det_spec_run_in(&spec->children[1], &kind, &bits, &fixture->error), 0);
    assert_int_equal(bits, 0);
    assert_int_equal(
        det_spec_run_in(&spec->children[2], &kind, &bits, &fixture->error), DET_ERR_INVALID);
    assert_non_null(strstr(
        fixture->error.text, "line 4, column 3: run_in of c: the parent is a "
                             "line, which has no state 'runing'; did you mean "
                             "'running'?"));
    assert_int_equal(
        det_spec_run_in(&spec->children[3], &kind, &bits, &fixture->error), DET_ERR_INVALID);
    assert_non_null(strstr(fixture->error.text, "stopped, starting, running"));
}

static int use_all(struct det_test_memory *memory, void *argument)
{
    static const char yaml[] =
        "variables: {IP: 10.0.0.7}\nlocation: {site: x, line: 4}\nchildren:\n"
        "- {name: a, kind: b, config: {x: '{{ .IP }}'}, run_in: [x], children: [{name: d, kind: "
        "e, config: text, variables: {y: 1}}]}\n- {name: c, kind: b}\n";
    struct det_spec spec;
    struct det_error error = { 0 };
    int r;

    (void)argument;
    r = det_workers_spec_read(&spec, &memory->allocator, yaml, sizeof yaml - 1, &error);
    if (r < 0)
        assert_int_equal(error.code, DET_ERR_NO_MEMORY);
    assert_int_equal(spec.count, r == 0 ? 3 : 0);
    det_spec_deinit(&spec);
    return r;
}

static void allocation_failure_is_reported(void **state)
{
    (void)state;
    det_test_each_failure(use_all, NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(a_tree_is_read),
        CASE(empty_spec_has_no_children),
        CASE(templates_work_in_the_texts_of_a_map),
        CASE(maps_may_range_and_declare),
        CASE(invalid_input_is_reported),
        CASE(children_of_different_parents_may_share_a_name),
        CASE(depth_is_bounded),
        CASE(many_children_are_read_quickly),
        CASE(the_order_of_keys_is_not_part_of_a_hash),
        CASE(child_hash_excludes_its_children),
        CASE(states_are_those_of_the_parent),
        CASE(allocation_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
