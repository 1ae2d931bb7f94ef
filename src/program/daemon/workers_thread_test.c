/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* workers_thread_test.c - the workers of `detent up` in the real world: many questions at once,
 * while they come up and while they go. */
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
        json_decref(answers[i].parts);
}

/* A third each: put, look at the store, take one away. */
static void ask_all(struct stage *stage, struct answer answers[ASKS])
{
    char name[16];

    for (int i = 0; i < ASKS; i++) {
        snprintf(name, sizeof name, "w%d", i / 3);
        if (i % 3 == 0)
            begin_ask(
                stage, &answers[i], "workers-upsert",
                json_pack("{s:s, s:s}", "id", name, "kind", "helloworld"));
        else if (i % 3 == 1)
            begin_ask(stage, &answers[i], "workers-dump", NULL);
        else
            begin_ask(stage, &answers[i], "workers-delete", json_pack("{s:s}", "id", "plant/a"));
    }
}

static void many_questions_are_answered(void **state)
{
    struct answer answers[ASKS];
    struct stage stage;
    json_t *list;

    (void)state;
    open_stage_in(&stage, true, HEAD QUICK "  children: [{name: a, kind: examplechild}]\n");
    ask_all(&stage, answers);
    wait_for(&stage, answers, ASKS);
    /* One of the file cannot be taken away, be it there yet or not. */
    for (size_t i = 0; i < ASKS; i++)
        assert_int_equal(answers[i].code[0] != '\0', i % 3 == 2);
    free_answers(answers, ASKS);
    list = ask(&stage, "workers-list", NULL);
    assert_int_equal(json_array_size(list), 2 + ASKS / 3);
    json_decref(list);
    close_stage(&stage);
}

static void it_closes_in_the_middle_of_it(void **state)
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
        cmocka_unit_test(many_questions_are_answered),
        cmocka_unit_test(it_closes_in_the_middle_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
