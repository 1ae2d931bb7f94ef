/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* loan_test.c - tasks whose loop is borrowed by the thread of a function that returns. */
#include "task/behaviour_test.h"

#define SEEDS 200

static int print_ready(struct det_task_context *context, void *argument)
{
    (void)argument;
    det_task_ready(context);
    return 0;
}

/* The message that it is ready is in its attempt, which ends with the function. */
static void a_function_may_say_that_it_is_ready_and_return(void **unused)
{
    (void)unused;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct lab *lab = lab_open_seed(seed, NULL);
        struct det_task_spec spec = {
            .name = "one",
            .function = print_ready,
            .policy = lab_once,
            .readiness = { .by = DET_READY_BY_NOTIFY },
        };
        struct det_waiter *waiter;

        lab_settle(lab);
        assert_int_equal(det_tasks_add(lab->tasks, &spec, &waiter, NULL, NULL), 0);
        assert_int_equal(lab_end(waiter).outcome, DET_TASK_OUTCOME_COMPLETED);
        lab_settle(lab);
        assert_int_equal(lab_count(lab, DET_TASK_EVENT_TASK_READY, "one"), 1);
        lab_close(lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_function_may_say_that_it_is_ready_and_return),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
