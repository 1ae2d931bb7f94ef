/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template_test.h - what the suites of templates share: data, and rows of what is refused. */
#ifndef DET_WORKER_TEMPLATE_TEST_H
#define DET_WORKER_TEMPLATE_TEST_H

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

static inline int setup(void **state)
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

static inline int teardown(void **state)
{
    struct fixture *fixture = *state;

    det_arena_deinit(&fixture->arena);
    det_buffer_deinit(&fixture->buffer);
    free(fixture);
    return 0;
}

static inline int render(struct fixture *fixture, const char *text, size_t size)
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

struct bad_row {
    const char *template;
    int code;
    const char *text;
};

static inline void check_bad(struct fixture *fixture, const struct bad_row *rows, size_t count)
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

#define CASE(name)             cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
