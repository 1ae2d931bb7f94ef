/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_thread_test.c - the workers of `detent up` in the real world: concurrent requests while
 * they start and stop. */
/* test: threads */
#include "daemon/workers_test.h"

#define ASKS  24
#define QUICK "  limits: {tick: 1ms, observe_every: 2ms}\n"

static void wait_for(struct stage *stage, const struct answer *answers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        while (!answers[i].is_finished)
            assert_true(det_loop_turn(stage->up.loop, DET_NEVER) >= 0);
    }
}

static void free_answers(struct answer *answers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free_answer(&answers[i]);
}

/* A third each: create one, order the root, delete one. */
static void ask_all(struct stage *stage, struct answer answers[ASKS])
{
    struct order order = { "plant", DET_WORKER_ORDER_ENABLE };
    char name[16];
    struct up_worker_put put = { .id = name, .kind = "helloworld" };

    for (int i = 0; i < ASKS; i++) {
        snprintf(name, sizeof name, "w%d", i / 3);
        if (i % 3 == 0)
            begin_ask(stage, &answers[i], run_put, &put);
        else if (i % 3 == 1)
            begin_ask(stage, &answers[i], run_order, &order);
        else
            begin_ask(stage, &answers[i], run_delete, "plant/a");
    }
}

static void many_concurrent_requests_are_answered(void **state)
{
    struct answer answers[ASKS];
    struct stage stage;

    (void)state;
    open_stage_in(&stage, true, HEAD QUICK "  children: [{name: a, kind: examplechild}]\n");
    ask_all(&stage, answers);
    wait_for(&stage, answers, ASKS);
    /* A worker of the file cannot be deleted, whether it exists yet or not. */
    for (size_t i = 0; i < ASKS; i++)
        assert_int_equal(answers[i].request.error.code < 0, i % 3 == 2);
    free_answers(answers, ASKS);
    assert_int_equal(list_workers(&stage, NULL)->count, 2 + ASKS / 3);
    close_stage(&stage);
}

static void close_during_requests_finishes_all_requests(void **state)
{
    struct answer answers[ASKS];
    struct stage stage;

    (void)state;
    open_stage_in(&stage, true, HEAD QUICK "  children: [{name: a, kind: examplechild}]\n");
    ask_all(&stage, answers);
    up_workers_close(&stage.up);
    for (size_t i = 0; i < ASKS; i++)
        assert_true(answers[i].is_finished);
    free_answers(answers, ASKS);
    close_stage(&stage);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_concurrent_requests_are_answered),
        cmocka_unit_test(close_during_requests_finishes_all_requests),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
