/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* location_test.c - the levels of a location: read, merged, as a path. */
#include "worker/location.h"

#include "lib/test.h"

static int setup(void **state)
{
    struct det_arena *arena = calloc(1, sizeof *arena);

    det_arena_init(arena, NULL);
    *state = arena;
    return 0;
}

static int teardown(void **state)
{
    det_arena_deinit(*state);
    free(*state);
    return 0;
}

static int try_read(
    struct det_arena *arena, const char *yaml, struct det_location *ret, struct det_error *reterr)
{
    struct det_datum *datum;

    assert_int_equal(det_datum_from_yaml(arena, "location", yaml, strlen(yaml), &datum, reterr), 0);
    return det_location_read(arena, datum, ret, reterr);
}

static struct det_location read(struct det_arena *arena, const char *yaml)
{
    struct det_location location;
    struct det_error error;

    assert_int_equal(try_read(arena, yaml, &location, &error), 0);
    return location;
}

static void paths(void **state)
{
    static const struct {
        const char *yaml, *path;
    } rows[] = {
        { "", "" },
        { "{}", "" },
        { "[]", "" },
        { "{enterprise: acme}", "acme" },
        { "{cell: c, line: l, area: a, site: s, enterprise: e}", "e.s.a.l.c" },
        { "{enterprise: acme, line: '4'}", "acme.4" },
        { "{enterprise: acme, line: 4}", "acme.4" },
        { "{site: '', enterprise: e, area: ~, cell: c}", "e.c" },
        { "[{type: site, value: s}, {type: enterprise, value: e}]", "e.s" },
        { "[{type: site, value: first}, {type: site, value: last}]", "last" },
        { "[{type: cell, value: 7}]", "7" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct det_location location = read(*state, rows[i].yaml);

        assert_string_equal(det_location_path(*state, &location), rows[i].path);
    }
}

static void location_merge_overrides_the_parent(void **state)
{
    static const struct {
        const char *parent, *child, *path;
    } rows[] = {
        { "{enterprise: e, site: s}", "{line: l}", "e.s.l" },
        { "{enterprise: e, site: s}", "{site: other}", "e.other" },
        { "{enterprise: e, site: s}", "{site: ''}", "e" },
        { "{enterprise: e}", "", "e" },
        { "", "{cell: c}", "c" },
        { "[{type: site, value: s}]", "{site: t, area: a}", "t.a" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct det_location parent = read(*state, rows[i].parent);
        struct det_location child = read(*state, rows[i].child);
        struct det_location merged = det_location_merge(&parent, &child);

        assert_string_equal(det_location_path(*state, &merged), rows[i].path);
    }
}

static void location_levels_are_distinguished(void **state)
{
    static const char *const rows[] = {
        "",           "{site: a}",          "{area: a}", "{site: ''}", "{site: a, area: b}",
        "{site: ab}", "{enterprise: site}",
    };
    size_t count = sizeof rows / sizeof rows[0];

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < count; j++) {
            struct det_location a = read(*state, rows[i]), b = read(*state, rows[j]), copy;

            assert_int_equal(det_location_copy(*state, &b, &copy), 0);
            assert_int_equal(det_location_equal(&a, &copy), i == j);
            assert_int_equal(det_location_hash(&a) == det_location_hash(&copy), i == j);
            assert_int_equal(det_location_is_empty(&a), i == 0);
        }
    }
}

static void invalid_input_is_reported(void **state)
{
    static const struct {
        const char *yaml, *text;
    } rows[] = {
        { "{sit: x}", "location, line 1, column 2: there is no level 'sit'; did you mean site" },
        { "{planet: x}", "the levels are enterprise, site, area, line, cell" },
        { "{site: [x]}", "line 1, column 8: expected text, found a list" },
        { "{site: 1.5}", "put quotes around it" },
        { "text", "expected a map of levels" },
        { "[{type: site}]", "a level in a list is {type: site, value: name}" },
        { "[{type: site, value: x, more: y}]", "a level in a list is" },
        { "[{type: 3, value: x}]", "a level in a list is" },
        { "[site]", "a level in a list is" },
        { "[{type: lne, value: x}]", "did you mean line" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct det_location location;
        struct det_error error;

        assert_int_equal(try_read(*state, rows[i].yaml, &location, &error), DET_ERR_INVALID);
        if (!strstr(error.text, rows[i].text))
            fail_msg("%s: %s", rows[i].yaml, error.text);
    }
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        CASE(paths),
        CASE(location_merge_overrides_the_parent),
        CASE(location_levels_are_distinguished),
        CASE(invalid_input_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
