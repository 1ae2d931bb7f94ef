/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_case_test.c - test files of flows, read without memory at each place. Their contents are
 * tested by tests/e2e/flows.py. */
#include "lib/test.h"

#include <detent/tool/flow_spec.h>

#include "testing/flow_case.h"
#include "yaml/datum.h"

static const char spec_text[] = "#define FLOW_NAME small\n"
                                "RECORD(item)\n    FIELD(n, u64)\nEND\n"
                                "SOURCE(read, item)\nSINK(print, item)\nEDGE(read, print)\n";
static const char case_text[] =
    "flow: small.flow\nwindow: 8\nstages: {read: {a: b}}\n"
    "cases:\n"
    "  - name: one\n    steps:\n"
    "      - rows: {read: [{n: 1}, {n: 2}]}\n        event_time: 2026-01-01T00:00:00Z\n"
    "      - {advance: 5s}\n      - {end: [read]}\n      - {stop: drain}\n      - {crash: true}\n"
    "      - expect: {rows: {print: [{n: 1}]}, rejected: {print: [x]}, end: none, reason: y}\n";

static struct det_flow_spec *spec;

static int read_cases(struct det_test_memory *memory, void *argument)
{
    struct cli_problems problems = { .count = 0 };
    struct flow_case_file file;
    struct det_datum *root;
    struct det_arena arena;
    int r;

    (void)argument;
    det_arena_init(&arena, &memory->allocator);
    r = det_yaml_read(&arena, case_text, strlen(case_text), &root, &problems.items[0]);
    if (r == 0)
        r = flow_case_read_head(&arena, root, &file, &problems);
    if (r == 0)
        r = flow_case_read(&arena, root, det_flow_spec_flow(spec), &file, &problems);
    if (r == 0) {
        const struct flow_case_step *step = file.cases->steps;

        assert_int_equal(file.window, 8);
        assert_int_equal(file.cases->step_count, 6);
        assert_int_equal(step->rows->count, 2);
        assert_int_equal(step->event_time, 1767225600 * DET_SECOND);
        assert_int_equal(step->next->span, 5 * DET_SECOND);
        assert_int_equal(step->next->next->end_count, 1);
        assert_false(step->next->next->next->is_cancel);
        assert_int_equal(step->next->next->next->next->action, FLOW_CASE_CRASH);
    }
    det_arena_deinit(&arena);
    return r;
}

static void reading_survives_each_failed_allocation(void **state)
{
    (void)state;
    assert_int_equal(
        det_flow_spec_read("small.flow", spec_text, strlen(spec_text), NULL, &spec), 0);
    assert_non_null(det_flow_spec_flow(spec));
    det_test_each_failure(read_cases, NULL);
    det_flow_spec_close(spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
