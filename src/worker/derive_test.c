/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* derive_test.c - from specs in their scopes to desired states. */
#define REC_SPEC "worker/derive_test.rec"
#include <detent/rec/declare.h>

#include <detent/worker.h>

#include "worker/derive.h"

#include "lib/test.h"

/* Leaves garbage after the end of a text, and in absent values. */
static int pump_derive(struct det_derive *derive, const void *config, void *desired)
{
    const struct pump_config *from = config;
    struct pump_desired *to = desired;

    if (strcmp(from->address, "silent") == 0)
        return DET_ERR_BUSY;
    if (strcmp(from->address, "broken") == 0) {
        memset(to->url, 'x', sizeof to->url);
        return 0;
    }
    if (!from->port)
        return derive->refuse(
            derive, "port is missing for %s (%zu bytes)", derive->identity->name,
            strlen(derive->config));
    memset(to->url, 'x', sizeof to->url - 1);
    snprintf(to->url, sizeof to->url, "%s:%u", from->address, from->port);
    memset(to->note, 'y', sizeof to->note);
    return 0;
}

static const struct det_worker_kind plain_kind = {
    .name = "plain",
    .desired = { .get = pump_config_record },
};
static const struct det_worker_kind deriving_kind = {
    .name = "deriving",
    .config = { .get = pump_config_record },
    .desired = { .get = pump_desired_record },
    .derive = pump_derive,
};
static const struct det_worker_kind empty_kind = { .name = "empty" };

static const struct det_worker_identity identity = {
    .id = "plant/press/pump", .name = "pump", .kind = "plain", .path = "plant(x)/press(y)/pump(z)"
};

struct fixture {
    struct det_test_memory memory;
    struct det_user_spec spec;
    struct det_scope_values scope, below;
    struct det_error error;
    enum det_derive_step step;
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

    det_user_spec_deinit(&fixture->spec);
    det_scope_values_deinit(&fixture->scope);
    det_scope_values_deinit(&fixture->below);
    det_test_memory_deinit(&fixture->memory);
    free(fixture);
    return 0;
}

static void print(
    struct fixture *fixture, const char *config, const char *variables, const char *location)
{
    const struct det_child_spec child = {
        .name = "pump",
        .kind = "plain",
        .config = config,
        .variables = variables,
        .location = location,
    };

    det_user_spec_deinit(&fixture->spec);
    if (det_user_spec_init(&fixture->spec, &fixture->memory.allocator, &child, &fixture->error) !=
        0)
        fail_msg("%s", fixture->error.text);
}

/* The scope of the root: globals; and that of its children: its variables and its location. */
static void print_parent(
    struct fixture *fixture, const char *globals, const char *variables, const char *location)
{
    det_scope_values_deinit(&fixture->scope);
    det_scope_values_deinit(&fixture->below);
    assert_int_equal(
        det_scope_values_init(
            &fixture->scope, &fixture->memory.allocator, globals, &fixture->error),
        0);
    print(fixture, NULL, variables, location);
    assert_int_equal(
        det_scope_values_below(
            &fixture->below, &fixture->memory.allocator, &fixture->scope, &fixture->spec),
        0);
}

static int derive(struct fixture *fixture, const struct det_worker_kind *kind, void *desired)
{
    const struct det_derivation what = {
        .kind = kind,
        .identity = &identity,
        .spec = &fixture->spec,
        .scope = &fixture->below,
        .parent_id = "plant/press",
        .created_at = 1769853600 * DET_SECOND,
    };

    return det_derive_desired(
        &fixture->memory.allocator, &what, desired, &fixture->step, &fixture->error);
}

static struct pump_config derive_well(struct fixture *fixture)
{
    struct pump_config desired;
    int r;

    memset(&desired, 0xA5, sizeof desired);
    r = derive(fixture, &plain_kind, &desired);
    if (r < 0)
        fail_msg("%s", fixture->error.text);
    assert_int_equal(fixture->step, DET_DERIVE_DONE);
    return desired;
}

static void a_config_is_the_desired_state(void **state)
{
    static const struct pump_config zero;
    struct pump_config desired;

    print(*state, "address: 10.0.0.7\nport: 502\nnames: [a, b]\n", NULL, NULL);
    desired = derive_well(*state);
    assert_string_equal(desired.address, "10.0.0.7");
    assert_int_equal(desired.port, 502);
    assert_int_equal(desired.names_count, 2);
    print(*state, NULL, NULL, NULL);
    desired = derive_well(*state);
    assert_memory_equal(&desired, &zero, sizeof zero);
    print(*state, "# nothing\n", NULL, NULL);
    desired = derive_well(*state);
    assert_memory_equal(&desired, &zero, sizeof zero);
}

static void variables_come_from_every_scope(void **state)
{
    struct pump_config desired;

    print_parent(
        *state, "{site: north, port: 1}", "{IP: 10.0.0.1, PORT: 502}",
        "{enterprise: acme, site: north}");
    print(
        *state,
        "address: {{ .IP }}\nport: {{ .PORT }}\n"
        "id: '{{ .internal.id }} {{ .internal.parent_id }} {{ .internal._created_at }}'\n"
        "place: {{ .location_path }}\nsite: {{ .global.site }}\n",
        "{IP: 10.0.0.9}", "{line: '4'}");
    desired = derive_well(*state);
    assert_string_equal(desired.address, "10.0.0.9");
    assert_int_equal(desired.port, 502);
    assert_string_equal(desired.id, "plant/press/pump plant/press 2026-01-31T10:00:00Z");
    assert_string_equal(desired.place, "acme.north.4");
    assert_string_equal(desired.site, "north");
}

/* Below the root, and below that, and where nothing was said in between. */
static void scopes_reach_the_whole_tree(void **state)
{
    struct fixture *fixture = *state;
    struct det_scope_values deeper;
    struct pump_config desired;

    print_parent(fixture, "{site: north}", "{A: 1, B: 2}", "{enterprise: acme}");
    print(fixture, NULL, "{B: 3, C: 4}", "{area: hall}");
    assert_false(det_user_spec_is_plain(&fixture->spec));
    assert_int_equal(
        det_scope_values_below(
            &deeper, &fixture->memory.allocator, &fixture->below, &fixture->spec),
        0);
    det_scope_values_deinit(&fixture->below);
    det_scope_values_deinit(&fixture->scope);
    fixture->below = deeper;
    print(
        fixture,
        "note: '{{ .A }}{{ .B }}{{ .C }}'\nplace: {{ .location_path }}\n"
        "site: {{ .global.site }}\n",
        NULL, NULL);
    assert_true(det_user_spec_is_plain(&fixture->spec));
    desired = derive_well(fixture);
    assert_string_equal(desired.note, "134");
    assert_string_equal(desired.place, "acme.hall");
    assert_string_equal(desired.site, "north");
}

static void missing_scope_is_an_empty_scope(void **state)
{
    struct fixture *fixture = *state;
    const struct det_derivation what = { .kind = &plain_kind,
                                         .identity = &identity,
                                         .spec = &fixture->spec };
    struct pump_config desired;

    print(
        fixture, "place: '{{ .location_path }}<{{ .internal.parent_id }}>{{ len .global }}'", NULL,
        NULL);
    assert_int_equal(det_derive_desired(NULL, &what, &desired, NULL, &fixture->error), 0);
    assert_string_equal(desired.place, "<>0");
}

static void failures_say_where_they_are(void **state)
{
    static const struct {
        const char *config;
        enum det_derive_step step;
        int code;
        const char *text;
    } rows[] = {
        { "address: {{ .IPP }}", DET_DERIVE_TEMPLATE, DET_ERR_NOT_FOUND,
          "config, line 1, column 13: .IPP: there is no 'IPP'; did you mean 'IP'?" },
        { "address: {{ .global.nope }}", DET_DERIVE_TEMPLATE, DET_ERR_NOT_FOUND, "'nope'" },
        { "a: {{ if }}", DET_DERIVE_TEMPLATE, DET_ERR_MALFORMED, "a value is missing" },
        { "a: [", DET_DERIVE_CONFIG, DET_ERR_MALFORMED, "config, line " },
        { "address: [{{ .IP }}", DET_DERIVE_CONFIG, DET_ERR_MALFORMED, "config as rendered, " },
        { "prot: 1", DET_DERIVE_CONFIG, DET_ERR_UNKNOWN_FIELD, "did you mean 'port'?" },
        { "port: {{ .IP }}", DET_DERIVE_CONFIG, DET_ERR_TYPE,
          "config as rendered, line 1, column 7: port: expected a whole number from 0 to 65535" },
        { "port: 65536", DET_DERIVE_CONFIG, DET_ERR_RANGE, "config, line 1, column 7: port: " },
        { "address: x", DET_DERIVE_REFUSED, DET_ERR_REFUSED,
          "config: port is missing for pump (10 bytes)" },
        { "address: silent", DET_DERIVE_REFUSED, DET_ERR_BUSY, "derive() of the kind deriving" },
        { "address: broken", DET_DERIVE_INVALID, DET_ERR_RANGE, "url" },
    };
    struct fixture *fixture = *state;

    print_parent(fixture, "{site: north}", "{IP: 10.0.0.7}", NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pump_desired desired, before;
        int r;

        memset(&desired, 0xA5, sizeof desired);
        before = desired;
        print(fixture, rows[i].config, NULL, NULL);
        r = derive(fixture, &deriving_kind, &desired);
        if (r != rows[i].code || !strstr(fixture->error.text, rows[i].text))
            fail_msg("%s: %d: %s", rows[i].config, r, fixture->error.text);
        assert_int_equal(fixture->step, rows[i].step);
        assert_memory_equal(&desired, &before, sizeof before);
    }
}

static void derived_record_has_no_stale_bytes(void **state)
{
    struct fixture *fixture = *state;
    struct pump_desired desired, clean;

    memset(&desired, 0xA5, sizeof desired);
    memset(&clean, 0, sizeof clean);
    memcpy(clean.url, "10.0.0.7:502", 13);
    print(fixture, "{address: 10.0.0.7, port: 502}", NULL, NULL);
    assert_int_equal(derive(fixture, &deriving_kind, &desired), 0);
    assert_memory_equal(&desired, &clean, sizeof clean);
}

static void kinds_without_records_take_no_config(void **state)
{
    struct det_empty desired = { .unused = 1 };

    print(*state, NULL, NULL, NULL);
    assert_int_equal(derive(*state, &empty_kind, &desired), 0);
    assert_int_equal(desired.unused, 0);
    print(*state, "a: 1", NULL, NULL);
    assert_int_equal(derive(*state, &empty_kind, &desired), DET_ERR_UNKNOWN_FIELD);
}

static void reserved_variable_names_are_refused(void **state)
{
    static const struct {
        const char *variables, *location, *text;
        int code;
    } rows[] = {
        { "{a: 1, global: 2}", NULL, "variables, line 1, column 8: the name 'global' is reserved",
          DET_ERR_INVALID },
        { "{internal: 2}", NULL, "{{ .internal }} is the map of the facts", DET_ERR_INVALID },
        { "{location_path: 2}", NULL, "is the path of the location", DET_ERR_INVALID },
        { "[1]", NULL, "expected a map of names and values, found a list", DET_ERR_INVALID },
        { "{a: [}", NULL, "variables, line 1", DET_ERR_MALFORMED },
        { NULL, "{sit: x}", "did you mean site", DET_ERR_INVALID },
    };
    struct fixture *fixture = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct det_child_spec child = { .variables = rows[i].variables,
                                              .location = rows[i].location };

        assert_int_equal(
            det_user_spec_init(&fixture->spec, &fixture->memory.allocator, &child, &fixture->error),
            rows[i].code);
        if (!strstr(fixture->error.text, rows[i].text))
            fail_msg("%s", fixture->error.text);
    }
    assert_int_equal(
        det_scope_values_init(&fixture->scope, NULL, "{global: 1, internal: 2}", NULL), 0);
    det_scope_values_deinit(&fixture->scope);
    assert_int_equal(
        det_scope_values_init(&fixture->scope, NULL, "- 1", &fixture->error), DET_ERR_INVALID);
    assert_non_null(strstr(fixture->error.text, "globals, line 1, column 1: expected a map"));
}

/* 17, 28: derived again when something changed that it is made of, and only then. */
static void derivation_hash_depends_on_every_input(void **state)
{
    static const struct {
        const char *config, *variables, *location, *globals, *parent_variables, *parent_location;
    } rows[] = {
        { NULL, NULL, NULL, NULL, NULL, NULL },
        { "a", NULL, NULL, NULL, NULL, NULL },
        { "b", NULL, NULL, NULL, NULL, NULL },
        { "a", "{a: 1}", NULL, NULL, NULL, NULL },
        { "a", "{a: '1'}", NULL, NULL, NULL, NULL },
        { "a", "{b: 1}", NULL, NULL, NULL, NULL },
        { "a", NULL, NULL, "{a: 1}", NULL, NULL },
        { "a", NULL, NULL, NULL, "{a: 1}", NULL },
        { "a", "{a: 1}", NULL, "{a: 1}", NULL, NULL },
        { "a", "{a: 1}", NULL, NULL, "{a: 1}", NULL },
        { "a", NULL, "{site: x}", NULL, NULL, NULL },
        { "a", NULL, "{area: x}", NULL, NULL, NULL },
        { "a", NULL, NULL, NULL, NULL, "{site: x}" },
        { "{a: 1}", NULL, NULL, NULL, NULL, NULL },
    };
    struct fixture *fixture = *state;
    uint64_t hashes[sizeof rows / sizeof rows[0]];

    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            uint64_t hash;

            print_parent(
                fixture, rows[i].globals, rows[i].parent_variables, rows[i].parent_location);
            print(fixture, rows[i].config, rows[i].variables, rows[i].location);
            hash = det_derive_hash(&fixture->spec, &fixture->below);
            assert_true(round == 0 || hashes[i] == hash);
            hashes[i] = hash;
            for (size_t j = 0; j < i; j++)
                assert_true(hashes[j] != hash);
        }
    }
    print(fixture, "", "{}", "{}");
    assert_int_equal(fixture->spec.hash, (print(fixture, NULL, NULL, NULL), fixture->spec.hash));
    print(fixture, "x", "{a: 1, b: 2}", NULL);
    hashes[0] = fixture->spec.hash;
    print(fixture, "x", "{b: 2, a: 1}", NULL);
    assert_int_equal(fixture->spec.hash, hashes[0]);
}

static void specs_are_compared(void **state)
{
    struct fixture *fixture = *state;
    const struct det_child_spec child = { .config = "a: {{ .x }}",
                                          .variables = "{x: [1, {y: 2}]}",
                                          .location = "{site: s, line: l}" };
    struct det_user_spec other;

    print(fixture, "a: {{ .x }}", "{x: [1, {y: 2}]}", "{site: s, line: l}");
    assert_int_equal(det_user_spec_init(&other, &fixture->memory.allocator, &child, NULL), 0);
    assert_true(det_user_spec_equal(&other, &fixture->spec));
    print(fixture, "a: {{ .x }}", "{x: [1, {y: 3}]}", "{site: s, line: l}");
    assert_false(det_user_spec_equal(&other, &fixture->spec));
    det_user_spec_deinit(&other);
}

static int use_all(struct det_test_memory *memory, void *argument)
{
    const struct det_child_spec child = {
        .config = "{address: {{ .IP }}, port: {{ .PORT }}, place: {{ .location_path }}}",
        .variables = "{IP: 10.0.0.7}",
        .location = "{site: x, line: 4}",
    };
    struct det_scope_values scope = { .hash = 0 }, below = { .hash = 0 };
    struct det_user_spec spec = { .hash = 0 }, copy = { .hash = 0 };
    struct det_derivation what = {
        .kind = argument, .identity = &identity, .spec = &copy, .scope = &below
    };
    struct pump_config desired = { .port = 4711 };
    struct det_error error = { 0 };
    int r;

    r = det_scope_values_init(&scope, &memory->allocator, "{site: north}", &error);
    if (r == 0)
        r = det_user_spec_init(&spec, &memory->allocator, &child, &error);
    if (r == 0)
        r = det_scope_values_below(&below, &memory->allocator, &scope, &spec);
    /* The spec of a parent: the port comes from above. */
    what.spec = &spec;
    if (r == 0 && !below.variables)
        r = DET_ERR_NO_MEMORY;
    if (r == 0)
        r = det_user_spec_init(
            &copy, &memory->allocator, &(struct det_child_spec){ .variables = "{PORT: 502}" },
            &error);
    det_scope_values_deinit(&below);
    if (r == 0)
        r = det_scope_values_below(&below, &memory->allocator, &scope, &copy);
    if (r == 0)
        r = det_derive_desired(&memory->allocator, &what, &desired, NULL, &error);
    assert_int_equal(desired.port, r == 0 ? 502 : 4711);
    det_user_spec_deinit(&copy);
    det_user_spec_deinit(&spec);
    det_scope_values_deinit(&below);
    det_scope_values_deinit(&scope);
    return r;
}

static void allocation_failure_is_reported(void **state)
{
    static struct det_worker_kind kind = { .name = "plain",
                                           .desired = { .get = pump_config_record } };

    (void)state;
    det_test_each_failure(use_all, &kind);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(a_config_is_the_desired_state),
        CASE(variables_come_from_every_scope),
        CASE(scopes_reach_the_whole_tree),
        CASE(missing_scope_is_an_empty_scope),
        CASE(failures_say_where_they_are),
        CASE(derived_record_has_no_stale_bytes),
        CASE(kinds_without_records_take_no_config),
        CASE(reserved_variable_names_are_refused),
        CASE(derivation_hash_depends_on_every_input),
        CASE(specs_are_compared),
        CASE(allocation_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
