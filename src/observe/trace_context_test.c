/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trace_context_test.c - the header traceparent, strictly. */
#include "lib/test.h"

#include <detent/trace.h>

#define GOOD "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static void traceparent_round_trips(void **state)
{
    struct det_trace_context context;
    char text[DET_TRACEPARENT_TEXT];

    (void)state;
    assert_int_equal(det_trace_parse(GOOD, strlen(GOOD), &context), 0);
    assert_int_equal(context.trace_id[0], 0x4b);
    assert_int_equal(context.trace_id[15], 0x36);
    assert_int_equal(context.span_id[1], 0xf0);
    assert_int_equal(context.flags, DET_TRACE_SAMPLED);
    assert_string_equal(det_trace_format(&context, text), GOOD);
    context.flags = 0;
    assert_int_equal(det_trace_parse(det_trace_format(&context, text), 55, &context), 0);
    assert_int_equal(context.flags, 0);
}

static void later_traceparent_versions_and_flags_are_tolerated(void **state)
{
    static const char *const later[] = {
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
        "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03-what the future will be like",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
    };
    char text[DET_TRACEPARENT_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof later / sizeof *later; i++) {
        struct det_trace_context context;

        assert_int_equal(det_trace_parse(later[i], strlen(later[i]), &context), 0);
        assert_string_equal(det_trace_format(&context, text), GOOD);
    }
}

static void malformed_traceparents_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "00",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
        " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00F067aa0ba902b7-01",
        "0O-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7_01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b:-01",
    };
    struct det_trace_context context = { .flags = 7 };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (det_trace_parse(bad[i], strlen(bad[i]), &context) != DET_ERR_MALFORMED)
            fail_msg("taken: %s", bad[i]);
    }
    assert_int_equal(context.flags, 7);
}

/* Each in memory that ends where it does. */
static void truncated_traceparent_is_malformed(void **state)
{
    (void)state;
    for (size_t size = 0; size < strlen(GOOD); size++) {
        char *text = malloc(size + (size == 0));
        struct det_trace_context context;

        memcpy(text, GOOD, size);
        assert_int_equal(det_trace_parse(text, size, &context), DET_ERR_MALFORMED);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(traceparent_round_trips),
        cmocka_unit_test(later_traceparent_versions_and_flags_are_tolerated),
        cmocka_unit_test(malformed_traceparents_are_refused),
        cmocka_unit_test(truncated_traceparent_is_malformed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
