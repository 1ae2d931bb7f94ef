/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* review_real_test.c - throw-away proofs in real time. test: threads */
#include "base/memory.h"
#include "worker/lab_test.h"
#include <time.h>
#include <unistd.h>

static int hang_connect(struct det_worker_context *context, void *deps, const void *desired)
{
    (void)context;
    (void)deps;
    (void)desired;
    usleep(30000);
    return 0;
}
static void quiet_close(void *deps)
{
    (void)deps;
}
static void t1_close_with_late_run(void **state)
{
    static struct det_worker_action actions[2];
    static struct det_worker_kind k;
    const struct det_worker_kind *ks[] = { &k, NULL };
    struct plant plant = { 0 };
    struct det_provided provided[2] = { { "plant", &plant } };
    (void)state;
    lab_plant = &plant;
    k = link_kind;
    memcpy(actions, link_kind.actions, sizeof actions);
    actions[0].run = hang_connect;
    k.actions = actions;
    k.close = quiet_close;
    for (int i = 0; i < 300; i++) {
        struct det_workers *workers;
        struct det_workers_options options = { .kinds = ks,
                                               .provided = provided,
                                               .limits = { .tick = DET_MILLISECOND,
                                                           .observe_every = 5 * DET_MILLISECOND,
                                                           .stop_grace = DET_MILLISECOND,
                                                           .restart_grace = DET_MILLISECOND,
                                                           .compact_every = DET_MILLISECOND } };
        assert_int_equal(det_workers_open(&options, &workers, NULL), 0);
        assert_int_equal(det_workers_apply(workers, LAB_LINK, NULL), 0);
        usleep(6000 + (unsigned)(i % 7) * 500);
        int r = det_workers_stop(workers, NULL);
        (void)r;
        det_workers_close(workers);
    }
}
int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(t1_close_with_late_run) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
