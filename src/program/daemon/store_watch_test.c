/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* store_watch_test.c - the store is polled once a second, also after a reload. */
#include "daemon/machines.h"
#include "daemon/run.h"
#include "lib/test.h"

#include <detent/sim.h>

static unsigned looks;

static bool is_unreachable(struct det_store *store, char *ret_text, size_t size)
{
    (void)store;
    (void)ret_text;
    (void)size;
    looks++;
    return false;
}

static void reload_does_not_poll_the_store_more_often(void **state)
{
    static const struct det_store_ops ops = { .is_unreachable = is_unreachable };
    struct det_store store = { .ops = &ops };
    struct cli cli = { .allocator = NULL };
    struct up *up = calloc(1, sizeof *up);
    struct det_sim *sim;

    (void)state;
    assert_non_null(up);
    assert_int_equal(det_sim_open(&(struct det_sim_options){ .seed = 1 }, &sim, NULL), 0);
    assert_int_equal(det_loop_open(det_sim_world(sim), NULL, &up->loop), 0);
    up->shared = &store;
    up->cli = &cli;
    assert_int_equal(up_store_watch_open(up), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(up_store_watch(up), 0);
    assert_true(det_loop_turn(up->loop, det_loop_now(up->loop) + 3 * DET_SECOND / 2) >= 0);
    assert_int_equal(looks, 1);
    up->shared = NULL;
    assert_int_equal(up_store_watch(up), 0);
    assert_int_equal(det_loop_deadline(up->loop), DET_NEVER);
    up_store_watch_close(up);
    det_loop_close(up->loop);
    up_store_watch_free(up);
    det_sim_close(sim);
    free(up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reload_does_not_poll_the_store_more_often),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
