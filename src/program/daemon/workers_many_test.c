/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_many_test.c - as many workers as a detent.yaml permits run in a simulated world.
 * workers_section_test.c tests reading such a file. */
#include "daemon/workers_test.h"

#include "base/buffer.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MANY 20000
#endif
#endif
#ifndef MANY
#define MANY 100000
#endif

static size_t count_running(struct stage *stage)
{
    struct det_workers_summary summary;

    det_workers_summary(stage->up.workers->supervisor, &summary);
    return summary.by_phase[DET_PHASE_RUNNING];
}

static void as_many_workers_as_the_file_takes_run(void **state)
{
    struct stage stage;
    struct det_buffer text;

    (void)state;
    det_buffer_init(&text, NULL);
    det_buffer_append_text(&text, HEAD "  children:\n");
    for (unsigned i = 0; i < MANY; i++)
        det_buffer_format(&text, "    - {name: w%u, kind: noop}\n", i);
    open_stage(&stage, det_buffer_text(&text));
    for (int second = 0; second < 60 && count_running(&stage) < MANY + 1; second++)
        spend(&stage, DET_SECOND);
    /* The application is one more. */
    assert_int_equal(count_running(&stage), MANY + 1);
    close_stage(&stage);
    det_buffer_deinit(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_many_workers_as_the_file_takes_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
